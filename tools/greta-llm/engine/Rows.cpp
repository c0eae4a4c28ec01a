// Rows.cpp: see Rows.h.
#include "engine/Rows.h"
#include "model/Fp8.h"
#include "model/Mapping.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <future>

namespace greta::llm {
namespace {

constexpr size_t pieceBytes = 8u << 20; // converted and uploaded at a time
// A thread that has less takes longer to begin than to end.
constexpr size_t leastBytes = 64u << 10;

// Numbers of a synthetic weight, which its name seeds: SplitMix64, whose i-th
// number needs none of those before.
uint64_t seedOf(const std::string &name) {
  uint64_t seed = 0xcbf29ce484222325u;
  for (char c : name)
    seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return seed;
}

uint64_t numberAt(uint64_t seed, size_t i) {
  uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

// Uniform, of deviation one.
float uniformAt(uint64_t seed, size_t i) {
  return (static_cast<float>(numberAt(seed, i) >> 40) * 0x1p-23f - 1) *
         1.7320508f;
}

} // namespace

Rows::Rows(const std::string &name, const Stored &stored, unsigned threads)
    : name(name), stored(stored), held(heldFormat(stored)), threads(threads),
      pieceRows(std::max<size_t>(
          1, pieceBytes / std::max<size_t>(1, stored.rowBytes()))) {
  // A piece lies in one part.
  while (stored.rowsOfPart() % pieceRows && !stored.parts.empty())
    --pieceRows;
  // Two rows that are interleaved lie in one piece, even if they come from two
  // parts.
  if (held)
    pieceRows += pieceRows % static_cast<size_t>(held->rowsTogether());
  if (stored.data || stored.format == Format::Int4)
    return;
  size_t rows = std::min(pieceRows, static_cast<size_t>(stored.rows()));
  made.resize(rows * stored.rowBytes());
  float deviation = stored.shape.size() < 2
                        ? 0.1f
                        : 1 / std::sqrt(static_cast<float>(stored.columns()));
  if (packedFormat(stored.format))
    makeBlocks(seedOf(name), deviation);
  else
    makeNumbers(seedOf(name), deviation);
}

void Rows::inParts(size_t count, size_t bytesOfOne,
                   const std::function<void(size_t, size_t)> &work) const {
  size_t parts = std::min<size_t>(threads, count * bytesOfOne / leastBytes);
  parts = std::max<size_t>(parts, 1);
  auto end = [&](size_t part) { return count * (part + 1) / parts; };
  std::vector<std::future<void>> others;
  for (size_t part = 1; part < parts; ++part)
    others.push_back(
        std::async(std::launch::async, work, end(part - 1), end(part)));
  // The first part's error is told, whoever has one first.
  work(0, end(0));
  for (std::future<void> &other : others)
    other.get();
}

void Rows::makeNumbers(uint64_t seed, float deviation) {
  Element element = stored.format == Format::F32   ? Element::F32
                    : stored.format == Format::F16 ? Element::F16
                                                   : Element::BF16;
  size_t bytes = bytesOf(element);
  inParts(made.size() / bytes, bytes, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      float value = uniformAt(seed, i) * deviation;
      if (stored.shape.size() < 2)
        value += 1; // a norm's
      store(&value, 1, element, made.data() + i * bytes);
    }
  });
}

/// Fills `made` with blocks of few bits a weight: random bits, and scales and
/// minima that blocks share, such that weights are around zero.
void Rows::makeBlocks(uint64_t seed, float deviation) {
  std::vector<uint8_t> shared;
  auto add = [&](float value) {
    uint16_t bits = toF16(value);
    shared.push_back(static_cast<uint8_t>(bits & 255));
    shared.push_back(static_cast<uint8_t>(bits >> 8));
  };
  constexpr float middleOfTwoBits = 1.5f;
  constexpr float each = 32; // the scales and minima of groups in K formats
  float numbers =
      static_cast<float>(1 << packedFormat(stored.format)->allBits());
  float scale = deviation / (numbers / std::sqrt(12.0f)),
        middle = (numbers - 1) / 2;
  size_t at = 0;
  switch (stored.format) {
  case Format::Q4_K:
  case Format::Q5_K: // in twelve bytes
    add(scale / each);
    add(scale * middle / each);
    shared.insert(shared.end(), 8, 0xa0);
    shared.insert(shared.end(), 4, 0);
    break;
  case Format::Q6_K:
    at = 192;
    shared.insert(shared.end(), 16, static_cast<uint8_t>(each));
    add(scale / each);
    break;
  case Format::Q2_K: // scales and minima are random numbers of four bits
    at = 80;
    add(deviation / 13.9f);
    add(deviation / 13.9f * middleOfTwoBits);
    break;
  case Format::Q3_K: // numbers have a deviation of 2.3, scales of 18
    at = 108;
    add(deviation / 42);
    break;
  case Format::IQ4_NL: // numbers have a deviation of 72
    add(deviation / 72);
    break;
  case Format::IQ4_XS:
    add(deviation / 72 / 18);
    break;
  case Format::MXFP4: // numbers have a deviation of 2.9
    shared.push_back(
        static_cast<uint8_t>(127 + std::lround(std::log2(deviation / 2.9f))));
    break;
  default:
    add(scale);
    if (packedFormat(stored.format)->zeros == WeightFormat::Zeros::Minima)
      add(-scale * middle);
  }
  size_t bytes = infoOf(stored.format).bytes;
  inParts(made.size() / bytes, bytes, [&](size_t begin, size_t end) {
    for (size_t i = begin * bytes; i < end * bytes; ++i)
      made[i] = static_cast<uint8_t>(numberAt(seed, i));
    for (size_t block = begin; block < end; ++block)
      memcpy(made.data() + block * bytes + at, shared.data(), shared.size());
  });
}

/// Fails if numbers have a problem.
void Rows::check(const char *problem) const {
  if (problem)
    fail("the weight '" + name + "' " + problem);
}

const uint8_t *Rows::bytesOfRow(size_t row, size_t i,
                                std::vector<uint8_t> &room) const {
  size_t from =
      stored.shape.size() > 1 ? stored.headOrder.inFile(row + i) : row + i;
  return stored.data ? wholeRow(stored, from, room)
                     : made.data() + i * stored.rowBytes();
}

/// The i-th row of the piece that `row` begins.
void Rows::expandOne(size_t row, size_t i, float *to) const {
  size_t columns = static_cast<size_t>(stored.columns());
  std::vector<uint8_t> room;
  if (stored.format == Format::Int4)
    expandGrouped(stored, inFile(row + i), to);
  else if (stored.format == Format::F8_E4M3)
    check(expandFp8(stored, stored.headOrder.inFile(row + i), to));
  else
    expandRow(stored.format, bytesOfRow(row, i, room), stored.columns(), to);
  // A vector's numbers are what a matrix's rows are.
  if (stored.shape.size() == 1 && stored.headOrder.size) {
    std::vector<float> theirs(to, to + columns);
    for (size_t j = 0; j < columns; ++j)
      to[j] = theirs[stored.headOrder.inFile(j)];
  }
  if (stored.isLessOne)
    for (size_t j = 0; j < columns; ++j)
      to[j] += 1;
}

void Rows::packOne(size_t row, size_t i, const PackedRow &to) const {
  std::vector<uint8_t> room;
  if (stored.format == Format::Int4)
    packGrouped(stored, inFile(row + i), to);
  else if (stored.format == Format::F8_E4M3)
    check(packFp8(stored, stored.headOrder.inFile(row + i), to));
  else if (!packRow(stored.format, bytesOfRow(row, i, room), stored.columns(),
                    to, held))
    check("has numbers of MXFP4 beyond 65504, which f16 does not have");
}

void Rows::expand(size_t row, size_t count, Element element,
                  uint8_t *to) const {
  size_t columns = static_cast<size_t>(stored.columns()),
         rowBytes = columns * bytesOf(element);
  // Rounded scales make numbers that were in range before.
  bool isLimited = element == Element::F16 &&
                   (infoOf(stored.format).block > 1 || stored.fp8);
  inParts(count, rowBytes, [&](size_t begin, size_t end) {
    std::vector<float> numbers(columns);
    for (size_t i = begin; i < end; ++i) {
      expandOne(row, i, numbers.data());
      if (isLimited)
        limitToF16(numbers.data(), stored.columns());
      store(numbers.data(), stored.columns(), element, to + i * rowBytes);
    }
  });
}

void Rows::pack(size_t row, size_t count, const std::vector<PackedPart> &parts,
                const PackedRow &to) const {
  size_t together = held ? static_cast<size_t>(held->rowsTogether()) : 1;
  inParts(count / together, together * stored.rowBytes(),
          [&](size_t begin, size_t end) {
            PackedRow at(parts.size());
            for (size_t i = begin * together; i < end * together; ++i) {
              for (size_t p = 0; p < parts.size(); ++p)
                at[p] = to[p] + i * parts[p].rowBytes;
              packOne(row, i, at);
              for (size_t p = 0; together > 1 && i % 2 && p < parts.size(); ++p)
                interleave(parts[p], stored.columns(),
                           at[p] - parts[p].rowBytes);
            }
          });
}

} // namespace greta::llm
