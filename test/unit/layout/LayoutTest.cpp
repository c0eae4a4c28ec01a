//===- LayoutTest.cpp - layouts by example --------------------------------===//
//
// Each member is tried on layouts small enough to check by hand. The property
// tests are in LayoutPropertyTest.cpp.
//
//===----------------------------------------------------------------------===//
#include "greta/Layout/Conversion.h"
#include "gtest/gtest.h"

using namespace greta;

static Layout parse(llvm::StringRef text) {
  std::string error;
  llvm::FailureOr<Layout> layout = Layout::parse(text, error);
  EXPECT_TRUE(succeeded(layout)) << text.str() << ": " << error;
  return succeeded(layout)
             ? *layout
             : *Layout::parse("{reg=[],lane=[],wave=[],rep=[1]}", error);
}

static std::string parseError(llvm::StringRef text) {
  std::string error;
  EXPECT_TRUE(failed(Layout::parse(text, error))) << text.str();
  return error;
}

TEST(Layout, TextRoundTrip) {
  const char *text =
      "{reg = [[0, 1], [0, 2]], lane = [[0, 4]], wave = [], rep = [1, 5]}";
  EXPECT_EQ(parse(text).str(), text);
  EXPECT_EQ(
      parse("{ reg=[ [0, 1],[0 ,2]] ,lane=[[0,4]],wave=[ ],rep=[1,5] } ").str(),
      text);
}

TEST(Layout, ParseErrors) {
  EXPECT_EQ(parseError("{reg = [[0,1],[0,2]]"),
            "expected ',' at the end of the layout");
  EXPECT_EQ(parseError("{reg = [], lane = [], wave = [], rep = [1]} x"),
            "expected the end before 'x'");
  EXPECT_EQ(parseError("{reg = [[a]], lane = [], wave = [], rep = [1]}"),
            "expected an integer below 2^31 before 'a]], lane = [], wave = [], "
            "rep = [1]}'");
  EXPECT_EQ(parseError("{reg = [[1,0]], lane = [], wave = [], rep = [1]}"),
            "a basis of reg has 2 entries, but rep has 1");
  EXPECT_EQ(parseError("{reg = [], lane = [[-1]], wave = [], rep = [1]}"),
            "a basis of lane has the negative entry -1");
  EXPECT_EQ(parseError("{reg = [], lane = [], wave = [], rep = [0]}"),
            "a repetition is 0, it must be at least 1");
  EXPECT_EQ(parseError("{reg = [], lane = [], wave = [], rep = []}"),
            "a layout needs at least one dimension");
  EXPECT_EQ(parseError("{reg = [[2]], lane = [], wave = [], rep = [1]}"),
            "the bases do not cover the tile 4");
  EXPECT_EQ(
      parseError("{reg = [[1,1],[2,2]], lane = [], wave = [], rep = [1,1]}"),
      "the bases do not cover the tile 4x4");
  EXPECT_EQ(parseError("{reg = [[2]], lane = [[2]], wave = [], rep = [1]}"),
            "the bases do not cover the tile 4");
  EXPECT_EQ(parseError("{reg = [], lane = [], wave = [], rep = [2000000000]}"),
            "more than 1048576 registers a lane");
}

TEST(Layout, SizesAndIndex) {
  Layout layout = parse("{reg = [[0,1],[0,2]], lane = [[0,4],[0,8],[1,0]], "
                        "wave = [[2,0]], rep = [3,5]}");
  EXPECT_EQ(layout.shape(), (Index{12, 80}));
  EXPECT_EQ(layout.numRegisters(), 60u);
  EXPECT_EQ(layout.numLanes(), 8u);
  EXPECT_EQ(layout.numWaves(), 2u);
  EXPECT_EQ(layout.index(3, 5, 1), (Index{3, 7}));
  // Register 4 * 7 + 2: repetition 7 is (1, 2).
  EXPECT_EQ(layout.index(30, 0, 0), (Index{4, 34}));
  EXPECT_EQ(layout.contiguity(1), 4u);
  EXPECT_EQ(layout.contiguity(0), 1u);
  EXPECT_TRUE(layout.registersAdd());
}

TEST(Layout, Blocked) {
  std::string error;
  auto blocked = [&](llvm::ArrayRef<int64_t> shape) {
    auto layout = Layout::blocked(shape, {1, 4}, {2, 4}, {1, 2}, {1, 0}, error);
    return succeeded(layout) ? layout->str() : error;
  };
  EXPECT_EQ(blocked({2, 32}),
            "{reg = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [1, 0]], wave = "
            "[[0, 16]], rep = [1, 1]}");
  EXPECT_EQ(blocked({6, 160}),
            "{reg = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [1, 0]], wave = "
            "[[0, 16]], rep = [3, 5]}");
  EXPECT_EQ(
      blocked({1, 2}),
      "{reg = [[0, 1]], lane = [[0, 0], [0, 0], [0, 0]], wave = [[0, 0]], "
      "rep = [1, 1]}");
  EXPECT_EQ(blocked({2, 24}),
            "{reg = [[0, 1], [0, 2]], lane = [[0, 4], [0, 0], [1, 0]], wave = "
            "[[0, 0]], rep = [1, 3]}");
  EXPECT_EQ(blocked({2, 40}), "dimension 1 of size 40 is no multiple of the 32 "
                              "elements that the threads cover");
}

TEST(Layout, FlatBases) {
  Layout layout = parse("{reg = [[0,1],[0,2]], lane = [[1,4]], wave = [[1,0]], "
                        "rep = [1,5]}");
  EXPECT_EQ(Layout::flatten(layout.reg()),
            (llvm::SmallVector<int32_t>{0, 1, 0, 2}));
  EXPECT_EQ(Layout::fromFlat({0, 1, 0, 2}, {1, 4}, {1, 0}, {1, 5}), layout);
  EXPECT_EQ(Layout::fromFlat({0, 1, 0}, {}, {}, {1, 5}).verify(),
            "a basis of reg has 1 entries, but rep has 2");
  EXPECT_EQ(Layout::fromFlat({1}, {}, {}, {}).verify(),
            "a layout needs at least one dimension");
}

// Matrix instructions' accumulators are ordinary layouts: (row, column) of
// register r in a lane, checked against the formula in the comment.
struct Accumulator {
  const char *name, *layout;
  Index (*formula)(int64_t lane, int64_t r);
};

static const Accumulator accumulators[] = {
    {"MFMA 16x16",
     "{reg = [[1,0],[2,0]], lane = [[0,1],[0,2],[0,4],[0,8],[4,0],[8,0]], wave "
     "= [], rep = [1,1]}",
     [](int64_t lane, int64_t r) {
       return Index{4 * (lane / 16) + r, lane % 16};
     }},
    {"MFMA 32x32",
     "{reg = [[1,0],[2,0],[8,0],[16,0]], lane = "
     "[[0,1],[0,2],[0,4],[0,8],[0,16],[4,0]], wave = [], rep = [1,1]}",
     [](int64_t lane, int64_t r) {
       return Index{8 * (r / 4) + 4 * (lane / 32) + r % 4, lane % 32};
     }},
    {"WMMA gfx11",
     "{reg = [[2,0],[4,0],[8,0]], lane = [[0,1],[0,2],[0,4],[0,8],[1,0]], wave "
     "= [], rep = [1,1]}",
     [](int64_t lane, int64_t r) {
       return Index{2 * r + lane / 16, lane % 16};
     }},
    {"WMMA gfx12",
     "{reg = [[1,0],[2,0],[4,0]], lane = [[0,1],[0,2],[0,4],[0,8],[8,0]], wave "
     "= [], rep = [1,1]}",
     [](int64_t lane, int64_t r) {
       return Index{8 * (lane / 16) + r, lane % 16};
     }},
};

TEST(Layout, MatrixAccumulators) {
  for (const Accumulator &unit : accumulators) {
    SCOPED_TRACE(unit.name);
    Layout layout = parse(unit.layout);
    for (unsigned lane = 0; lane != layout.numLanes(); ++lane)
      for (unsigned reg = 0; reg != layout.numRegisters(); ++reg)
        EXPECT_EQ(layout.index(reg, lane, 0), unit.formula(lane, reg));
  }
}

TEST(Layout, WorkgroupTileOf160) {
  // 160x160 by 4x2 waves of 40x80 each: 8x16 fragments, 5 x 5 a wave, where the
  // waves take turns fragment by fragment.
  Layout fragment =
      parse("{reg = [[0,1],[4,0]], lane = "
            "[[0,2],[0,4],[0,8],[1,0],[2,0]], wave = [], rep = [1,1]}");
  Layout waves = parse("{reg = [], lane = [], wave = [[1,0],[2,0],[0,1]], rep "
                       "= [5,5]}");
  Layout tile = Layout::product(fragment, waves);
  EXPECT_EQ(tile.shape(), (Index{160, 160}));
  EXPECT_EQ(tile.numRegisters(), 100u);
  EXPECT_EQ(tile.contiguity(1), 2u);
  EXPECT_EQ(tile.quotient(fragment), waves);
  EXPECT_EQ(tile.index(4 * 6 + 2, 0, 7), (Index{32 + 24 + 4, 32 + 16}));
}
