// The backends of the tree reduce in the order of the group, bit for bit: more than the suite asks of every backend.
#include "framework/conformance/comm_checks.hpp"
#include "tests/support/comm_backends.hpp"

using namespace altiplano;
using namespace altiplano::test;

BOOST_AUTO_TEST_CASE(sums_have_the_bits_of_adding_in_the_order_of_the_group) {
  constexpr int64_t kCounts[] = {1, 3, 1000, 10007};
  for (CommBackend* backend : comm_backends())
    for (conformance::RanksAre ranks_are : conformance::worlds_of(*backend))
      for (conformance::Buffers buffers : {conformance::Buffers::kPlain, conformance::Buffers::kRegistered})
        for (int ranks : {2, 3, 5}) {
          const Status status =
              conformance::check_collectives(*backend, ranks_are, ranks, test_options(), kCounts, buffers, true);
          BOOST_TEST(status.is_ok(), status.to_string());
        }
}

BOOST_AUTO_TEST_CASE(sums_cut_into_chunks_have_the_same_bits) {
  constexpr int64_t kCounts[] = {257, 1000};
  CommOptions options = test_options();
  options.chunk_bytes = 1;
  for (CommBackend* backend : comm_backends())
    for (conformance::RanksAre ranks_are : conformance::worlds_of(*backend)) {
      const Status status =
          conformance::check_collectives(*backend, ranks_are, 3, options, kCounts, conformance::Buffers::kPlain, true);
      BOOST_TEST(status.is_ok(), status.to_string());
    }
}
