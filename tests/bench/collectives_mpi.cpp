// The same all_reduce by Open MPI, started by bench_collectives: prints "open_mpi <bytes> <seconds>" per size.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/bench/collective_sizes.hpp"

int main(int argc, char** argv) {
  using namespace altiplano::bench;
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int64_t largest = std::atoll(argv[1]);
  std::vector<float> data(static_cast<size_t>(largest / 4));
  for (int64_t bytes : sizes_up_to(largest)) {
    const int calls = calls_of(bytes);
    double sum = 0;
    for (int i = 0; i < calls; ++i) {
      std::fill_n(data.data(), bytes / 4, 1.0F);
      MPI_Barrier(MPI_COMM_WORLD);
      const double begin = MPI_Wtime();
      MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(bytes / 4), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      sum += MPI_Wtime() - begin;
    }
    if (rank == 0) std::printf("open_mpi %lld %.9f\n", static_cast<long long>(bytes), sum / calls);
  }
  MPI_Finalize();
  return 0;
}
