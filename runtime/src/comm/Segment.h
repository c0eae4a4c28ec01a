// Segment.h: how the ranks' shared memory begins (Group.h). For the files of
// Group alone.
#ifndef GRETA_RUNTIME_COMM_SEGMENT_H
#define GRETA_RUNTIME_COMM_SEGMENT_H

#include "comm/Group.h"

#include <fcntl.h>
#include <sys/mman.h>

namespace greta::rt::comm {

constexpr uint32_t magic = 0x67636d34;        // changes with the layout below
constexpr size_t dataUnit = size_t(64) << 10; // pages of every driver
constexpr size_t leastSlotBytes = size_t(64) << 10;
constexpr size_t usualSlotBytes = size_t(4) << 20;
constexpr size_t mostSlotBytes = size_t(1) << 30;

inline size_t roundUp(size_t Value, size_t Unit) {
  return (Value + Unit - 1) / Unit * Unit;
}

inline struct flock byteOf(uint32_t Rank, short Type) {
  struct flock Lock{};
  Lock.l_type = Type;
  Lock.l_whence = SEEK_SET;
  Lock.l_start = Rank;
  Lock.l_len = 1;
  return Lock;
}

struct Group::Control {
  struct {
    std::atomic<uint32_t> Magic; // set last
    uint32_t Ranks;
    uint64_t SlotBytes;
  } Head;
  std::atomic<uint32_t> Aborts; // 0, 1: the reason is written, 2: it is there
  std::atomic<bool> Declines;   // set before the reason of a rank that declines
  char Reason[wordBytes];
  State Rank[maxRanks];
};

// All ranks of a process share one.
struct Group::Mapping {
  ~Mapping() { munmap(Begin, Bytes); }
  Control *control() const { return static_cast<Control *>(Begin); }
  void *Begin = nullptr;
  size_t Bytes = 0;
};

} // namespace greta::rt::comm
#endif
