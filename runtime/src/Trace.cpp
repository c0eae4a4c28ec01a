// Trace.cpp: see Trace.h.
#include "Trace.h"
#include "Process.h"

#include <atomic>
#include <chrono>
#include <cstdlib>

namespace greta::rt {

static std::chrono::steady_clock::time_point origin() {
  static const auto Begin = std::chrono::steady_clock::now();
  return Begin;
}

/// Numbers threads in the order in which they call.
static uint64_t threadNumber() {
  static std::atomic<uint64_t> Next{0};
  thread_local uint64_t Mine = Next++;
  return Mine;
}

// Memory keeps at most so many before they are written.
static constexpr size_t mostEntries = 16384, mostPending = 1024;

Trace::Trace(FILE *Out) : Out(Out) {
  origin();
  fputs("{\"traceEvents\":[\n"
        "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":"
        "\"host\"}},\n"
        "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":2,\"args\":{\"name\":"
        "\"device\"}}",
        Out);
}

// It is never destroyed: streams may end after the file is written.
Trace *Trace::get() {
  static Trace *Only = [] {
    const char *Path = environment("GRETA_TRACE");
    FILE *Out = Path && *Path ? fopen(Path, "we") : nullptr;
    if (Path && *Path && !Out)
      report(GRETA_LOG_WARNING, concat("cannot write GRETA_TRACE=", Path));
    Trace *Made = Out ? new Trace(Out) : nullptr;
    if (Made)
      atexit([] { get()->finish(); });
    return Made;
  }();
  return Only;
}

double Trace::now() const {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now() - origin())
      .count();
}

void Trace::add(const char *Category, const std::string &Name, uint64_t Track,
                double Start, double Microseconds) {
  std::lock_guard<std::mutex> Guard(Lock);
  if (!Out)
    return;
  Entries.push_back({Category, Name, Track, Start, Microseconds});
  if (Entries.size() >= mostEntries)
    write();
}

void Trace::kernel(const std::string &Name, uint64_t Stream, double Start,
                   double Microseconds) {
  add("kernel", Name, Stream, Start, Microseconds);
}

void Trace::memory(uint64_t InUse) {
  add(nullptr, "memory", 0, now(), static_cast<double>(InUse));
}

Trace::Call::Call(const char *Name) : Name(Name) {
  if (Trace *T = Trace::get())
    Start = T->now();
}

Trace::Call::~Call() {
  if (Trace *T = Trace::get())
    T->add("call", Name, threadNumber(), Start, T->now() - Start);
}

// Names of the API and of kernels need no escapes.
void Trace::write() {
  for (const Entry &E : Entries) {
    if (!E.Category)
      fprintf(Out,
              ",\n{\"ph\":\"C\",\"name\":\"memory\",\"pid\":2,\"ts\":%.3f,"
              "\"args\":{\"bytes in use\":%.0f}}",
              E.Start, E.Duration);
    else
      fprintf(Out,
              ",\n{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":%d,"
              "\"tid\":%llu,\"ts\":%.3f,\"dur\":%.3f}",
              E.Category, E.Name.c_str(), *E.Category == 'k' ? 2 : 1,
              static_cast<unsigned long long>(E.Track), E.Start, E.Duration);
  }
  Entries.clear();
}

void Trace::finish() {
  std::lock_guard<std::mutex> Guard(Lock);
  write();
  fputs("\n]}\n", Out);
  fclose(Out);
  Out = nullptr;
}

void TracedStream::begin(Device &D, Stream &S, const std::string &Name) {
  if (!First) {
    First = D.createEvent();
    S.record(*First);
    First->synchronize();
    FirstTime = Trace::get()->now();
    static std::atomic<uint64_t> Next{0};
    Number = Next++;
  }
  if (Waiting.size() >= mostPending) {
    S.synchronize();
    resolve();
  }
  Waiting.push_back({Name, D.createEvent(), D.createEvent()});
  S.record(*Waiting.back().Start);
}

void TracedStream::end(Stream &S) { S.record(*Waiting.back().End); }

void TracedStream::resolve() {
  for (const Pending &P : Waiting)
    Trace::get()->kernel(P.Name, Number, FirstTime + P.Start->since(*First),
                         P.End->since(*P.Start));
  Waiting.clear();
}

} // namespace greta::rt
