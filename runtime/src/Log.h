// Log.h: what kernels print and which of their assertions fail. A launch leaves
// both in a temporary (docs/internals/package.md, "Log"), which is read when it
// ended.
#ifndef GRETA_RUNTIME_LOG_H
#define GRETA_RUNTIME_LOG_H

#include "Backend.h"

namespace greta::rt {

// Finds one launch's log; the words begin at `Offset` bytes in the temporary.
struct LogOfLaunch {
  MemoryRef Words;
  uint64_t Offset;
  const KernelDecl *Kernel;
};

// Queues a fill that empties the log.
void clearLog(Stream &S, const LogOfLaunch &Log);

// Waits for the launch and writes to standard output what it printed. Returns
// the message of the assertion that failed; "" if none did.
std::string takeLog(Stream &S, const LogOfLaunch &Log);

// Does the same with a log's words, without the one that counts them, which is
// `Taken`: the lines are added to `Lines`.
std::string readLog(const LogDecl &Decl, const std::vector<uint32_t> &Words,
                    uint32_t Taken, std::string &Lines);

} // namespace greta::rt
#endif
