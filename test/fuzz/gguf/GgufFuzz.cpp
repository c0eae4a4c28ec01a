// GgufFuzz.cpp: libFuzzer over the bytes of a GGUF file. Half of the mutations
// change eight bytes that lie at a multiple of four, to a number that is a size
// somewhere: counts, lengths, extents and offsets are such.
#include "ReadModel.h"

#include <cstring>

using namespace greta_fuzz;

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *Data, size_t Size,
                                          size_t MaxSize, unsigned Seed) {
  std::mt19937 Random(Seed);
  if (Size < 32 || Random() % 2)
    return LLVMFuzzerMutate(Data, Size, MaxSize);
  const uint64_t Sizes[] = {0,          1,          2,          3,
                            8,          9,          16,         32,
                            Size - 1,   Size,       1u << 22,   1ull << 32,
                            1ull << 48, 1ull << 62, UINT64_MAX, Random()};
  uint64_t Value = Sizes[Random() % std::size(Sizes)];
  size_t Bytes = Random() % 2 ? 8 : 4;
  memcpy(Data + Random() % (Size - Bytes + 1), &Value, Bytes);
  return Size;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *Data, size_t Size) {
  static Folder Place;
  expectOneLine([&] {
    Model M = readModel(Place.write("m.gguf", Data, Size), "");
    checkTaken(M);
    checkTokenizer(M, "hello  <s> w\xc3\xb6rld 123");
  });
  return 0;
}
