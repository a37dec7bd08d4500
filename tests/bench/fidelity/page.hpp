#pragma once
// The words of docs/fidelity-published.md; fidelity.cpp adds the tables.

namespace altiplano::bench {

inline constexpr const char* kPageHead = R"(# The simulator against published runs

What `altiplano simulate` says about training runs that others measured and published, beside their measurements. This page is made by a
program, from the rows in `tests/fixtures/published` and the preset `configs/clusters/dgx-a100-80.yaml`; it is pure computation:

```text
ninja -C build/dev bench_fidelity plugin_model_gpt plugin_schedule_1f1b
build/dev/bin/bench_fidelity > docs/fidelity-published.md
```

## What is compared

vTrain (Bang et al., MICRO 2024) published iteration times of GPT models under Megatron-DeepSpeed on DGX A100 80 GB: 1,079 rows on two to eight
GPUs of one node, 26 rows of a 3.6B model on 64 GPUs and 15 rows of an 18.4B model on 256. Each row is built as a graph by `model/gpt`, planned
with the row's degrees and microbatch, 1F1B, no ZeRO, lowered, and its programs are simulated. vTrain's own simulator, which replays kernels that were
profiled on the machine for each row, is 8.4 % off on one node and 14.7 % on several.

Error is predicted / measured - 1, without its sign in "mean error". Tau is Kendall's over the rows that somebody chooses between (same model,
GPUs and batch), averaged over such groups; regret is how much longer the layout predicted to be the fastest takes than the one that was.

## What was fitted

One set of constants for the machine kind, none per row: rates of products by FLOPs, of memory by bytes, two numbers for attention that writes its
scores and reads them again, what dims that are no multiple of eight cost, and the time in which a host hands over one op. They were fitted to every
sixth row of the single node together with the 18.4B rows; the 3.6B rows took no part. Times of all_reduce within a node are NCCL's as
measured. The network's latency is NCCL's own constant for a hop; of the 12.5 GB/s that four ports of 200 Gb/s give each device, 9.2 fit the 18.4B rows best.
"Each model from the other" fits that one number anew.

What the rows taught, beyond the numbers:

- Small layers wait for the host: a layer's forward and backward takes 3 ms whatever its size, until its kernels take longer.
- A table of 50,257 rows that is not divided makes products that no tensor core likes; padded tables (tensor parallel) do not.
- The single-node rows fit no recomputation: with it their products would have to run above what the device can, though vTrain's configuration files
  ask for it. The rows on several nodes cannot have run without, for want of memory.
- An optimizer's ops are handed over together (multi-tensor kernels).

## What the model does not know

- Megatron recomputes whole layers. Altiplano's programs leave out what the backward pass does not need (each layer's last product and its
  all_reduce), so they do less than what was measured, and the fitted rates make up for it.
- DeepSpeed adds 16-bit gradients over the replicas; Altiplano's programs add f32.
- An allocator near the end of its memory: the largest microbatches of a series took up to twice as long as the next smaller ones (3.6B mbs 64,
  18.4B mbs 16 and tensor 8 x mbs 32), which is in no model here.
- Hosts slow each other down with eight ranks of one tensor group: those rows are predicted too fast.
- Other software on the same GPUs: BLOOM's rows, of which only the links' speed is told to the model, are all predicted too fast, and their order is
  not found.
- NCCL's choice for an all_reduce over two nodes of a tensor group of 16, which is slower than rings along the rails.

## Errors

)";

inline constexpr const char* kMemoryWords = R"(## Memory

Korthikanti et al. (figure 1): states of a stage of blocks, and the first stage's activations with sequence parallelism and attention that keeps no
scores. Where their schedule has v chunks per stage, which Altiplano has not yet, what 1F1B holds is multiplied by 1 + (p - 1) / (p v). Nothing is
fitted here: these are the bytes of the programs' buffers. Attention that keeps its scores is not compared, as Altiplano's never does.

)";

inline constexpr const char* kBloomMemoryWords =
    R"(BLOOM's layouts on GPUs of 80 GB; what the GPUs show includes the driver's context and NCCL's buffers. Both layouts that ran out of memory are
said not to fit. So are three that did fit, with 63 to 76 GB: most of the others are computed too large as well, which is not explained (Altiplano's gradients are f32
and its first and last stages hold a copy each of the table of 250,880 rows).

)";

}  // namespace altiplano::bench
