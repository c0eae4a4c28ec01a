// Trace.h: what a program did, as a file for Perfetto or chrome://tracing,
// where GRETA_TRACE names one. In: calls of the API, making kernels, kernels
// between two events of the device, bytes in use. Out: JSON in Chrome's trace
// format, written piece by piece, the last one when the process ends.
//
// Kernels get times of the host's clock by an event of their stream whose time
// both sides know: the first one that was traced.
#ifndef GRETA_RUNTIME_TRACE_H
#define GRETA_RUNTIME_TRACE_H

#include "Backend.h"

#include <cstdio>
#include <mutex>

namespace greta::rt {

class Trace {
public:
  // Returns null unless the environment names a file.
  static Trace *get();

  // Traces a call on this thread, from here to the end of the scope.
  class Call {
  public:
    explicit Call(const char *Name);
    ~Call();

  private:
    const char *Name;
    double Start = 0;
  };
  // Returns microseconds since the first use.
  double now() const;
  void kernel(const std::string &Name, uint64_t Stream, double Start,
              double Microseconds);
  void memory(uint64_t InUse);

private:
  explicit Trace(FILE *Out);
  void write();  // writes the entries, with Lock held
  void finish(); // stops the trace
  void add(const char *Category, const std::string &Name, uint64_t Track,
           double Start, double Microseconds);

  struct Entry {
    const char *Category; // null: Duration is the bytes in use
    std::string Name;
    uint64_t Track;
    double Start, Duration;
  };
  std::mutex Lock;
  FILE *Out; // null once it is finished
  std::vector<Entry> Entries;
};

// Holds the kernels of one stream whose times are not known yet. When they
// become many it synchronizes the stream.
class TracedStream {
public:
  // Runs `Launch`, between two events if there is a trace.
  template <typename Body>
  void launch(Device &D, Stream &S, const std::string &Name, Body Launch) {
    if (!Trace::get() || S.Capturing)
      return Launch();
    begin(D, S, Name);
    Launch();
    end(S);
  }
  // Reads the times; all that was launched has ended.
  void resolve();

private:
  void begin(Device &D, Stream &S, const std::string &Name);
  void end(Stream &S);

  struct Pending {
    std::string Name;
    std::unique_ptr<Event> Start, End;
  };
  std::unique_ptr<Event> First; // at FirstTime of the host's clock
  double FirstTime = 0;
  uint64_t Number = 0; // the stream's, in the trace
  std::vector<Pending> Waiting;
};

} // namespace greta::rt
#endif
