// Through the program: a mixture of experts, whose experts lie on different ranks, in double precision on
// device/reference.
#include <boost/test/unit_test.hpp>

#include "tests/support/contains.hpp"
#include "tests/support/job_folder.hpp"

namespace altiplano::test {

namespace {

constexpr double kExact = 1e-9;

/// The job folder's model with experts in its first and its third block.
struct ExpertRuns {
  JobFolder job;
  std::string settings(const std::string& more) const {
    return "model.kind=moe device.kind=reference train.precision=fp64 model.num_local_experts=4 " + more;
  }
  std::string tensor_ranks(int ranks, int steps, const std::string& more = "") const {
    return settings(degrees_text(1, ranks, 1) + "train.max_steps=" + std::to_string(steps) + " " + more);
  }
  ExpertRuns() {
    std::string text = read_bytes(job / "job.yaml");
    for (const char* key : {"resid_pdrop", "embd_pdrop", "attn_pdrop"}) {  // it has no dropout
      const size_t begin = text.find(std::string("  ") + key);
      text.erase(begin, text.find('\n', begin) + 1 - begin);
    }
    write_bytes(job / "job.yaml", text);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(experts, ExpertRuns)

BOOST_AUTO_TEST_CASE(c18_a_checkpoint_has_every_expert_once_and_two_one_and_four_ranks_go_on_with_the_same_numbers) {
  job.launch(1, "one", tensor_ranks(1, 6));
  int step = 0;
  for (int ranks : {2, 1, 4}) {
    step += 2;
    job.launch(ranks, "run", tensor_ranks(ranks, step));
    const auto saved = read_checkpoint(job.checkpoint("run", step));
    const auto up = saved.find("block.0.experts.up.weight");
    BOOST_REQUIRE(up != saved.end());
    BOOST_TEST(up->second.values.size() == 4u * 48 * 192);
  }
  BOOST_TEST(largest_difference_of_checkpoints(job.checkpoint("run", 6), job.checkpoint("one", 6)) < kExact);
}

BOOST_AUTO_TEST_CASE(p20_tokens_take_the_same_routes_when_layers_are_computed_again) {
  job.launch(4, "kept", tensor_ranks(4, 3));
  job.launch(4, "again", tensor_ranks(4, 3, "parallel.recompute=block.0,block.1,block.2"));
  BOOST_TEST(differing_tensors(job.checkpoint("again", 3), job.checkpoint("kept", 3)) == "");
}

BOOST_AUTO_TEST_CASE(p22_ranks_that_do_not_divide_the_experts_are_refused_with_those_that_do) {
  const auto refused = job.altiplano(job.launch_arguments(4, "run", tensor_ranks(4, 3, "model.num_local_experts=6")));
  BOOST_TEST(refused.exit_code == 2, refused.output);
  BOOST_TEST(contains(refused.output,
                      "parallel.tensor_parallel_size: 4 does not divide 6 (dim 0 of block.0.experts.up.weight); valid: "
                      "1, 2, 3, 6"),
             refused.output);
}

BOOST_AUTO_TEST_CASE(p22_a_rank_whose_experts_get_no_token_takes_part_in_every_exchange) {
  // Of 32 experts a sample of 16 tokens reaches some only.
  const std::string many = "model.num_local_experts=32 ";
  job.launch(1, "one", tensor_ranks(1, 3, many));
  job.launch(4, "four", tensor_ranks(4, 3, many));
  BOOST_TEST(largest_difference_of_checkpoints(job.checkpoint("four", 3), job.checkpoint("one", 3)) < kExact);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
