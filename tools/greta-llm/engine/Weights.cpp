// Weights.cpp: see Weights.h.
#include "engine/Weights.h"
#include "engine/Rows.h"

#include <thread>

namespace greta::llm {

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
  Rows source(name, stored, std::thread::hardware_concurrency());
  bool isSame = findFormat(nameOf(element))->format == stored.format &&
                !stored.headOrder.size && !stored.isLessOne && stored.isPlain();
  std::vector<uint8_t> piece;
  for (size_t row = 0; row < rows; row += source.perPiece()) {
    size_t count = std::min(source.perPiece(), rows - row);
    if (!isSame && (!row || !source.repeats())) {
      piece.resize(count * rowBytes);
      source.expand(row, count, element, piece.data());
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
  Rows source(name, stored, std::thread::hardware_concurrency());
  std::vector<const Buffer *> buffers;
  std::vector<std::vector<uint8_t>> pieces;
  PackedRow to;
  for (const PackedPart &part : parts) {
    buffers.push_back(&make(name + part.suffix, {stored.rows(), part.columns},
                            part.dtype, count * part.rowBytes));
    pieces.emplace_back(std::min(source.perPiece(), count) * part.rowBytes);
    to.push_back(pieces.back().data());
  }
  for (size_t row = 0; row < count; row += source.perPiece()) {
    size_t some = std::min(source.perPiece(), count - row);
    if (!row || !source.repeats())
      source.pack(row, some, parts, to);
    for (size_t p = 0; p < parts.size(); ++p)
      stream.write(*buffers[p], to[p], some * parts[p].rowBytes,
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
