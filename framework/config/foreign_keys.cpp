#include "framework/config/foreign_keys.hpp"

namespace altiplano {
namespace {

constexpr const char* kMegatron = "Megatron-LM";
constexpr const char* kDeepSpeed = "DeepSpeed";
constexpr const char* kHuggingFace = "Hugging Face";

std::vector<ForeignKey> megatron_keys() {
  return {
      {"num_layers", kMegatron, "model.num_hidden_layers"},
      {"ffn_hidden_size", kMegatron, "model.intermediate_size"},
      {"attention_dropout", kMegatron, "model.attn_pdrop"},
      {"init_method_std", kMegatron, "model.initializer_range"},
      {"norm_epsilon", kMegatron, "model.layer_norm_epsilon"},
      {"untie_embeddings_and_output_weights",
       kMegatron,
       "model.tie_word_embeddings",
       {{"true", "false"}, {"false", "true"}}},
      {"train_iters", kMegatron, "train.max_steps"},
      {"global_batch_size", kMegatron, "train.global_batch_size"},
      {"micro_batch_size", kMegatron, "train.micro_batch_size"},
      {"seq_length", kMegatron, "train.seq_length"},
      {"clip_grad", kMegatron, "train.gradient_clipping"},
      {"log_interval", kMegatron, "train.log_every"},
      {"eval_interval", kMegatron, "train.validate_every"},
      {"eval_iters", kMegatron, "train.validation_batches"},
      {"lr", kMegatron, "optimizer.lr"},
      {"adam_eps", kMegatron, "optimizer.eps"},
      {"sgd_momentum", kMegatron, "optimizer.momentum"},
      {"lr_decay_style", kMegatron, "lr_scheduler.name"},
      {"lr_warmup_iters", kMegatron, "lr_scheduler.warmup_steps"},
      {"lr_decay_iters", kMegatron, "lr_scheduler.decay_steps"},
      {"min_lr", kMegatron, "lr_scheduler.min_lr"},
      {"tensor_model_parallel_size", kMegatron, "parallel.tensor_parallel_size"},
      {"pipeline_model_parallel_size", kMegatron, "parallel.pipeline_parallel_size"},
      {"sequence_parallel", kMegatron, "parallel.sequence_parallel"},
      {"use_distributed_optimizer", kMegatron, "parallel.zero_stage", {{"true", "1"}, {"false", "0"}}},
      {"recompute_granularity", kMegatron, "parallel.recompute"},
      {"recompute_activations", kMegatron, "", {}, "write parallel.recompute: full; attention keeps no scores anyway"},
      {"save", kMegatron, "checkpoint.dir"},
      {"save_interval", kMegatron, "checkpoint.every_steps"},
      {"hidden_dropout", kMegatron, "", {}, "write model.resid_pdrop and model.embd_pdrop"},
      {"adam_beta1", kMegatron, "", {}, "write optimizer.betas: [beta1, beta2]"},
      {"adam_beta2", kMegatron, "", {}, "write optimizer.betas: [beta1, beta2]"},
      {"lr_warmup_fraction", kMegatron, "", {}, "write lr_scheduler.warmup_steps, in steps"},
      {"seed", kMegatron, "", {}, "write train.seed (weights, dropout) and data.seed (order of samples)"},
      {"data_path", kMegatron, "", {}, "write data.train, a file made by `altiplano data pack`"},
      {"load", kMegatron, "", {}, "write train.resume with a path"},
      {"fp16", kMegatron, "", {}, "there is no fp16; write train.precision: bf16"},
      {"context_parallel_size", kMegatron, "", {}, "there is no context parallelism"},
      {"expert_model_parallel_size", kMegatron, "", {}, "there is no expert parallelism"},
  };
}

std::vector<ForeignKey> deepspeed_keys() {
  return {
      {"train_batch_size", kDeepSpeed, "train.global_batch_size"},
      {"train_micro_batch_size_per_gpu", kDeepSpeed, "train.micro_batch_size"},
      {"gradient_clipping", kDeepSpeed, "train.gradient_clipping"},
      {"steps_per_print", kDeepSpeed, "train.log_every"},
      {"zero_optimization.stage", kDeepSpeed, "parallel.zero_stage"},
      {"bf16.enabled", kDeepSpeed, "train.precision", {{"true", "bf16"}}},
      {"optimizer.type", kDeepSpeed, "optimizer.name", {{"AdamW", "adamw"}, {"SGD", "sgd"}}},
      {"optimizer.params.lr", kDeepSpeed, "optimizer.lr"},
      {"optimizer.params.betas", kDeepSpeed, "optimizer.betas"},
      {"optimizer.params.eps", kDeepSpeed, "optimizer.eps"},
      {"optimizer.params.weight_decay", kDeepSpeed, "optimizer.weight_decay"},
      {"optimizer.params.momentum", kDeepSpeed, "optimizer.momentum"},
      {"scheduler.type",
       kDeepSpeed,
       "lr_scheduler.name",
       {{"WarmupLR", "constant"}, {"WarmupDecayLR", "linear"}, {"WarmupCosineLR", "cosine"}}},
      {"scheduler.params.warmup_num_steps", kDeepSpeed, "lr_scheduler.warmup_steps"},
      {"scheduler.params.total_num_steps", kDeepSpeed, "lr_scheduler.decay_steps"},
      {"fp16.enabled", kDeepSpeed, "", {}, "there is no fp16; write train.precision: bf16"},
      {"activation_checkpointing", kDeepSpeed, "", {}, "write parallel.recompute: full, or the names of layers"},
      {"zero_optimization.offload_optimizer", kDeepSpeed, "", {}, "nothing is offloaded"},
  };
}

std::vector<ForeignKey> hugging_face_keys() {
  return {
      {"output_dir", kHuggingFace, "run.dir"},
      {"max_steps", kHuggingFace, "train.max_steps"},
      {"per_device_train_batch_size", kHuggingFace, "train.micro_batch_size"},
      {"gradient_accumulation_steps", kHuggingFace, "train.gradient_accumulation_steps"},
      {"bf16", kHuggingFace, "train.precision", {{"true", "bf16"}}},
      {"max_grad_norm", kHuggingFace, "train.gradient_clipping"},
      {"logging_steps", kHuggingFace, "train.log_every"},
      {"eval_steps", kHuggingFace, "train.validate_every"},
      {"resume_from_checkpoint", kHuggingFace, "train.resume"},
      {"learning_rate", kHuggingFace, "optimizer.lr"},
      {"weight_decay", kHuggingFace, "optimizer.weight_decay"},
      {"adam_epsilon", kHuggingFace, "optimizer.eps"},
      {"lr_scheduler_type", kHuggingFace, "lr_scheduler.name", {{"constant_with_warmup", "constant"}}},
      {"warmup_steps", kHuggingFace, "lr_scheduler.warmup_steps"},
      {"save_steps", kHuggingFace, "checkpoint.every_steps"},
      {"save_total_limit", kHuggingFace, "checkpoint.keep_last"},
      {"data_seed", kHuggingFace, "data.seed"},
      {"gradient_checkpointing", kHuggingFace, "parallel.recompute", {{"true", "full"}, {"false", "none"}}},
      {"num_train_epochs", kHuggingFace, "", {}, "write train.max_steps; the samples of an epoch / global_batch_size"},
      {"warmup_ratio", kHuggingFace, "", {}, "write lr_scheduler.warmup_steps, in steps"},
      {"deepspeed", kHuggingFace, "", {}, "write the keys of that file into this one; DeepSpeed's names are read"},
  };
}

}  // namespace

const std::vector<ForeignKey>& foreign_keys() {
  static const std::vector<ForeignKey> kKeys = [] {
    std::vector<ForeignKey> keys;
    for (auto part : {megatron_keys, deepspeed_keys, hugging_face_keys})
      for (auto& key : part()) keys.push_back(std::move(key));
    return keys;
  }();
  return kKeys;
}

}  // namespace altiplano
