// The suite of comm plugins on all nodes of the cluster.
#include "tests/slurm/cluster.hpp"

namespace altiplano::test {

BOOST_AUTO_TEST_SUITE(comm)

BOOST_AUTO_TEST_CASE(comm_mpi_and_comm_ucx_keep_their_promises_on_four_hosts) {
  for (const char* comm : {"mpi", "ucx"})
    for (const char* geometry : {"-N4 -n4", "-N4 -n5", "-N4 --ntasks-per-node=2"})
      check_promises_of_comm(comm, geometry);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
