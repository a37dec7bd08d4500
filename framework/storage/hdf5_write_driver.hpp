#pragma once
// Inside of storage/ only: the file driver by which HDF5 writes new files. HDF5 1.10 does not survive a write that
// fails: the file cannot be closed any more and the program crashes at its end. So towards HDF5 nothing ever fails
// here: the first error is kept, later writes are left out, and Hdf5File tells the error.
#include "framework/storage/hdf5_detail.hpp"

namespace altiplano::hdf5 {

/// The first error of a file's writes: errno; 0: none. Outlives the file.
struct WriteError {
  int number = 0;
};

/// Lets files created with `access` be written by this driver. False: HDF5 refuses; its error stack says why.
bool use_write_driver(hid_t access, WriteError* error);

}  // namespace altiplano::hdf5
