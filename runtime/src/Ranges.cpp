// Ranges.cpp: see Ranges.h.
#include "Ranges.h"

#include <algorithm>

namespace greta::rt {

void Ranges::addFree(uint64_t Offset, uint64_t Size) {
  if (!Size)
    return;
  Free[Offset] = Size;
  BySize.insert({Size, Offset});
}

void Ranges::dropFree(std::map<uint64_t, uint64_t>::iterator Part) {
  BySize.erase({Part->second, Part->first});
  Free.erase(Part);
}

std::optional<uint64_t> Ranges::take(uint64_t Size, uint64_t Alignment) {
  Size = std::max<uint64_t>(Size, 1);
  for (auto It = BySize.lower_bound({Size, 0}); It != BySize.end(); ++It) {
    auto [Bytes, Begin] = *It;
    uint64_t Offset = (Begin + Alignment - 1) / Alignment * Alignment;
    if (Offset - Begin > Bytes - Size)
      continue; // the alignment does not fit in
    dropFree(Free.find(Begin));
    addFree(Begin, Offset - Begin);
    addFree(Offset + Size, Begin + Bytes - Offset - Size);
    Taken[Offset] = Size;
    return Offset;
  }
  return std::nullopt;
}

void Ranges::give(uint64_t Offset) {
  auto Part = Taken.find(Offset);
  uint64_t Begin = Offset, End = Offset + Part->second;
  Taken.erase(Part);
  auto Next = Free.lower_bound(Begin);
  if (Next != Free.end() && Next->first == End) {
    End += Next->second;
    dropFree(Next);
  }
  auto Before = Free.lower_bound(Begin);
  if (Before != Free.begin() &&
      std::prev(Before)->first + std::prev(Before)->second == Begin) {
    Begin = std::prev(Before)->first;
    dropFree(std::prev(Before));
  }
  addFree(Begin, End - Begin);
}

} // namespace greta::rt
