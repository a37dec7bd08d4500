// Starts: many of them beside each other, and one of many ranks.
#include "tests/slurm/cluster.hpp"

namespace altiplano::test {

BOOST_AUTO_TEST_SUITE(starts)

// Both have two ranks on each of the same two nodes: ports, segments and rendezvous must not meet.
BOOST_AUTO_TEST_CASE(two_jobs_on_the_same_nodes_start_fifty_times_and_do_not_clash) {
  const JobFolder job;
  const auto result = cluster().run(job, R"(start() {
  rm -rf run$1
  srun --mpi=pmix -N2 -n4 -w n1,n2 $ALTIPLANO train -c job.yaml --set run.dir=run$1 --set train.max_steps=2 \
    --set parallel.data_parallel_size=2 --set parallel.tensor_parallel_size=2 >out$1 2>&1
  grep -q "^done      2 steps" out$1 || { echo "job $1, start $2:"; cat out$1; }
}
for i in $(seq 25); do start a $i & start b $i; wait; done
grep -h "^step: 2/2" outa outb | sed 's/  lr.*//' | sort -u)",
                                    600);
  BOOST_TEST(result.exit_code == 0, result.output);
  BOOST_TEST(split(trim(result.output), '\n').size() == 1u, result.output);  // one loss, and no complaint
}

BOOST_AUTO_TEST_CASE(sixty_four_ranks_on_four_nodes_meet_train_and_leave) {
  const JobFolder job;
  const auto result =
      cluster().run(job, R"(srun --mpi=pmix -N4 -n64 --overcommit $ALTIPLANO train -c job.yaml --set run.dir=run \
  --set train.max_steps=2 --set train.global_batch_size=64 --set train.micro_batch_size=1 --set parallel.data_parallel_size=64 \
  --set model.hidden_size=24)",
                    300);
  BOOST_TEST(result.exit_code == 0, result.output);
  BOOST_TEST(
      mentions(result, "64 ranks on 4 hosts (n1: ranks 0-15; n2: ranks 16-31; n3: ranks 32-47; n4: ranks 48-63)"),
      result.output);
  BOOST_TEST(mentions(result, "\ndone      2 steps"), result.output);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
