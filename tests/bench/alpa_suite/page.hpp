#pragma once
// What docs/alpa-suite.md says around its figures.

namespace altiplano::bench {

inline constexpr const char* kIntroduction = R"(# Plans over the suites of the Alpa paper

Made by a program; do not edit by hand:

```
ninja -C build/dev bench_alpa_suite
build/dev/bin/bench_alpa_suite > docs/alpa-suite.md
```

The Alpa paper (Zheng et al., "Alpa: Automating inter- and intra-operator parallelism for distributed deep learning", OSDI 2022) plans three
families of models that grow with the number of V100 GPUs, up to eight AWS p3.16xlarge: GPT of 0.35 to 39 billion parameters, a mixture of
experts of 0.38 to 70, and Wide-ResNet of 0.25 to 13. They are `model/gpt`, `model/moe` and `model/wide_resnet` here, the cluster is the
preset `p3.16xlarge`. Sizes, batches and published plans are in `tests/support/alpa_suite.cpp`; members of
that list without a row here were not run (`--member` runs one).

Every plan is costed by the same simulator (`docs/simulating.md`). Baselines are the rules people use (`planner/heuristic`: Megatron's,
`planner/deepspeed`, `planner/fsdp`), each with recomputation where nothing fits without; their answers are not among what `planner/dp` considers.
*Published* is the plan that the paper or its artifact gives: stages, GPUs per stage and microbatches; sharding within the stages is
`planner/ilp`'s, as the paper's was its own integer program's, with the GPUs as replicas or on one axis that is used as the search finds, with
recomputation or without: the fastest that fits counts. Where stages differ in their replicas, which plans here cannot say, the one axis stands for
both. Bold: slower than the best baseline by more than 0.5 %.
)";

inline constexpr const char* kTimesHead =
    "| model | GPUs | dp | heuristic | deepspeed | fsdp | published | dp against the best baseline | against published "
    "|\n|---|---|---|---|---|---|---|---|---|";

inline constexpr const char* kPlansIntroduction = R"(## The plans

Microbatches are given as number x samples per replica; GB are those of the fullest GPU, of 16. The last column is what the paper measured, in TFLOP/s per GPU, and in brackets its best hand-made baseline.
)";

inline constexpr const char* kPlansHead = "| model | dp | GB | published | GB | measured |\n|---|---|---|---|---|---|";

inline constexpr const char* kFidelityIntroduction = R"(## How far to believe the seconds

The preset's rates are fitted to what single nodes of V100 did elsewhere (its `source` names them), not to these runs. Measured seconds of GPT
are the paper's TFLOP/s turned back by its own formula, which counts a second forward pass: Alpa recomputed
everything, which takes a third longer than the plans of `planner/dp` here that keep what fits.
)";

inline constexpr const char* kFidelityHead =
    "| model | measured s | predicted s | error | plan |\n|---|---|---|---|---|";

inline constexpr const char* kReducedIntroduction = R"(## Against all plans

Reduced members, small enough to try every plan: all replica counts, all tensor degrees per stage, all divisions of the layers into stages, all
sizes of microbatches, each with its sharding by `planner/ilp`, each simulated. The gap is how much longer the plan of `planner/dp` takes than the
best of them that fits. Neither recomputes.
)";

inline constexpr const char* kReducedHead = "| suite | plans that fit | best | dp | gap |\n|---|---|---|---|---|";

}  // namespace altiplano::bench
