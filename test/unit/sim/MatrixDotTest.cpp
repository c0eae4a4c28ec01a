//===- MatrixDotTest.cpp - dot-product instructions -----------------------===//
#include "MatrixBench.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace greta::sim::test;

namespace {

struct Case {
  const char *chip, *line;
  const Format *a, *b, *acc; ///< acc null: i32
  unsigned count;
  bool tied = false;
  unsigned dstHalf = 0, cHalf = 0; ///< 16-bit accumulators
  double signA = 1, signC = 1;
};
const Case cases[] = {
    {"gfx942", "v_dot2_f32_f16 v8, v4, v5, v6", &F16, &F16, &F32, 2},
    {"gfx942", "v_dot2c_f32_f16 v8, v4, v5", &F16, &F16, &F32, 2, true},
    {"gfx942", "v_dot2_i32_i16 v8, v4, v5, v6", &S16, &S16, nullptr, 2},
    {"gfx942", "v_dot2_u32_u16 v8, v4, v5, v6", &U16, &U16, nullptr, 2},
    {"gfx942", "v_dot2c_i32_i16 v8, v4, v5", &S16, &S16, nullptr, 2, true},
    {"gfx942", "v_dot4_i32_i8 v8, v4, v5, v6", &S8, &S8, nullptr, 4},
    {"gfx942", "v_dot4_u32_u8 v8, v4, v5, v6", &U8, &U8, nullptr, 4},
    {"gfx942", "v_dot4c_i32_i8 v8, v4, v5", &S8, &S8, nullptr, 4, true},
    {"gfx942", "v_dot8_i32_i4 v8, v4, v5, v6", &S4, &S4, nullptr, 8},
    {"gfx942", "v_dot8_u32_u4 v8, v4, v5, v6", &U4, &U4, nullptr, 8},
    {"gfx942", "v_dot8c_i32_i4 v8, v4, v5", &S4, &S4, nullptr, 8, true},
    {"gfx950", "v_dot2_f32_bf16 v8, v4, v5, v6", &BF16, &BF16, &F32, 2},
    {"gfx950", "v_dot2c_f32_bf16 v8, v4, v5", &BF16, &BF16, &F32, 2, true},
    {"gfx1030", "v_dot2_f32_f16 v8, v4, v5, v6", &F16, &F16, &F32, 2},
    {"gfx1030", "v_dot2c_f32_f16 v8, v4, v5", &F16, &F16, &F32, 2, true},
    {"gfx1030", "v_dot4_i32_i8 v8, v4, v5, v6", &S8, &S8, nullptr, 4},
    {"gfx1030", "v_dot4c_i32_i8 v8, v4, v5", &S8, &S8, nullptr, 4, true},
    {"gfx1030", "v_dot4_u32_u8 v8, v4, v5, v6", &U8, &U8, nullptr, 4},
    {"gfx1030", "v_dot8_i32_i4 v8, v4, v5, v6", &S4, &S4, nullptr, 8},
    {"gfx1030", "v_dot8_u32_u4 v8, v4, v5, v6", &U4, &U4, nullptr, 8},
    {"gfx1100", "v_dot2_f32_f16 v8, v4, v5, v6 neg_lo:[1,0,1] neg_hi:[1,0,0]",
     &F16, &F16, &F32, 2, false, 0, 0, -1, -1},
    {"gfx1100", "v_dot2_f32_bf16 v8, v4, v5, v6", &BF16, &BF16, &F32, 2},
    {"gfx1100", "v_dot2acc_f32_f16 v8, v4, v5", &F16, &F16, &F32, 2, true},
    {"gfx1100", "v_dual_dot2acc_f32_bf16 v8, v4, v5 :: v_dual_mov_b32 v9, v7",
     &BF16, &BF16, &F32, 2, true},
    {"gfx1100", "v_dot2_f16_f16 v8, v4, v5, v6", &F16, &F16, &F16, 2},
    {"gfx1100", "v_dot2_f16_f16 v8, -v4, v5, v6 op_sel:[0,0,1,0]", &F16, &F16,
     &F16, 2, false, 0, 1, -1},
    {"gfx1100", "v_dot2_bf16_bf16 v8, v4, v5, -v6 op_sel:[0,0,0,1]", &BF16,
     &BF16, &BF16, 2, false, 1, 0, 1, -1},
    {"gfx1200", "v_dot2_bf16_bf16 v8, v4, v5, v6 op_sel:[0,0,1,1]", &BF16,
     &BF16, &BF16, 2, false, 1, 1},
    {"gfx1100", "v_dot4_i32_iu8 v8, v4, v5, v6 neg_lo:[1,0,0]", &S8, &U8,
     nullptr, 4},
    {"gfx1100", "v_dot8_i32_iu4 v8, v4, v5, v6 neg_lo:[0,1,0]", &U4, &S4,
     nullptr, 8},
    {"gfx1201", "v_dot4_f32_fp8_fp8 v8, v4, v5, v6", &E4M3, &E4M3, &F32, 4},
    {"gfx1201", "v_dot4_f32_fp8_bf8 v8, v4, v5, v6", &E4M3, &E5M2, &F32, 4},
    {"gfx1201", "v_dot4_f32_bf8_fp8 v8, v4, v5, v6", &E5M2, &E4M3, &F32, 4},
    {"gfx1201", "v_dot4_f32_bf8_bf8 v8, v4, v5, v6", &E5M2, &E5M2, &F32, 4},
};

/// Small floats and any integers: sums are exact, integers wrap around.
TEST(MatrixDot, SumsAreExact) {
  std::mt19937 rng(12);
  for (const Case &c : cases) {
    SCOPED_TRACE(std::string(c.line) + " on " + c.chip);
    bool wave32 = c.chip[3] == '1';
    Bench bench(c.chip, wave32, {c.line});
    ASSERT_FALSE(HasFailure());
    for (unsigned round = 0; round < 8; ++round) {
      bench.fill(round);
      std::vector<uint32_t> old(bench.row(8), bench.row(8) + 64);
      std::vector<double> want;
      for (unsigned l = 0; l < bench.lanes; ++l) {
        auto draw = [&](const Format *f) {
          if (f->exponent)
            return double(int(rng() % 8) - 4);
          // The whole range of integers, its ends often.
          uint32_t code = rng() % 4 ? rng() : rng() % 2 << (f->bits - 1);
          return f->value(code & ((1u << f->bits) - 1));
        };
        double sum = int(rng() % 41) - 20;
        if (!c.acc)
          bench.row(c.tied ? 8 : 6)[l] = uint32_t(int32_t(sum));
        else
          bench.put(c.tied ? 8 : 6, l, c.cHalf, c.acc->bits, c.acc->code(sum));
        sum *= c.signC;
        for (unsigned e = 0; e < c.count; ++e) {
          double a = draw(c.a), b = draw(c.b);
          bench.put(4, l, e, c.a->bits, c.a->code(a));
          bench.put(5, l, e, c.b->bits, c.b->code(b));
          sum += c.signA * a * b;
        }
        want.push_back(sum);
      }
      bench.run(0);
      for (unsigned l = 0; l < bench.lanes; ++l) {
        uint32_t w = bench.row(8)[l];
        if (!c.acc) {
          ASSERT_EQ(w, uint32_t(int64_t(want[l]))) << "lane " << l;
        } else if (c.acc->bits == 32) {
          ASSERT_EQ(c.acc->value(w), want[l]) << "lane " << l;
        } else {
          unsigned shift = 16 * c.dstHalf;
          ASSERT_EQ(c.acc->value(w >> shift & 0xffff), want[l]) << "lane " << l;
          ASSERT_EQ(w >> (16 - shift) & 0xffff, old[l] >> (16 - shift) & 0xffff)
              << "the other half of lane " << l;
        }
      }
    }
  }
}

} // namespace
