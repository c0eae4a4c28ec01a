//===- ConversionTest.cpp - plans, followed on labelled elements ----------===//
//
// Every plan is executed as code generation would, on values that name their
// element, and its kind is compared with what brute force finds possible.
//
//===----------------------------------------------------------------------===//
#include "greta/Layout/Conversion.h"
#include "RandomLayout.h"
#include "gtest/gtest.h"
#include <map>

using namespace greta;
using namespace greta::test;
using Kind = Conversion::Kind;

/// The cheapest kind that brings the elements `dst` out of `src`, found without
/// algebra.
static Kind kindByBruteForce(const Elements &src, const Elements &dst) {
  bool sameRegister = src.regs == dst.regs;
  bool sameLane = true, sameWave = true, fixedRegister = true;
  for (unsigned reg = 0; reg != dst.regs; ++reg) {
    // Registers of src that fit in every thread.
    std::vector<bool> always(src.regs, true);
    for (unsigned wave = 0; wave != dst.waves; ++wave)
      for (unsigned lane = 0; lane != dst.lanes; ++lane) {
        int64_t wanted = dst(reg, lane, wave);
        bool inLane = false, inWave = false;
        for (unsigned r = 0; r != src.regs; ++r) {
          bool here = src(r, lane, wave) == wanted;
          inLane |= here;
          always[r] = always[r] && here;
        }
        for (unsigned l = 0; !inLane && !inWave && l != src.lanes; ++l)
          for (unsigned r = 0; !inWave && r != src.regs; ++r)
            inWave = src(r, l, wave) == wanted;
        sameLane &= inLane;
        sameWave &= inLane || inWave;
      }
    fixedRegister &= llvm::is_contained(always, true);
    sameRegister = sameRegister && always[reg];
  }
  if (!sameWave)
    return Kind::Shared;
  if (!sameLane)
    return Kind::Shuffle;
  if (!fixedRegister)
    return Kind::Select;
  return sameRegister ? Kind::Identity : Kind::Registers;
}

/// Compares a plan's kind with brute force and follows it: every destination
/// register must get its element.
static void checkPlan(const Conversion &plan, const Elements &src,
                      const Elements &dst, std::map<Kind, unsigned> &kinds) {
  ASSERT_EQ(plan.kind, kindByBruteForce(src, dst));
  ++kinds[plan.kind];
  if (plan.kind == Kind::Shared)
    return;
  ASSERT_EQ(plan.moves.size(), dst.regs);
  for (const Conversion::Move &move : plan.moves)
    ASSERT_EQ(move.registers.size(), size_t(1) << plan.selectors.size());
  for (unsigned wave = 0; wave != dst.waves; ++wave)
    for (unsigned lane = 0; lane != dst.lanes; ++lane)
      for (unsigned reg = 0; reg != dst.regs; ++reg) {
        Holder from = plan.source(reg, lane, wave);
        ASSERT_TRUE(from.reg < src.regs && from.lane < src.lanes);
        ASSERT_EQ(from.wave, wave);
        ASSERT_EQ(src(from.reg, from.lane, wave), dst(reg, lane, wave));
        if (plan.kind != Kind::Shuffle)
          ASSERT_EQ(from.lane, lane);
        if (plan.kind == Kind::Identity)
          ASSERT_EQ(from.reg, reg);
        if (plan.isXorShuffle())
          ASSERT_EQ(from.lane, lane ^ plan.moves[reg].laneXor);
      }
}

static void checkConvert(const Layout &src, const Layout &dst,
                         std::map<Kind, unsigned> &kinds) {
  SCOPED_TRACE(src.str() + " -> " + dst.str());
  std::string error;
  llvm::FailureOr<Conversion> plan = convert(src, dst, error);
  ASSERT_TRUE(succeeded(plan)) << error;
  Index shape = src.shape();
  checkPlan(*plan, Elements(src, shape), Elements(dst, shape), kinds);
}

TEST(Conversion, MovesEveryElement) {
  Random random(20);
  std::map<Kind, unsigned> kinds;
  for (const Index &shape : testShapes())
    for (bool mixed : {false, true})
      for (bool copies : {false, true})
        for (unsigned round = 0; round != 12; ++round) {
          RandomOptions options{mixed, copies};
          // Without waves, shuffles are frequent; without lanes, selects.
          unsigned laneBits = round % 4, waveBits = round % 3 == 0;
          Layout src = randomLayout(random, shape, laneBits, waveBits, options);
          Layout dst = randomLayout(random, shape, laneBits, waveBits, options);
          checkConvert(src, dst, kinds);
          checkConvert(src, src, kinds);
          // The same threads with registers in another order.
          Bases reg = src.reg();
          std::shuffle(reg.begin(), reg.end(), random);
          checkConvert(src, Layout(reg, src.lane(), src.wave(), src.rep()),
                       kinds);
        }
  for (Kind kind : {Kind::Identity, Kind::Registers, Kind::Select,
                    Kind::Shuffle, Kind::Shared})
    EXPECT_GT(kinds[kind], 20u) << "kind " << int(kind);
}

TEST(Conversion, Errors) {
  std::string error;
  auto parse = [&](const char *text) { return *Layout::parse(text, error); };
  Layout a = parse("{reg = [[0,1]], lane = [[1,0]], wave = [], rep = [1,3]}");
  EXPECT_TRUE(failed(convert(
      a, parse("{reg = [[0,1]], lane = [[1,0]], wave = [], rep = [1,2]}"),
      error)));
  EXPECT_EQ(error, "a conversion from shape 2x6 to shape 2x4");
  EXPECT_TRUE(failed(convert(
      a, parse("{reg = [[0,1]], lane = [], wave = [[1,0]], rep = [1,3]}"),
      error)));
  EXPECT_EQ(error,
            "a conversion from 2 lanes in 1 waves to 1 lanes in 2 waves");
  EXPECT_TRUE(failed(broadcast(
      a, parse("{reg = [[1]], lane = [[2]], wave = [], rep = [3]}"), error)));
  EXPECT_EQ(error, "a broadcast from shape 2x6 to shape 12");
}

TEST(Conversion, TransposeInAWave) {
  std::string error;
  auto parse = [&](const char *text) { return *Layout::parse(text, error); };
  Layout rows = parse("{reg = [[0,1]], lane = [[0,2],[1,0]], wave = [], rep = "
                      "[1,1]}");
  Layout swapped = parse("{reg = [[0,1]], lane = [[1,0],[0,2]], wave = [], rep "
                         "= [1,1]}");
  Conversion plan = *convert(rows, swapped, error);
  EXPECT_EQ(plan.kind, Kind::Shuffle);
  EXPECT_FALSE(plan.isXorShuffle());
  EXPECT_TRUE(plan.selectors.empty());
  EXPECT_EQ(plan.numShuffles(), 2u);
  EXPECT_EQ(plan.source(1, 1, 0), (Holder{1, 2, 0}));
}

TEST(Conversion, XorShuffleCountsOnlyCrossingRegisters) {
  std::string error;
  auto parse = [&](const char *text) { return *Layout::parse(text, error); };
  // Two registers instead of one: the other half comes from the next lane.
  Layout src = parse("{reg = [], lane = [[1]], wave = [], rep = [1]}");
  Layout dst = parse("{reg = [[1]], lane = [[1]], wave = [], rep = [1]}");
  Conversion plan = *convert(src, dst, error);
  EXPECT_EQ(plan.kind, Kind::Shuffle);
  EXPECT_TRUE(plan.isXorShuffle());
  EXPECT_EQ(plan.numShuffles(), 1u);
  EXPECT_EQ(plan.source(1, 0, 0), (Holder{0, 1, 0}));
  // Lanes with copies stay themselves.
  src = parse("{reg = [], lane = [[0],[1]], wave = [], rep = [1]}");
  dst = parse("{reg = [[1]], lane = [[0],[1]], wave = [], rep = [1]}");
  plan = *convert(src, dst, error);
  EXPECT_TRUE(plan.isXorShuffle());
  EXPECT_EQ(plan.source(1, 1, 0), (Holder{0, 3, 0}));
}

TEST(Conversion, LanesThatDifferInABitExchange) {
  // Pairs side by side in lanes, to both of a pair in every lane.
  Layout apart({}, {{1, 0}, {0, 1}}, {}, {1, 1});
  Layout both({{0, 1}}, {{1, 0}, {0, 0}}, {}, {1, 1});
  std::string error;
  llvm::FailureOr<Conversion> plan = convert(apart, both, error);
  ASSERT_TRUE(succeeded(plan)) << error;
  EXPECT_EQ(plan->kind, Conversion::Kind::Shuffle);
  EXPECT_FALSE(plan->isXorShuffle());
  EXPECT_EQ(plan->exchangedLane(), 2u);
  EXPECT_EQ(plan->numShuffles(), 1u);
}

TEST(Broadcast, ReadsTheElementWithOnesAsZero) {
  Random random(21);
  std::map<Kind, unsigned> kinds;
  forEachLayout(22, 4, [&](const Layout &dst, Random &) {
    for (unsigned dims = 0; dims != 1u << dst.rank(); ++dims) {
      Index shape = dst.shape();
      Layout collapsed = dst;
      for (unsigned dim = 0; dim != dst.rank(); ++dim)
        if (dims >> dim & 1) {
          shape[dim] = 1;
          collapsed = collapsed.collapse(dim);
        }
      Layout other = randomLayout(random, shape, dst.lane().size(),
                                  dst.wave().size(), {true, true});
      for (const Layout &src : {collapsed, other}) {
        SCOPED_TRACE(src.str() + " -> " + dst.str());
        Elements have(src, shape), want(dst, shape);
        std::string error;
        llvm::FailureOr<Conversion> plan = broadcast(src, dst, error);
        ASSERT_TRUE(succeeded(plan)) << error;
        checkPlan(*plan, have, want, kinds);
        auto registers = relabel(src, dst);
        ASSERT_EQ(registers.has_value(), plan->kind <= Kind::Registers);
        if (registers)
          forEachHolder(dst, [&](unsigned reg, unsigned lane, unsigned wave) {
            ASSERT_EQ(have((*registers)[reg], lane, wave),
                      want(reg, lane, wave));
          });
      }
      ASSERT_TRUE(relabel(collapsed, dst).has_value());
    }
  });
  EXPECT_GT(kinds[Kind::Registers], 20u);
  EXPECT_GT(kinds[Kind::Shuffle], 20u);
}

/// Runs the reduction's plan as a sum and compares with sums over the tensor.
static void checkReduction(const Layout &layout, unsigned dim,
                           const Reduction &plan) {
  auto value = [&](llvm::ArrayRef<int64_t> index) {
    uint64_t number = rowMajor(layout.shape(), index) + 1;
    return number * 0x9e3779b97f4a7c15u >> 20;
  };
  Index flat = layout.shape();
  flat[dim] = 1;
  ASSERT_EQ(plan.result.shape(), flat);
  std::map<int64_t, uint64_t> sums;
  forEachHolder(layout, [&](unsigned reg, unsigned lane, unsigned wave) {
    Index index = layout.index(reg, lane, wave);
    // Each element once: by its canonical owner.
    if (!(layout.owner(index) == Holder{reg, lane, wave}))
      return;
    uint64_t number = value(index);
    index[dim] = 0;
    sums[rowMajor(flat, index)] += number;
  });
  unsigned lanes = layout.numLanes(), waves = layout.numWaves();
  for (unsigned reg = 0; reg != plan.result.numRegisters(); ++reg) {
    std::vector<uint64_t> partial(lanes * waves, 0);
    for (unsigned thread = 0; thread != lanes * waves; ++thread)
      for (unsigned from : plan.registers[reg])
        partial[thread] +=
            value(layout.index(from, thread % lanes, thread / lanes));
    for (uint32_t crossed : {plan.lanes, plan.waves * lanes})
      for (uint32_t bit = 1; bit <= crossed; bit *= 2) {
        if (!(crossed & bit))
          continue;
        std::vector<uint64_t> before = partial;
        for (unsigned thread = 0; thread != lanes * waves; ++thread)
          partial[thread] += before[thread ^ bit];
      }
    for (unsigned thread = 0; thread != lanes * waves; ++thread)
      ASSERT_EQ(partial[thread],
                sums[rowMajor(flat, plan.result.index(reg, thread % lanes,
                                                      thread / lanes))]);
  }
}

TEST(Reduction, SumsEveryElementOnce) {
  unsigned done = 0, refused = 0;
  forEachLayout(23, 4, [&](const Layout &layout, Random &) {
    SCOPED_TRACE(layout.str());
    // Plain layouts: every bit moves along one dimension, copies are zero bits.
    bool plain = true;
    for (const Bases *bases : {&layout.reg(), &layout.lane(), &layout.wave()})
      for (const Basis &basis : *bases)
        plain &= llvm::count(basis, 0) + 1 >= int64_t(basis.size());
    uint32_t zeroLanes = 0, zeroWaves = 0;
    for (auto [bit, basis] : llvm::enumerate(layout.lane()))
      zeroLanes |= unsigned(llvm::all_of(basis, [](int e) { return !e; }))
                   << bit;
    for (auto [bit, basis] : llvm::enumerate(layout.wave()))
      zeroWaves |= unsigned(llvm::all_of(basis, [](int e) { return !e; }))
                   << bit;
    plain &= layout.freeLaneBits() == zeroLanes &&
             layout.freeWaveBits() == zeroWaves;
    for (unsigned dim = 0; dim != layout.rank(); ++dim) {
      std::string error;
      llvm::FailureOr<Reduction> plan = reduce(layout, dim, error);
      ++(succeeded(plan) ? done : refused);
      if (plain)
        ASSERT_TRUE(succeeded(plan)) << error;
      if (succeeded(plan))
        checkReduction(layout, dim, *plan);
    }
  });
  EXPECT_GT(done, 200u);
  EXPECT_GT(refused, 20u);
}

TEST(Reduction, BitsAlong) {
  std::string error;
  auto parse = [&](const char *text) { return *Layout::parse(text, error); };
  Layout layout =
      parse("{reg = [[0,1]], lane = [[0,2],[1,0],[0,4],[0,0]], wave "
            "= [[2,0],[0,8]], rep = [1,3]}");
  Layout::BitsAlong rows = *layout.bitsAlong(0, error);
  EXPECT_EQ(rows.lanes, 2u);
  EXPECT_EQ(rows.waves, 1u);
  Layout::BitsAlong columns = *layout.bitsAlong(1, error);
  EXPECT_EQ(columns.lanes, 5u);
  EXPECT_EQ(columns.waves, 2u);
  EXPECT_EQ(layout.freeLaneBits(), 8u);

  Layout mixed =
      parse("{reg = [[0,1]], lane = [[1,1]], wave = [], rep = [1,1]}");
  EXPECT_TRUE(failed(mixed.bitsAlong(0, error)));
  EXPECT_EQ(error, "lane bit 0 moves along dimensions 0 and 1 at once; convert "
                   "the layout before reducing along 0");
  Layout twice = parse("{reg = [[1]], lane = [[1]], wave = [], rep = [1]}");
  EXPECT_TRUE(failed(twice.bitsAlong(0, error)));
  EXPECT_EQ(
      error,
      "a reduction along dimension 0 would meet elements twice or miss "
      "some, because registers and threads share them; convert the layout "
      "before");
}
