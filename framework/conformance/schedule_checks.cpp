// Schedules: right timetables for every size or refusals with the rule, equal answers to equal questions.
#include <algorithm>
#include <optional>
#include <thread>

#include "framework/base/plural.hpp"
#include "framework/conformance/check.hpp"

namespace altiplano::conformance {
namespace {

constexpr int kMostStages = 16, kMostMicrobatches = 64;

ScheduleRequest request_of(int stages, int microbatches, int64_t limit = 0, int chunks = 1) {
  ScheduleRequest request;
  request.num_stages = stages;
  request.num_microbatches = microbatches;
  request.max_microbatches_in_flight = limit;
  request.chunks_per_worker = chunks;
  return request;
}

std::string text_of(const ScheduleRequest& r) {
  std::string text = counted(r.num_stages, "stage") + ", " + counted(r.num_microbatches, "microbatch", "microbatches");
  if (r.chunks_per_worker != 1) text += ", " + counted(r.chunks_per_worker, "chunk") + " per worker";
  if (r.max_microbatches_in_flight != 0) text += fmt::format(", at most {} in flight", r.max_microbatches_in_flight);
  return text;
}

/// The timetable after all that it owes by itself; nothing when the size was refused, with a way out.
Result<std::optional<Timetable>> build_checked(Schedule& schedule, const ScheduleRequest& request) {
  auto table = schedule.build(request);
  if (!table.is_ok()) {
    ALTIPLANO_RETURN_IF_ERROR(
        must_mention(table.status(), {"nearest legal value"}).with_context("of " + text_of(request)));
    return std::optional<Timetable>();
  }
  if (Status status = verify_timetable(*table); !status.is_ok())
    return broken("{}: {}\n{}", text_of(request), status.to_string(), table->to_string());
  if (table->num_stages != request.num_stages || table->num_microbatches != request.num_microbatches)
    return broken("{}: the timetable is for {}, {}", text_of(request), counted(table->num_stages, "stage"),
                  counted(table->num_microbatches, "microbatch", "microbatches"));
  return std::optional<Timetable>(std::move(table).value());
}

template <typename Body>
Status for_every_size(Body body) {
  for (int stages = 1; stages <= kMostStages; ++stages)
    for (int microbatches = 1; microbatches <= kMostMicrobatches; ++microbatches)
      ALTIPLANO_RETURN_IF_ERROR(body(stages, microbatches));
  return Status::ok();
}

Finding check_sizes(Schedule& schedule) {
  int num_built = 0;
  ALTIPLANO_RETURN_IF_ERROR(for_every_size([&](int stages, int microbatches) -> Status {
    ALTIPLANO_ASSIGN(auto table, build_checked(schedule, request_of(stages, microbatches)));
    num_built += table.has_value();
    return Status::ok();
  }));
  if (num_built == 0) return broken("it refuses every size of 1-16 stages x 1-64 microbatches");
  return fmt::format("{} of {} sizes built", num_built, kMostStages * kMostMicrobatches);
}

Finding check_repeats(Schedule& schedule) {
  int num_equal = 0;
  ALTIPLANO_RETURN_IF_ERROR(for_every_size([&](int stages, int microbatches) -> Status {
    const ScheduleRequest request = request_of(stages, microbatches);
    auto first = schedule.build(request), second = schedule.build(request);
    if (first.is_ok() != second.is_ok()) return broken("{}: built once and refused once", text_of(request));
    if (!first.is_ok()) return Status::ok();
    const std::string text = first->to_string();
    if (second->to_string() != text)
      return broken("{}: two timetables for one question:\n{}and\n{}", text_of(request), text, second->to_string());
    auto parsed = Timetable::parse(text);
    if (!parsed.is_ok() || parsed->to_string() != text)
      return broken("{}: the text does not parse back:\n{}", text_of(request), text);
    ++num_equal;
    return Status::ok();
  }));
  return fmt::format("{} timetables built twice", num_equal);
}

Finding check_limits(Schedule& schedule) {
  int num_built = 0, num_refused = 0;
  for (int stages : {1, 2, 3, 4, 8, 16}) {
    for (int microbatches : {1, 2, 3, 7, 16, 64}) {
      for (int64_t limit = 1; limit <= 20; ++limit) {
        const ScheduleRequest request = request_of(stages, microbatches, limit);
        ALTIPLANO_ASSIGN(auto table, build_checked(schedule, request));
        ++(table ? num_built : num_refused);
        if (!table) continue;
        for (int most : max_in_flight(*table))
          if (most > limit) return broken("{}: {} are in flight\n{}", text_of(request), most, table->to_string());
      }
    }
  }
  return fmt::format("{} kept, {} refused", num_built, num_refused);
}

Finding check_chunks_and_costs(Schedule& schedule) {
  int num_built = 0, num_refused = 0;
  for (int stages : {1, 2, 4, 6, 8, 16})
    for (int microbatches : {1, 3, 8})
      for (int chunks : {1, 2, 3, 4}) {
        ScheduleRequest request = request_of(stages, microbatches, 0, chunks);
        for (int s = 0; s < stages; ++s) {
          request.forward_cost.push_back(1 + s % 3);
          request.backward_cost.push_back(2 + s % 2);
        }
        ALTIPLANO_ASSIGN(auto table, build_checked(schedule, request));
        ++(table ? num_built : num_refused);
      }
  return fmt::format("{} built, {} refused", num_built, num_refused);
}

Finding check_nonsense(Schedule& schedule) {
  const ScheduleRequest requests[] = {request_of(0, 4),       request_of(-1, 4),    request_of(4, 0),
                                      request_of(4, -2),      request_of(4, 4, -1), request_of(4, 8, 0, 0),
                                      request_of(4, 8, 0, -3)};
  for (const ScheduleRequest& request : requests) {
    auto table = schedule.build(request);
    if (table.is_ok()) return broken("{}: built\n{}", text_of(request), table->to_string());
    ALTIPLANO_RETURN_IF_ERROR(
        must_mention(table.status(), {"nearest legal value"}).with_context("of " + text_of(request)));
  }
  return fmt::format("{} requests refused", std::size(requests));
}

Finding check_threads(Schedule& schedule) {
  constexpr int kThreads = 4;
  std::vector<std::string> texts(kThreads);
  {
    std::vector<std::jthread> threads;
    for (std::string& text : texts)
      threads.emplace_back([&schedule, &text] {
        for (int microbatches = 1; microbatches <= 32; ++microbatches) {
          auto table = schedule.build(request_of(4, microbatches));
          text += table.is_ok() ? table->to_string() : table.status().message();
        }
      });
  }
  if (std::adjacent_find(texts.begin(), texts.end(), std::not_equal_to<>()) != texts.end())
    return broken("{} threads that asked the same at once got different answers", kThreads);
  return fmt::format("{} threads x 32 requests", kThreads);
}

}  // namespace

std::vector<Check> schedule_checks() {
  return {
      check_of<Schedule>("every size is right or refused with the nearest legal value", check_sizes),
      check_of<Schedule>("equal requests give equal timetables that survive printing", check_repeats),
      check_of<Schedule>("a limit of microbatches in flight is kept or refused", check_limits),
      check_of<Schedule>("chunks and unequal costs are right or refused", check_chunks_and_costs),
      check_of<Schedule>("requests that make no sense are refused", check_nonsense),
      check_of<Schedule>("several threads may build at once", check_threads),
  };
}

}  // namespace altiplano::conformance
