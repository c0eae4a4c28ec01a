// Descriptor.h: a file or a connection of this process alone. In: what opens
// it. Out: its number, which a forked process does not have.
#ifndef GRETA_RUNTIME_COMM_DESCRIPTOR_H
#define GRETA_RUNTIME_COMM_DESCRIPTOR_H

#include <functional>

namespace greta::rt::comm {

// A connection ends, a port is free and a lock is dropped when the last
// descriptor is closed: a forked process closes its copies before fork()
// returns there, so that they end with the rank.
class Descriptor {
public:
  Descriptor();
  // `Open` returns a number, or -1 and sets errno. No process is forked
  // meanwhile, so it does not block.
  explicit Descriptor(const std::function<int()> &Open);
  Descriptor(Descriptor &&Other) noexcept;
  Descriptor &operator=(Descriptor &&Other) noexcept;
  ~Descriptor();
  void close();
  int get() const { return Fd; }
  explicit operator bool() const { return Fd >= 0; }

private:
  struct All;
  int Fd = -1;
};

} // namespace greta::rt::comm
#endif
