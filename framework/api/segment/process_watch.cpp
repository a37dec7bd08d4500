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

bool ProcessWatch::has_ended(int index) const {
  pollfd look{descriptors_[static_cast<size_t>(index)], POLLIN, 0};
  return look.fd >= 0 && poll(&look, 1, 0) > 0 && (look.revents & POLLIN) != 0;
}

}  // namespace altiplano
