#include "framework/runtime/agreement.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/support/comm_backends.hpp"

using namespace altiplano;
using namespace altiplano::test;

namespace {

/// What each of four ranks comes to know when those in `failing` say why they fail.
std::vector<Status> agree_on(const std::map<int, Status>& failing) {
  std::vector<Status> known(4);
  const Status status = run_backend(4, *comm_backend("inproc"), test_options(), [&](Communicator& comm) -> Status {
    std::vector<RankId> all;
    for (int r = 0; r < comm.world_size(); ++r) all.emplace_back(r);
    ALTIPLANO_ASSIGN(const GroupId world, comm.create_group(all, "world"));
    const int rank = comm.rank().value;
    const Agreement agreement = agree(comm, world, failing.contains(rank) ? failing.at(rank) : Status::ok(),
                                      fmt::format("rank {} (n{}, local 0)", rank, rank));
    known[static_cast<size_t>(rank)] = agreement.status;
    return agreement.is_agreed ? Status::ok() : runtime_failure("rank {} came to no agreement", rank);
  });
  BOOST_TEST(status.is_ok(), status.to_string());
  return known;
}

}  // namespace

BOOST_AUTO_TEST_CASE(ranks_that_all_did_well_know_it) {
  for (const Status& status : agree_on({})) BOOST_TEST(status.is_ok(), status.to_string());
}

BOOST_AUTO_TEST_CASE(the_failure_of_the_lowest_rank_is_known_to_all_with_code_and_name) {
  for (const Status& status : agree_on({{2, runtime_failure("disk is full")}, {3, invalid_argument("another")}})) {
    BOOST_TEST((status.code() == StatusCode::kRuntimeFailure));
    BOOST_TEST(status.message() == "rank 2 (n2, local 0): disk is full");
  }
}

BOOST_AUTO_TEST_CASE(a_long_message_is_cut_and_not_lost) {
  for (const Status& status : agree_on({{0, runtime_failure("{}", std::string(5000, 'm'))}})) {
    BOOST_TEST(status.message().starts_with("rank 0 (n0, local 0): mmm"));
    BOOST_TEST(status.message().size() > 500u);
  }
}
