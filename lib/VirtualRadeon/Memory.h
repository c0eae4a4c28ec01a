//===- Memory.h - buffers and their addresses -------------------*- C++ -*-===//
//
// A buffer is a memory file, so that the program and the virtual card map the
// same pages, and dma-bufs are such files. (Memory that the program shares
// already is mapped once more.) The card's addresses are addresses of this
// process: the simulator reads and writes them directly.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_VIRTUALRADEON_MEMORY_H
#define GRETA_VIRTUALRADEON_MEMORY_H

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace greta::sim {
class Device;
}

namespace greta::radeon {

class Machine;

constexpr uint64_t PageBytes = 4096;

struct Buffer {
  ~Buffer();
  Machine *machine = nullptr;
  int file = -1;
  void *pages = nullptr; ///< a mapping, where another's file is behind it
  uint64_t bytes = 0;
  uint64_t alignment = 0;
  uint32_t domains = 0;
  uint64_t flags = 0;
  uint64_t inode = 0;
  bool isCounted = false; ///< in the machine's used memory
  /// Drivers describe an image in it to each other with these.
  uint64_t tiling = 0, metadataFlags = 0;
  std::vector<uint32_t> metadata;
};

/// A new one; null when there is no such memory.
std::shared_ptr<Buffer> makeBuffer(Machine &machine, uint64_t bytes);
/// The memory behind a dma-buf's file; null when it is not one of these.
std::shared_ptr<Buffer> openBuffer(Machine &machine, int file);
/// Memory of the program: shared pages are the buffer's as they are, private
/// ones become so, in place.
std::shared_ptr<Buffer> adoptMemory(Machine &machine, uint64_t address,
                                    uint64_t bytes);

/// The addresses of one connection. Each has a window of its own in what no
/// program uses, because all of them are addresses of one process.
class AddressSpace {
public:
  explicit AddressSpace(sim::Device &device);
  ~AddressSpace();

  /// The first 4 GiB of the window are for addresses of 32 bits.
  uint64_t begin() const { return base; }
  uint64_t end() const;

  /// An error number or 0. `buffer` null: the range is reserved only.
  int map(uint64_t address, uint64_t bytes, std::shared_ptr<Buffer> buffer,
          uint64_t offset, bool isReplacing);
  int unmap(uint64_t address, uint64_t bytes);

private:
  struct Mapping {
    uint64_t bytes = 0, offset = 0;
    std::shared_ptr<Buffer> buffer;
  };
  int place(uint64_t address, Mapping mapping);
  void drop(uint64_t address, const Mapping &mapping);

  sim::Device &device;
  unsigned window = 0;
  uint64_t base = 0;
  std::map<uint64_t, Mapping> mappings;
};

} // namespace greta::radeon

#endif
