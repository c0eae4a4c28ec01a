// PeerCopy.cpp: see PeerCopy.h.
#include "comm/PeerCopy.h"
#include "comm/Group.h"
#include "comm/Lane.h"

#include <algorithm>
#include <sys/mman.h>

namespace greta::rt::comm {
namespace {

constexpr size_t partBytes = size_t(4) << 20;
constexpr size_t allBytes = Lane::slots * partBytes;

} // namespace

PeerCopy::PeerCopy(std::shared_ptr<Device> A, std::shared_ptr<Device> B)
    : From(std::move(A)), To(std::move(B)) {
  void *Mapped = mmap(nullptr, allBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (Mapped == MAP_FAILED)
    throw std::bad_alloc();
  Host = static_cast<char *>(Mapped);
  try {
    SeenByFrom = From->importPointer(Host, allBytes);
    SeenByTo = To->importPointer(Host, allBytes);
  } catch (const Error &) {
    SeenByFrom = SeenByTo = nullptr;
  }
}

PeerCopy::~PeerCopy() {
  SeenByFrom = SeenByTo = nullptr;
  munmap(Host, allBytes);
}

void PeerCopy::run(Stream &In, const MemoryRef &ToMemory, size_t ToOffset,
                   Stream &Out, const MemoryRef &FromMemory, size_t FromOffset,
                   size_t Bytes) {
  if (!SeenByTo) {
    // The next part is read while the last one is written.
    for (size_t Done = 0; Done < Bytes; Done += partBytes) {
      size_t N = std::min(partBytes, Bytes - Done);
      Out.read(FromMemory, FromOffset + Done, Host, N);
      In.write(ToMemory, ToOffset + Done, Host, N);
    }
    return;
  }
  // Small copies have as many parts, so that they overlap, too.
  size_t Part = std::clamp((Bytes / Lane::slots + 4095) / 4096 * 4096,
                           partBytes / 16, partBytes);
  uint64_t Parts = (Bytes + Part - 1) / Part;
  Lane Giving(*From, Out), Taking(*To, In);
  auto Step = [&] {
    bool Moved = false;
    auto Copy = [&](Lane &L, const MemoryRef &Its, size_t At, bool Takes) {
      size_t Done = L.Issued * Part, N = std::min(Part, Bytes - Done);
      size_t Slot = L.Issued % Lane::slots * partBytes;
      if (Takes)
        L.S.copy(Its, At + Done, SeenByTo, Slot, N);
      else
        L.S.copy(SeenByFrom, Slot, Its, At + Done, N);
      L.issued();
      Moved = true;
    };
    if (Giving.Issued < Parts && Giving.Issued < Taking.Done + Lane::slots)
      Copy(Giving, FromMemory, FromOffset, false);
    Moved |= Giving.poll();
    if (Taking.Issued < Giving.Done)
      Copy(Taking, ToMemory, ToOffset, true);
    Moved |= Taking.poll();
    return Moved;
  };
  try {
    for (Patience P; Taking.Done < Parts;)
      if (Step())
        P.reset();
      else
        P.wait();
  } catch (...) {
    // No work on the host's memory may be left.
    for (Stream *S : {&Out, &In})
      try {
        S->synchronize();
      } catch (const Error &) {
      }
    throw;
  }
}

} // namespace greta::rt::comm
