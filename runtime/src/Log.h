// Log.h: what kernels print and which of their assertions fail. A launch leaves
// both in a temporary (docs/internals/package.md, "Log"), which is read when it
// ended.
#ifndef GRETA_RUNTIME_LOG_H
#define GRETA_RUNTIME_LOG_H

#include "Backend.h"

namespace greta::rt {

// One launch's log; the words are the temporary's, from `Offset` bytes on.
struct LogOfLaunch {
  MemoryRef Words;
  uint64_t Offset;
  const KernelDecl *Kernel;
};

// Queues that the log is empty.
void clearLog(Stream &S, const LogOfLaunch &Log);

// Waits for the launch and writes to standard output what it printed. The
// message of the assertion that failed; "" where none did.
std::string takeLog(Stream &S, const LogOfLaunch &Log);

// The same of a log's words, without the one that counts them: the lines are
// added to `Lines`. `Taken` is that count.
std::string readLog(const LogDecl &Decl, const std::vector<uint32_t> &Words,
                    uint32_t Taken, std::string &Lines);

} // namespace greta::rt
#endif
