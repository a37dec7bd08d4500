// Boxes as sets of elements: intersect, subtract and plan_transfer against counting element by element.
#include "framework/sharding/box.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <random>
#include <set>

namespace altiplano {

namespace {

using Element = std::vector<int64_t>;

std::set<Element> elements_of(const Box& box) {
  std::set<Element> all;
  for (int64_t i = 0; i < box.num_elements(); ++i) {
    Element at = box.origin;
    int64_t rest = i;
    for (size_t d = at.size(); d-- > 0; rest /= box.extents[d]) at[d] += rest % box.extents[d];
    all.insert(at);
  }
  return all;
}

class RandomBoxes {
 public:
  explicit RandomBoxes(unsigned seed) : random_(seed) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  Shape shape(size_t rank) {
    Shape shape;
    for (size_t d = 0; d < rank; ++d) shape.push_back(1 + below(5));
    return shape;
  }
  /// Inside `shape`; may be empty.
  Box box(const Shape& shape) {
    Box box;
    for (int64_t extent : shape) {
      box.origin.push_back(below(extent));
      box.extents.push_back(below(extent - box.origin.back() + 1));
    }
    return box;
  }
  std::vector<HeldBox> held(const Shape& shape, int count) {
    std::vector<HeldBox> boxes;
    for (int i = 0; i < count; ++i) boxes.push_back({i, box(shape)});
    return boxes;
  }

 private:
  std::mt19937 random_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(boxes)

BOOST_AUTO_TEST_CASE(intersect_and_subtract_are_those_of_sets) {
  for (unsigned seed = 0; seed < 600; ++seed) {
    RandomBoxes random(seed);
    Shape shape = random.shape(seed % 4);
    Box a = random.box(shape), b = random.box(shape);
    std::set<Element> in_a = elements_of(a), in_b = elements_of(b), both, only_a;
    for (const Element& e : in_a) (in_b.count(e) ? both : only_a).insert(e);
    auto common = intersect(a, b);
    BOOST_TEST(((common ? elements_of(*common) : std::set<Element>{}) == both), a.to_string() << " " << b.to_string());
    std::set<Element> rest;
    size_t count = 0;
    for (const Box& box : subtract(a, b)) {
      auto part = elements_of(box);
      count += part.size();
      rest.insert(part.begin(), part.end());
    }
    BOOST_TEST((rest == only_a), a.to_string() << " - " << b.to_string());
    BOOST_TEST(count == rest.size(), "parts overlap");
    BOOST_TEST((b.is_empty() || a.contains(b) == std::includes(in_a.begin(), in_a.end(), in_b.begin(), in_b.end())));
  }
}

BOOST_AUTO_TEST_CASE(a_transfer_brings_each_element_once_from_a_holder) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    RandomBoxes random(1000 + seed);
    Shape shape = random.shape(seed % 4);
    auto sources = random.held(shape, 1 + static_cast<int>(random.below(4))),
         destinations = random.held(shape, 1 + static_cast<int>(random.below(4)));
    std::vector<HeldBox> uncovered;
    auto transfers = plan_transfer(sources, destinations, &uncovered);
    BOOST_TEST(std::is_sorted(transfers.begin(), transfers.end(), [](const BoxTransfer& a, const BoxTransfer& b) {
      return std::tie(a.destination, a.source, a.box) < std::tie(b.destination, b.source, b.box);
    }));
    for (const HeldBox& destination : destinations) {
      std::multiset<Element> got;
      for (const BoxTransfer& t : transfers) {
        if (t.destination != destination.holder) continue;
        BOOST_TEST(sources[static_cast<size_t>(t.source)].box.contains(t.box));
        BOOST_TEST(!t.box.is_empty());
        for (const Element& e : elements_of(t.box)) got.insert(e);
      }
      for (const HeldBox& hole : uncovered) {
        if (hole.holder != destination.holder) continue;
        for (const Element& e : elements_of(hole.box)) {
          got.insert(e);
          for (const HeldBox& source : sources) BOOST_TEST(elements_of(source.box).count(e) == 0u);
        }
      }
      auto wanted = elements_of(destination.box);
      BOOST_TEST((got == std::multiset<Element>(wanted.begin(), wanted.end())), "seed " << seed);
    }
  }
}

BOOST_AUTO_TEST_CASE(equal_requests_give_equal_transfers) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    RandomBoxes random(seed);
    Shape shape = random.shape(2);
    auto sources = random.held(shape, 4), destinations = random.held(shape, 4);
    std::vector<HeldBox> first_holes, second_holes;
    BOOST_TEST(
        (plan_transfer(sources, destinations, &first_holes) == plan_transfer(sources, destinations, &second_holes)));
  }
}

BOOST_AUTO_TEST_CASE(replicas_share_the_work_of_sending) {
  std::vector<HeldBox> sources, destinations;
  for (int i = 0; i < 4; ++i) sources.push_back({i, Box::whole({8})});
  for (int i = 0; i < 4; ++i) destinations.push_back({i, Box::whole({8})});
  std::set<int> senders;
  for (const BoxTransfer& t : plan_transfer(sources, destinations)) senders.insert(t.source);
  BOOST_TEST(senders.size() == 4u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano
