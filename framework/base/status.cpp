#include "framework/base/status.hpp"

#include "framework/base/console.hpp"

namespace altiplano {

int exit_code_of(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return 0;
    case StatusCode::kRuntimeFailure:
      return 1;
    case StatusCode::kInvalidArgument:
      return 2;
    case StatusCode::kInfeasible:
      return 3;
    case StatusCode::kNoCheckpoint:
      return 4;
    case StatusCode::kDiverged:
      return 5;
    case StatusCode::kStoppedEarly:
      return 75;
    case StatusCode::kPeerStuck:
      return 124;
    case StatusCode::kCancelled:
      return 1;
  }
  return 1;
}

const char* to_string(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kRuntimeFailure:
      return "run-time failure";
    case StatusCode::kInvalidArgument:
      return "invalid argument";
    case StatusCode::kInfeasible:
      return "no feasible plan";
    case StatusCode::kNoCheckpoint:
      return "no usable checkpoint";
    case StatusCode::kDiverged:
      return "diverged";
    case StatusCode::kStoppedEarly:
      return "saved and stopped early";
    case StatusCode::kPeerStuck:
      return "peer stuck";
    case StatusCode::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

std::string Status::to_string() const {
  if (is_ok()) return "ok";
  std::string text = message_;
  for (size_t i = 0; i < context_.size(); ++i) text += (i == 0 ? " (" : "; ") + context_[i];
  if (!context_.empty()) text += ")";
  return text;
}

void assertion_failed(const char* condition, const char* file, int line, const std::string& message) {
  print_err("{}:{}: internal error: {}: {}\n", file, line, condition, message);
  std::abort();
}

void failed_result_used(const Status& status) {
  print_err("value() of a failed Result: {}\n", status.to_string());
  std::abort();
}

}  // namespace altiplano
