#include "framework/sharding/box.hpp"

#include <algorithm>
#include <map>

#include "framework/base/status.hpp"

namespace altiplano {

int64_t Box::num_elements() const {
  int64_t n = 1;
  for (int64_t extent : extents) n *= extent;
  return n;
}

bool Box::contains(const Box& other) const {
  for (size_t d = 0; d < extents.size(); ++d) {
    if (other.origin[d] < origin[d] || other.origin[d] + other.extents[d] > origin[d] + extents[d]) return false;
  }
  return true;
}

std::string Box::to_string() const {
  std::string text = "[";
  for (size_t d = 0; d < extents.size(); ++d)
    text += fmt::format("{}{}:{}", d == 0 ? "" : ", ", origin[d], origin[d] + extents[d]);
  return text + "]";
}

std::optional<Box> intersect(const Box& a, const Box& b) {
  Box out = a;
  for (size_t d = 0; d < a.extents.size(); ++d) {
    int64_t begin = std::max(a.origin[d], b.origin[d]);
    int64_t end = std::min(a.origin[d] + a.extents[d], b.origin[d] + b.extents[d]);
    if (begin >= end) return std::nullopt;
    out.origin[d] = begin;
    out.extents[d] = end - begin;
  }
  return out;
}

std::vector<Box> subtract(const Box& a, const Box& b) {
  auto common = intersect(a, b);
  if (!common) return a.is_empty() ? std::vector<Box>{} : std::vector<Box>{a};
  std::vector<Box> rest;
  Box middle = a;  // what is left of `a` once the slabs beside `common` are cut off, dim by dim
  for (size_t d = 0; d < a.extents.size(); ++d) {
    int64_t begin = middle.origin[d], end = begin + middle.extents[d];
    int64_t inner_begin = common->origin[d], inner_end = inner_begin + common->extents[d];
    if (begin < inner_begin) {
      Box slab = middle;
      slab.extents[d] = inner_begin - begin;
      rest.push_back(slab);
    }
    if (inner_end < end) {
      Box slab = middle;
      slab.origin[d] = inner_end;
      slab.extents[d] = end - inner_end;
      rest.push_back(slab);
    }
    middle.origin[d] = inner_begin;
    middle.extents[d] = inner_end - inner_begin;
  }
  return rest;
}

namespace {

/// Sources in the order one destination should try them: replicas of the same box are rotated by the destination's
/// number.
std::vector<const HeldBox*> preference_order(const std::vector<HeldBox>& sources, size_t destination) {
  std::map<Box, std::vector<const HeldBox*>> replicas;
  for (const auto& source : sources) replicas[source.box].push_back(&source);
  std::vector<const HeldBox*> order;
  for (size_t pick = 0; order.size() < sources.size(); ++pick) {
    for (auto& [box, holders] : replicas)
      if (pick < holders.size()) order.push_back(holders[(pick + destination) % holders.size()]);
  }
  return order;
}

}  // namespace

std::vector<BoxTransfer> plan_transfer(const std::vector<HeldBox>& sources, const std::vector<HeldBox>& destinations,
                                       std::vector<HeldBox>* uncovered) {
  std::vector<BoxTransfer> transfers;
  for (size_t i = 0; i < destinations.size(); ++i) {
    std::vector<Box> missing;
    if (!destinations[i].box.is_empty()) missing.push_back(destinations[i].box);
    auto order = preference_order(sources, i);
    // What the destination itself holds needs no wire.
    std::stable_partition(order.begin(), order.end(),
                          [&](const HeldBox* s) { return s->holder == destinations[i].holder; });
    for (const HeldBox* source : order) {
      std::vector<Box> still_missing;
      for (const Box& box : missing) {
        if (auto common = intersect(box, source->box); common && !common->is_empty())
          transfers.push_back({source->holder, destinations[i].holder, *common});
        for (Box& rest : subtract(box, source->box)) still_missing.push_back(std::move(rest));
      }
      missing = std::move(still_missing);
      if (missing.empty()) break;
    }
    for (Box& box : missing) {
      ALTIPLANO_ASSERT(uncovered != nullptr, "no source holds {}", box.to_string());
      uncovered->push_back({destinations[i].holder, std::move(box)});
    }
  }
  std::sort(transfers.begin(), transfers.end(), [](const BoxTransfer& a, const BoxTransfer& b) {
    return std::tie(a.destination, a.source, a.box) < std::tie(b.destination, b.source, b.box);
  });
  return transfers;
}

}  // namespace altiplano
