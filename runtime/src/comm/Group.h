// Group.h: what the ranks of a communicator share: a file of the host's memory
// that each of them maps.
//
//   Control    who is there, counters of steps, words of meetings, who gave up
//   slots      of each rank: what it gives to the others, step by step
//   results    what the ranks have reduced, a part by each
//   pairs      of each rank and each other one: what goes between the two
//   boxes      of each rank two, for kernels that meet here, behind a word that
//              says whether the communicator has ended
//
// Each rank locks its byte of the file. The kernel drops the lock when the
// process ends, however it ends, so the others see that it is gone.
//
// Ranks of several hosts have such memory each, of which a rank keeps what it
// reads up to date: whoever changes something tells the others (set, give), and
// a Wire carries it.
#ifndef GRETA_RUNTIME_COMM_GROUP_H
#define GRETA_RUNTIME_COMM_GROUP_H

#include "Error.h"
#include "comm/Descriptor.h"
#include "comm/Lane.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace greta::rt::comm {

class Wire;

// Waits for another thread or process: first busy, then with other threads on
// this processor, then asleep.
class Patience {
public:
  void wait();
  void reset() {
    Turns = 0;
    Waited = {};
  }

private:
  unsigned Turns = 0;
  std::chrono::steady_clock::time_point Begin;
  std::chrono::steady_clock::duration Waited{};
};

class Group {
public:
  static constexpr uint32_t maxRanks = 64;
  static constexpr size_t slots = Lane::slots;
  static constexpr size_t wordBytes = 512;
  static constexpr uint32_t boxWords = 16384; // of 4 bytes, with a round
  using Id = std::array<uint8_t, 16>;
  using Clock = std::chrono::steady_clock;

  // A rank's part of the control block; other ranks only read it.
  struct alignas(128) State {
    enum : uint32_t { Absent, Joined, Left };
    // Other ranks' messages name these words by their place, up to Words.
    std::atomic<uint64_t> Presence;
    std::atomic<uint64_t> GaveUp; // the last way that it gave up
    std::atomic<uint64_t> Meetings;
    // Counts steps of collectives since the beginning that this rank gave,
    // reduced and took.
    std::atomic<uint64_t> Given, Reduced, Taken;
    // The hash of the collective that a step belongs to. With NCCL the first
    // has the count and the hash of all collectives that the rank has begun.
    std::atomic<uint64_t> Doing[slots];
    std::atomic<uint64_t> PairGiven[maxRanks], PairTaken[maxRanks];
    std::atomic<uint64_t> PairBytes[maxRanks][slots]; // of a transfer
    // Counts NCCL's operations with each rank that have ended here.
    std::atomic<uint64_t> Ended[maxRanks];
    char Words[2][wordBytes];
  };

  static Id newId();
  // Throws where the rank is none of so many.
  static void checkRank(uint32_t Rank, uint32_t Size);

  // Joins. The ranks find each other by the id, or by a file at `Path` that
  // rank 0 writes, or, on several hosts, by the address at which rank 0
  // listens. Throws when not all came in time, or when one has declined.
  struct Place {
    Id Name{};
    std::string Path, Address;
  };
  Group(const Place &At, uint32_t Rank, uint32_t Size, uint64_t TimeoutMs,
        size_t StagingBytes);
  ~Group();
  Group(const Group &) = delete;
  // Says at an id or a path, in place of joining, that this rank does not come,
  // and why. Rank 0 waits until all others have heard it.
  static void decline(const Place &At, uint32_t Rank, uint32_t Size,
                      uint64_t TimeoutMs, const std::string &Reason);

  const uint32_t Rank, Size;
  const std::chrono::milliseconds Timeout;
  State &of(uint32_t R);
  State &own() { return of(Rank); }

  // Sets a word of this rank's, for all ranks or for one.
  void set(std::atomic<uint64_t> &Word, uint64_t Value,
           std::optional<uint32_t> To = {});
  // Sends bytes that this rank has written at a place of data(), before it sets
  // the word that says so. They stay until all have taken them.
  void give(uint32_t To, size_t At, size_t Bytes);
  // Returns whether ranks are on several hosts, by this library.
  bool isSpread() const { return W != nullptr; }
  std::string library() const;

  size_t slotBytes() const { return SlotBytes; }
  size_t pairBytes() const;
  // Returns the memory of all slots, results and pairs.
  char *data() const;
  std::shared_ptr<void> owner() const; // keeps data()
  size_t dataBytes() const;
  size_t slotAt(uint32_t R, uint64_t Step) const;
  size_t resultAt(uint64_t Step) const;
  size_t pairAt(uint32_t From, uint32_t To, uint64_t Step) const;
  size_t boxesAt() const;
  size_t boxesBytes() const;
  // Returns whether a kernel gave up.
  bool hasKernelEnded() const;

  // All ranks come together; each says a word and hears the words of all.
  std::vector<std::string> meet(const std::string &Word);
  // Ends the communicator for all ranks; the first reason stays.
  void abort(const std::string &Why);
  struct GaveUp : Error {
    using Error::Error;
  };
  // At its creation, ways are tried one after the other. Meanwhile check()
  // throws if a rank gave this one up. 0: none is tried.
  void tries(uint32_t Way) { Trying = Way; }
  // Returns the time that a way has for its test; other ranks wait longer.
  std::chrono::milliseconds trial() const {
    return std::min(Timeout / 2, std::chrono::milliseconds(30000));
  }
  void giveUp() { set(own().GaveUp, Trying); }
  // Gives back the memory of slots, results and pairs, which no rank uses.
  void freeSlots();
  // Throws if the communicator has ended.
  void checkEnded();
  bool hasEnded() const;
  // Throws in a process that was forked from the rank's.
  void checkProcess() const;
  // Throws if the communicator has ended, if a rank for which this one still
  // waits is gone, or if too much time has gone by since `Since`. The message
  // says what it waits for.
  void check(const std::function<bool(uint32_t)> &WaitsFor,
             Clock::time_point Since, const char *What);
  bool hasLeft(uint32_t R) { return of(R).Presence == State::Left; }
  // Returns whether nothing comes from the rank any more.
  bool isGone(uint32_t R);

private:
  struct Control;
  struct Mapping;
  struct Forks;
  struct Ears;
  Group(const Place &At, uint32_t Rank, uint32_t Size, uint64_t TimeoutMs);
  void join(const Place &At, size_t SlotBytes);
  void waitUntilAllKnow();
  void removeFiles();
  void connect(const Place &At, size_t SlotBytes);
  void create(size_t Wanted);
  void end(const std::string &Why);
  void leaveFork();
  bool find(const std::string &Path, std::string &Why);
  bool isAlive(uint32_t R) const;
  size_t fileBytes() const;
  void wait(const std::function<bool(uint32_t)> &Missing, const char *What);
  void map();

  std::string Name, File, PathFile; // PathFile is rank 0's to remove
  Descriptor Fd;
  size_t SlotBytes = 0;
  uint64_t Meetings = 0;
  const Clock::time_point Came = Clock::now();
  std::atomic<uint32_t> Trying{0}; // NCCL's watching thread reads it, too
  std::shared_ptr<Mapping> Map;
  std::unique_ptr<Ears> Heard;
  std::unique_ptr<Wire> W;
};

} // namespace greta::rt::comm
#endif
