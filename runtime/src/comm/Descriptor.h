// Descriptor.h: a file or a connection of this process alone. In: what opens
// it. Out: its number, which a forked process does not have.
#ifndef GRETA_RUNTIME_COMM_DESCRIPTOR_H
#define GRETA_RUNTIME_COMM_DESCRIPTOR_H

#include <functional>

namespace greta::rt::comm {

// A descriptor that fork() closes in the new process. A connection ends, a port
// is free and a lock is dropped when the last copy is closed, so all end with
// the rank.
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
