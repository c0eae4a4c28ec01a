// Rendezvous.h: ranks of several hosts find each other over TCP. In: the
// address of rank 0, which listens there, and a word of each rank. Out: the
// words of all, and the connections, which stay open: one that ends says that
// its rank is gone.
#ifndef GRETA_RUNTIME_COMM_RENDEZVOUS_H
#define GRETA_RUNTIME_COMM_RENDEZVOUS_H

#include "comm/Group.h"

namespace greta::rt::comm {

struct Met {
  std::vector<std::string> Words; // the ranks', in their order
  // Rank 0 has one to each other rank, and these have one to rank 0.
  std::vector<Descriptor> Sockets;
  uint64_t Staging = 0; // bytes of a slot, from rank 0
};

// `Address` is host:port or [host]:port. Ranks whose id or size are not rank
// 0's are refused; throws when not all ranks came in time.
Met rendezvous(const std::string &Address, const Group::Id &Name, uint32_t Rank,
               uint32_t Size, std::chrono::milliseconds Timeout,
               const std::string &Word, uint64_t Staging);

// Says in place of rendezvous() that the rank does not come, and why: the
// others' throws with that. Returns when rank 0 has heard it, and as rank 0
// when all have; throws when that took too long.
void decline(const std::string &Address, const Group::Id &Name, uint32_t Rank,
             uint32_t Size, std::chrono::milliseconds Timeout,
             const std::string &Reason);

} // namespace greta::rt::comm
#endif
