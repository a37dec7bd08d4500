#include "framework/api/segment/process_watch.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace altiplano {

ProcessWatch::ProcessWatch(const std::vector<int>& processes) {
  for (int process : processes)
    descriptors_.push_back(process > 0 ? static_cast<int>(syscall(SYS_pidfd_open, process, 0)) : -1);
}

ProcessWatch::~ProcessWatch() {
  for (int descriptor : descriptors_)
    if (descriptor >= 0) close(descriptor);
}

int ProcessWatch::first_ended(const std::vector<bool>& excluded) const {
  std::vector<pollfd> polls;
  for (size_t i = 0; i < descriptors_.size(); ++i) polls.push_back({excluded[i] ? -1 : descriptors_[i], POLLIN, 0});
  if (poll(polls.data(), polls.size(), 0) <= 0) return -1;
  for (size_t i = 0; i < polls.size(); ++i)
    if (polls[i].fd >= 0 && (polls[i].revents & POLLIN) != 0) return static_cast<int>(i);
  return -1;
}

}  // namespace altiplano
