// SmallReduce.cpp: see SmallReduce.h.
#include "comm/SmallReduce.h"

#include <cstring>

namespace greta::rt::comm {
namespace {

// The kernel's push constants.
struct Arguments {
  uint64_t From, To, Boxes, State, Group;
  uint32_t Words, BoxWords, Rank, Ranks, Type, IsMax, Patience, Unused;
};
static_assert(sizeof(Arguments) == 72);
constexpr uint32_t wordsOfAWorkgroup = 1024;
constexpr uint32_t noNumber = ~0u;

uint32_t numberOf(Element Type) {
  switch (Type) {
  case Element::F32:
    return 0;
  case Element::F16:
    return 1;
  case Element::BF16:
    return 2;
  case Element::I32:
    return 3;
  default:
    return noNumber;
  }
}

// Streams and graphs that keep the result keep the imported memory, too.
MemoryRef importBoxes(Device &D, const Group &G) {
  MemoryRef Seen = D.importPointer(G.data() + G.boxesAt(), G.boxesBytes());
  return {Seen.get(), [Seen, Owner = G.owner()](Memory *) mutable {
            Seen.reset(); // released before its owner
          }};
}

} // namespace

bool SmallReduce::takes(const Collective &C) {
  return C.What == Kind::AllReduce && C.bytes() <= mostBytes &&
         C.bytes() % 4 == 0 && numberOf(C.Type) != noNumber &&
         (C.Op == Reduction::Sum || C.Op == Reduction::Max);
}

SmallReduce::SmallReduce(std::shared_ptr<Device> Owner, Group &G)
    : D(std::move(Owner)), Rank(G.Rank), Ranks(G.Size),
      Code(D->smallReduce(sizeof(Arguments))), Boxes(importBoxes(*D, G)),
      State(D->allocate(8)) {
  std::unique_ptr<Stream> S = D->createStream();
  S->fill(State, 0, 8, 0);
  S->synchronize();
}

void SmallReduce::queue(Stream &S, const Collective &C, uint32_t Patience) {
  size_t Bytes = C.bytes();
  if (!Bytes)
    return;
  // The kernel reads and writes whole words.
  auto Aligned = [&](const MemoryRef &M, size_t Offset) {
    return (M->Address + Offset) % 4 == 0;
  };
  MemoryRef From = C.From, To = C.To;
  size_t FromOffset = C.FromOffset, ToOffset = C.ToOffset;
  if (!Aligned(From, FromOffset)) {
    From = D->allocate(Bytes);
    S.copy(From, 0, C.From, std::exchange(FromOffset, 0), Bytes);
  }
  if (!Aligned(To, ToOffset)) {
    To = D->allocate(Bytes);
    ToOffset = 0;
  }
  Arguments A{From->Address + FromOffset,
              To->Address + ToOffset,
              Boxes->Address + Group::wordBytes,
              State->Address,
              Boxes->Address,
              static_cast<uint32_t>(Bytes / 4),
              Group::boxWords,
              Rank,
              Ranks,
              numberOf(C.Type),
              C.Op == Reduction::Max,
              Patience,
              0};
  Use Uses[] = {{&From, FromOffset, FromOffset + Bytes, false},
                {&To, ToOffset, ToOffset + Bytes, true},
                {&Boxes, 0, Boxes->Size, true},
                {&State, 0, 8, true}};
  S.launch({&Code,
            {(A.Words + wordsOfAWorkgroup - 1) / wordsOfAWorkgroup, 1, 1},
            {reinterpret_cast<const uint8_t *>(&A), sizeof(A)},
            {Uses, 4},
            {}});
  if (To != C.To)
    S.copy(C.To, C.ToOffset, To, 0, Bytes);
  if (!S.Capturing)
    S.flush();
}

} // namespace greta::rt::comm
