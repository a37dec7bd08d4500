#pragma once
// base/ (L0): what every other folder uses and nothing of the domain: Status and Result, strong ids, units, logging,
// text, counter-based random numbers. It may include nothing of framework/ but itself.
//
// Status: how a function says that it could not do its work. User mistakes carry the numbers, the rule and the valid
// alternatives in `message`; callers add context on the way up ("while planning stage 3"). Own bugs are assertions
// (ALTIPLANO_ASSERT), never a Status. Thread-safe as any value.
#include <fmt/format.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace altiplano {

/// Each code has one process exit code (exit_code_of): the numbers of ARCHITECTURE.md, "exit codes".
enum class StatusCode {
  kOk,
  kRuntimeFailure,   ///< exit 1
  kInvalidArgument,  ///< exit 2: usage or configuration
  kInfeasible,       ///< exit 3: no feasible plan
  kNoCheckpoint,     ///< exit 4: no usable checkpoint though one is required
  kDiverged,         ///< exit 5
  kStoppedEarly,     ///< exit 75: saved and stopped early, requeue me
  kPeerStuck,        ///< exit 124: a wait ran into its deadline
  kCancelled,        ///< another rank failed first; exit 1
};

int exit_code_of(StatusCode code);
const char* to_string(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}
  static Status ok() { return {}; }

  bool is_ok() const { return code_ == StatusCode::kOk; }
  explicit operator bool() const { return is_ok(); }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }
  /// Adds what was going on when it failed; printed innermost first.
  Status& with_context(std::string context) {
    if (!is_ok()) context_.push_back(std::move(context));
    return *this;
  }
  /// "message (while X; while Y)".
  std::string to_string() const;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
  std::vector<std::string> context_;
};

template <typename... Args>
Status invalid_argument(fmt::format_string<Args...> format, Args&&... args) {
  return {StatusCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...)};
}
template <typename... Args>
Status runtime_failure(fmt::format_string<Args...> format, Args&&... args) {
  return {StatusCode::kRuntimeFailure, fmt::format(format, std::forward<Args>(args)...)};
}
template <typename... Args>
Status infeasible(fmt::format_string<Args...> format, Args&&... args) {
  return {StatusCode::kInfeasible, fmt::format(format, std::forward<Args>(args)...)};
}

[[noreturn]] void failed_result_used(const Status& status);

/// Value or Status. `value()` on a failed Result is a bug and aborts with the message.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit on purpose
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: implicit on purpose

  bool is_ok() const { return value_.has_value(); }
  explicit operator bool() const { return is_ok(); }
  const Status& status() const { return status_; }
  T& value() & { return check(), *value_; }
  const T& value() const& { return check(), *value_; }
  T&& value() && { return check(), std::move(*value_); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  void check() const {
    if (!value_) failed_result_used(status_);
  }
  std::optional<T> value_;
  Status status_;
};

[[noreturn]] void assertion_failed(const char* condition, const char* file, int line, const std::string& message);

}  // namespace altiplano

/// A broken assumption of ours, checked in every build type.
#define ALTIPLANO_ASSERT(condition, ...)                                                                       \
  do {                                                                                                         \
    if (!(condition)) ::altiplano::assertion_failed(#condition, __FILE__, __LINE__, fmt::format(__VA_ARGS__)); \
  } while (false)

#define ALTIPLANO_CONCAT_(a, b) a##b
#define ALTIPLANO_CONCAT(a, b) ALTIPLANO_CONCAT_(a, b)
/// Returns the Status of `expression` from the enclosing function unless it is ok.
#define ALTIPLANO_RETURN_IF_ERROR(expression)                                                     \
  do {                                                                                            \
    if (auto altiplano_status = (expression); !altiplano_status.is_ok()) return altiplano_status; \
  } while (false)
/// ALTIPLANO_ASSIGN(auto x, f()): declares x from a Result or returns its Status.
#define ALTIPLANO_ASSIGN(declaration, expression) \
  ALTIPLANO_ASSIGN_(ALTIPLANO_CONCAT(altiplano_result_, __LINE__), declaration, expression)
#define ALTIPLANO_ASSIGN_(temporary, declaration, expression) \
  auto temporary = (expression);                              \
  if (!temporary.is_ok()) return temporary.status();          \
  declaration = std::move(temporary).value()
