// Smoke.cpp: whether a device works at all. In: a device's name. Out: runs that
// each open it, check what it computes, move memory by every way there is, and
// close it; how many of them were clean.
#include "OneLine.h"
#include "Options.h"

#include <cstdio>
#include <stdexcept>

namespace greta_run {
namespace {

void expect(bool Holds, const char *What) {
  if (!Holds)
    throw std::runtime_error(What);
}

// Writes, fills, copies, graphs, events; whatever a buffer holds is known.
void moveMemory(const greta::Runtime &Runtime) {
  constexpr size_t words = 5000, bytes = words * 4;
  greta::Stream Stream = Runtime.stream(), Other = Runtime.stream();
  greta::Buffer A = Runtime.allocate(bytes), B = Runtime.allocate(bytes),
                Mapped = Runtime.allocateMapped(bytes);
  std::vector<uint32_t> Data(words), Got(words);
  for (size_t I = 0; I < words; ++I)
    Data[I] = static_cast<uint32_t>(I * 2654435761u);
  Stream.write(A, Data.data(), bytes);
  Stream.copy(B, A, bytes);
  Stream.read(B, Got.data(), bytes);
  expect(Got == Data, "what was written and copied is not what is read");
  greta::Graph Graph = Stream.capture([&] {
    Stream.fill(A, bytes, 7);
    Stream.copy(Mapped, A, bytes);
  });
  greta::Event Done = Runtime.event();
  for (uint32_t Word : {7u, 8u}) {
    Stream.launch(Graph);
    if (Word == 8)
      Stream.fill(Mapped, bytes, Word);
    Stream.record(Done);
    Other.wait(Done);
    Other.copy(B, Mapped, bytes);
    Other.read(B, Got.data(), bytes);
    expect(Got == std::vector<uint32_t>(words, Word),
           "what a graph filled is not what another stream reads");
    expect(static_cast<uint32_t *>(Mapped.pointer())[words - 1] == Word,
           "what was copied to mapped memory is not there");
  }
}

} // namespace

int smoke(const Options &O) {
  unsigned Clean = 0, Ran = 0;
  std::string Name;
  for (unsigned R = 0; R < O.Smoke; ++R) {
    try {
      greta::Runtime Runtime(O.Device);
      Name = nlohmann::json::parse(Runtime.info())["name"];
      nlohmann::json Health = nlohmann::json::parse(Runtime.checkHealth());
      Ran = Health["ran"];
      for (const auto &[What, Why] : Health["denied"].items())
        throw std::runtime_error(What + ": " + Why.get<std::string>());
      moveMemory(Runtime);
      expect(Runtime.memory().in_use == 0, "memory is left in use");
      Runtime.close();
      ++Clean;
    } catch (const std::exception &E) {
      fprintf(stderr, "run %u: %s\n", R + 1, onOneLine(E.what()).c_str());
    }
  }
  printf("%s: %u of %u runs clean, %u variants checked in each\n", Name.c_str(),
         Clean, O.Smoke, Ran);
  return Clean == O.Smoke ? 0 : 1;
}

} // namespace greta_run
