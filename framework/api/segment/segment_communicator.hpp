#pragma once
// Private to segment/: the class behind open_segment_communicator, all of whose ranks share the segment.
// segment_transport.cpp waits and wakes, segment_failures.cpp finds out who is missing.
#include <memory>

#include "framework/api/engine/engine.hpp"
#include "framework/api/segment/process_watch.hpp"

namespace altiplano {

class SegmentCommunicator final : public Engine {
 public:
  SegmentCommunicator(int rank, std::vector<std::string> hosts, const CommOptions& options,
                      SegmentAttachment attachment);
  ~SegmentCommunicator() override;

  Status wait(Event event) noexcept override;
  void set_step(int64_t step) noexcept override;
  void abort(const std::string& reason) noexcept override;

 private:
  struct Waiting {
    Event event;
    Clock::time_point last_movement, last_look;
  };

  // segment_transport.cpp
  void show_life() override;
  std::chrono::nanoseconds time_to_sleep(const Waiting& waiting) const;
  Status hand_over(bool lingers) override;
  bool is_worth_lingering();
  bool spins() const;

  // segment_failures.cpp
  Status check_failed() override;
  /// Puts the reason into the segment unless another rank was first, wakes all, returns this communicator's failure.
  Status fail_world(StatusCode code, const std::string& reason) override;
  bool publish_abort(StatusCode code, const std::string& reason);
  Status look_for_trouble(Waiting& waiting);
  Status peer_stuck(const CommOperation& operation, Clock::duration silence);
  Status check_ended_processes();
  bool has_left(int peer) const;
  Status check_peers_that_left(const CommOperation& operation);
  void publish_whom_we_wait_for(Event event);
  static int64_t wall_milliseconds();
  bool is_silent(int rank, Clock::duration silence) const;
  int root_of_wait(int peer, Clock::duration silence) const;

  const SegmentView view_;
  ProcessWatch watch_;
  uint64_t num_lingered_for_ = 0;  ///< announced messages that were given patience
};

}  // namespace altiplano
