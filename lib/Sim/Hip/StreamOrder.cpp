//===- StreamOrder.cpp - races between operations of streams --------------===//
#include "Hip/StreamOrder.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>
#include <optional>

using namespace greta::sim;
using namespace greta::sim::hip;
using llvm::Twine;
using Range = MemoryUse::Range;

/// Streams that nobody waits for drop their oldest operations beyond these.
static constexpr size_t MostPending = 1024;

static bool isBehind(const StreamOrder::Clock &clock,
                     const StreamOrder::Operation &op) {
  auto it = clock.find(op.stream);
  return it != clock.end() && it->second >= op.number;
}

void StreamOrder::join(Clock &to, const Clock &from) const {
  for (auto [stream, number] : from) {
    uint64_t &have = to[stream];
    have = std::max(have, number);
  }
  uint64_t oldest = pending.empty() ? operations + 1 : pending.front().number;
  for (auto it = to.begin(); it != to.end();)
    it = it->second < oldest ? to.erase(it) : std::next(it);
}

void StreamOrder::finish(const Clock &done) {
  llvm::erase_if(pending,
                 [&](const Operation &op) { return isBehind(done, op); });
}

bool StreamOrder::isFinished(const Clock &done) const {
  return llvm::none_of(pending,
                       [&](const Operation &op) { return isBehind(done, op); });
}

void StreamOrder::forget(uint64_t base, uint64_t bytes) {
  for (Operation &op : pending)
    for (auto *ranges : {&op.use.reads, &op.use.writes, &op.use.atomics})
      llvm::erase_if(*ranges,
                     [&](const Range &r) { return r.begin - base < bytes; });
}

/// Returns the first bytes that both have.
static std::optional<Range> common(llvm::ArrayRef<Range> a,
                                   llvm::ArrayRef<Range> b) {
  while (!a.empty() && !b.empty()) {
    Range both{std::max(a[0].begin, b[0].begin), std::min(a[0].end, b[0].end)};
    if (both.begin < both.end)
      return both;
    (a[0].end < b[0].end ? a : b) = (a[0].end < b[0].end ? a : b).drop_front();
  }
  return std::nullopt;
}

/// Returns " (its 'y')" if the bytes are a part of an argument with a name.
static std::string argumentAt(const StreamOrder::Operation &op,
                              uint64_t address) {
  for (const ArgumentExtent &a : op.arguments)
    if (!a.name.empty() && address - a.address < a.bytes)
      return " (its '" + a.name + "')";
  return "";
}

/// Describes how `now` uses bytes that `before` uses, if one of them writes.
static std::string conflict(const StreamOrder::Operation &now,
                            const StreamOrder::Operation &before,
                            const Device &device) {
  const MemoryUse &a = now.use, &b = before.use;
  const struct {
    llvm::ArrayRef<Range> its;
    const char *does;
    llvm::ArrayRef<Range> others;
    const char *othersDo;
  } pairs[] = {{a.writes, "writes", b.writes, "writes"},
               {a.writes, "writes", b.reads, "reads"},
               {a.writes, "writes", b.atomics, "changes"},
               {a.reads, "reads", b.writes, "writes"},
               {a.reads, "reads", b.atomics, "changes"},
               {a.atomics, "changes", b.writes, "writes"},
               {a.atomics, "changes", b.reads, "reads"}};
  for (const auto &pair : pairs) {
    std::optional<Range> both = common(pair.its, pair.others);
    if (!both)
      continue;
    auto [base, bytes] =
        device.allocationOf(reinterpret_cast<void *>(both->begin));
    uint64_t first = both->begin - reinterpret_cast<uint64_t>(base);
    return ("race: " + Twine(now.name) + " " + pair.does + " bytes " +
            Twine(first) + " to " + Twine(first + both->end - both->begin - 1) +
            " of an allocation of " + Twine(bytes) + " bytes" +
            argumentAt(now, both->begin) + ", and " + before.name +
            " on another stream " + pair.othersDo + " them" +
            argumentAt(before, both->begin) + "; no event orders the two")
        .str();
  }
  return "";
}

std::string StreamOrder::add(Stream &stream, Operation op,
                             const Device &device) {
  // Other memory is not checked: pageable host memory, scratch, arguments.
  for (auto *ranges : {&op.use.reads, &op.use.writes, &op.use.atomics})
    llvm::erase_if(*ranges, [&](const Range &r) {
      return !device.allocationOf(reinterpret_cast<void *>(r.begin)).first;
    });
  std::string race;
  for (const Operation &before : pending)
    if (race.empty() && !isBehind(stream.done, before))
      race = conflict(op, before, device);
  op.stream = stream.id;
  op.number = stream.done[stream.id] = ++operations;
  pending.push_back(std::move(op));
  if (pending.size() > MostPending)
    pending.pop_front();
  return race;
}
