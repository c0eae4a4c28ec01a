// Rows.h: rows of a weight on their way to a device. In: a weight as it lies in
// a model file, or one without data, whose numbers are made up. Out: rows of an
// element type, or packed, some megabytes at a time, so the host holds no copy
// of the model. Several threads have a part of the rows each; the bytes do not
// depend on how many there are.
#ifndef GRETA_LLM_ROWS_H
#define GRETA_LLM_ROWS_H

#include "model/Formats.h"

#include <functional>
#include <string>

namespace greta::llm {

class Rows {
public:
  Rows(const std::string &name, const Stored &stored, unsigned threads);

  // Rows from one piece to the next.
  size_t perPiece() const { return pieceRows; }
  // Made-up rows repeat after a piece: nobody looks for patterns in them. So
  // the first piece is converted alone, and stands for all others.
  bool repeats() const { return !made.empty(); }
  // `row` begins a piece, whose rows lie one behind the other.
  const uint8_t *at(size_t row) const {
    return stored.data ? stored.row(row) : made.data();
  }
  // The `count` rows of the piece that `row` begins, of an element type.
  void expand(size_t row, size_t count, Element element, uint8_t *to) const;
  // The same packed: of each part a pointer to so many rows.
  void pack(size_t row, size_t count, const std::vector<PackedPart> &parts,
            const PackedRow &to) const;

private:
  void makeNumbers(uint64_t seed, float deviation);
  void makeBlocks(uint64_t seed, float deviation);
  void check(const char *problem) const;
  void expandOne(size_t row, size_t i, float *to) const;
  void packOne(size_t row, size_t i, const PackedRow &to) const;
  const uint8_t *bytesOfRow(size_t row, size_t i,
                            std::vector<uint8_t> &room) const;
  int64_t inFile(size_t row) const {
    return static_cast<int64_t>(stored.headOrder.inFile(row));
  }
  // `work` does what it is told of `count` things, from one to before another.
  void inParts(size_t count, size_t bytesOfOne,
               const std::function<void(size_t, size_t)> &work) const;

  const std::string name;
  const Stored &stored;
  const WeightFormat *held; // null: it is not packed by blocks
  unsigned threads;
  size_t pieceRows;
  std::vector<uint8_t> made; // a piece, where there is no data
};

} // namespace greta::llm
#endif
