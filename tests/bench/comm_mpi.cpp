// The same messages and all_reduce by plain calls of MPI, started by bench_comm: "plain_mpi_<what> <bytes> <seconds>".
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/bench/collective_sizes.hpp"

namespace {

double ping_pong(int rank, float* data, int bytes, int calls) {
  const double begin = MPI_Wtime();
  for (int i = 0; i < calls; ++i) {
    if (rank == 0) MPI_Send(data, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    MPI_Recv(data, bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(data, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
  }
  return (MPI_Wtime() - begin) / calls / 2;
}

double all_reduce(float* data, int64_t bytes, int calls) {
  double sum = 0;
  for (int i = 0; i < calls; ++i) {
    std::fill_n(data, bytes / 4, 1.0F);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(bytes / 4), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    sum += MPI_Wtime() - begin;
  }
  return sum / calls;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace altiplano::bench;
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int64_t largest = std::atoll(argv[1]);
  std::vector<float> data(static_cast<size_t>(largest / 4));
  for (int64_t bytes : sizes_up_to(largest)) {
    const int calls = calls_of(bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    double one_way = 0;
    if (rank < 2) {
      ping_pong(rank, data.data(), static_cast<int>(bytes), 2);
      one_way = ping_pong(rank, data.data(), static_cast<int>(bytes), calls);
    }
    const double reduced = all_reduce(data.data(), bytes, calls);
    if (rank == 0)
      std::printf("plain_mpi_message %lld %.9f\nplain_mpi_all_reduce %lld %.9f\n", static_cast<long long>(bytes),
                  one_way, static_cast<long long>(bytes), reduced);
  }
  MPI_Finalize();
  return 0;
}
