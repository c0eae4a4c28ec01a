// Weights.cpp: see Weights.h. Rows are converted in pieces of a few megabytes,
// so the host holds no copy of the model.
#include "Weights.h"

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
    if (stored.data)
      return;
    Random random(name);
    size_t rows = std::min(pieceRows, static_cast<size_t>(stored.rows()));
    made.resize(rows * stored.rowBytes());
    float deviation = stored.shape.size() < 2
                          ? 0.1f
                          : 1 / std::sqrt(static_cast<float>(stored.columns()));
    bool isPacked = stored.format == Format::Q4_0;
    size_t elements = rows * static_cast<size_t>(stored.columns());
    if (isPacked) {
      // Weights -8 to 7 have a deviation of 4.6.
      uint16_t scale = toF16(deviation / 4.6f);
      for (size_t block = 0; block < elements / 32; ++block) {
        uint8_t *to = made.data() + block * 18;
        memcpy(to, &scale, 2);
        uint64_t words[2] = {random.next(), random.next()};
        memcpy(to + 2, words, 16);
      }
      return;
    }
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
  // `row` begins a piece.
  const uint8_t *at(size_t row) const {
    return stored.data ? stored.data + row * stored.rowBytes() : made.data();
  }

private:
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
  bool isSame = findFormat(nameOf(element))->format == stored.format;
  std::vector<float> numbers(columns);
  std::vector<uint8_t> piece;
  for (size_t row = 0; row < rows; row += source.perPiece()) {
    size_t count = std::min(source.perPiece(), rows - row);
    const uint8_t *from = source.at(row);
    if (!isSame) {
      piece.resize(count * rowBytes);
      for (size_t i = 0; i < count; ++i) {
        expandRow(stored.format, from + i * stored.rowBytes(), stored.columns(),
                  numbers.data());
        store(numbers.data(), stored.columns(), element,
              piece.data() + i * rowBytes);
      }
      from = piece.data();
    }
    stream.write(buffer, from, count * rowBytes, row * rowBytes);
  }
}

void Weights::addPacked(const std::string &name, const Stored &stored) {
  int64_t columns = stored.columns(), rows = stored.rows(),
          groups = columns / packedGroup;
  size_t wordBytes = static_cast<size_t>(columns) / 2,
         scaleBytes = static_cast<size_t>(groups) * 2;
  const Buffer &words = make(name, {rows, columns / 8}, "i32",
                             static_cast<size_t>(rows) * wordBytes);
  const Buffer &scales = make(name + "_scales", {rows, groups}, "f16",
                              static_cast<size_t>(rows) * scaleBytes);
  // Every group's zero is the same, so all weights share the largest buffer.
  int64_t zeroWords = (groups + 7) / 8;
  size_t zeroBytes = static_cast<size_t>(rows * zeroWords) * 4;
  if (!zeros || zeros->size() < zeroBytes) {
    zeros = std::make_shared<Buffer>(runtime.allocate(zeroBytes));
    stream.fill(*zeros, zeroBytes, packedZeros);
    bytes_ += zeroBytes;
  }
  tensors[name + "_zeros"] = {zeros, {rows, zeroWords}, "i32"};

  Rows source(name, stored);
  std::vector<uint32_t> wordPiece;
  std::vector<uint16_t> scalePiece;
  for (size_t row = 0; row < static_cast<size_t>(rows);
       row += source.perPiece()) {
    size_t count = std::min(source.perPiece(), static_cast<size_t>(rows) - row);
    wordPiece.resize(count * wordBytes / 4);
    scalePiece.resize(count * scaleBytes / 2);
    for (size_t i = 0; i < count; ++i)
      packRow(source.at(row) + i * stored.rowBytes(), columns,
              wordPiece.data() + i * wordBytes / 4,
              scalePiece.data() + i * scaleBytes / 2);
    stream.write(words, wordPiece.data(), count * wordBytes, row * wordBytes);
    stream.write(scales, scalePiece.data(), count * scaleBytes,
                 row * scaleBytes);
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
    if (name == "output" && model.isTied() &&
        heldAs(model, name, element) == Held::Rows)
      tensors[name] = tensors.at("token_embd");
    else if (heldAs(model, name, element) == Held::Packed)
      addPacked(name, stored);
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
