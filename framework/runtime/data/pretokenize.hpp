#pragma once
// GPT-2's split of text into pieces, each then encoded on its own. Written by hand for its pattern
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// with Unicode classes (ICU). A byte that is no UTF-8 counts as neither letter, number nor space, so any bytes can be
// split.
#include <cstddef>
#include <string_view>

namespace altiplano {

/// End of the piece that starts at `start` (< text.size()).
size_t piece_end(std::string_view text, size_t start);
/// The last position p with a non-space before and a space at p: no piece reaches across it, whatever follows. 0: there
/// is none.
size_t last_piece_boundary(std::string_view text);

}  // namespace altiplano
