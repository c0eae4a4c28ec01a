// FunctionSums.cpp: the sums over ranks of a call, and their parts.
//
//   one:    G G G G S S S S N N     G: the kernel before the sum, N: behind it
//   parts:  G G G G N N N N         each N behind its part's S
//             S S S S               each S behind its part's G, while the next
//                                   G runs
#include "Error.h"
#include "Function.h"

#include <algorithm>

namespace greta::rt {

void Function::addSum(Stream &S, Call &C, const Loaded &L, const SumDecl &D,
                      const Part *P) const {
  const TensorDecl &From = tensorOf(*Decl, L.From, D.From),
                   &To = tensorOf(*Decl, L.From, D.To);
  Call::Sum Made{C.Launches.size(), &To.DType, 0, useOf(S, C, L, D.From),
                 useOf(S, C, L, D.To)};
  uint64_t Bytes = Made.To.End - Made.To.Begin, Element = To.Bits / 8;
  if (Bytes != Made.From.End - Made.From.Begin)
    fail(GRETA_ERROR_BAD_PACKAGE, "function '", Decl->Name,
         "' sums tensors of ", Made.From.End - Made.From.Begin, " bytes into ",
         Bytes);
  for (const auto &[T, Place] :
       {std::pair(&From, Made.From.Begin), std::pair(&To, Made.To.Begin)})
    if (Place % Element)
      fail(GRETA_ERROR_INVALID_ARGUMENT, "'", T->Name, "' of function '",
           Decl->Name, "' is summed over ranks; its offset ", Place,
           " is not a multiple of ", Element);
  if (P && Bytes) {
    uint64_t Row = Bytes / std::max<int64_t>(P->Of, 1);
    if (Row % Element || Row * P->Of != Bytes)
      fail(GRETA_ERROR_BAD_PACKAGE, "function '", Decl->Name, "' sums ", Bytes,
           " bytes in ", P->Of, " rows");
    for (Use *U : {&Made.From, &Made.To}) {
      U->Begin += P->First * Row;
      U->End = U->Begin + P->Count * Row;
    }
    Bytes = P->Count * Row;
  }
  Made.Count = Bytes / Element;
  if (Made.Count)
    C.Sums.push_back(Made);
}

// Parts have PartRows, or a multiple of it if there would be more than
// mostParts; the last has the rest, up to half as much again. All ranks find
// the same, whatever they run.
std::vector<Function::Part>
Function::partsOf(const SumDecl &D, const std::vector<int64_t> &Symbols) {
  int64_t Of = D.Rows.evaluate(Symbols);
  int64_t Rows = D.PartRows *
                 ((std::max<int64_t>(Of, 1) - 1) / D.PartRows / mostParts + 1);
  int64_t Count =
      std::max<int64_t>(1, Of / Rows + (Of % Rows >= (Rows + 1) / 2));
  std::vector<Part> Parts;
  for (int64_t I = 0; I < Count; ++I)
    Parts.push_back({static_cast<size_t>(std::max(D.Rows.symbol(), 0)),
                     I * Rows, I + 1 < Count ? Rows : Of - I * Rows, Of});
  return Parts;
}

// All parts of the kernel before the sum come first, as temporaries of its
// successors may lie in the memory of temporaries that only it has.
void Function::addGroup(Stream &S, Call &C, const Loaded &L,
                        const SumDecl &D) const {
  if (!D.PartRows)
    return addSum(S, C, L, D);
  std::vector<Part> Parts = partsOf(D, C.Symbols);
  size_t Before = C.Sums.size();
  for (const Part &P : Parts) {
    if (D.Before)
      addKernel(S, C, L, D.After - 1, Before, &P);
    addSum(S, C, L, D, &P);
  }
  for (size_t I = 0; D.Behind && I < Parts.size(); ++I)
    addKernel(S, C, L, D.After, std::min(Before + I + 1, C.Sums.size()),
              &Parts[I]);
}

} // namespace greta::rt
