"""The GPT of bench_step in PyTorch, as its documentation advises: scaled_dot_product_attention, fused AdamW, autocast for bf16,
DistributedDataParallel over gloo for several ranks. Prints the seconds of each step, one a line, and at the end the bytes that
rank 0 had in memory at most.

    python3 tests/bench/torch_gpt.py --layers 6 --hidden 384 --heads 6 --vocabulary 257 --sequence 256 --batch 12 --steps 5
"""
import argparse
import os
import resource
import time

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.projection = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        batch, sequence, hidden = x.shape
        q, k, v = self.qkv(self.ln_1(x)).view(batch, sequence, 3, self.heads, hidden // self.heads).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(attended.transpose(1, 2).reshape(batch, sequence, hidden))
        return x + self.down(functional.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(a.vocabulary, a.hidden), nn.Embedding(a.sequence, a.hidden)
        self.blocks = nn.ModuleList(Block(a.hidden, a.heads) for _ in range(a.layers))
        self.ln = nn.LayerNorm(a.hidden)
        self.register_buffer("places", torch.arange(a.sequence), persistent=False)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, tokens, labels):
        x = self.tokens(tokens) + self.positions(self.places)
        for block in self.blocks:
            x = block(x)
        logits = functional.linear(self.ln(x), self.tokens.weight)
        return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


def train(rank, a):
    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    if a.ranks > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(a.port))
        torch.distributed.init_process_group("gloo", rank=rank, world_size=a.ranks)
    model = GPT(a)
    if a.ranks > 1:
        model = nn.parallel.DistributedDataParallel(model)
    step_model = torch.compile(model) if a.compile else model
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}], lr=3e-4, fused=True)
    tokens = torch.randint(a.vocabulary, (a.batch // a.ranks, a.sequence + 1))
    for _ in range(a.steps):
        begin = time.perf_counter()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=a.precision == "bf16"):
            loss = step_model(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()
        if rank == 0:
            print(f"{time.perf_counter() - begin:.6f}", flush=True)
    if rank == 0:
        print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, flush=True)
    if a.ranks > 1:
        torch.distributed.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    for name in ("layers", "hidden", "heads", "vocabulary", "sequence", "batch", "steps"):
        parser.add_argument("--" + name, type=int, required=True)
    for name, default in (("ranks", 1), ("threads", 1), ("port", 29533)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--compile", action="store_true")
    a = parser.parse_args()
    if a.ranks == 1:
        train(0, a)
    else:
        torch.multiprocessing.spawn(train, args=(a,), nprocs=a.ranks)


if __name__ == "__main__":
    main()
