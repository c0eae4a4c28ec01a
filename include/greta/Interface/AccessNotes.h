//===- AccessNotes.h - how checked kernels say what they access -*- C++ -*-===//
//
// A code object that is compiled for checks has the constant `notesName`, with
// a line of text for each place in the source that reaches memory,
//
//   /home/me/k.py:12:8 0,3
//
// for arguments 0 and 3, or '*' where a pointer comes from elsewhere, and the
// section `pcsName`, of 32-bit words: the distances from words to the
// instructions of a place, any number of them, and then the place's line
// number in that text, marked, with what they do there. lib/AMDGPU/Hsaco.cpp
// writes both, and lib/Sim/Code/Source.cpp reads them.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_INTERFACE_ACCESSNOTES_H
#define GRETA_INTERFACE_ACCESSNOTES_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>

namespace greta::accesses {

inline constexpr llvm::StringLiteral notesName = "greta.accesses";
inline constexpr llvm::StringLiteral pcsName = "greta_access_pcs";

/// The two upper bits of a word. A distance has two equal ones, as a code
/// object has less than 1 GiB.
inline constexpr uint32_t mark = 0x80000000, marked = 0xc0000000;
/// Bits for what instructions of the place do. LLVM may hand a store's metadata
/// to the loads in front of it: an instruction that does something else has no
/// place.
inline constexpr uint32_t reads = 1 << 28, writes = 1 << 29;

/// Returns the place, with `reads` and `writes`, whose instructions end with
/// the word; none: the word is a distance.
inline std::optional<uint32_t> placeOf(uint32_t word) {
  if ((word & marked) != mark)
    return std::nullopt;
  return word & ~marked;
}

} // namespace greta::accesses

#endif
