// PeerCopy.h: copies between two devices through the host. In: memory of both,
// and a stream of each. Out: the bytes are there; the streams go on behind it.
#ifndef GRETA_RUNTIME_COMM_PEER_COPY_H
#define GRETA_RUNTIME_COMM_PEER_COPY_H

#include "Backend.h"

namespace greta::rt::comm {

// Copies through memory of the host that both devices reach, in parts: one
// device fills the next while the other empties the last.
class PeerCopy {
public:
  PeerCopy(std::shared_ptr<Device> From, std::shared_ptr<Device> To);
  ~PeerCopy();
  PeerCopy(const PeerCopy &) = delete;
  bool isBetween(const Device &A, const Device &B) const {
    return From.get() == &A && To.get() == &B;
  }
  void run(Stream &In, const MemoryRef &ToMemory, size_t ToOffset, Stream &Out,
           const MemoryRef &FromMemory, size_t FromOffset, size_t Bytes);

private:
  std::shared_ptr<Device> From, To;
  char *Host = nullptr;
  MemoryRef SeenByFrom, SeenByTo; // null: a device cannot import it
};

} // namespace greta::rt::comm
#endif
