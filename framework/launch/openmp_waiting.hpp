#pragma once
// How OpenMP's threads wait for each other at the end of a loop. Its own default spins for milliseconds before it
// sleeps: on processors that others want too, the thread that is waited for gets none meanwhile, and steps take a
// hundred times as long. A short spin costs nothing where processors are free.
namespace altiplano {

/// Sets GOMP_SPINCOUNT, unless it or OMP_WAIT_POLICY is set. To be called before a plugin brings OpenMP along, which
/// reads it once, and before there are threads. Ranks inherit it.
void bound_openmp_waiting();

}  // namespace altiplano
