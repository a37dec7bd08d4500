#include "plugins/comms/mpi/mpi_session.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "framework/api/segment/host_segment.hpp"
#include "framework/base/plural.hpp"

namespace altiplano::mpi {
namespace {

std::atomic<bool> has_failed{false};

void end_with_the_process() {
  int is_finalized = 0;
  MPI_Finalized(&is_finalized);
  if (is_finalized == 0 && !has_failed.load()) MPI_Finalize();
}

/// Where nobody started the ranks for it, MPI would make each a world of its own, or end the process.
Status check_was_launched() {
  if (std::getenv("PMIX_NAMESPACE") != nullptr) return Status::ok();
  return invalid_argument(
      "comm/mpi: nobody started this process for MPI (PMIX_NAMESPACE is not set); start one rank per task with srun "
      "--mpi=pmix altiplano train or mpirun altiplano train, or leave comm.backend out");
}

Status start_mpi() {
  std::lock_guard lock(mpi_mutex());
  int is_initialized = 0;
  MPI_Initialized(&is_initialized);
  if (is_initialized != 0) return Status::ok();
  ALTIPLANO_RETURN_IF_ERROR(check_was_launched());
  int provided = MPI_THREAD_SINGLE;
  ALTIPLANO_RETURN_IF_ERROR(status_of(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "init"));
  if (provided < MPI_THREAD_SERIALIZED)
    return runtime_failure("comm/mpi: this MPI library cannot be called by more than one thread");
  std::atexit(end_with_the_process);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  return Status::ok();
}

/// Where each of the job's ranks stands among those that MPI knows.
Result<std::vector<int>> places_of_ranks(Rendezvous& rendezvous) {
  std::vector<int> places;
  int most = 0;
  for (int rank = 0; rank < rendezvous.world_size(); ++rank) {
    ALTIPLANO_ASSIGN(const std::string text, rendezvous.get(RankId(rank), "comm/mpi"));
    int place = 0, size = 0;
    if (std::sscanf(text.c_str(), "%d %d", &place, &size) != 2)
      return runtime_failure("comm/mpi: '{}' is no place of rank {}", text, rank);
    places.push_back(place);
    most = std::max(most, size);
  }
  if (std::set(places.begin(), places.end()).size() < places.size())
    return invalid_argument(
        "comm/mpi: MPI knows {}, the job has {}; start all of them with one srun --mpi=pmix or mpirun of the same MPI",
        counted(most, "process", "processes"), counted(rendezvous.world_size(), "rank"));
  return places;
}

Result<MPI_Comm> communicator_of(const std::vector<int>& places, int tag) {
  std::lock_guard lock(mpi_mutex());
  MPI_Group world = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, static_cast<int>(places.size()), places.data(), &group);
  const int code = MPI_Comm_create_group(MPI_COMM_WORLD, group, tag, &made);
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  ALTIPLANO_RETURN_IF_ERROR(status_of(code, "create a communicator"));
  MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  return made;
}

}  // namespace

std::mutex& mpi_mutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

void note_failure() {
  has_failed = true;
}

Status status_of(int code, const char* what) {
  if (code == MPI_SUCCESS) return Status::ok();
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  return runtime_failure("comm/mpi: {}: {}", what, text);
}

Result<Connection> connect_ranks(Rendezvous& rendezvous, std::chrono::milliseconds deadline) {
  ALTIPLANO_RETURN_IF_ERROR(start_mpi());
  int place = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &place);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  ALTIPLANO_RETURN_IF_ERROR(rendezvous.put("comm/mpi", fmt::format("{} {}", place, size)));
  Connection connection;
  ALTIPLANO_ASSIGN(connection.hosts, exchange_hosts(rendezvous, deadline));
  ALTIPLANO_ASSIGN(const std::vector<int> places, places_of_ranks(rendezvous));
  static int num_connections = 0;  // as many on all ranks
  const int tag = 2 * num_connections++;
  ALTIPLANO_ASSIGN(connection.frames, communicator_of(places, tag));
  ALTIPLANO_ASSIGN(connection.data, communicator_of(places, tag + 1));
  has_failed = false;  // all are here, whatever went wrong before
  return connection;
}

}  // namespace altiplano::mpi
