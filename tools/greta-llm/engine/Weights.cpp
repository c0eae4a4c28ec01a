// Weights.cpp: see Weights.h. Rows are converted in pieces of a few megabytes,
// so the host holds no copy of the model.
#include "engine/Weights.h"
#include "model/Fp8.h"

#include <cmath>

namespace greta::llm {
namespace {

constexpr size_t pieceBytes = 8u << 20; // converted and uploaded at a time

// SplitMix64: numbers of a synthetic weight, which its name seeds.
class Random {
public:
  explicit Random(const std::string &name) {
    for (char c : name)
      state = (state ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  uint64_t next() {
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  // Uniform, of deviation one.
  float uniform() {
    return (static_cast<float>(next() >> 40) * 0x1p-23f - 1) * 1.7320508f;
  }

private:
  uint64_t state = 0xcbf29ce484222325u;
};

// Rows of a weight in its file's format, from the file or made up. Made-up rows
// repeat after a piece: nobody looks for patterns in them.
class Rows {
public:
  Rows(const std::string &name, const Stored &stored)
      : name(name), stored(stored),
        pieceRows(std::max<size_t>(
            1, pieceBytes / std::max<size_t>(1, stored.rowBytes()))) {
    // A piece lies in one part.
    while (stored.rowsOfPart() % pieceRows && !stored.parts.empty())
      --pieceRows;
    if (stored.data || stored.format == Format::Int4)
      return;
    Random random(name);
    size_t rows = std::min(pieceRows, static_cast<size_t>(stored.rows()));
    made.resize(rows * stored.rowBytes());
    float deviation = stored.shape.size() < 2
                          ? 0.1f
                          : 1 / std::sqrt(static_cast<float>(stored.columns()));
    if (packedFormat(stored.format)) {
      makeBlocks(random, deviation);
      return;
    }
    size_t elements = rows * static_cast<size_t>(stored.columns());
    Element element = stored.format == Format::F32   ? Element::F32
                      : stored.format == Format::F16 ? Element::F16
                                                     : Element::BF16;
    for (size_t i = 0; i < elements; ++i) {
      float value = random.uniform() * deviation;
      if (stored.shape.size() < 2)
        value += 1; // a norm's
      store(&value, 1, element, made.data() + i * bytesOf(element));
    }
  }

  size_t perPiece() const { return pieceRows; }
  // `row` begins a piece, whose rows lie one behind the other.
  const uint8_t *at(size_t row) const {
    return stored.data ? stored.row(row) : made.data();
  }
  // The i-th row of the piece that `row` begins.
  void expand(size_t row, size_t i, float *to) const {
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
  void pack(size_t row, size_t i, const PackedRow &to) const {
    std::vector<uint8_t> room;
    if (stored.format == Format::Int4)
      packGrouped(stored, inFile(row + i), to);
    else if (stored.format == Format::F8_E4M3)
      check(packFp8(stored, stored.headOrder.inFile(row + i), to));
    else if (!packRow(stored.format, bytesOfRow(row, i, room), stored.columns(),
                      to))
      check("has numbers of MXFP4 beyond 65504, which f16 does not have");
  }

private:
  // Fails if numbers have a problem.
  void check(const char *problem) const {
    if (problem)
      fail("the weight '" + name + "' " + problem);
  }
  // Fills `made` with blocks of few bits a weight: random bits, and scales and
  // minima that blocks share, such that weights are around zero.
  void makeBlocks(Random &random, float deviation) {
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
    for (uint8_t &byte : made)
      byte = static_cast<uint8_t>(random.next());
    size_t bytes = infoOf(stored.format).bytes;
    for (size_t block = 0; block < made.size(); block += bytes)
      memcpy(made.data() + block + at, shared.data(), shared.size());
  }
  int64_t inFile(size_t row) const {
    return static_cast<int64_t>(stored.headOrder.inFile(row));
  }
  const uint8_t *bytesOfRow(size_t row, size_t i,
                            std::vector<uint8_t> &room) const {
    size_t from =
        stored.shape.size() > 1 ? stored.headOrder.inFile(row + i) : row + i;
    return stored.data ? wholeRow(stored, from, room)
                       : made.data() + i * stored.rowBytes();
  }

  const std::string &name;
  const Stored &stored;
  size_t pieceRows;
  std::vector<uint8_t> made;
};

} // namespace

const Buffer &Weights::make(const std::string &name, std::vector<int64_t> shape,
                            const std::string &dtype, size_t bytes) {
  auto buffer = std::make_shared<Buffer>(runtime.allocate(bytes));
  tensors[name] = {buffer, std::move(shape), dtype};
  bytes_ += bytes;
  return *buffer;
}

void Weights::add(const std::string &name, const Stored &stored,
                  Element element) {
  size_t columns = static_cast<size_t>(stored.columns()),
         rows = static_cast<size_t>(stored.rows()),
         rowBytes = columns * bytesOf(element);
  const Buffer &buffer =
      make(name, stored.shape, nameOf(element), rows * rowBytes);
  Rows source(name, stored);
  bool isSame = findFormat(nameOf(element))->format == stored.format &&
                !stored.headOrder.size && !stored.isLessOne && stored.isPlain();
  std::vector<float> numbers(columns);
  std::vector<uint8_t> piece;
  for (size_t row = 0; row < rows; row += source.perPiece()) {
    size_t count = std::min(source.perPiece(), rows - row);
    if (!isSame) {
      piece.resize(count * rowBytes);
      for (size_t i = 0; i < count; ++i) {
        source.expand(row, i, numbers.data());
        // Rounded scales make numbers that were in range before.
        if (element == Element::F16 &&
            (infoOf(stored.format).block > 1 || stored.fp8))
          limitToF16(numbers.data(), stored.columns());
        store(numbers.data(), stored.columns(), element,
              piece.data() + i * rowBytes);
      }
    }
    const uint8_t *from = isSame ? source.at(row) : piece.data();
    stream.write(buffer, from, count * rowBytes, row * rowBytes);
  }
}

void Weights::addPacked(const std::string &name, const Stored &stored,
                        int64_t group) {
  size_t count = static_cast<size_t>(stored.rows());
  std::vector<PackedPart> parts =
      packedParts(stored.format, stored.columns(), group);
  std::vector<const Buffer *> buffers;
  for (const PackedPart &part : parts)
    buffers.push_back(&make(name + part.suffix, {stored.rows(), part.columns},
                            part.dtype, count * part.rowBytes));
  Rows source(name, stored);
  std::vector<std::vector<uint8_t>> pieces(parts.size());
  for (size_t row = 0; row < count; row += source.perPiece()) {
    size_t some = std::min(source.perPiece(), count - row);
    PackedRow at;
    for (size_t p = 0; p < parts.size(); ++p) {
      pieces[p].resize(some * parts[p].rowBytes);
      at.push_back(pieces[p].data());
    }
    for (size_t i = 0; i < some; ++i) {
      source.pack(row, i, at);
      for (size_t p = 0; p < parts.size(); ++p)
        at[p] += parts[p].rowBytes;
    }
    for (size_t p = 0; p < parts.size(); ++p)
      stream.write(*buffers[p], pieces[p].data(), pieces[p].size(),
                   row * parts[p].rowBytes);
  }
}

Weights::Weights(const Model &model, const Stage &stage, Element element,
                 Runtime &runtime, Stream &stream,
                 const std::function<void(double)> &progress)
    : runtime(runtime), stream(stream) {
  std::vector<std::pair<std::string, bool>> names; // and whether it is a norm's
  auto note = [&](const std::string &name, const Weight &weight) {
    names.push_back({name, weight.kind == Weight::Norm});
  };
  for (const Weight &weight : outerWeights(model.config)) {
    bool isBehind = weight.name.rfind("output", 0) == 0;
    if (isBehind ? stage.isLast : stage.isFirst)
      note(weight.name, weight);
  }
  for (int64_t layer = stage.first; layer < stage.end; ++layer)
    for (const Weight &weight : layerWeights(model.config, layer))
      note(Model::inLayer(layer, weight.name), weight);
  size_t done = 0;
  for (const auto &[name, isNorm] : names) {
    const Stored &stored = model.weight(name);
    int64_t group = heldGroup(model, name, element);
    if (name == "output" && model.isTied() && !group && stage.isFirst)
      tensors[name] = tensors.at("token_embd");
    else if (group)
      addPacked(name, stored, group);
    else
      add(name, stored, isNorm ? Element::F32 : element);
    progress(static_cast<double>(++done) / static_cast<double>(names.size()));
  }
  stream.synchronize();
}

const DeviceTensor *Weights::find(const std::string &name) const {
  auto it = tensors.find(name);
  return it == tensors.end() ? nullptr : &it->second;
}

} // namespace greta::llm
