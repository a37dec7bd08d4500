#include "framework/runtime/step_measurement.hpp"

#include "framework/runtime/batch_input.hpp"
#include "framework/runtime/step_decision.hpp"

namespace altiplano {

Result<StepProfile> measure_steps(const Job& job, const BatchSource& source, RankModel& model, int64_t steps) {
  BatchInput input(source, *job.graph);
  Executor& executor = model.executor();
  StepProfile profile(model.program());
  ALTIPLANO_RETURN_IF_ERROR(executor.initialize(job.graph->seed));
  for (int64_t step = 1; step <= steps + 1; ++step) {
    StepScalars scalars;
    scalars.step = step;
    scalars.learning_rate = 1e-5;
    input.start(BatchInput::Part::kTraining, (step - 1) * job.plan.global_batch);
    executor.measure(step > 1 ? &profile : nullptr);
    const auto begin = std::chrono::steady_clock::now();
    ALTIPLANO_RETURN_IF_ERROR(executor.run_step(input, scalars, [&](const StepTotals& totals, StepScalars& s) {
      const StepDecision decision = decide_step(totals, job.config.options.get_float("train.gradient_clipping"));
      s.gradient_scale = decision.gradient_scale;
      return decision.applies;
    }));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    if (step > 1) profile.end_step(seconds.count());
  }
  return profile;
}

}  // namespace altiplano
