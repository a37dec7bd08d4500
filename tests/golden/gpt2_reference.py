#!/usr/bin/env python3
"""An independent GPT-2 in numpy, float64: the oracle of the reference-parity test.

Everything is derived by hand here (forward, backward, clipping, AdamW); nothing of Altiplano is used. Run it to write
gpt2_reference.json again:

    python3 tests/golden/gpt2_reference.py                  # needs numpy
    python3 tests/golden/gpt2_reference.py --check-torch    # also needs torch; compares, writes nothing

What the file holds:
  config          sizes and hyperparameters under the names of the gpt model and of the job file
  initial         weights before step 1; each is exactly representable in float32, so an fp32 run starts from the same point
  batches         per step: tokens [b,s] and labels [b,s]; label -1 is ignored
  logits          of step 1, [b,s,v]
  gradients       of step 1, of the mean loss, before clipping
  losses          per step: sum over valid tokens / number of valid tokens
  gradient_norms  per step: global norm of the mean loss's gradient, before clipping
  final           weights after the last step

The gradient of a key bias (qkv.bias[1]) is zero in exact arithmetic: softmax does not see it. What is computed is rounding
noise (1e-17 here), which AdamW divides by its own size plus epsilon. Between two correct float64 implementations the final key
bias therefore differs by up to about 1e-10, in float32 freely; the logits do not depend on it.

How it was checked: by --check-torch against PyTorch 2.15.0 (float64, autograd, torch.optim.AdamW): logits, first gradients,
losses, norms and final weights agree to 1e-13, the key biases to 2e-11. Clipping is active in some of the steps, not in all.
"""
import argparse
import json
import os

import numpy as np

CONFIG = {
    "num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 37,
    "max_position_embeddings": 12, "sequence_length": 8, "global_batch_size": 4, "layer_norm_epsilon": 1e-5,
    "activation_function": "gelu_new", "tie_word_embeddings": True, "dropout": 0.0,
    "steps": 10, "learning_rate": 3e-3, "beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8, "weight_decay": 0.1, "clip": 2.2,
    "seed": 20240607,
}


def parameter_shapes(c):
    d, h, f = c["hidden_size"], c["num_attention_heads"], c["intermediate_size"]
    k = d // h
    shapes = {"embedding.token.weight": (c["vocab_size"], d), "embedding.position.weight": (c["max_position_embeddings"], d)}
    for n in range(c["num_hidden_layers"]):
        b = f"block.{n}."
        shapes |= {
            b + "ln1.weight": (d,), b + "ln1.bias": (d,),
            b + "attention.qkv.weight": (d, 3, h, k), b + "attention.qkv.bias": (3, h, k),
            b + "attention.out.weight": (h, k, d), b + "attention.out.bias": (d,),
            b + "ln2.weight": (d,), b + "ln2.bias": (d,),
            b + "mlp.up.weight": (d, f), b + "mlp.up.bias": (f,), b + "mlp.down.weight": (f, d), b + "mlp.down.bias": (d,),
        }
    return shapes | {"head.ln.weight": (d,), "head.ln.bias": (d,)}


def has_decay(name):
    return name.endswith(".weight") and ".ln" not in name


def make_weights(c, rng):
    """Larger than usual, and nothing at 0 or 1, so that every term of every formula counts."""
    weights = {}
    for name, shape in parameter_shapes(c).items():
        w = rng.normal(0.0, 0.25 if has_decay(name) else 0.1, shape)
        if name.endswith("weight") and ".ln" in name:
            w += 1.0
        weights[name] = w.astype(np.float32).astype(np.float64)
    return weights


def make_batches(c, rng):
    """Labels are the next token of a noisy cyclic text; about one in six is ignored, and the share differs per step."""
    batches = []
    b, s, v = c["global_batch_size"], c["sequence_length"], c["vocab_size"]
    for step in range(c["steps"]):
        text = (rng.integers(0, v, (b, 1)) + 5 * np.arange(s + 1)[None, :] + rng.integers(0, 2, (b, s + 1))) % v
        labels = text[:, 1:].copy()
        labels[rng.random((b, s)) < 0.05 + 0.02 * step] = -1
        batches.append((text[:, :-1].copy(), labels))
    return batches


def layer_norm(x, w, b, eps):
    mean = x.mean(-1, keepdims=True)
    rstd = 1.0 / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + eps)
    normal = (x - mean) * rstd
    return normal * w + b, (normal, rstd, w)


def layer_norm_backward(dy, saved):
    normal, rstd, w = saved
    dnormal = dy * w
    dx = rstd * (dnormal - dnormal.mean(-1, keepdims=True) - normal * (dnormal * normal).mean(-1, keepdims=True))
    leading = tuple(range(dy.ndim - 1))
    return dx, (dy * normal).sum(leading), dy.sum(leading)


GELU_A, GELU_B = np.sqrt(2.0 / np.pi), 0.044715


def gelu_new(x):
    return 0.5 * x * (1.0 + np.tanh(GELU_A * (x + GELU_B * x ** 3)))


def gelu_new_derivative(x):
    t = np.tanh(GELU_A * (x + GELU_B * x ** 3))
    return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * GELU_A * (1.0 + 3.0 * GELU_B * x * x)


def attention(qkv, k):
    """qkv [b,s,3,h,k] -> o [b,s,h,k] and the probabilities [b,h,s,t]."""
    q, key, value = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
    s = q.shape[1]
    scores = np.einsum("bshk,bthk->bhst", q, key) / np.sqrt(k)
    scores = np.where(np.tril(np.ones((s, s), bool)), scores, -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    return np.einsum("bhst,bthk->bshk", p, value), p


def attention_backward(do, qkv, p, k):
    q, key, value = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
    dp = np.einsum("bshk,bthk->bhst", do, value)
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) / np.sqrt(k)
    return np.stack([np.einsum("bhst,bthk->bshk", ds, key), np.einsum("bhst,bshk->bthk", ds, q),
                     np.einsum("bhst,bshk->bthk", p, do)], axis=2)


def forward(c, w, tokens):
    k = c["hidden_size"] // c["num_attention_heads"]
    eps = c["layer_norm_epsilon"]
    x = w["embedding.token.weight"][tokens] + w["embedding.position.weight"][: tokens.shape[1]]
    saved = []
    for n in range(c["num_hidden_layers"]):
        p = f"block.{n}."
        y1, norm1 = layer_norm(x, w[p + "ln1.weight"], w[p + "ln1.bias"], eps)
        qkv = np.einsum("bsd,dchk->bschk", y1, w[p + "attention.qkv.weight"]) + w[p + "attention.qkv.bias"]
        o, probabilities = attention(qkv, k)
        x = x + np.einsum("bshk,hkd->bsd", o, w[p + "attention.out.weight"]) + w[p + "attention.out.bias"]
        y2, norm2 = layer_norm(x, w[p + "ln2.weight"], w[p + "ln2.bias"], eps)
        up = y2 @ w[p + "mlp.up.weight"] + w[p + "mlp.up.bias"]
        x = x + gelu_new(up) @ w[p + "mlp.down.weight"] + w[p + "mlp.down.bias"]
        saved.append((y1, norm1, qkv, o, probabilities, y2, norm2, up))
    y, norm = layer_norm(x, w["head.ln.weight"], w["head.ln.bias"], eps)
    return y @ w["embedding.token.weight"].T, (saved, y, norm)


def mean_loss(logits, labels):
    """Mean over valid tokens and its gradient."""
    shifted = logits - logits.max(-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    valid = labels >= 0
    count = valid.sum()
    picked = np.take_along_axis(log_p, np.where(valid, labels, 0)[..., None], -1)[..., 0]
    d = np.exp(log_p)
    np.put_along_axis(d, np.where(valid, labels, 0)[..., None],
                      np.take_along_axis(d, np.where(valid, labels, 0)[..., None], -1) - 1.0, -1)
    return -(picked * valid).sum() / count, d * valid[..., None] / count


def backward(c, w, tokens, dlogits, state):
    k = c["hidden_size"] // c["num_attention_heads"]
    saved, y, norm = state
    g = {"embedding.token.weight": np.einsum("bsv,bsd->vd", dlogits, y)}
    dx, g["head.ln.weight"], g["head.ln.bias"] = layer_norm_backward(dlogits @ w["embedding.token.weight"], norm)
    for n in reversed(range(c["num_hidden_layers"])):
        p = f"block.{n}."
        y1, norm1, qkv, o, probabilities, y2, norm2, up = saved[n]
        g[p + "mlp.down.weight"] = np.einsum("bsf,bsd->fd", gelu_new(up), dx)
        g[p + "mlp.down.bias"] = dx.sum((0, 1))
        dup = (dx @ w[p + "mlp.down.weight"].T) * gelu_new_derivative(up)
        g[p + "mlp.up.weight"] = np.einsum("bsd,bsf->df", y2, dup)
        g[p + "mlp.up.bias"] = dup.sum((0, 1))
        d2, g[p + "ln2.weight"], g[p + "ln2.bias"] = layer_norm_backward(dup @ w[p + "mlp.up.weight"].T, norm2)
        dx = dx + d2
        g[p + "attention.out.weight"] = np.einsum("bshk,bsd->hkd", o, dx)
        g[p + "attention.out.bias"] = dx.sum((0, 1))
        dqkv = attention_backward(np.einsum("bsd,hkd->bshk", dx, w[p + "attention.out.weight"]), qkv, probabilities, k)
        g[p + "attention.qkv.weight"] = np.einsum("bsd,bschk->dchk", y1, dqkv)
        g[p + "attention.qkv.bias"] = dqkv.sum((0, 1))
        d1, g[p + "ln1.weight"], g[p + "ln1.bias"] = layer_norm_backward(
            np.einsum("bschk,dchk->bsd", dqkv, w[p + "attention.qkv.weight"]), norm1)
        dx = dx + d1
    g["embedding.position.weight"] = np.zeros_like(w["embedding.position.weight"])
    g["embedding.position.weight"][: tokens.shape[1]] = dx.sum(0)
    np.add.at(g["embedding.token.weight"], tokens, dx)
    return {name: g[name] for name in w}


def clip_factor(c, norm):
    return min(1.0, c["clip"] / norm) if norm > 0 else 1.0


def adamw(c, w, g, m, v, step, factor):
    for name in w:
        gradient = g[name] * factor
        m[name] = c["beta1"] * m[name] + (1 - c["beta1"]) * gradient
        v[name] = c["beta2"] * v[name] + (1 - c["beta2"]) * gradient ** 2
        mhat = m[name] / (1 - c["beta1"] ** step)
        vhat = v[name] / (1 - c["beta2"] ** step)
        decay = c["weight_decay"] if has_decay(name) else 0.0
        w[name] = w[name] - c["learning_rate"] * (mhat / (np.sqrt(vhat) + c["epsilon"]) + decay * w[name])


def train(c):
    rng = np.random.Generator(np.random.PCG64(c["seed"]))
    w = make_weights(c, rng)
    batches = make_batches(c, rng)
    out = {"config": c, "initial": dict(w), "batches": batches, "losses": [], "gradient_norms": []}
    m = {name: np.zeros_like(x) for name, x in w.items()}
    v = {name: np.zeros_like(x) for name, x in w.items()}
    for step, (tokens, labels) in enumerate(batches, 1):
        logits, state = forward(c, w, tokens)
        loss, dlogits = mean_loss(logits, labels)
        g = backward(c, w, tokens, dlogits, state)
        norm = np.sqrt(sum((x ** 2).sum() for x in g.values()))
        if step == 1:
            out["logits"], out["gradients"] = logits, g
        out["losses"].append(float(loss))
        out["gradient_norms"].append(float(norm))
        adamw(c, w, g, m, v, step, clip_factor(c, norm))
    out["final"] = w
    return out


def train_torch(c, initial, batches):
    """The same with autograd and torch.optim; attention, LayerNorm, GELU and the loss are torch's own."""
    import torch
    import torch.nn.functional as F

    w = {name: torch.tensor(x, dtype=torch.float64, requires_grad=True) for name, x in initial.items()}
    groups = [{"params": [x for name, x in w.items() if has_decay(name)], "weight_decay": c["weight_decay"]},
              {"params": [x for name, x in w.items() if not has_decay(name)], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=c["learning_rate"], betas=(c["beta1"], c["beta2"]), eps=c["epsilon"])
    d, h = c["hidden_size"], c["num_attention_heads"]
    norm_of = lambda x, p: F.layer_norm(x, (d,), w[p + ".weight"], w[p + ".bias"], c["layer_norm_epsilon"])
    out = {"losses": [], "gradient_norms": []}
    for step, (tokens, labels) in enumerate(batches, 1):
        b, s = tokens.shape
        x = F.embedding(torch.tensor(tokens), w["embedding.token.weight"]) + w["embedding.position.weight"][:s]
        for n in range(c["num_hidden_layers"]):
            p = f"block.{n}."
            qkv = F.linear(norm_of(x, p + "ln1"), w[p + "attention.qkv.weight"].reshape(d, 3 * d).T,
                           w[p + "attention.qkv.bias"].reshape(3 * d))
            q, k, v = (t.reshape(b, s, h, d // h).transpose(1, 2) for t in qkv.split(d, dim=2))
            o = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, s, d)
            x = x + F.linear(o, w[p + "attention.out.weight"].reshape(d, d).T, w[p + "attention.out.bias"])
            y = F.gelu(F.linear(norm_of(x, p + "ln2"), w[p + "mlp.up.weight"].T, w[p + "mlp.up.bias"]), approximate="tanh")
            x = x + F.linear(y, w[p + "mlp.down.weight"].T, w[p + "mlp.down.bias"])
        logits = F.linear(norm_of(x, "head.ln"), w["embedding.token.weight"])
        loss = F.cross_entropy(logits.reshape(b * s, -1), torch.tensor(labels).reshape(-1), ignore_index=-1)
        optimizer.zero_grad()
        loss.backward()
        norm = torch.sqrt(sum((t.grad ** 2).sum() for t in w.values()))
        if step == 1:
            out["logits"] = logits.detach().numpy()
            out["gradients"] = {name: t.grad.numpy().copy() for name, t in w.items()}
        out["losses"].append(loss.item())
        out["gradient_norms"].append(norm.item())
        for t in w.values():
            t.grad *= clip_factor(c, norm.item())
        optimizer.step()
    out["final"] = {name: t.detach().numpy() for name, t in w.items()}
    return out


def check_torch(ours):
    theirs = train_torch(CONFIG, ours["initial"], ours["batches"])
    worst = 0.0
    key_bias = 0.0
    for key in ("logits", "losses", "gradient_norms"):
        a, b = np.asarray(ours[key]), np.asarray(theirs[key])
        worst = max(worst, np.abs(a - b).max() / np.abs(b).max())
    for key in ("gradients", "final"):
        for name, b in theirs[key].items():
            difference = np.abs(ours[key][name] - b)
            if name.endswith("qkv.bias"):
                key_bias = max(key_bias, difference[1].max())
                difference = difference[[0, 2]]
            worst = max(worst, difference.max() / np.abs(b).max())
    print(f"largest relative difference to torch: {worst:.2e}; key biases (see above): {key_bias:.2e}")
    if worst > 1e-12 or key_bias > 1e-9:
        raise SystemExit("differs from torch")


def to_json(value):
    if isinstance(value, np.ndarray):
        return value.tolist()  # json writes repr(): every bit comes back
    if isinstance(value, dict):
        return {key: to_json(x) for key, x in value.items()}
    return value


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check-torch", action="store_true", help="compare with PyTorch instead of writing")
    arguments = parser.parse_args()
    result = train(CONFIG)
    print("losses", " ".join(f"{x:.4f}" for x in result["losses"]))
    print("norms ", " ".join(f"{x:.4f}" for x in result["gradient_norms"]))
    if arguments.check_torch:
        return check_torch(result)
    result["batches"] = [{"tokens": t.tolist(), "labels": l.tolist()} for t, l in result["batches"]]
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpt2_reference.json")
    with open(path, "w") as file:
        json.dump(to_json(result), file, separators=(",", ":"))
        file.write("\n")
    print("wrote", os.path.basename(path), os.path.getsize(path), "bytes")


if __name__ == "__main__":
    main()
