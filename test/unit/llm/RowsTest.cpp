// RowsTest.cpp: rows have the same bytes for any number of threads, made up or
// from a file.
#include "engine/Rows.h"

#include <cstring>
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

// Number k of row n, and its group's scale and minimum, where an interleaved
// format has them.
TEST(Rows, TwoRowsLieTogether) {
  constexpr int64_t depth = 256, count = 6;
  for (Format format : {Format::Q4_0, Format::Q4_1, Format::Q4_K}) {
    Stored stored{format, {count, depth}};
    const greta::WeightFormat &held = *heldFormat(stored);
    ASSERT_TRUE(held.isInterleaved);
    stored.shape.front() = count - 1;
    EXPECT_FALSE(heldFormat(stored)->isInterleaved) << "an odd number of rows";
    stored.shape.front() = count;
    Bytes file(count * stored.rowBytes());
    std::mt19937 random(2);
    for (uint8_t &byte : file)
      byte = static_cast<uint8_t>(random() & 0x3f);
    stored.data = file.data();
    std::vector<PackedPart> parts = packedParts(format, depth, 32);
    auto packed = [&](size_t rows, auto pack) {
      std::vector<Bytes> pieces;
      PackedRow to;
      for (const PackedPart &part : parts)
        to.push_back(pieces.emplace_back(rows * part.rowBytes).data());
      pack(to);
      return pieces;
    };
    auto all = packed(count, [&](const PackedRow &to) {
      Rows("it", stored, 1).pack(0, count, parts, to);
    });
    for (int64_t n = 0; n < count; ++n) {
      auto alone = packed(1, [&](const PackedRow &to) {
        packRow(format, stored.row(static_cast<size_t>(n)), depth, to,
                greta::findWeightFormat(infoOf(format).name));
      });
      // Row n's elements are every other run of the pair of rows.
      auto place = [&](size_t part, int64_t i, int64_t run) {
        int64_t row = 2 * parts[part].columns * (n / 2);
        return static_cast<size_t>(row + i / run * 2 * run + n % 2 * run +
                                   i % run);
      };
      for (int64_t k = 0; k < depth; ++k) {
        uint32_t word, inOrder;
        memcpy(&word, &all[0][4 * place(0, k / 8, 4)], 4);
        memcpy(&inOrder, &alone[0][4 * static_cast<size_t>(k / 8)], 4);
        EXPECT_EQ(word >> held.placeOf(static_cast<int>(k % 8), 4) & 15,
                  inOrder >> (4 * (k % 8)) & 15);
      }
      for (size_t part = 1; part < parts.size(); ++part)
        for (int64_t i = 0; i < depth / 32; ++i)
          EXPECT_EQ(memcmp(&all[part][2 * place(part, i, 1)],
                           &alone[part][2 * static_cast<size_t>(i)], 2),
                    0);
    }
  }
}

TEST(Rows, TwoRowsOfDifferentPartsLieTogether) {
  constexpr size_t ofPart = 3;
  Stored whole{Format::Q4_0, {2 * ofPart, columns}};
  Bytes file(2 * ofPart * whole.rowBytes());
  std::mt19937 random(3);
  for (uint8_t &byte : file)
    byte = static_cast<uint8_t>(random() & 0x3f);
  whole.data = file.data();
  ASSERT_TRUE(heldFormat(whole)->isInterleaved);
  Stored apart = whole;
  apart.parts = {file.data(), file.data() + ofPart * whole.rowBytes()};
  EXPECT_EQ(Rows("it", apart, 1).perPiece() % 2, 0u);
  EXPECT_EQ(packed(apart, 1), packed(whole, 1));
}

} // namespace
