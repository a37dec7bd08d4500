#pragma once
// MPI of this process: started once, by the first communicator, and ended with the process, since it cannot be started
// again.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <mutex>
#include <string>
#include <vector>

#include "framework/api/comm.hpp"

namespace altiplano::mpi {

/// MPI is asked for one caller at a time (MPI_THREAD_SERIALIZED), whichever threads and communicators there are.
std::mutex& mpi_mutex();

/// From now on nobody waits for the others at the end of this process: one of the ranks has failed.
void note_failure();

/// What a communicator has of MPI: two communicators of the same ranks, numbered as the job's are.
struct Connection {
  MPI_Comm frames = MPI_COMM_NULL, data = MPI_COMM_NULL;
  std::vector<std::string> hosts;  ///< by rank
};

/// Collective. kInvalidArgument where MPI does not know the job's ranks, with the way to start them.
Result<Connection> connect_ranks(Rendezvous& rendezvous, std::chrono::milliseconds deadline);

/// ok for MPI_SUCCESS.
Status status_of(int code, const char* what);

}  // namespace altiplano::mpi
