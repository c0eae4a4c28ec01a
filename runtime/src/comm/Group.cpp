// Group.cpp: see Group.h.
#include "comm/Group.h"
#include "comm/Segment.h"
#include "comm/Wire.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <pthread.h>
#include <random>
#include <sched.h>
#include <set>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace greta::rt::comm {

void Patience::wait() {
  using std::chrono::microseconds;
  if (Turns++ == 0)
    Begin = std::chrono::steady_clock::now();
  // The clock is read every 16th time.
  if (Turns % 16 == 0)
    Waited = std::chrono::steady_clock::now() - Begin;
  if (Waited > microseconds(2000))
    std::this_thread::sleep_for(microseconds(50));
  else if (Waited > microseconds(20))
    sched_yield();
#if defined(__x86_64__)
  else
    __builtin_ia32_pause();
#endif
}

// A lock lasts until the last descriptor of its file is closed and the last
// mapping is gone, so no process is forked between the mapping and the advice
// that forked processes do not have it.
struct Group::Forks {
  static Forks &all() {
    static Forks &All = *new Forks; // threads may outlive the library's end
    return All;
  }
  Forks() {
    (void)pthread_atfork([] { all().Lock.lock(); }, [] { all().Lock.unlock(); },
                         [] {
                           for (Group *G : all().Open)
                             G->leaveFork();
                           all().Open.clear();
                           all().Lock.unlock();
                         });
  }
  void add(Group *G) {
    std::lock_guard<std::mutex> Guard(Lock);
    Open.insert(G);
  }
  void remove(Group *G) {
    std::lock_guard<std::mutex> Guard(Lock);
    Open.erase(G);
  }
  std::mutex Lock;
  std::set<Group *> Open;
};

// In the forked process, callers that use the rank find an ended communicator.
void Group::leaveFork() {
  (void)W.release(); // its thread is the parent's
  if (mmap(Map->Begin, Map->Bytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
           0) != MAP_FAILED)
    abort("this process was forked from the rank's");
}

Group::Id Group::newId() {
  Id Made;
  std::random_device Random;
  for (uint8_t &Byte : Made)
    Byte = static_cast<uint8_t>(Random());
  return Made;
}

void Group::checkRank(uint32_t Rank, uint32_t Size) {
  if (!Size || Size > maxRanks || Rank >= Size)
    fail(GRETA_ERROR_INVALID_ARGUMENT, "rank ", Rank, " of ", Size,
         ": there are 1 to ", maxRanks, " ranks, from 0 on");
}

// Takes words and bytes from ranks of other hosts, which may send anything.
struct Group::Ears : Wire::Owner {
  explicit Ears(Group &G) : G(G) {}
  bool set(uint32_t From, uint64_t At, uint64_t Value) override {
    using Word = std::atomic<uint64_t>;
    static_assert(sizeof(Word) == 8 && Word::is_always_lock_free);
    if (At % sizeof(Word) || At >= offsetof(State, Words))
      return false;
    *reinterpret_cast<Word *>(reinterpret_cast<char *>(&G.of(From)) + At) =
        Value;
    return true;
  }
  char *place(uint32_t From, Wire::What Kind, uint64_t At,
              uint64_t Bytes) override {
    auto IsIn = [&](size_t Begin, size_t Size) {
      return Bytes && At >= Begin && Bytes <= Size &&
             At - Begin <= Size - Bytes;
    };
    size_t Words = offsetof(State, Words);
    if (Kind == Wire::What::Text)
      return IsIn(Words, sizeof(State::Words))
                 ? reinterpret_cast<char *>(&G.of(From)) + At
                 : nullptr;
    return IsIn(G.slotAt(From, 0), slots * G.SlotBytes) ||
                   IsIn(G.resultAt(0), slots * G.SlotBytes) ||
                   IsIn(G.pairAt(From, G.Rank, 0), slots * G.pairBytes())
               ? G.data() + At
               : nullptr;
  }
  void ended(const std::string &Why) override { G.end(Why); }
  Group &G;
};

Group::Group(const Place &At, uint32_t Rank, uint32_t Size, uint64_t TimeoutMs)
    : Rank(Rank), Size(Size), Timeout(TimeoutMs),
      Name(hex(At.Name.data(), At.Name.size())) {
  checkRank(Rank, Size);
}

Group::Group(const Place &At, uint32_t Rank, uint32_t Size, uint64_t TimeoutMs,
             size_t StagingBytes)
    : Group(At, Rank, Size, TimeoutMs) {
  if (StagingBytes > mostSlotBytes)
    fail(GRETA_ERROR_INVALID_ARGUMENT, "staging of ", StagingBytes,
         " bytes; the most is ", mostSlotBytes);
  size_t Wanted = roundUp(
      std::max(StagingBytes ? StagingBytes : usualSlotBytes, leastSlotBytes),
      dataUnit);
  try {
    if (At.Address.empty())
      join(At, Wanted);
    else
      connect(At, Wanted);
    Forks::all().add(this);
    set(own().Presence, State::Joined);
    meet("");
  } catch (...) {
    Forks::all().remove(this);
    if (Map)
      abort(concat("rank ", Rank, " could not join"));
    W.reset();
    if (Map)
      waitUntilAllKnow();
    removeFiles();
    throw;
  }
  // Nobody has to find the file any more, and nothing is left behind.
  removeFiles();
}

Group::~Group() {
  Forks::all().remove(this);
  if (!Fd || !Map)
    return; // a forked process has no rank, nor has one that found no other
  set(own().Presence, State::Left);
  W.reset();
}

// Maps memory of this rank's own, and connects to the ranks of the address.
void Group::connect(const Place &At, size_t Wanted) {
  uint64_t Staging = Wanted;
  W = std::make_unique<Wire>(At.Address, At.Name, Rank, Size, Timeout, Staging);
  SlotBytes = Staging;
  if (!SlotBytes || SlotBytes > mostSlotBytes || SlotBytes % dataUnit)
    fail(GRETA_ERROR_INVALID_ARGUMENT, "rank 0 has staging of ", SlotBytes,
         " bytes");
  Fd = Descriptor([] { return memfd_create("greta-comm", MFD_CLOEXEC); });
  int Problem =
      Fd ? posix_fallocate(Fd.get(), 0, static_cast<off_t>(fileBytes()))
         : errno;
  if (Problem)
    fail(GRETA_ERROR_OUT_OF_MEMORY, "no memory for ", fileBytes(),
         " bytes of staging: ", strerror(Problem));
  map();
  Heard = std::make_unique<Ears>(*this);
  W->start(*Heard);
}

std::string Group::library() const { return W ? W->library() : ""; }

void Group::set(std::atomic<uint64_t> &Word, uint64_t Value,
                std::optional<uint32_t> To) {
  Word = Value;
  if (!W)
    return;
  auto At = static_cast<uint64_t>(reinterpret_cast<char *>(&Word) -
                                  reinterpret_cast<char *>(&own()));
  for (uint32_t R = 0; R < Size; ++R)
    if (!To || *To == R)
      W->send(R, Wire::What::Word, At, Value);
}

void Group::give(uint32_t To, size_t At, size_t Bytes) {
  if (W && Bytes)
    W->send(To, Wire::What::Data, At, Bytes, data() + At);
}

void Group::map() {
  static std::mutex Lock;
  // The file itself is the key, as another one may have had this name.
  static std::map<std::pair<dev_t, ino_t>, std::weak_ptr<Mapping>> All;
  struct stat Stat;
  if (fstat(Fd.get(), &Stat))
    fail(GRETA_ERROR_INTERNAL, File, ": ", strerror(errno));
  const std::pair<dev_t, ino_t> Key(Stat.st_dev, Stat.st_ino);
  // This lock comes first: a process that is forked meanwhile would find the
  // other one locked for ever.
  std::lock_guard<std::mutex> NoFork(Forks::all().Lock);
  std::lock_guard<std::mutex> Guard(Lock);
  for (auto It = All.begin(); It != All.end();)
    It = It->second.expired() ? All.erase(It) : std::next(It);
  if ((Map = All[Key].lock()))
    return;
  size_t Bytes = fileBytes();
  void *Begin =
      mmap(nullptr, Bytes, PROT_READ | PROT_WRITE, MAP_SHARED, Fd.get(), 0);
  if (Begin == MAP_FAILED)
    fail(GRETA_ERROR_OUT_OF_MEMORY, "mapping ", File, ": ", strerror(errno));
  // A mapping would keep the lock, too.
  (void)madvise(Begin, Bytes, MADV_DONTFORK);
  Map = std::make_shared<Mapping>();
  Map->Begin = Begin;
  Map->Bytes = Bytes;
  All[Key] = Map;
}

Group::State &Group::of(uint32_t R) { return Map->control()->Rank[R]; }

size_t Group::pairBytes() const {
  return std::max<size_t>(SlotBytes / (2 * Size) / 4096, 1) * 4096;
}

std::shared_ptr<void> Group::owner() const { return Map; }

char *Group::data() const {
  return static_cast<char *>(Map->Begin) + roundUp(sizeof(Control), dataUnit);
}

size_t Group::fileBytes() const {
  return roundUp(sizeof(Control), dataUnit) + dataBytes();
}

void Group::freeSlots() {
  (void)fallocate(Fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(roundUp(sizeof(Control), dataUnit)),
                  static_cast<off_t>(boxesAt()));
}

size_t Group::dataBytes() const { return boxesAt() + boxesBytes(); }

size_t Group::boxesAt() const {
  return roundUp(slots * (SlotBytes * (Size + 1) + pairBytes() * Size * Size),
                 dataUnit);
}

size_t Group::boxesBytes() const {
  return roundUp(wordBytes + size_t(boxWords) * 8 * 2 * Size, dataUnit);
}

bool Group::hasKernelEnded() const {
  return *reinterpret_cast<volatile uint32_t *>(data() + boxesAt()) != 0;
}

size_t Group::slotAt(uint32_t R, uint64_t Step) const {
  return (R * slots + Step % slots) * SlotBytes;
}

size_t Group::resultAt(uint64_t Step) const { return slotAt(Size, Step); }

size_t Group::pairAt(uint32_t From, uint32_t To, uint64_t Step) const {
  return slotAt(Size + 1, 0) +
         ((size_t(From) * Size + To) * slots + Step % slots) * pairBytes();
}

bool Group::isAlive(uint32_t R) const {
  if (W)
    return !W->isGone(R);
  struct flock Lock = byteOf(R, F_WRLCK);
  return fcntl(Fd.get(), F_OFD_GETLK, &Lock) || Lock.l_type != F_UNLCK;
}

std::vector<std::string> Group::meet(const std::string &Word) {
  // A rank that gave up comes here, too.
  const uint32_t Way = Trying.exchange(0);
  State &Own = own();
  snprintf(Own.Words[Meetings % 2], wordBytes, "%s", Word.c_str());
  for (uint32_t R = 0; R < Size && W; ++R)
    W->sendText(R, Wire::What::Text,
                offsetof(State, Words) + Meetings % 2 * wordBytes,
                std::string(Own.Words[Meetings % 2], wordBytes));
  set(Own.Meetings, ++Meetings);
  wait([&](uint32_t R) { return of(R).Meetings < Meetings; },
       "a meeting of all ranks");
  Trying = Way;
  std::vector<std::string> Heard;
  for (uint32_t R = 0; R < Size; ++R)
    Heard.emplace_back(of(R).Words[(Meetings - 1) % 2],
                       strnlen(of(R).Words[(Meetings - 1) % 2], wordBytes));
  return Heard;
}

void Group::abort(const std::string &Why) {
  end(Why);
  for (uint32_t R = 0; R < Size && W; ++R)
    W->sendText(R, Wire::What::End, 0, Why.substr(0, wordBytes - 1));
}

// Ends it on this host.
void Group::end(const std::string &Why) {
  // A program or the network brought the text, which becomes one line, and may
  // be cut anywhere.
  const std::string Text = printable(Why, wordBytes - 1);
  Control &C = *Map->control();
  uint32_t Nobody = 0;
  if (!C.Aborts.compare_exchange_strong(Nobody, 1))
    return;
  snprintf(C.Reason, wordBytes, "%s", Text.c_str());
  C.Aborts = 2;
  *reinterpret_cast<volatile uint32_t *>(data() + boxesAt()) = 1;
}

bool Group::hasEnded() const { return Map->control()->Aborts != 0; }

void Group::checkProcess() const {
  if (!Fd)
    fail(GRETA_ERROR_PEER_LOST,
         "the communicator is of the process that this one was forked from");
}

void Group::checkEnded() {
  Control &C = *Map->control();
  if (!C.Aborts)
    return;
  // The writer of the reason may end before it is there.
  auto Begin = Clock::now();
  for (Patience P; C.Aborts != 2; P.wait())
    if (Clock::now() - Begin > std::chrono::milliseconds(100))
      fail(GRETA_ERROR_PEER_LOST,
           "the communicator has ended: a rank ended with it");
  fail(GRETA_ERROR_PEER_LOST,
       C.Declines ? "" : "the communicator has ended: ", C.Reason);
}

bool Group::isGone(uint32_t R) {
  uint64_t Presence = of(R).Presence;
  return Presence == State::Left ||
         ((Presence == State::Joined || W) && !isAlive(R));
}

void Group::check(const std::function<bool(uint32_t)> &WaitsFor,
                  Clock::time_point Since, const char *What) {
  checkEnded();
  const uint32_t Way = Trying;
  for (uint32_t R = 0; R < Size; ++R)
    if (Way && of(R).GaveUp == Way)
      throw GaveUp(GRETA_ERROR_PEER_LOST, concat("rank ", R, " gave it up"));
  for (uint32_t R = 0; R < Size; ++R) {
    if (R == Rank || !WaitsFor(R))
      continue;
    // The rank may have done its part since.
    if (isGone(R) && WaitsFor(R))
      fail(GRETA_ERROR_PEER_LOST, "rank ", R, " is gone; rank ", Rank,
           " has waited for it in ", What);
    if (Clock::now() - Since > Timeout)
      fail(GRETA_ERROR_PEER_LOST, "rank ", Rank, " has waited ",
           Timeout.count(), " ms for rank ", R, " in ", What);
  }
}

void Group::wait(const std::function<bool(uint32_t)> &Missing,
                 const char *What) {
  auto Begin = Clock::now(), Asked = Begin;
  for (Patience P;; P.wait()) {
    bool All = true;
    for (uint32_t R = 0; R < Size; ++R)
      All &= !Missing(R);
    if (All)
      return;
    if (Clock::now() - Asked < std::chrono::milliseconds(5))
      continue;
    Asked = Clock::now();
    check(Missing, Begin, What);
  }
}

} // namespace greta::rt::comm
