// Log.cpp: see Log.h. A kernel's records are checked like a package: a record
// is read only if all of it lies within the log.
#include "Log.h"
#include "Backend.h"
#include "Error.h"
#include "Process.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <utility>

namespace greta::rt {
namespace {
constexpr size_t headerWords = 4; // site, ids of the program

template <typename T> std::string shortest(T Value) {
  char Text[64];
  return std::string(Text, std::to_chars(Text, Text + sizeof(Text), Value).ptr);
}

std::string element(const LogValue &Value, bool Hex, const uint32_t *Words) {
  uint64_t Bits = Words[0];
  if (Value.words() == 2)
    Bits |= uint64_t(Words[1]) << 32;
  if (Value.DType[0] == 'f') {
    double F64;
    float F32;
    memcpy(&F64, &Bits, sizeof(F64));
    memcpy(&F32, &Words[0], sizeof(F32));
    return Value.words() == 2 ? shortest(F64) : shortest(F32);
  }
  if (Hex) {
    char Text[32];
    snprintf(Text, sizeof(Text), "0x%0*llx",
             std::stoi(Value.DType.substr(1)) / 4,
             static_cast<unsigned long long>(Bits));
    return Text;
  }
  if (Value.DType[0] == 'u')
    return std::to_string(Bits);
  return Value.words() == 2 ? std::to_string(static_cast<int64_t>(Bits))
                            : std::to_string(static_cast<int32_t>(Words[0]));
}

// Returns "(3, 15)" of a row-major index, padded so that lines are aligned.
std::string indexText(const std::vector<uint32_t> &Shape, size_t Index) {
  std::string Text;
  for (size_t Dim = Shape.size(); Dim-- > 0; Index /= Shape[Dim]) {
    std::string One = std::to_string(Index % Shape[Dim]);
    One.insert(0, std::to_string(Shape[Dim] - 1).size() - One.size(), ' ');
    Text = One + (Text.empty() ? "" : ", ") + Text;
  }
  return "idx (" + Text + ")";
}

std::string program(const uint32_t *Record) {
  return concat("pid (", Record[1], ", ", Record[2], ", ", Record[3], ") ");
}

void print(const LogSite &Site, const uint32_t *Record, std::string &Lines) {
  std::string Program = program(Record);
  const uint32_t *Words = Record + headerWords;
  if (Site.Values.empty())
    Lines += Program + "idx ()" + Site.Text + "\n";
  for (size_t V = 0; V < Site.Values.size(); ++V) {
    const LogValue &Value = Site.Values[V];
    std::string Operand =
        Site.Values.size() > 1 ? concat("(operand ", V, ") ") : "";
    for (size_t I = 0; I < Value.Elements; ++I, Words += Value.words())
      Lines += Program + indexText(Value.Shape, I) + Site.Text + Operand +
               element(Value, Site.Hex, Words) + "\n";
  }
}
} // namespace

bool prints(const LogDecl &Decl) {
  return std::any_of(Decl.Sites.begin(), Decl.Sites.end(),
                     [](const LogSite &S) { return !S.IsAssert; });
}

std::string readLog(const LogDecl &Decl, const std::vector<uint32_t> &Words,
                    uint32_t Taken, std::string &Lines) {
  std::string First;
  size_t Failed = 0, At = 0;
  while (Words.size() - At >= headerWords) {
    const uint32_t *Record = Words.data() + At;
    if (Record[0] >= Decl.Sites.size())
      break;
    const LogSite &Site = Decl.Sites[Record[0]];
    if (Site.Words > Words.size() - At - headerWords)
      break;
    At += headerWords + Site.Words;
    if (!Site.IsAssert) {
      print(Site, Record, Lines);
    } else if (Failed++ == 0) {
      size_t Index = std::min<size_t>(Record[headerWords], Site.Elements - 1);
      First = concat("device-side assert failed: ", Site.Text,
                     Site.Where.empty() ? "" : " (" + Site.Where + ")", ", ",
                     program(Record), indexText(Site.Shape, Index));
    }
  }
  if (At < Taken && !prints(Decl))
    Failed += (Taken - At) / (headerWords + 1);
  else if (At < Taken)
    Lines += concat("... ", Taken - At,
                    " words of what was printed or failed are lost; the log "
                    "holds ",
                    Decl.Words - 1, "\n");
  if (Failed > 1 && !First.empty())
    First += concat("; and ", Failed - 1, " more");
  return First;
}

uint32_t LogCount::read() const {
  return __atomic_load_n(
      reinterpret_cast<uint32_t *>(static_cast<char *>(Mapped->Mapped) + At),
      __ATOMIC_RELAXED);
}

KernelLog::KernelLog(Device &D, Stream &S, const KernelDecl &K,
                     std::shared_ptr<const Package> P)
    : On(D), Kernel(&K), Owner(std::move(P)),
      Words(D.allocate(decl().Words * sizeof(uint32_t))) {
  if (!S.Capturing) {
    S.fill(Words, 0, sizeof(uint32_t), 0);
    return;
  }
  // A fill in the stream would be a part of the graph.
  std::unique_ptr<Stream> Other = D.createStream();
  Other->fill(Words, 0, sizeof(uint32_t), 0);
  Other->synchronize();
}

uint64_t KernelLog::round() {
  std::lock_guard<std::mutex> Guard(Lock);
  return Round;
}

bool KernelLog::hasNew(uint32_t Count, uint64_t Of) {
  std::lock_guard<std::mutex> Guard(Lock);
  return Of == Round && Count > Told;
}

std::string KernelLog::takeLocked(Stream &By, uint32_t Taken, uint64_t Of) {
  if (Of != Round || Taken <= Told)
    return "";
  uint32_t Room = static_cast<uint32_t>(decl().Words - 1);
  std::vector<uint32_t> New(std::min(Taken, Room) - std::min(Told, Room));
  if (!New.empty())
    By.read(Words, (1 + Told) * sizeof(uint32_t), New.data(),
            New.size() * sizeof(uint32_t));
  std::string Lines, Failed = readLog(decl(), New, Taken - Told, Lines);
  Told = Taken;
  fwrite(Lines.data(), 1, Lines.size(), stdout);
  fflush(stdout);
  // A graph's log is never emptied, so that one that is full only counts.
  if (Failed.empty() && !prints(decl()))
    Failed =
        "device-side assert failed: the log is full and does not say which";
  return Failed.empty() ? "" : "kernel '" + Kernel->Entry + "': " + Failed;
}

std::string KernelLog::take(Stream &By, uint32_t Count, uint64_t Of) {
  std::lock_guard<std::mutex> Guard(Lock);
  return takeLocked(By, Count, Of);
}

std::string KernelLog::empty(Stream &By, uint32_t Count, uint64_t Of) {
  std::lock_guard<std::mutex> Guard(Lock);
  std::string Failed = takeLocked(By, Count, Of);
  if (!std::exchange(Told, 0))
    return Failed;
  ++Round;
  By.fill(Words, 0, sizeof(uint32_t), 0);
  return Failed;
}

bool waitsForLog(const LogDecl &Decl) {
  return prints(Decl) || isOn("GRETA_LAUNCH_BLOCKING");
}

// Throws what logs say failed, if any does. `Messages` has one for each.
static void failOf(const std::vector<std::string> &Messages) {
  std::string All;
  for (const std::string &One : Messages)
    if (!One.empty())
      All += (All.empty() ? "" : "; ") + One;
  if (!All.empty())
    fail(GRETA_ERROR_ASSERTION, All);
}

static LogRef find(const std::vector<LogRef> &In, const KernelDecl &K) {
  for (const LogRef &Log : In)
    if (Log->Kernel == &K)
      return Log;
  return nullptr;
}

LogRef StreamLogs::of(Device &D, Stream &S, const KernelDecl &K,
                      const std::shared_ptr<const Package> &P) {
  std::vector<LogRef> &Known = S.Capturing ? Recorded : Own;
  if (LogRef Log = find(Known, K))
    return Log;
  if (!S.Capturing && Own.size() == most) {
    wait(S);
    Own.clear();
  }
  return Known.emplace_back(std::make_shared<KernelLog>(D, S, K, P));
}

static bool has(const std::vector<LogRef> &In, const LogRef &Log) {
  return std::find(In.begin(), In.end(), Log) != In.end();
}

static LogLook *find(std::vector<LogLook> &In, const LogRef &Log) {
  for (LogLook &Look : In)
    if (Look.Log == Log)
      return &Look;
  return nullptr;
}

void StreamLogs::add(Stream &S, const std::vector<LogRef> &Logs) {
  auto IsNew = [&](const LogRef &Log) {
    return !has(Unseen, Log) && !find(Seen, Log);
  };
  auto New = size_t(std::count_if(Logs.begin(), Logs.end(), IsNew));
  // A stream that is never waited for keeps no logs of graphs without end. It
  // waits before it adds the first, as the launch is not queued yet.
  if (!S.Capturing && New && Seen.size() + Unseen.size() + New > 4 * most)
    wait(S);
  std::vector<LogRef> &List = S.Capturing ? Recorded : Unseen;
  for (const LogRef &Log : Logs)
    if (!has(List, Log))
      List.push_back(Log);
}

CountRef StreamLogs::freeCount(Device &D) {
  for (const CountRef &Count : Counts)
    if (Count.use_count() == 1)
      return Count;
  size_t Place = Counts.size() % mostCounts;
  if (Place == 0)
    Mapped = D.allocateMapped(mostCounts * sizeof(uint32_t));
  return Counts.emplace_back(
      std::make_shared<LogCount>(LogCount{Mapped, Place * sizeof(uint32_t)}));
}

void StreamLogs::look(Stream &S) {
  if (S.Capturing)
    return;
  for (const LogRef &Log : Unseen) {
    LogLook *Known = find(Seen, Log);
    // An event may keep the count of before, which is of the launches in front
    // of it.
    bool IsFree = Known && Known->Count.use_count() == 2;
    LogLook Look{Log, IsFree ? Known->Count : freeCount(Log->On), Log->round()};
    S.copy(Look.Count->Mapped, Look.Count->At, Log->Words, 0, sizeof(uint32_t));
    if (Known)
      *Known = std::move(Look);
    else
      Seen.push_back(std::move(Look));
  }
  Unseen.clear();
}

void StreamLogs::tell(Stream &S) {
  if (Seen.empty())
    return;
  std::vector<std::string> Messages;
  // Launches of a graph in other streams may add to its log just now.
  for (const auto &[Log, Count, Round] : Seen)
    Messages.push_back(has(Own, Log) ? Log->empty(S, Count->read(), Round)
                                     : Log->take(S, Count->read(), Round));
  Seen.clear();
  failOf(Messages);
}

void StreamLogs::wait(Stream &S) {
  look(S);
  S.synchronize();
  tell(S);
}

void tellLogs(Device &D, const std::vector<LogLook> &Logs) {
  std::unique_ptr<Stream> By; // most logs have nothing new
  std::vector<std::string> Messages;
  for (const auto &[Log, Count, Round] : Logs)
    try {
      uint32_t Words = Count->read();
      if (!Log->hasNew(Words, Round))
        continue;
      if (!By)
        By = D.createStream();
      Messages.push_back(Log->take(*By, Words, Round));
    } catch (const Error &) {
      // A device that checks calls it a race if later launches of the stream
      // may add to the log just now. The stream tells then.
      if (!D.wantsExtents())
        throw;
    }
  failOf(Messages);
}

} // namespace greta::rt
