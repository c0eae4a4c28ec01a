// RowsTest.cpp: rows have the same bytes for any number of threads, made up or
// from a file.
#include "engine/Rows.h"

#include <gtest/gtest.h>
#include <random>

using namespace greta::llm;
using Bytes = std::vector<uint8_t>;

namespace {

// More than three threads' least part of the work.
constexpr int64_t columns = 1024, rows = 512;

Bytes expanded(const Stored &stored, Element element, unsigned threads) {
  Rows source("it", stored, threads);
  auto count = static_cast<size_t>(stored.rows());
  EXPECT_GE(source.perPiece(), count);
  Bytes to(count * static_cast<size_t>(stored.columns()) * bytesOf(element));
  source.expand(0, count, element, to.data());
  return to;
}

Bytes packed(const Stored &stored, unsigned threads) {
  Rows source("it", stored, threads);
  auto count = static_cast<size_t>(stored.rows());
  Bytes all;
  std::vector<PackedPart> parts = packedParts(stored.format, columns, 32);
  std::vector<Bytes> pieces;
  PackedRow to;
  for (const PackedPart &part : parts)
    to.push_back(pieces.emplace_back(count * part.rowBytes).data());
  source.pack(0, count, parts, to);
  for (const Bytes &piece : pieces)
    all.insert(all.end(), piece.begin(), piece.end());
  return all;
}

TEST(Rows, ThreadsDoNotChangeWhatIsMadeUp) {
  for (Format format :
       {Format::F32, Format::F16, Format::Q4_0, Format::Q4_K, Format::MXFP4}) {
    Stored stored{format, {rows, columns}};
    Bytes one = expanded(stored, Element::F32, 1);
    EXPECT_EQ(one, expanded(stored, Element::F32, 3)) << infoOf(format).name;
    // The numbers are no repetition of one thread's.
    EXPECT_FALSE(std::equal(one.begin(), one.begin() + columns * 4,
                            one.begin() + rows / 3 * columns * 4));
    if (packedFormat(format))
      EXPECT_EQ(packed(stored, 1), packed(stored, 3)) << infoOf(format).name;
  }
  Stored norm{Format::F32, {rows * columns}};
  EXPECT_EQ(expanded(norm, Element::F32, 1), expanded(norm, Element::F32, 3));
}

TEST(Rows, ThreadsDoNotChangeAFile) {
  std::mt19937 random(1);
  Stored stored{Format::MXFP4, {rows, columns}};
  size_t block = infoOf(stored.format).bytes;
  Bytes file(static_cast<size_t>(rows) * stored.rowBytes());
  for (size_t i = 0; i < file.size(); ++i)
    file[i] = static_cast<uint8_t>(i % block ? random() : 120 + random() % 8);
  stored.data = file.data();
  stored.headOrder = {64, 64};
  stored.isLessOne = true;
  EXPECT_EQ(expanded(stored, Element::F16, 1),
            expanded(stored, Element::F16, 3));
  EXPECT_EQ(packed(stored, 1), packed(stored, 3));
  // A problem is the caller's, whichever thread meets it.
  file[file.size() - block] = 200;
  for (unsigned threads : {1u, 3u})
    EXPECT_THROW(packed(stored, threads), std::runtime_error);
}

} // namespace
