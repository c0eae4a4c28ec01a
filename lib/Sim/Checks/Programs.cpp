//===- Programs.cpp - bounds of arguments, races between programs ---------===//
#include "Checks/Programs.h"
#include "llvm/ADT/StringExtras.h"

using namespace greta::sim;
using llvm::Twine;

ProgramChecker::ProgramChecker(const MemoryMap &memory, Source *source,
                               llvm::ArrayRef<ArgumentExtent> arguments)
    : memory(memory), source(source), arguments(arguments) {
  for (unsigned k = 0; k < arguments.size(); ++k)
    if (arguments[k].isTensor())
      all.push_back(k);
}

void ProgramChecker::begin(const uint32_t (&id)[3], uint32_t number,
                           bool othersGoOn) {
  if (ids.size() <= number)
    ids.resize(number + 1);
  ids[number] = {id[0], id[1], id[2]};
  if (othersGoOn)
    paused[current] = {interval, std::move(known)};
  current = number;
  interval = 1;
  known.clear();
}

void ProgramChecker::resume(uint32_t number) {
  if (number == current)
    return;
  paused[current] = {interval, std::move(known)};
  std::tie(interval, known) = std::move(paused[number]);
  current = number;
}

std::string ProgramChecker::nameOf(uint32_t program) const {
  const std::array<uint32_t, 3> &id = ids[program];
  return ("program (" + Twine(id[0]) + ", " + Twine(id[1]) + ", " +
          Twine(id[2]) + ")")
      .str();
}

std::string ProgramChecker::place(const Inst &i) const {
  std::string line = source ? source->shortPlace(i.address) : "";
  return line.empty() ? "0x" + llvm::utohexstr(i.address, true) : line;
}

static std::string elementOf(const ArgumentExtent &argument, int64_t offset) {
  int64_t size = argument.elementBytes;
  int64_t element =
      offset >= 0 ? offset / size : -((-offset + size - 1) / size);
  return "element " + std::to_string(element) + " of '" + argument.name + "'";
}

std::string ProgramChecker::describe(uint64_t address) const {
  for (unsigned k : all)
    if (address - arguments[k].address < arguments[k].bytes)
      return elementOf(arguments[k], int64_t(address - arguments[k].address));
  return "address 0x" + llvm::utohexstr(address, true);
}

const ArgumentExtent *ProgramChecker::nearest(llvm::ArrayRef<unsigned> among,
                                              uint64_t address) const {
  const ArgumentExtent *best = nullptr;
  uint64_t distance = ~uint64_t(0);
  for (unsigned k : among) {
    const ArgumentExtent &a = arguments[k];
    uint64_t d = address < a.address ? a.address - address
                 : address - a.address < a.bytes
                     ? 0
                     : address - a.address - a.bytes;
    if (!best || d < distance) {
      best = &a;
      distance = d;
    }
  }
  return best;
}

//===- bounds -------------------------------------------------------------===//

/// Returns whether the compiler could not have read less: scalar loads move
/// whole words, and three of them as four.
static bool isWithin(const ArgumentExtent &a, const Inst &i, uint64_t address,
                     unsigned bytes, unsigned unit) {
  uint64_t begin = a.address / unit * unit,
           end = llvm::alignTo(a.address + a.bytes, unit);
  if (address < begin || address >= end)
    return false;
  if (i.unit == Unit::Smem && bytes == 16 && address % 16 == 0)
    bytes -= 4;
  return end - address >= bytes;
}

bool ProgramChecker::isScratch(const Wave &w, const Inst &i, uint64_t address) {
  uint64_t begin = reinterpret_cast<uint64_t>(w.scratch);
  return w.scratch && i.unit == Unit::Buffer && address >= begin &&
         address - begin < uint64_t(w.wg->scratchBytes + 3) / 4 * 4 * w.lanes;
}

bool ProgramChecker::inBounds(Wave &w, const Inst &i, int lane,
                              uint64_t address, unsigned bytes, bool write) {
  if (isScratch(w, i, address))
    return true;
  const SourceAccess *access =
      source ? source->access(i.address, write) : nullptr;
  llvm::ArrayRef<unsigned> among = all;
  unsigned unit = i.unit == Unit::Smem || isAtomic(i) ? 4 : 1;
  if (access) {
    if (access->elsewhere)
      return true;
    among = access->arguments;
    if (among.empty() || among.back() >= arguments.size())
      return true;
  } else {
    // The access is unknown; the compiler may have widened a load.
    const Region *region = memory.find(address);
    bool isOurs = region && llvm::any_of(all, [&](unsigned k) {
                    return arguments[k].address - region->base < region->size;
                  });
    if (region && !isOurs)
      return true;
    unit = write ? 1 : 16;
  }
  for (unsigned k : among)
    if (!arguments[k].isTensor() ||
        isWithin(arguments[k], i, address, bytes, unit))
      return true;
  const ArgumentExtent *a = nearest(among, address);
  if (!a)
    return true;
  int64_t first = int64_t(address - a->address);
  bool isBefore = first < 0;
  uint64_t far = isBefore ? uint64_t(-first) : first + bytes - a->bytes;
  // Finds the first element of a wide access that is outside.
  int64_t outside = isBefore ? first : std::max(first, int64_t(a->bytes));
  w.fault(i,
          Twine("out-of-bounds ") + (write ? "write" : "read") + " of " +
              elementOf(*a, outside) + ", " + Twine(far) + " bytes " +
              (isBefore ? "before its begin" : "beyond its end") + ": '" +
              a->name + "' has " + Twine(a->bytes) + " bytes (" +
              Twine(a->bytes / a->elementBytes) + " elements)",
          lane);
  return false;
}

//===- races --------------------------------------------------------------===//

bool ProgramChecker::isOrdered(const Event &event) const {
  if (!event.interval || event.program == current)
    return true;
  auto it = known.find(event.program);
  return it != known.end() && it->second >= event.interval;
}

void ProgramChecker::synchronize(const Inst &i, uint64_t address, Access kind) {
  bool isRead = kind == Access::AtomicRead;
  if (isRead && !published.count(address))
    return;
  Published &there = published[address];
  auto join = [](Clock &to, const Clock &from) {
    for (auto [program, count] : from) {
      uint32_t &have = to[program];
      have = std::max(have, count);
    }
  };
  bool takes = isRead || i.dst[0] || i.has(Return);
  if (takes && there.knownTo != current)
    join(known, there.clock);
  there.knownTo = takes || there.knownTo == current ? current : ~0u;
  if (isRead)
    return;
  join(there.clock, known);
  there.clock[current] = interval++;
}

bool ProgramChecker::touch(Wave &w, const Inst &i, int lane, uint64_t address,
                           Word &word, Access kind) {
  bool write = kind == Access::Write, rewrite = kind == Access::Rewrite;
  bool atomic = kind == Access::Atomic || kind == Access::AtomicRead;
  auto race = [&](const Event &other, const char *what) {
    Inst at;
    at.address = other.instruction;
    w.fault(i,
            Twine("race: ") + nameOf(current) +
                (atomic             ? " changes "
                 : write || rewrite ? " writes "
                                    : " reads ") +
                describe(address) + ", and " + nameOf(other.program) + what +
                place(at) + "; no atomic orders the two",
            lane);
    return false;
  };
  if (!isOrdered(word.write)) {
    bool fromAtomic = word.atomic;
    if (write || (kind == Access::Atomic && !fromAtomic))
      return race(word.write, fromAtomic ? " changes it with an atomic at "
                              : write    ? " wrote another value at "
                                         : " wrote it at ");
    if (kind == Access::Read && word.changed && !fromAtomic)
      return race(word.write, " wrote it at ");
  }
  if (write)
    for (const Event &reader : {word.read, word.otherRead})
      if (!isOrdered(reader))
        return race(reader, " reads it at ");
  Event now{current, interval, i.address};
  if (kind == Access::Read) {
    if (word.read.interval && word.read.program != current)
      word.otherRead = word.read;
    word.read = now;
  } else if (kind != Access::AtomicRead &&
             (!rewrite || isOrdered(word.write))) {
    bool again = word.write.interval && word.write.program == current;
    word.changed = !rewrite || (again && word.changed);
    word.write = now;
    word.atomic = atomic;
    word.stored |= !atomic;
  }
  return true;
}

bool ProgramChecker::inOrder(Wave &w, const Inst &i, int lane, uint64_t address,
                             unsigned size, Access kind) {
  if (i.has(Coherent) && kind != Access::Atomic)
    kind = kind == Access::Read ? Access::AtomicRead : Access::Atomic;
  if (kind == Access::Atomic || kind == Access::AtomicRead)
    synchronize(i, address, kind);
  std::array<Word, 64> *page = nullptr;
  for (uint64_t at = address, end = address + size; at < end;) {
    if (!page || at % 256 == 0)
      page = &pages[at / 256];
    Word &word = (*page)[at / 4 % 64];
    unsigned part = unsigned(std::min<uint64_t>(end - at, 4 - at % 4));
    if (part == 4 && !word.split) {
      if (!touch(w, i, lane, at, word, kind))
        return false;
      at += 4;
      continue;
    }
    std::array<Word, 4> &each = bytes[at / 4];
    if (!word.split)
      each.fill(word);
    word.split = true;
    for (; part--; ++at)
      if (!touch(w, i, lane, at, each[at % 4], kind))
        return false;
  }
  return true;
}

MemoryUse ProgramChecker::touched() const {
  MemoryUse use;
  auto add = [](std::vector<MemoryUse::Range> &to, uint64_t at, unsigned size) {
    if (!to.empty() && to.back().end == at)
      to.back().end += size;
    else
      to.push_back({at, at + size});
  };
  auto addWord = [&](const Word &word, uint64_t at, unsigned size) {
    if (word.read.interval)
      add(use.reads, at, size);
    if (word.write.interval)
      add(word.stored ? use.writes : use.atomics, at, size);
  };
  std::vector<std::pair<uint64_t, const std::array<Word, 64> *>> sorted;
  for (const auto &[number, page] : pages)
    sorted.push_back({number, &page});
  llvm::sort(sorted);
  for (auto [number, page] : sorted)
    for (auto [k, word] : llvm::enumerate(*page)) {
      uint64_t at = number * 256 + k * 4;
      if (!word.split)
        addWord(word, at, 4);
      else
        for (auto [part, byte] : llvm::enumerate(bytes.at(at / 4)))
          addWord(byte, at + part, 1);
    }
  return use;
}
