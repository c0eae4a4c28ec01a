//===- LayoutTest.cpp - layouts by example --------------------------------===//
//
// What the members mean, on layouts small enough to check by hand. The property
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
      "{reg = [[0,1],[0,2]], lane = [[0,4]], wave = [], rep = [1,5]}";
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
            "{reg = [[0,1],[0,2]], lane = [[0,4],[0,8],[1,0]], wave = "
            "[[0,16]], rep = [1,1]}");
  EXPECT_EQ(blocked({6, 160}),
            "{reg = [[0,1],[0,2]], lane = [[0,4],[0,8],[1,0]], wave = "
            "[[0,16]], rep = [3,5]}");
  EXPECT_EQ(blocked({1, 2}),
            "{reg = [[0,1]], lane = [[0,0],[0,0],[0,0]], wave = [[0,0]], rep = "
            "[1,1]}");
  EXPECT_EQ(blocked({2, 24}),
            "{reg = [[0,1],[0,2]], lane = [[0,4],[0,0],[1,0]], wave = [[0,0]], "
            "rep = [1,3]}");
  EXPECT_EQ(blocked({2, 40}), "dimension 1 of size 40 is no multiple of the 32 "
                              "elements that the threads cover");
}
