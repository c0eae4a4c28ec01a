// Weights.cpp: see Weights.h. Rows are converted in pieces of a few megabytes,
// so the host holds no copy of the model.
#include "engine/Weights.h"

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
      : stored(stored),
        pieceRows(std::max<size_t>(
            1, pieceBytes / std::max<size_t>(1, stored.rowBytes()))) {
    if (stored.data || stored.format == Format::Int4)
      return;
    Random random(name);
    size_t rows = std::min(pieceRows, static_cast<size_t>(stored.rows()));
    made.resize(rows * stored.rowBytes());
    float deviation = stored.shape.size() < 2
                          ? 0.1f
                          : 1 / std::sqrt(static_cast<float>(stored.columns()));
    if (canPackRow(stored.format)) {
      // Weights -8 to 7 have a deviation of 4.6.
      makeBlocks(random, deviation / 4.6f);
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
    return stored.data ? stored.data + row * stored.rowBytes() : made.data();
  }
  // The i-th row of the piece that `row` begins.
  void expand(size_t row, size_t i, float *to) const {
    if (stored.format == Format::Int4)
      return expandGrouped(stored, static_cast<int64_t>(row + i), to);
    expandRow(stored.format, bytesOfRow(row, i), stored.columns(), to);
  }
  void pack(size_t row, size_t i, const PackedRow &to) const {
    if (stored.format == Format::Int4)
      packGrouped(stored, static_cast<int64_t>(row + i), to);
    else
      packRow(stored.format, bytesOfRow(row, i), stored.columns(), to);
  }

private:
  // Fills `made` with blocks of 4 bits a weight: a head that they share, and
  // random bits. Minima are such that weights are around zero.
  void makeBlocks(Random &random, float scale) {
    std::vector<uint8_t> head;
    auto add = [&](float value) {
      uint16_t bits = toF16(value);
      head.push_back(static_cast<uint8_t>(bits & 255));
      head.push_back(static_cast<uint8_t>(bits >> 8));
    };
    constexpr float middle = 7.5f, each = 32;
    if (stored.format == Format::Q4_K) {
      // The scales and minima of all groups are 32, in twelve bytes.
      add(scale / each);
      add(scale * middle / each);
      head.insert(head.end(), 8, 0xa0);
      head.insert(head.end(), 4, 0);
    } else {
      add(scale);
      if (stored.format == Format::Q4_1)
        add(-scale * middle);
    }
    size_t bytes = infoOf(stored.format).bytes;
    for (size_t block = 0; block < made.size(); block += bytes) {
      memcpy(made.data() + block, head.data(), head.size());
      for (size_t at = head.size(); at < bytes; at += 8) {
        uint64_t bits = random.next();
        memcpy(made.data() + block + at, &bits, 8);
      }
    }
  }
  const uint8_t *bytesOfRow(size_t row, size_t i) const {
    return stored.data
               ? stored.data + stored.rowInFile(row + i) * stored.rowBytes()
               : made.data() + i * stored.rowBytes();
  }

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
                !stored.pairedRows;
  std::vector<float> numbers(columns);
  std::vector<uint8_t> piece;
  for (size_t row = 0; row < rows; row += source.perPiece()) {
    size_t count = std::min(source.perPiece(), rows - row);
    if (!isSame) {
      piece.resize(count * rowBytes);
      for (size_t i = 0; i < count; ++i) {
        source.expand(row, i, numbers.data());
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
  int64_t columns = stored.columns(), rows = stored.rows(),
          groups = columns / group, zeroWords = (groups + 7) / 8;
  size_t wordBytes = static_cast<size_t>(columns) / 2,
         scaleBytes = static_cast<size_t>(groups) * 2,
         zeroBytes =
             hasZeros(stored.format) ? static_cast<size_t>(zeroWords) * 4 : 0,
         minimumBytes = hasMinima(stored.format) ? scaleBytes : 0,
         count = static_cast<size_t>(rows);
  const Buffer &words =
      make(name, {rows, columns / 8}, "i32", count * wordBytes);
  const Buffer &scales =
      make(name + "_scales", {rows, groups}, "f16", count * scaleBytes);
  const Buffer *zeros = nullptr, *minima = nullptr;
  if (zeroBytes)
    zeros = &make(name + "_zeros", {rows, zeroWords}, "i32", count * zeroBytes);
  if (minimumBytes)
    minima =
        &make(name + "_minima", {rows, groups}, "f16", count * minimumBytes);

  Rows source(name, stored);
  std::vector<uint32_t> wordPiece, zeroPiece;
  std::vector<uint16_t> scalePiece, minimumPiece;
  for (size_t row = 0; row < count; row += source.perPiece()) {
    size_t some = std::min(source.perPiece(), count - row);
    wordPiece.resize(some * wordBytes / 4);
    scalePiece.resize(some * scaleBytes / 2);
    zeroPiece.resize(some * zeroBytes / 4);
    minimumPiece.resize(some * minimumBytes / 2);
    for (size_t i = 0; i < some; ++i)
      source.pack(row, i,
                  {wordPiece.data() + i * wordBytes / 4,
                   scalePiece.data() + i * scaleBytes / 2,
                   zeroPiece.data() + i * zeroBytes / 4,
                   minimumPiece.data() + i * minimumBytes / 2});
    stream.write(words, wordPiece.data(), some * wordBytes, row * wordBytes);
    stream.write(scales, scalePiece.data(), some * scaleBytes,
                 row * scaleBytes);
    if (zeros)
      stream.write(*zeros, zeroPiece.data(), some * zeroBytes, row * zeroBytes);
    if (minima)
      stream.write(*minima, minimumPiece.data(), some * minimumBytes,
                   row * minimumBytes);
  }
}

Weights::Weights(const Model &model, Element element, Runtime &runtime,
                 Stream &stream, const std::function<void(double)> &progress)
    : runtime(runtime), stream(stream) {
  std::vector<std::pair<std::string, bool>> names; // and whether it is a norm's
  auto note = [&](const std::string &name, const Weight &weight) {
    bool isNorm = weight.name.size() > 5 &&
                  weight.name.compare(weight.name.size() - 5, 5, "_norm") == 0;
    names.push_back({name, isNorm});
  };
  for (const Weight &weight : outerWeights(model.config))
    note(weight.name, weight);
  for (int64_t layer = 0; layer < model.config.layers; ++layer)
    for (const Weight &weight : layerWeights(model.config))
      note(Model::inLayer(layer, weight.name), weight);
  size_t done = 0;
  for (const auto &[name, isNorm] : names) {
    const Stored &stored = model.weight(name);
    int64_t group = heldGroup(model, name, element);
    if (name == "output" && model.isTied() && !group)
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
