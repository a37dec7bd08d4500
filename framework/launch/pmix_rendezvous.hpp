#pragma once
// Rendezvous of ranks that a PMIx server started: srun --mpi=pmix, mpirun. The only user of pmix.h; where PMIx was not
// there when Altiplano was built, connecting fails and says so.
//
// What a rank has put since the last fence travels with the next one, which always carries data: an empty fence of
// Slurm is no barrier between nodes (docs/slurm.md). While the rendezvous lives the server watches the process, and
// one that ends takes the whole job with it; so it goes before training begins.
#include <memory>

#include "framework/api/comm.hpp"

namespace altiplano {

/// Whether this build knows PMIx.
bool is_built_with_pmix();

/// Joins the others of PMIX_NAMESPACE. kRuntimeFailure when there is no server.
Result<std::unique_ptr<Rendezvous>> connect_pmix_rendezvous();

}  // namespace altiplano
