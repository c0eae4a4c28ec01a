// Log.h: what kernels print and which of their assertions fail. A launch leaves
// both in its kernel's log (docs/internals/package.md, "Log"), to which the
// launches of a stream, or of a graph, append until somebody waits for them.
//
//   launch  launch  record E      launch  synchronize
//                   count copied          count copied
//                   for E                 read, told and emptied
//
// Whoever waits reads how many words there are from mapped memory, to which the
// stream copied it, and the words themselves only if there are new ones.
#ifndef GRETA_RUNTIME_LOG_H
#define GRETA_RUNTIME_LOG_H

#include "Package.h"

#include <memory>
#include <mutex>

namespace greta::rt {

class Device;
class Memory;
class Stream;

// A word of mapped memory to which a stream copies how many words a log has.
struct LogCount {
  std::shared_ptr<Memory> Mapped;
  size_t At; // byte

  uint32_t read() const;
};
using CountRef = std::shared_ptr<LogCount>;

// The log of a kernel's launches in a stream or in a graph.
struct KernelLog {
  // `S` launches the kernel next, or records it.
  KernelLog(Device &D, Stream &S, const KernelDecl &K,
            std::shared_ptr<const Package> P);

  const LogDecl &decl() const { return *Kernel->Log; }
  // Returns how often the log has been emptied. Whoever empties it has told all
  // of it, so that older counts of words mean nothing.
  uint64_t round();
  // Returns whether some of the first `Count` words of that round were not
  // read.
  bool hasNew(uint32_t Count, uint64_t Round);
  // Reads those words, by a stream that waits for nothing else, and prints
  // them. Returns which assertion failed; "" if none did.
  std::string take(Stream &By, uint32_t Count, uint64_t Round);
  // Does the same, and has the stream empty the log. All that was launched with
  // it has ended.
  std::string empty(Stream &By, uint32_t Count, uint64_t Round);

  Device &On;
  const KernelDecl *Kernel;
  std::shared_ptr<const Package> Owner;
  std::shared_ptr<Memory> Words; // a word that counts the words behind it

private:
  std::string takeLocked(Stream &By, uint32_t Count, uint64_t Round);

  std::mutex Lock;
  uint32_t Told = 0; // words that were read
  uint64_t Round = 0;
};
using LogRef = std::shared_ptr<KernelLog>;

// A stream knows of a log at a place: the launches in front of it have
// added so many words. A count is not written again while somebody keeps it.
struct LogLook {
  LogRef Log;
  CountRef Count;
  uint64_t Round;
};

bool prints(const LogDecl &Decl);
// Returns whether a launch of the kernel waits for its end: it prints, or
// GRETA_LAUNCH_BLOCKING is set.
bool waitsForLog(const LogDecl &Decl);

// The logs of a stream.
class StreamLogs {
public:
  // Returns the stream's log of the kernel, or the recorded graph's. If the
  // stream has too many of them it waits and tells what failed.
  LogRef of(Device &D, Stream &S, const KernelDecl &K,
            const std::shared_ptr<const Package> &P);
  // Notes that a launch that is queued next, or a graph's, adds to the logs. If
  // too many logs have not been read it waits first and tells what failed.
  void add(Stream &S, const std::vector<LogRef> &Logs);
  // Queues copies of the counts that launches may have changed, unless a graph
  // is recorded.
  void look(Stream &S);
  // Throws what failed. All is done that was queued.
  void tell(Stream &S);
  // Waits for the stream, then does so.
  void wait(Stream &S);
  // Returns the logs that launches have added to since the last tell(), with
  // their counts as of the last look().
  const std::vector<LogLook> &open() const { return Seen; }
  // Returns whether there is something to tell.
  bool isOpen() const { return !Seen.empty() || !Unseen.empty(); }

  std::vector<LogRef> Recorded; // of the graph that is being recorded

private:
  static constexpr size_t most = 32;
  static constexpr size_t mostCounts = 1024; // drivers map whole pages

  // Returns a count that nobody else keeps. Copies to it that are still queued
  // are in front of the next one, as they are of this stream.
  CountRef freeCount(Device &D);

  std::vector<LogRef> Own;
  std::vector<LogLook> Seen;  // counts were copied behind the last launch
  std::vector<LogRef> Unseen; // were not
  std::vector<CountRef> Counts;
  std::shared_ptr<Memory> Mapped; // has the last counts
};

// Throws what failed before an event that has happened, where its stream had
// looked at these logs.
void tellLogs(Device &D, const std::vector<LogLook> &Logs);

// Reads a log's words, from the first new one on, of which launches asked for
// `Taken`: the lines are added to `Lines`. Returns which assertion failed.
std::string readLog(const LogDecl &Decl, const std::vector<uint32_t> &Words,
                    uint32_t Taken, std::string &Lines);

} // namespace greta::rt
#endif
