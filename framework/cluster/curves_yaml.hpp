#pragma once
// The YAML form of curves, as parts of the YAML form of a Cluster:
//
//   device:
//     curves:
//       products:     # FLOPs of one matrix product -> FLOP/s, by type and, where known, by its smallest dimension
//         - {type: bf16, smallest_dim: 1024, points: [[1 GFLOP, 60 TFLOP/s], [100 GFLOP, 240 TFLOP/s]]}
//       memory: [[64 KiB, 400 GB/s], [16 MiB, 1.3 TB/s]]              # bytes that one op reads and writes -> B/s
//       ops:          # kinds of ops that the two above describe badly; by their bytes, or by their FLOPs
//         - {kind: attention, type: bf16, points: [[10 MFLOP, 2 TFLOP/s]]}
//       sharing: {processors: 2, compute: [[2, 1.1]], memory: [[2, 1.8]]}   # devices of a node at work -> times longer
//   levels:
//     - name: node
//       curves:
//         bandwidth: [[1 MiB, 30 GB/s], [1 GiB, 220 GB/s]]                  # bytes of the whole tensor -> B/s
//         measured:                                                         # ... -> seconds of a call
//           - {kind: all_reduce, ranks: 8, points: [[1 KiB, 20 us], [1 GiB, 9 ms]]}
//           - {kind: message, points: [[1 KiB, 5 us]]}                      # between two devices
#include "framework/cluster/yaml_section.hpp"

namespace altiplano {

/// The key `curves` of a section, which has it.
void read_curves(YamlSection& device, DeviceCurves& curves);
void read_curves(YamlSection& level, LevelCurves& curves);

/// The key `curves` with its lines, indented for a device or a level; read_curves gives equal curves back.
std::string curves_text(const DeviceCurves& curves);
std::string curves_text(const LevelCurves& curves);

}  // namespace altiplano
