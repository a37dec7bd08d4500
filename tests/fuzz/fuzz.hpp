#pragma once
// What every fuzz target shares. A target is one file `<name>_fuzz.cpp` that defines LLVMFuzzerTestOneInput; it is
// built twice: with libFuzzer when ALTIPLANO_FUZZ is on (clang), and in every build as a test that replays the kept
// inputs of corpus/<name>/. A target aborts when a promise of the reader is broken; returning is always right.
#include <cstddef>
#include <cstdint>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace altiplano::fuzz {

inline std::string text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Prints the promise and aborts unless it holds.
void require(bool holds, const char* promise);
/// A file with these bytes in a folder of this process's own, which goes with the process. The same name is the same
/// file.
std::string file_with(const std::string& bytes, const std::string& name);

}  // namespace altiplano::fuzz
