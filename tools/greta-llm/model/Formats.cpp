// Formats.cpp: see Formats.h. The block formats are those of ggml, whose
// specification is the gguf package's quants.py.
#include "model/Formats.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace greta::llm {

// Formats of safetensors alone have no number.
constexpr uint32_t noNumber = ~0u;

static const FormatInfo formats[] = {
    {Format::F32, "f32", 0, 1, 4, nullptr, 0},
    {Format::F16, "f16", 1, 1, 2, nullptr, 0},
    {Format::Q4_0, "q4_0", 2, 32, 18, "q4_0", 32},
    {Format::Q4_1, "q4_1", 3, 32, 20, "q4_1", 32},
    {Format::Q5_0, "q5_0", 6, 32, 22, "q5_0", 32},
    {Format::Q5_1, "q5_1", 7, 32, 24, "q5_1", 32},
    {Format::Q8_0, "q8_0", 8, 32, 34, "q8_0", 32},
    {Format::Q2_K, "q2_k", 10, 256, 84, "q2_k", 16},
    {Format::Q3_K, "q3_k", 11, 256, 110, "q3_k", 16},
    {Format::Q4_K, "q4_k", 12, 256, 144, "q4_k", 32},
    {Format::Q5_K, "q5_k", 13, 256, 176, "q5_k", 32},
    {Format::Q6_K, "q6_k", 14, 256, 210, "q6_k", 16},
    {Format::IQ2_XXS, "iq2_xxs", 16, 256, 66, nullptr, 0},
    {Format::IQ2_XS, "iq2_xs", 17, 256, 74, nullptr, 0},
    {Format::IQ3_XXS, "iq3_xxs", 18, 256, 98, nullptr, 0},
    {Format::IQ1_S, "iq1_s", 19, 256, 50, nullptr, 0},
    {Format::IQ4_NL, "iq4_nl", 20, 32, 18, "iq4_nl", 32},
    {Format::IQ3_S, "iq3_s", 21, 256, 110, nullptr, 0},
    {Format::IQ2_S, "iq2_s", 22, 256, 82, nullptr, 0},
    {Format::IQ4_XS, "iq4_xs", 23, 256, 136, "iq4_nl", 32},
    {Format::IQ1_M, "iq1_m", 29, 256, 56, nullptr, 0},
    {Format::BF16, "bf16", 30, 1, 2, nullptr, 0},
    {Format::TQ1_0, "tq1_0", 34, 256, 54, nullptr, 0},
    {Format::TQ2_0, "tq2_0", 35, 256, 66, nullptr, 0},
    {Format::MXFP4, "mxfp4", 39, 32, 17, "mxfp4", 32},
    {Format::NVFP4, "nvfp4", 40, 64, 36, nullptr, 0},
    {Format::Q1_0, "q1_0", 41, 128, 18, nullptr, 0},
    {Format::Q2_0, "q2_0", 42, 64, 18, nullptr, 0},
    {Format::Int4, "int4", noNumber, 8, 4, nullptr, 0},
    {Format::F8_E4M3, "f8_e4m3", noNumber, 1, 1, "e4m3", 0},
};

const FormatInfo &infoOf(Format format) {
  for (const FormatInfo &info : formats)
    if (info.format == format)
      return info;
  return formats[0];
}

const FormatInfo *findFormat(const std::string &name) {
  for (const FormatInfo &info : formats)
    if (name == info.name)
      return &info;
  return nullptr;
}

const FormatInfo *findGgufFormat(uint32_t number) {
  for (const FormatInfo &info : formats)
    if (number == info.gguf && number != noNumber)
      return &info;
  return nullptr;
}

const FormatInfo *findFloats(const std::string &dtype) {
  return dtype == "F32"    ? &infoOf(Format::F32)
         : dtype == "F16"  ? &infoOf(Format::F16)
         : dtype == "BF16" ? &infoOf(Format::BF16)
                           : nullptr;
}

bool staysAsItIs(const FormatInfo &info) {
  return info.gguf != noNumber && (info.block == 1 || info.packed);
}

std::string fileFormats(bool onlyThatStay) {
  std::string names;
  for (const FormatInfo &info : formats)
    if (onlyThatStay ? staysAsItIs(info) : info.gguf != noNumber)
      names += (names.empty() ? "" : ", ") + std::string(info.name);
  return names;
}

const char *nameOf(Element element) {
  return element == Element::F32   ? "f32"
         : element == Element::F16 ? "f16"
                                   : "bf16";
}

Element elementNamed(const std::string &name) {
  return name == "f32"   ? Element::F32
         : name == "f16" ? Element::F16
                         : Element::BF16;
}

size_t bytesOf(Element element) { return element == Element::F32 ? 4 : 2; }

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

static uint32_t bitsOf(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return bits;
}

static float floatOf(uint32_t bits) {
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

float fromF16(uint16_t bits) {
  uint32_t sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00) // infinity and NaN
    return floatOf(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  // Exact also for denormal numbers: a float with 112 less in its exponent.
  return floatOf(sign | bitsOf(floatOf(magnitude << 13) * 0x1p112f));
}

uint16_t toF16(float value) {
  uint32_t bits = bitsOf(value);
  uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return sign | 0x7e00u;
  if (magnitude >= 0x477ff000u) // rounds to 65536 or more
    return sign | 0x7c00u;
  if (magnitude < 0x38800000u) { // denormal: units of 2^-24
    float units = floatOf(magnitude) * 0x1p24f;
    return sign | static_cast<uint16_t>(std::nearbyint(units));
  }
  magnitude += 0xfffu + (magnitude >> 13 & 1);
  return sign | static_cast<uint16_t>((magnitude - 0x38000000u) >> 13);
}

float fromBF16(uint16_t bits) { return floatOf(uint32_t(bits) << 16); }

uint16_t toBF16(float value) {
  uint32_t bits = bitsOf(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

// Files do not align their tensors.
static uint16_t halfAt(const uint8_t *at) {
  return static_cast<uint16_t>(at[0] | at[1] << 8);
}

static uint32_t wordAt(const uint8_t *words, int64_t i) {
  uint32_t value;
  memcpy(&value, words + 4 * i, 4);
  return value;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

namespace {
// A block of a format of few bits: natural numbers, which are what
// greta.dequant's words hold, and what each group of them has.
struct Block {
  uint8_t numbers[256];
  float scales[16], minima[16] = {};
  int exponent; // of MXFP4's scale, plus 127
};
} // namespace

/// Scale and minimum of one of the eight groups of a Q4_K or Q5_K block: six
/// bits each, in twelve bytes.
static void groupOfK(const uint8_t *packed, int group, float &scale,
                     float &minimum) {
  if (group < 4) {
    scale = packed[group] & 63;
    minimum = packed[group + 4] & 63;
    return;
  }
  scale = (packed[group + 4] & 15) | (packed[group - 4] >> 6) << 4;
  minimum = (packed[group + 4] >> 4) | (packed[group] >> 6) << 4;
}

/// Numbers i and i + 16 of 32 are the low and the high four bits of byte i; of
/// five bits, bit i of `high` is the upper one of number i.
static void readHalves(const uint8_t *nibbles, uint32_t high, Block &to) {
  for (int i = 0; i < 32; ++i)
    to.numbers[i] = static_cast<uint8_t>(
        (nibbles[i % 16] >> (i < 16 ? 0 : 4) & 15) | (high >> i & 1) << 4);
}

/// Eight groups of 32, two of which share the bytes of their low four bits; all
/// of them, if `high` is not null, those of their upper bits.
static void readK(const uint8_t *from, const uint8_t *high,
                  const uint8_t *nibbles, Block &to) {
  float scale = fromF16(halfAt(from)), minima = fromF16(halfAt(from + 2));
  for (int group = 0; group < 8; ++group) {
    float each, minimum;
    groupOfK(from + 4, group, each, minimum);
    to.scales[group] = scale * each;
    to.minima[group] = -minima * minimum;
    for (int i = 0; i < 32; ++i) {
      int number = nibbles[group / 2 * 32 + i] >> group % 2 * 4 & 15;
      if (high)
        number |= (high[i] >> group & 1) << 4;
      to.numbers[group * 32 + i] = static_cast<uint8_t>(number);
    }
  }
}

static void readQ6K(const uint8_t *from, Block &to) {
  float scale = fromF16(halfAt(from + 208));
  for (int group = 0; group < 16; ++group)
    to.scales[group] = scale * static_cast<int8_t>(from[192 + group]);
  for (int i = 0; i < 256; ++i) {
    // Halves of 128; in each, four rows of 32 whose low bits share 64 bytes
    // and whose high bits share 32.
    int half = i / 128, row = i % 128 / 32, column = i % 32;
    int low = from[half * 64 + row % 2 * 32 + column] >> (row / 2 * 4) & 15;
    int high = from[128 + half * 32 + column] >> (row * 2) & 3;
    to.numbers[i] = static_cast<uint8_t>(low | high << 4);
  }
}

/// Number i of 256 that share 64 bytes, of two bits each: halves of 128, and in
/// each the 32 bytes have four numbers, one from each row of 32.
static int twoBits(const uint8_t *from, int i) {
  return from[i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3;
}

/// Groups of 16, whose scale and minimum are four bits each of a byte.
static void readQ2K(const uint8_t *from, Block &to) {
  float scale = fromF16(halfAt(from + 80)), minima = fromF16(halfAt(from + 82));
  for (int group = 0; group < 16; ++group) {
    to.scales[group] = scale * static_cast<float>(from[group] & 15);
    to.minima[group] = -minima * static_cast<float>(from[group] >> 4);
  }
  for (int i = 0; i < 256; ++i)
    to.numbers[i] = static_cast<uint8_t>(twoBits(from + 16, i));
}

/// Scales of six bits, the upper two of which are in four bytes of their own.
static void readQ3K(const uint8_t *from, Block &to) {
  float scale = fromF16(halfAt(from + 108));
  const uint8_t *scales = from + 96;
  for (int group = 0; group < 16; ++group) {
    int low = scales[group % 8] >> (group < 8 ? 0 : 4) & 15;
    int high = scales[8 + group % 4] >> group / 4 * 2 & 3;
    to.scales[group] = scale * static_cast<float>((low | high << 4) - 32);
  }
  for (int i = 0; i < 256; ++i)
    to.numbers[i] = static_cast<uint8_t>(twoBits(from + 32, i) |
                                         (from[i % 32] >> i / 32 & 1) << 2);
}

static void readIQ4XS(const uint8_t *from, Block &to) {
  float scale = fromF16(halfAt(from));
  for (int group = 0; group < 8; ++group) {
    int low = from[4 + group / 2] >> group % 2 * 4 & 15;
    int high = halfAt(from + 2) >> group * 2 & 3;
    to.scales[group] = scale * static_cast<float>((low | high << 4) - 32);
    for (int i = 0; i < 32; ++i)
      to.numbers[group * 32 + i] = static_cast<uint8_t>(
          from[8 + group * 16 + i % 16] >> (i < 16 ? 0 : 4) & 15);
  }
}

static void readBlock(Format format, const uint8_t *from, Block &to) {
  to.scales[0] = fromF16(halfAt(from));
  switch (format) {
  case Format::Q4_0:
    return readHalves(from + 2, 0, to);
  case Format::Q4_1:
    to.minima[0] = fromF16(halfAt(from + 2));
    return readHalves(from + 4, 0, to);
  case Format::Q5_0:
    return readHalves(from + 6, wordAt(from + 2, 0), to);
  case Format::Q5_1:
    to.minima[0] = fromF16(halfAt(from + 2));
    return readHalves(from + 8, wordAt(from + 4, 0), to);
  case Format::Q8_0:
    memcpy(to.numbers, from + 2, 32);
    return;
  case Format::Q4_K:
    return readK(from, nullptr, from + 16, to);
  case Format::Q5_K:
    return readK(from, from + 16, from + 48, to);
  case Format::Q6_K:
    return readQ6K(from, to);
  case Format::MXFP4:
    to.exponent = from[0];
    to.scales[0] = std::ldexp(1.0f, from[0] - 127);
    return readHalves(from + 1, 0, to);
  case Format::IQ4_NL:
    return readHalves(from + 2, 0, to);
  case Format::Q2_K:
    return readQ2K(from, to);
  case Format::Q3_K:
    return readQ3K(from, to);
  case Format::IQ4_XS:
    return readIQ4XS(from, to);
  default:
    return;
  }
}

const uint8_t *wholeRow(const Stored &stored, size_t number,
                        std::vector<uint8_t> &room) {
  const uint8_t *row = stored.row(number);
  size_t columns = static_cast<size_t>(stored.columns());
  const FormatInfo &info = infoOf(stored.format);
  if (!stored.columnStride && !stored.scales)
    return row;
  room.assign(stored.rowBytes(), 0);
  if (stored.columnStride) {
    for (size_t i = 0; i < columns; ++i)
      memcpy(room.data() + i * info.bytes, row + i * stored.columnStride,
             info.bytes);
    return room.data();
  }
  size_t from = static_cast<size_t>(row - stored.data) / 16; // of scales
  for (size_t block = 0; block < columns / 32; ++block) {
    uint8_t *to = room.data() + block * info.bytes;
    *to++ = stored.scales[from + block];
    for (size_t i = 0; i < 32; ++i)
      to[i % 16] |= (row[block * 16 + i / 2] >> i % 2 * 4 & 15)
                    << (i < 16 ? 0 : 4);
  }
  return room.data();
}

static float decode(const WeightFormat &as, int number) {
  if (as.codes)
    return fromF16(as.codes[number]);
  return static_cast<float>(
      (as.isSigned ? static_cast<int8_t>(number) : number) - as.zero);
}

void expandRow(Format format, const uint8_t *row, int64_t columns, float *to) {
  const FormatInfo &info = infoOf(format);
  const WeightFormat *as = packedFormat(format);
  bool hasMinima = as && as->zeros == WeightFormat::Zeros::Minima;
  for (int64_t i = 0; i < columns; i += info.block, row += info.bytes) {
    if (format == Format::F32)
      memcpy(to + i, row, 4);
    else if (format == Format::F16)
      to[i] = fromF16(halfAt(row));
    else if (format == Format::BF16)
      to[i] = fromBF16(halfAt(row));
    else if (!as)
      expandCodebook(format, row, to + i);
    if (!as)
      continue;
    Block block;
    readBlock(format, row, block);
    for (int64_t j = 0; j < info.block; ++j) {
      float value =
          block.scales[j / info.group] * decode(*as, block.numbers[j]);
      to[i + j] = hasMinima ? value + block.minima[j / info.group] : value;
    }
  }
}

void store(const float *from, int64_t count, Element element, uint8_t *to) {
  if (element == Element::F32) {
    memcpy(to, from, static_cast<size_t>(count) * 4);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits = element == Element::F16 ? toF16(from[i]) : toBF16(from[i]);
    memcpy(to + 2 * i, &bits, 2);
  }
}

std::vector<PackedPart> packedParts(Format format, int64_t columns,
                                    int64_t group) {
  const WeightFormat *row = packedFormat(format);
  const WeightFormat &as = row ? *row : *findWeightFormat("gptq4");
  std::vector<PackedPart> parts;
  auto add = [&](const char *suffix, const char *dtype, int64_t count,
                 size_t bytes) {
    parts.push_back({suffix, dtype, count, static_cast<size_t>(count) * bytes});
  };
  int64_t groups = columns / group;
  add("", "i32", columns / as.perWord(), 4);
  if (as.highBits)
    add("_high", "i32", columns / as.perHigh(), 4);
  if (as.scale == WeightFormat::Scale::E8M0)
    add("_scales", "i8", groups, 1);
  else if (as.scale == WeightFormat::Scale::F32)
    add("_scales", "f32", groups, 4);
  else
    add("_scales", "f16", groups, 2);
  if (format == Format::Int4)
    add("_zeros", "i32", (groups + 7) / 8, 4);
  else if (as.zeros == WeightFormat::Zeros::Minima)
    add("_minima", "f16", groups, 2);
  return parts;
}

void limitToF16(float *numbers, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    if (std::isfinite(numbers[i]))
      numbers[i] = std::clamp(numbers[i], -largestF16, largestF16);
}

/// The number of f16 that is next to a finite one, or the largest.
static float heldInF16(float value) {
  return std::clamp(fromF16(toF16(value)), -largestF16, largestF16);
}

/// A finite scale, as f16 has it, with which a number of this size and what is
/// added to it are no infinity of f16. A file's scale is rounded, and may make
/// one: 65504 / 127 is 516 there.
static float limitedScale(float scale, double largest, double added) {
  double held = heldInF16(scale), end = held * largest + added;
  if (std::abs(end) <= largestF16)
    return static_cast<float>(held);
  double most =
      std::abs(std::copysign(double(largestF16), end) - added) / largest;
  uint16_t bits = toF16(static_cast<float>(most));
  if (fromF16(bits) > most)
    --bits;
  return std::copysign(fromF16(bits), scale);
}

/// Puts a group's scale, and its minimum if it has one, into the range of f16.
/// Numbers beyond it are files' roundings, which become its largest ones.
static void limitGroup(const WeightFormat &as, const uint8_t *numbers,
                       int64_t count, float &scale, float &minimum) {
  constexpr float largestOfAll = 256; // of every format
  if (!std::isfinite(scale) || !std::isfinite(minimum) ||
      std::abs(scale) * largestOfAll + std::abs(minimum) <= largestF16)
    return;
  float largest = 0;
  for (int64_t i = 0; i < count; ++i)
    largest = std::max(largest, std::abs(decode(as, numbers[i])));
  minimum = heldInF16(minimum);
  scale = limitedScale(scale, largest, minimum);
}

static void putF16(float value, int64_t i, uint8_t *to) {
  uint16_t bits = toF16(value);
  memcpy(to + 2 * i, &bits, 2);
}

/// Puts `bits` bits of each of some numbers, whole words of them, from bit
/// `from` on into words, in the format's order.
static void packWords(const WeightFormat &as, const uint8_t *numbers,
                      int64_t count, int from, int bits, uint8_t *words) {
  int perWord = 32 / bits;
  uint32_t mask = (1u << bits) - 1;
  for (int64_t i = 0; i < count; i += perWord, words += 4) {
    uint32_t word = 0;
    for (int e = 0; e < perWord; ++e)
      word |= (numbers[i + e] >> from & mask) << as.placeOf(e, bits);
    memcpy(words, &word, 4);
  }
}

/// Powers of two that f16 has, plus 127 (docs/reference/Greta.md).
constexpr int leastExponent = 103, largestExponent = 142;

/// Finds the exponent with which a block of MXFP4 is held; false where f16 has
/// none, or not all of the block's numbers.
static bool holdExponent(const WeightFormat &as, Block &block) {
  float largest = 0;
  for (int i = 0; i < 32; ++i)
    largest = std::max(largest, std::abs(decode(as, block.numbers[i])));
  if (largest == 0 || block.exponent < leastExponent)
    block.exponent = 0;
  return block.exponent <= largestExponent &&
         block.scales[0] * largest <= largestF16;
}

const WeightFormat *heldFormat(const Stored &stored) {
  const WeightFormat *row = packedFormat(stored.format);
  if (!row || stored.shape.size() < 2 ||
      stored.shape[stored.shape.size() - 2] % 2)
    return row;
  const WeightFormat *interleaved = findWeightFormat(
      std::string(infoOf(stored.format).name) + "_interleaved");
  return interleaved ? interleaved : row;
}

void interleave(const PackedPart &part, int64_t columns, uint8_t *rows) {
  int64_t perElement = columns / part.columns;
  size_t size = part.rowBytes / static_cast<size_t>(part.columns) *
                static_cast<size_t>(
                    WeightFormat::elementsOfRun(static_cast<int>(perElement)));
  std::vector<uint8_t> first(rows, rows + part.rowBytes);
  // Each run of the second row is read before anything is written there.
  const uint8_t *second = rows + part.rowBytes;
  for (size_t at = 0; at < part.rowBytes; at += size, rows += 2 * size) {
    memcpy(rows, first.data() + at, size);
    memmove(rows + size, second + at, size);
  }
}

bool packRow(Format format, const uint8_t *row, int64_t columns,
             const PackedRow &to, const WeightFormat *held) {
  const FormatInfo &info = infoOf(format);
  const WeightFormat &as = held ? *held : *packedFormat(format);
  uint8_t *scales = to[as.highBits ? 2 : 1];
  for (int64_t first = 0; first < columns; first += info.block) {
    Block block;
    readBlock(format, row, block);
    if (as.scale == WeightFormat::Scale::E8M0 && !holdExponent(as, block))
      return false;
    row += info.bytes;
    packWords(as, block.numbers, info.block, 0, as.bits,
              to[0] + first * as.bits / 8);
    if (as.highBits)
      packWords(as, block.numbers, info.block, as.bits, as.highBits,
                to[1] + first * as.highBits / 8);
    for (int64_t i = 0; i < info.block / info.group; ++i) {
      int64_t group = first / info.group + i;
      if (as.scale == WeightFormat::Scale::E8M0) {
        scales[group] = static_cast<uint8_t>(block.exponent);
        continue;
      }
      limitGroup(as, block.numbers + i * info.group, info.group,
                 block.scales[i], block.minima[i]);
      putF16(block.scales[i], group, scales);
      if (as.zeros == WeightFormat::Zeros::Minima)
        putF16(block.minima[i], group, to.back());
    }
  }
  return true;
}

//===----------------------------------------------------------------------===//
// AWQ and GPTQ
//===----------------------------------------------------------------------===//

// The place of a column among the eight of its word.
static int placeOf(bool isAwq, int64_t column) {
  int within = static_cast<int>(column % 8);
  return isAwq ? within / 2 + within % 2 * 4 : within;
}

namespace {
// One row of an Int4 tensor.
class GroupedRow {
public:
  GroupedRow(const Stored &stored, int64_t n)
      : g(stored.grouped), n(n), rows(stored.rows()),
        shift(4 * placeOf(g.isAwq, n)) {}
  int64_t groupOf(int64_t k) const {
    return g.groupOf ? wordAt(g.groupOf, k) : k / g.group;
  }
  int weight(int64_t k) const {
    return g.isAwq ? wordAt(g.words, k * (rows / 8) + n / 8) >> shift & 15
                   : wordAt(g.words, k / 8 * rows + n) >> k % 8 * 4 & 15;
  }
  int zero(int64_t group) const {
    int stored = wordAt(g.zeros, group * (rows / 8) + n / 8) >> shift & 15;
    return stored + g.zeroOffset;
  }
  uint16_t scale(int64_t group) const {
    return halfAt(g.scales + 2 * (group * rows + n));
  }

private:
  const Grouped &g;
  int64_t n, rows;
  int shift;
};
} // namespace

void expandGrouped(const Stored &stored, int64_t n, float *to) {
  GroupedRow row(stored, n);
  for (int64_t k = 0; k < stored.columns(); ++k) {
    int64_t group = row.groupOf(k);
    to[k] = static_cast<float>(row.weight(k) - row.zero(group)) *
            fromF16(row.scale(group));
  }
}

bool canPackGrouped(const Stored &stored) {
  const Grouped &g = stored.grouped;
  if (g.groupOf || (g.group != 32 && g.group != 64 && g.group != 128))
    return false;
  // A zero of 16 has no room: 15 that is stored less one.
  int64_t words = stored.columns() / g.group * (stored.rows() / 8);
  for (int64_t i = 0; g.zeroOffset && i < words; ++i) {
    uint32_t zeros = wordAt(g.zeros, i);
    if (zeros & zeros >> 1 & zeros >> 2 & zeros >> 3 & 0x11111111)
      return false;
  }
  return true;
}

void packGrouped(const Stored &stored, int64_t n, const PackedRow &to) {
  GroupedRow row(stored, n);
  int64_t groups = stored.columns() / stored.grouped.group;
  std::vector<uint8_t> numbers(static_cast<size_t>(stored.columns()));
  for (int64_t k = 0; k < stored.columns(); ++k)
    numbers[static_cast<size_t>(k)] = static_cast<uint8_t>(row.weight(k));
  const WeightFormat &as = *findWeightFormat("gptq4");
  packWords(as, numbers.data(), stored.columns(), 0, as.bits, to[0]);
  int64_t size = stored.grouped.group;
  std::vector<uint8_t> zeros(static_cast<size_t>((groups + 7) / 8 * 8));
  for (int64_t group = 0; group < groups; ++group) {
    int zero = row.zero(group), largest = 0;
    auto first = numbers.begin() + group * size;
    std::for_each(first, first + size, [&](int number) {
      largest = std::max(largest, std::abs(number - zero));
    });
    float scale = fromF16(row.scale(group));
    putF16(std::isfinite(scale) ? limitedScale(scale, largest, 0) : scale,
           group, to[1]);
    zeros[static_cast<size_t>(group)] = static_cast<uint8_t>(zero);
  }
  packWords(as, zeros.data(), groups, 0, as.bits, to[2]);
}

} // namespace greta::llm
