// The records of the job file. Help texts are one sentence; they are the reference page.
#include "framework/config/job_config.hpp"

namespace altiplano {
namespace {

constexpr auto kBool = OptionType::kBool;
constexpr auto kInt = OptionType::kInt;
constexpr auto kFloat = OptionType::kFloat;
constexpr double kMaxBatch = 1 << 30;   ///< samples; products of three stay below 2^63
constexpr double kMaxDegree = 1 << 16;  ///< ranks along one axis
constexpr double kMaxSteps = 1 << 30;   ///< steps x samples stays below 2^60
constexpr double kMaxSequence = 1 << 24;
constexpr double kMaxRate = 1000;  ///< decays and epsilons: beyond, something is mistyped

OptionValue text(const char* value) {
  return std::string(value);
}
OptionValue whole(int64_t value) {
  return value;
}

std::vector<OptionRecord> run_and_model_records() {
  return {
      {.key = "run.name", .help = "Name of the run, for logs and folders; default: the job file's name without .yaml."},
      {.key = "run.dir", .help = "Folder of logs, metrics and checkpoints; default: runs/<run.name>."},
      {.key = "model.kind",
       .help = "Model plugin (model/<kind>); it declares the other keys of this section.",
       .required = true},
  };
}

std::vector<OptionRecord> data_records() {
  return {
      {.key = "data.train",
       .type = OptionType::kFiles,
       .help = "File of training tokens, as `altiplano data pack` writes it, or several mixed by weight: "
               "`[{path: a.h5, weight: 3}, {path: b.h5, weight: 1}]` takes three of four samples from a.h5."},
      {.key = "data.documents",
       .default_value = text("concatenate"),
       .help = "Several documents in one sample: concatenate lets attention cross from one to the next, packed keeps "
               "it within each.",
       .choices = {"concatenate", "packed"}},
      {.key = "data.positions",
       .default_value = text("document"),
       .help = "With data.documents packed: positions count from the start of each document, or through the sample.",
       .choices = {"document", "sample"}},
      {.key = "data.validation.file", .help = "File of validation tokens; not together with data.validation.fraction."},
      {.key = "data.validation.fraction",
       .type = kFloat,
       .default_value = 0.0,
       .help = "Share at the end of data.train that is kept from training and used for validation.",
       .minimum = 0,
       .maximum = 1,
       .below_maximum = true},
      {.key = "data.seed", .type = kInt, .default_value = whole(1), .help = "Seed of the sample order.", .minimum = 0},
  };
}

std::vector<OptionRecord> batch_records() {
  return {
      {.key = "train.max_steps",
       .type = kInt,
       .help = "Optimizer steps of the whole run, resumed parts included.",
       .required = true,
       .minimum = 1,
       .maximum = kMaxSteps},
      {.key = "train.global_batch_size",
       .type = kInt,
       .help = "Samples per step over all ranks: micro_batch_size x gradient_accumulation_steps x data_parallel_size.",
       .minimum = 1,
       .maximum = kMaxBatch},
      {.key = "train.micro_batch_size",
       .type = kInt,
       .help = "Samples per microbatch and replica; auto: follows from the other two sizes, else the planner chooses.",
       .minimum = 1,
       .maximum = kMaxDegree,
       .allow_auto = true},
      {.key = "train.gradient_accumulation_steps",
       .type = kInt,
       .help = "Microbatches per step and replica; auto: follows from the other two sizes.",
       .minimum = 1,
       .maximum = kMaxDegree,
       .allow_auto = true},
      {.key = "train.seq_length",
       .type = kInt,
       .help = "Tokens per sample.",
       .required = true,
       .minimum = 1,
       .maximum = kMaxSequence},
  };
}

std::vector<OptionRecord> loop_records() {
  return {
      {.key = "train.precision",
       .default_value = text("fp32"),
       .help = "Type of parameters and activations; bf16 keeps fp32 master weights.",
       .choices = {"fp32", "bf16", "fp64"}},
      {.key = "train.gradient_clipping",
       .type = kFloat,
       .default_value = 1.0,
       .help = "Largest global gradient norm; 0: no clipping.",
       .minimum = 0,
       .maximum = 1e6,
       .aliases = {"train.max_grad_norm"}},
      {.key = "train.seed",
       .type = kInt,
       .default_value = whole(1),
       .help = "Seed of initial weights and dropout.",
       .minimum = 0},
      {.key = "train.log_every",
       .type = kInt,
       .default_value = whole(10),
       .help = "Steps between step lines.",
       .minimum = 1,
       .maximum = kMaxSteps},
      {.key = "train.validate_every",
       .type = kInt,
       .default_value = whole(0),
       .help = "Steps between validations; 0: never.",
       .minimum = 0,
       .maximum = kMaxSteps},
      {.key = "train.validation_batches",
       .type = kInt,
       .default_value = whole(8),
       .help = "Global batches per validation.",
       .minimum = 1,
       .maximum = kMaxSteps},
      {.key = "train.time_limit",
       .help =
           "Time after which this start of the run has saved and ended with exit code 75, as Slurm writes times: 90 "
           "(minutes), 90:30, 1:30:00, 2-0, 2-0:30 or 2-12:30:00; auto: the end of the Slurm job, if there is one; "
           "none: no limit.",
       .allow_auto = true},
      {.key = "train.resume",
       .default_value = text("auto"),
       .help = "Checkpoint to start from: auto (newest usable one, if any), must (refuse to start without one), none, "
               "or a path."},
  };
}

std::vector<OptionRecord> optimizer_records() {
  return {
      {.key = "optimizer.name", .default_value = text("adamw"), .help = "Update rule.", .choices = {"adamw", "sgd"}},
      {.key = "optimizer.lr",
       .type = kFloat,
       .default_value = 3e-4,
       .help = "Highest learning rate, reached after warm-up.",
       .minimum = 0,
       .aliases = {"optimizer.learning_rate"}},
      {.key = "optimizer.betas",
       .type = OptionType::kFloatList,
       .default_value = std::vector<double>{0.9, 0.95},
       .help = "Decay rates of adamw's two moments.",
       .minimum = 0,
       .maximum = 1,
       .below_maximum = true,
       .list_length = 2},
      {.key = "optimizer.eps",
       .type = kFloat,
       .default_value = 1e-8,
       .help = "Added to adamw's denominator.",
       .minimum = 0,
       .maximum = kMaxRate},
      {.key = "optimizer.weight_decay",
       .type = kFloat,
       .default_value = 0.1,
       .help = "Decoupled weight decay; biases and norms have none.",
       .minimum = 0,
       .maximum = kMaxRate},
      {.key = "optimizer.momentum",
       .type = kFloat,
       .default_value = 0.0,
       .help = "Momentum of sgd.",
       .minimum = 0,
       .maximum = 1,
       .below_maximum = true},
      {.key = "lr_scheduler.name",
       .default_value = text("cosine"),
       .help = "Shape of the learning rate after warm-up.",
       .choices = {"constant", "linear", "cosine"}},
      {.key = "lr_scheduler.warmup_steps",
       .type = kInt,
       .default_value = whole(0),
       .help = "Steps over which the rate rises linearly from 0.",
       .minimum = 0,
       .maximum = kMaxSteps,
       .aliases = {"lr_scheduler.num_warmup_steps"}},
      {
          .key = "lr_scheduler.min_lr",
          .type = kFloat,
          .default_value = 0.0,
          .help = "Rate at the end of the decay.",
          .minimum = 0,
      },
      {.key = "lr_scheduler.decay_steps",
       .type = kInt,
       .help = "Step at which the decay ends, warm-up included; auto: train.max_steps.",
       .minimum = 1,
       .maximum = kMaxSteps,
       .allow_auto = true},
  };
}

OptionRecord degree_record(const char* key, const char* help) {
  return {.key = key, .type = kInt, .help = help, .minimum = 1, .maximum = kMaxDegree, .allow_auto = true};
}

std::vector<OptionRecord> parallel_records() {
  return {
      {.key = "parallel.planner.stages",
       .default_value = text("heuristic"),
       .help = "Planner plugin that divides layers and ranks; `parallel.planner: NAME` sets both halves; one that "
               "the planner has not is left to the default."},
      {.key = "parallel.planner.sharding",
       .default_value = text("heuristic"),
       .help = "Planner plugin that splits tensors within a stage."},
      {.key = "parallel.schedule",
       .default_value = text("auto"),
       .help = "Pipeline schedule plugin (gpipe, 1f1b); auto: the planner chooses."},
      degree_record("parallel.data_parallel_size", "Replicas; auto: the planner chooses."),
      degree_record("parallel.tensor_parallel_size", "Ranks that share each layer; auto: the planner chooses."),
      degree_record("parallel.pipeline_parallel_size", "Pipeline stages; auto: the planner chooses."),
      {.key = "parallel.sequence_parallel",
       .type = kBool,
       .default_value = true,
       .help = "Split activations along the sequence between tensor-parallel regions."},
      {.key = "parallel.zero_stage",
       .type = kInt,
       .help =
           "What is split over the replicas instead of kept whole by each: 0 nothing, 1 the optimizer's state, 2 the "
           "sums of gradients too (reduced after every backward pass), 3 the parameters too (gathered for every "
           "use); auto: 1 where that fits the memory.",
       .minimum = 0,
       .maximum = 3,
       .allow_auto = true},
      {.key = "parallel.recompute",
       .default_value = text("auto"),
       .help = "Layers of which the backward pass computes again what it needs, instead of keeping it: none, full (all "
               "but the last) or names such as \"block.0-5, block.8\"; auto: as few as fit "
               "the memory."},
      {.key = "parallel.pipeline.split",
       .type = OptionType::kIntList,
       .help = "Layers per stage, first stage first; default: as equal as the planner finds right.",
       .minimum = 1,
       .maximum = kMaxDegree},
      {.key = "parallel.sharding",
       .type = OptionType::kStringMap,
       .default_value = StringMap{},
       .help = "Shardings by glob over value names, e.g. {\"block.*.mlp.up.weight\": \"[-, {tensor}]\"}; the first "
               "match wins."},
  };
}

std::vector<OptionRecord> comm_records() {
  return {
      {.key = "comm.backend",
       .default_value = text("auto"),
       .help = "Communication plugin (shm, ucx, mpi, inproc); auto: one whose capabilities connect the ranks."},
      {.key = "comm.timeout_seconds",
       .type = kFloat,
       .default_value = 60.0,
       .help = "Deadline of every wait for another rank.",
       .minimum = 0.001,
       .maximum = 1e6},
      {.key = "comm.chunk_bytes",
       .type = kInt,
       .default_value = whole(1 << 18),
       .help = "Bytes of one staging chunk of a transfer.",
       .minimum = 64,
       .maximum = 1 << 30},
      {.key = "comm.check_calls",
       .type = kBool,
       .default_value = false,
       .help = "Compare kind, type, count and number of every collective across its ranks before it runs, and name "
               "both sides where they differ, for finding faults. For comm plugins that do not compare anyway, "
               "as comm/shm and comm/inproc do."},
      {.key = "comm.two_level",
       .type = kBool,
       .default_value = true,
       .help = "Ranks of one host exchange over shared memory though the job has others, and collectives between hosts "
               "send each byte between two of them once. For comm plugins that connect hosts."},
      {.key = "comm.algorithm",
       .default_value = text("auto"),
       .help = "How collectives between hosts are made of messages: direct, ring, recursive; auto: by size and group. "
               "Another than auto leaves two levels out.",
       .choices = {"auto", "direct", "ring", "recursive"}},
  };
}

std::vector<OptionRecord> device_records() {
  return {
      {.key = "device.kind", .default_value = text("cpu"), .help = "Device plugin (cpu, reference)."},
      {.key = "device.threads",
       .type = kInt,
       .help = "Compute threads per rank; auto: cores of the affinity mask divided by the ranks that share it.",
       .minimum = 1,
       .maximum = 4096,
       .allow_auto = true},
      {.key = "device.kernels",
       .default_value = text("auto"),
       .help = "auto: each product in the form that was measured to be the fastest (kept in the user's cache and in "
               "checkpoints); plain: in the device's first form, the same on every machine.",
       .choices = {"auto", "plain"}},
  };
}

std::vector<OptionRecord> checkpoint_records() {
  return {
      {.key = "checkpoint.every_steps",
       .type = kInt,
       .default_value = whole(0),
       .help = "Steps between checkpoints; 0: only at the end of the run.",
       .minimum = 0,
       .maximum = kMaxSteps},
      {.key = "checkpoint.keep_last",
       .type = kInt,
       .default_value = whole(3),
       .help = "Newest checkpoints that are kept; 0: all.",
       .minimum = 0,
       .maximum = kMaxSteps},
      {.key = "checkpoint.keep_every",
       .type = kInt,
       .default_value = whole(0),
       .help = "Checkpoints of steps that are multiples of this are kept for good, besides the newest; 0: none.",
       .minimum = 0,
       .maximum = kMaxSteps},
      {.key = "checkpoint.dir", .help = "Folder of checkpoints; default: <run.dir>/checkpoints."},
  };
}

std::vector<OptionRecord> machine_records() {
  return {
      {.key = "cluster",
       .default_value = text("this-machine"),
       .help = "Hardware to plan for: the name of a preset, or a cluster file."},
      {.key = "plugins.path",
       .type = OptionType::kStringList,
       .default_value = std::vector<std::string>{},
       .help = "Folders with plugins, searched before ALTIPLANO_PLUGIN_PATH and the installed ones."},
      {.key = "memory.per_rank",
       .help = "Memory that one rank may use, e.g. 31.5 MiB; auto: the device's share.",
       .allow_auto = true},
  };
}

/// Texts for sbatch without a default: what is not given is left to the site.
OptionRecord site_record(const char* key, const char* help) {
  return {.key = key, .help = help};
}

// What `altiplano submit` asks Slurm for, and `altiplano supervise` keeps to.

std::vector<OptionRecord> slurm_site_records() {
  return {
      site_record("slurm.job_name", "Name of the Slurm job; default: run.name."),
      site_record("slurm.partition", "sbatch --partition; default: the site's."),
      site_record("slurm.account", "sbatch --account; default: the site's."),
      site_record("slurm.qos", "sbatch --qos; default: the site's."),
      site_record("slurm.constraint", "sbatch --constraint; default: none."),
      site_record("slurm.reservation", "sbatch --reservation; default: none."),
      site_record("slurm.time", "Time limit of each job, as Slurm writes times; default: the site's."),
      site_record("slurm.gres", "sbatch --gres, e.g. gpu:4; default: none."),
      site_record("slurm.mem", "sbatch --mem, memory of a node, 0 for all; default: the site's."),
  };
}

std::vector<OptionRecord> slurm_geometry_records() {
  constexpr double kMostNodes = 1 << 16;
  return {
      {.key = "slurm.nodes",
       .type = kInt,
       .default_value = whole(1),
       .help = "Nodes that train.",
       .minimum = 1,
       .maximum = kMostNodes},
      {.key = "slurm.spare_nodes",
       .type = kInt,
       .default_value = whole(0),
       .help = "Nodes allocated besides, which take the place of those that die.",
       .minimum = 0,
       .maximum = kMostNodes},
      {.key = "slurm.min_nodes",
       .type = kInt,
       .default_value = whole(1),
       .help = "With fewer nodes left than this the job is requeued instead of going on with them.",
       .minimum = 1,
       .maximum = kMostNodes},
      {.key = "slurm.ntasks_per_node",
       .type = kInt,
       .default_value = whole(1),
       .help = "Ranks of a node.",
       .minimum = 1,
       .maximum = 4096},
      {.key = "slurm.cpus_per_task",
       .type = kInt,
       .default_value = whole(1),
       .help = "Processors of a rank.",
       .minimum = 1,
       .maximum = 4096},
  };
}

std::vector<OptionRecord> slurm_survival_records() {
  return {
      {.key = "slurm.signal_seconds",
       .type = kInt,
       .default_value = whole(180),
       .help = "How long before the end of the job's time ranks are told to save and stop; Slurm may do it a minute "
               "earlier; 0: never.",
       .minimum = 0,
       .maximum = 65535},
      {.key = "slurm.requeue",
       .type = kBool,
       .default_value = true,
       .help = "Put the job back into the queue when it has saved and stopped, and when a node fails."},
      {.key = "slurm.chain",
       .type = kInt,
       .default_value = whole(1),
       .help = "Jobs submitted, each to start when the one before has ended; more than 1: they are not requeued at the "
               "end of their time.",
       .minimum = 1,
       .maximum = 1000},
      {.key = "slurm.supervise",
       .type = kBool,
       .default_value = true,
       .help = "Start the ranks by `altiplano supervise`, which goes on without nodes that die; false: by srun alone."},
      {.key = "slurm.heartbeat_seconds",
       .type = kFloat,
       .default_value = 10.0,
       .help = "A node from which nothing is heard for this long is given up.",
       .minimum = 1,
       .maximum = 3600},
      {.key = "slurm.stall_seconds",
       .type = kFloat,
       .default_value = 50.0,
       .help =
           "A rank that does nothing for this long in a step, and waits for no other, is named, and all ranks start "
           "again; at least twice slurm.heartbeat_seconds unless set. At comm.timeout_seconds the others end anyway.",
       .minimum = 1,
       .maximum = 1e6},
      {.key = "slurm.max_restarts",
       .type = kInt,
       .default_value = whole(3),
       .help = "Restarts in a row that bring no new checkpoint before the supervisor gives up.",
       .minimum = 0,
       .maximum = 1000},
      {.key = "slurm.setup",
       .type = OptionType::kStringList,
       .default_value = std::vector<std::string>{},
       .help = "Shell lines of the script before anything is started, e.g. module load."},
      {.key = "slurm.options",
       .type = OptionType::kStringList,
       .default_value = std::vector<std::string>{},
       .help = "Further options of sbatch, e.g. --switches=1@30."},
  };
}

}  // namespace

std::vector<OptionRecord> job_option_records() {
  std::vector<OptionRecord> records;
  for (auto part : {run_and_model_records, data_records, batch_records, loop_records, optimizer_records,
                    parallel_records, comm_records, device_records, checkpoint_records, machine_records,
                    slurm_site_records, slurm_geometry_records, slurm_survival_records}) {
    for (auto& record : part()) records.push_back(std::move(record));
  }
  return records;
}

std::vector<Shorthand> job_shorthands() {
  return {{"parallel.planner", {"parallel.planner.stages", "parallel.planner.sharding"}}};
}

}  // namespace altiplano
