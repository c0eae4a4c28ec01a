//===- Packets.cpp - the packets of a command processor -------------------===//
//
// Comes in: PM4 packets of type 3, as drivers for RDNA write them into indirect
// buffers. Names and fields are those of AMD's register reference. Caches are
// not modelled, and every packet is done before the next begins: flushes and
// waits for engines need nothing.
//
//===----------------------------------------------------------------------===//
#include "CommandProcessor.h"
#include <chrono>
#include <cstring>
#include <thread>

using namespace greta::radeon;
using namespace llvm;

namespace {
enum Opcode : unsigned {
  NOP = 0x10,
  SET_BASE = 0x11,
  CLEAR_STATE = 0x12,
  INDEX_BUFFER_SIZE = 0x13,
  DISPATCH_DIRECT = 0x15,
  DISPATCH_INDIRECT = 0x16,
  ATOMIC_MEM = 0x1e,
  SET_PREDICATION = 0x20,
  COND_EXEC = 0x22,
  INDEX_BASE = 0x26,
  CONTEXT_CONTROL = 0x28,
  INDEX_TYPE = 0x2a,
  NUM_INSTANCES = 0x2f,
  WRITE_DATA = 0x37,
  WAIT_REG_MEM = 0x3c,
  INDIRECT_BUFFER = 0x3f,
  COPY_DATA = 0x40,
  PFP_SYNC_ME = 0x42,
  SURFACE_SYNC = 0x43,
  EVENT_WRITE = 0x46,
  RELEASE_MEM = 0x49,
  DMA_DATA = 0x50,
  ACQUIRE_MEM = 0x58,
  REWIND = 0x59,
  PRIME_UTCL2 = 0x5d,
  LOAD_SH_REG_INDEX = 0x63,
  SET_CONFIG_REG = 0x68,
  SET_CONTEXT_REG = 0x69,
  SET_SH_REG = 0x76,
  SET_UCONFIG_REG = 0x79,
  SET_UCONFIG_REG_INDEX = 0x7a,
  HDP_FLUSH = 0x95,
  SET_SH_REG_INDEX = 0x9b,
  DISPATCH_DIRECT_INTERLEAVED = 0xa7,
  DISPATCH_INDIRECT_INTERLEAVED = 0xa8,
  SET_CONTEXT_REG_PAIRS = 0xb8,
  SET_CONTEXT_REG_PAIRS_PACKED = 0xb9,
  SET_SH_REG_PAIRS = 0xba,
  SET_SH_REG_PAIRS_PACKED = 0xbb,
  SET_SH_REG_PAIRS_PACKED_N = 0xbd,
  SET_UCONFIG_REG_PAIRS = 0xbe,
};
} // namespace

/// More indirect buffers than any submission has.
static constexpr unsigned MostChained = 1 << 20;

static uint64_t join(uint32_t low, uint32_t high) {
  return uint64_t(high) << 32 | low;
}

Expected<uint8_t *> CommandProcessor::memory(uint64_t address, uint64_t bytes,
                                             const char *what) {
  void *p = reinterpret_cast<void *>(address);
  auto [base, size] = machine.device().allocationOf(p);
  uint64_t at = address - reinterpret_cast<uint64_t>(base);
  if (!base || at > size || bytes > size - at)
    return createStringError(
        "%s: %llu bytes at 0x%llx are outside every buffer", what,
        (unsigned long long)bytes, (unsigned long long)address);
  return static_cast<uint8_t *>(p);
}

Error CommandProcessor::copy(uint64_t to, uint64_t from, uint64_t bytes) {
  auto source = memory(from, bytes, "source of a copy");
  if (!source)
    return source.takeError();
  auto target = memory(to, bytes, "target of a copy");
  if (!target)
    return target.takeError();
  std::memmove(*target, *source, bytes);
  return Error::success();
}

Error CommandProcessor::run(uint64_t address, uint32_t dwords) {
  predicated = false;
  return stream({address, dwords}, 0);
}

Error CommandProcessor::stream(Stream s, unsigned depth) {
  auto start = memory(s.address, uint64_t(s.dwords) * 4, "indirect buffer");
  if (!start)
    return start.takeError();
  const uint32_t *words = reinterpret_cast<const uint32_t *>(*start);
  unsigned chained = 0;
  for (uint32_t at = 0; at < s.dwords;) {
    uint32_t header = words[at];
    unsigned type = header >> 30, count = header >> 16 & 0x3fff;
    if (type == 2 || (type == 3 && count == 0x3fff)) { // padding
      ++at;
      continue;
    }
    unsigned opcode = header >> 8 & 0xff;
    if (type != 3 || at + 2 + count > s.dwords)
      return createStringError(
          "packet 0x%08x at 0x%llx is none of type 3, or is cut off", header,
          (unsigned long long)(s.address + at * 4));
    Words body(words + at + 1, count + 1);
    at += count + 2;
    if ((header & 1) && predicated)
      continue;
    skip = 0;
    isChained = isCalled = false;
    if (Error e = packet(opcode, header, body))
      return e;
    at += skip;
    if (isChained) {
      s = next;
      at = 0;
      if (++chained == MostChained)
        return createStringError("indirect buffers chain in a circle");
      auto target =
          memory(s.address, uint64_t(s.dwords) * 4, "indirect buffer");
      if (!target)
        return target.takeError();
      words = reinterpret_cast<const uint32_t *>(*target);
    } else if (isCalled) {
      if (depth >= 2)
        return createStringError("indirect buffers call each other deeper "
                                 "than the hardware allows");
      if (Error e = stream(next, depth + 1))
        return e;
    }
  }
  return Error::success();
}

/// The dwords that a packet's body has at least.
static size_t leastDwords(unsigned opcode) {
  switch (opcode) {
  case DISPATCH_INDIRECT:
  case DISPATCH_INDIRECT_INTERLEAVED:
    return 2;
  case SET_BASE:
  case INDIRECT_BUFFER:
  case WRITE_DATA:
  case SET_PREDICATION:
    return 3;
  case COND_EXEC:
  case DISPATCH_DIRECT:
  case DISPATCH_DIRECT_INTERLEAVED:
  case LOAD_SH_REG_INDEX:
    return 4;
  case COPY_DATA:
    return 5;
  case DMA_DATA:
  case RELEASE_MEM:
  case WAIT_REG_MEM:
    return 6;
  case ATOMIC_MEM:
    return 8;
  default:
    return 0;
  }
}

Error CommandProcessor::packet(unsigned opcode, uint32_t header, Words body) {
  if (size_t least = leastDwords(opcode); body.size() < least)
    return createStringError(
        "opcode 0x%02x: the packet is too short, %zu dwords and not %zu",
        opcode, body.size(), least);
  if (machine.isTraced())
    say("packet 0x" + Twine::utohexstr(opcode) + ", " + Twine(body.size()) +
        " dwords");
  switch (opcode) {
  case NOP:
  case CLEAR_STATE:
  case INDEX_BUFFER_SIZE:
  case INDEX_BASE:
  case CONTEXT_CONTROL:
  case INDEX_TYPE:
  case NUM_INSTANCES:
  case PFP_SYNC_ME:
  case SURFACE_SYNC:
  case ACQUIRE_MEM:
  case REWIND:
  case PRIME_UTCL2:
  case HDP_FLUSH:
  case SET_CONFIG_REG:
  case SET_CONTEXT_REG:
  case SET_CONTEXT_REG_PAIRS:
  case SET_CONTEXT_REG_PAIRS_PACKED:
  case SET_UCONFIG_REG:
  case SET_UCONFIG_REG_INDEX:
  case SET_UCONFIG_REG_PAIRS:
    return Error::success();
  case SET_SH_REG:
  case SET_SH_REG_INDEX:
  case SET_SH_REG_PAIRS:
  case SET_SH_REG_PAIRS_PACKED:
  case SET_SH_REG_PAIRS_PACKED_N:
    return setRegisters(opcode, header, body);
  case SET_BASE:
    if (body[0] == 1) // of indirect dispatches
      indirectBase = join(body[1], body[2]);
    return Error::success();
  case COND_EXEC: {
    auto flag = memory(join(body[0], body[1]), 4, "COND_EXEC");
    if (!flag)
      return flag.takeError();
    uint32_t value;
    std::memcpy(&value, *flag, 4);
    if (!value)
      skip = body[3] & 0x3fff;
    return Error::success();
  }
  case INDIRECT_BUFFER:
    next = {join(body[0] & ~3u, body[1]), body[2] & 0xfffff};
    (body[2] >> 20 & 1 ? isChained : isCalled) = true;
    return Error::success();
  case DISPATCH_DIRECT:
  case DISPATCH_DIRECT_INTERLEAVED:
    return dispatch(body.data(), body[3]);
  case DISPATCH_INDIRECT:
  case DISPATCH_INDIRECT_INTERLEAVED: {
    // An offset from the base, or in compute's form the whole address.
    uint64_t at =
        body.size() > 2 ? join(body[0], body[1]) : indirectBase + body[0];
    auto size = memory(at, 12, "DISPATCH_INDIRECT");
    if (!size)
      return size.takeError();
    uint32_t words[3];
    std::memcpy(words, *size, 12);
    return dispatch(words, body.back());
  }
  case LOAD_SH_REG_INDEX:
    return loadRegisters(body);
  case WRITE_DATA:
    return writeData(body);
  case COPY_DATA:
    return copyData(body);
  case DMA_DATA:
    return dmaData(body);
  case RELEASE_MEM:
    return releaseMemory(body);
  case WAIT_REG_MEM:
    return waitMemory(body);
  case ATOMIC_MEM:
    return atomic(body);
  case SET_PREDICATION:
    return predicate(body);
  case EVENT_WRITE:
    return event(body);
  }
  return createStringError(
      "packet with opcode 0x%02x is not simulated%s", opcode,
      opcode >= 0x24 && opcode <= 0x4e ? " (drawing is not, compute is)" : "");
}

void CommandProcessor::setRegister(unsigned index, uint32_t value) {
  if (index < sh.size())
    sh[index] = value;
}

Error CommandProcessor::setRegisters(unsigned opcode, uint32_t header,
                                     Words body) {
  switch (opcode) {
  case SET_SH_REG:
  case SET_SH_REG_INDEX:
    for (size_t k = 1; k < body.size(); ++k)
      setRegister((body[0] & 0xffff) + unsigned(k) - 1, body[k]);
    break;
  case SET_SH_REG_PAIRS:
    for (size_t k = 0; k + 1 < body.size(); k += 2)
      setRegister(body[k] & 0xffff, body[k + 1]);
    break;
  default: // a count, then two offsets in a dword and their two values
    for (size_t k = 1; k + 2 < body.size(); k += 3) {
      setRegister(body[k] & 0xffff, body[k + 1]);
      setRegister(body[k] >> 16, body[k + 2]);
    }
  }
  return Error::success();
}

Error CommandProcessor::loadRegisters(Words body) {
  uint32_t count = body[3] & 0x3fff;
  auto from = memory(join(body[0] & ~3u, body[1]), uint64_t(count) * 4,
                     "LOAD_SH_REG_INDEX");
  if (!from)
    return from.takeError();
  for (uint32_t k = 0; k < count; ++k) {
    uint32_t value;
    std::memcpy(&value, *from + 4 * k, 4);
    setRegister((body[2] & 0xffff) + k, value);
  }
  return Error::success();
}

Error CommandProcessor::writeData(Words body) {
  unsigned target = body[0] >> 8 & 15;
  bool isOneAddress = body[0] >> 16 & 1;
  if (target == 0) // a register: none of them is read here
    return Error::success();
  if (target != 1 && target != 2 && target != 5)
    return createStringError("WRITE_DATA to destination %u is not simulated",
                             target);
  Words data = body.drop_front(3);
  uint64_t bytes = isOneAddress ? 4 : data.size() * 4;
  auto to = memory(join(body[1], body[2]), bytes, "WRITE_DATA");
  if (!to)
    return to.takeError();
  if (isOneAddress)
    data = data.take_back(1);
  std::memcpy(*to, data.data(), data.size() * 4);
  return Error::success();
}

Error CommandProcessor::copyData(Words body) {
  unsigned source = body[0] & 15, target = body[0] >> 8 & 15;
  unsigned bytes = body[0] >> 16 & 1 ? 8 : 4;
  uint64_t value = 0;
  switch (source) {
  case 1:
  case 2: {
    auto from = memory(join(body[1], body[2]), bytes, "COPY_DATA");
    if (!from)
      return from.takeError();
    std::memcpy(&value, *from, bytes);
    break;
  }
  case 0: // registers and performance counters count nothing
  case 4:
    break;
  case 5:
    value = join(body[1], body[2]);
    break;
  case 9:
    value = machine.clock();
    break;
  default:
    return createStringError("COPY_DATA from source %u is not simulated",
                             source);
  }
  if (target == 0 || target == 4)
    return Error::success();
  if (target != 1 && target != 2 && target != 5)
    return createStringError("COPY_DATA to destination %u is not simulated",
                             target);
  auto to = memory(join(body[3], body[4]), bytes, "COPY_DATA");
  if (!to)
    return to.takeError();
  std::memcpy(*to, &value, bytes);
  return Error::success();
}

Error CommandProcessor::dmaData(Words body) {
  unsigned source = body[0] >> 29 & 3, target = body[0] >> 20 & 3;
  uint64_t bytes = body[5] & 0x3ffffff;
  if (target == 2 || !bytes) // nowhere: a prefetch
    return Error::success();
  if ((target != 0 && target != 3) || source == 1)
    return createStringError(
        "DMA_DATA has source %u and target %u, which are not simulated", source,
        target);
  // The copy takes the memory's whole bandwidth, and twice the bytes go over
  // the bus.
  double gigabytes = double(machine.chip().memoryMHz) *
                     machine.chip().memoryBits / 8 / 1000 * 2;
  machine.pass(1 + uint64_t(double(2 * bytes) / gigabytes / 10));
  uint64_t to = join(body[3], body[4]);
  if (source != 2)
    return copy(to, join(body[1], body[2]), bytes);
  auto memoryAt = memory(to, bytes, "DMA_DATA");
  if (!memoryAt)
    return memoryAt.takeError();
  for (uint64_t k = 0; k < bytes; k += 4)
    std::memcpy(*memoryAt + k, &body[1], std::min<uint64_t>(4, bytes - k));
  return Error::success();
}

Error CommandProcessor::releaseMemory(Words body) {
  unsigned data = body[1] >> 29;
  uint64_t value = join(body[4], body[5]);
  unsigned bytes = 8;
  switch (data) {
  case 0:
    return Error::success();
  case 1:
    bytes = 4;
    break;
  case 2:
    break;
  case 3:
    value = machine.clock();
    break;
  default:
    return createStringError("RELEASE_MEM with data selection %u is not "
                             "simulated",
                             data);
  }
  auto to = memory(join(body[2], body[3]), bytes, "RELEASE_MEM");
  if (!to)
    return to.takeError();
  std::memcpy(*to, &value, bytes);
  return Error::success();
}

/// The comparisons of WAIT_REG_MEM.
static bool compares(unsigned function, uint32_t a, uint32_t b) {
  switch (function) {
  case 1:
    return a < b;
  case 2:
    return a <= b;
  case 3:
    return a == b;
  case 4:
    return a != b;
  case 5:
    return a >= b;
  case 6:
    return a > b;
  }
  return true;
}

Error CommandProcessor::waitMemory(Words body) {
  if ((body[0] >> 4 & 3) == 0) // a register: its engine is idle
    return Error::success();
  auto at = memory(join(body[1] & ~3u, body[2]), 4, "WAIT_REG_MEM");
  if (!at)
    return at.takeError();
  // The program may write it (an event that the host sets).
  auto *word = reinterpret_cast<const std::atomic<uint32_t> *>(*at);
  for (unsigned tries = 0; tries <= 10 * machine.hangMilliseconds; ++tries) {
    if (compares(body[0] & 7, word->load() & body[4], body[3]))
      return Error::success();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return createStringError("WAIT_REG_MEM: the value at 0x%llx did not come in "
                           "%u ms",
                           (unsigned long long)join(body[1] & ~3u, body[2]),
                           machine.hangMilliseconds);
}

Error CommandProcessor::atomic(Words body) {
  // Operations of the L2: 8 and 40 swap on compare, 15 and so on with the value
  // returned, those from 64 on without it; 32 more for 64 bits.
  unsigned operation = body[0] & 0x7f;
  bool wide = operation & 32;
  unsigned kind = operation & 31;
  auto at = memory(join(body[1], body[2]), wide ? 8 : 4, "ATOMIC_MEM");
  if (!at)
    return at.takeError();
  uint64_t old = 0, value = join(body[3], body[4]),
           compare = join(body[5], body[6]);
  std::memcpy(&old, *at, wide ? 8 : 4);
  if (!wide) {
    value = uint32_t(value);
    compare = uint32_t(compare);
  }
  switch (kind) {
  case 7:
    break;
  case 8:
    value = old == compare ? value : old;
    break;
  case 15:
    value = old + value;
    break;
  case 16:
    value = old - value;
    break;
  case 21:
    value = old & value;
    break;
  case 22:
    value = old | value;
    break;
  case 23:
    value = old ^ value;
    break;
  default:
    return createStringError("ATOMIC_MEM with operation %u is not simulated",
                             operation);
  }
  std::memcpy(*at, &value, wide ? 8 : 4);
  return Error::success();
}

Error CommandProcessor::predicate(Words body) {
  unsigned operation = body[0] >> 16 & 7;
  if (!operation) {
    predicated = false;
    return Error::success();
  }
  if (operation != 3 && operation != 4)
    return createStringError("SET_PREDICATION with operation %u is not "
                             "simulated",
                             operation);
  unsigned bytes = operation == 3 ? 8 : 4;
  auto at = memory(join(body[1], body[2]), bytes, "SET_PREDICATION");
  if (!at)
    return at.takeError();
  uint64_t value = 0;
  std::memcpy(&value, *at, bytes);
  bool isDrawnIfTrue = body[0] >> 8 & 1;
  predicated = (value != 0) != isDrawnIfTrue;
  return Error::success();
}

Error CommandProcessor::event(Words body) {
  // These write counters to memory: ZPASS_DONE, PIXEL_PIPE_STAT_DUMP,
  // SAMPLE_PIPELINESTAT, SAMPLE_STREAMOUTSTATS.
  switch (body[0] & 0x3f) {
  case 0x15:
  case 0x39:
  case 0x1b:
  case 0x1c:
  case 0x1d:
  case 0x1e:
  case 0x20:
    return createStringError("EVENT_WRITE of counters (occlusion, pipeline "
                             "statistics) is not simulated");
  }
  return Error::success();
}
