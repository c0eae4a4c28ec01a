//===- HazardsTest.cpp - every wait-state rule, one state short and enough ===//
//
// A writer, s_nop, and a reader: with one wait state less than LLVM's
// GCNHazardRecognizer inserts for the pair the simulator must report it, with
// as many it must not. The numbers are what llc 22 (post-RA-hazard-rec) inserts
// for gfx90a, gfx942 and gfx950; -1 where the chip lacks an instruction.
//
//===----------------------------------------------------------------------===//
#include "Assembly.h"

using namespace greta::sim;
using namespace greta::sim::test;

namespace {

struct Rule {
  const char *name, *writer, *reader;
  int need[3];
  /// From as many wait states on the report is a warning (not on gfx90a).
  int tolerated = 99;
};
const char *const chips[] = {"gfx90a", "gfx942", "gfx950"};

// Matrix instructions write v[4:..] and read v[100:..], v[110:..] and c:
// 2, 4, 8 and 16 passes on gfx942.
#define XDL2 "v_mfma_f32_4x4x4f16 v[4:7], v[100:101], v[110:111], v[120:123]"
#define XDL4 "v_mfma_f32_16x16x16f16 v[4:7], v[100:101], v[110:111], v[120:123]"
#define XDL8 "v_mfma_f32_32x32x8f16 v[4:19], v[100:101], v[110:111], v[120:135]"
#define XDL16                                                                  \
  "v_mfma_f32_32x32x4f16 v[4:35], v[100:101], v[110:111], v[120:151]"
#define S2 "v_mfma_f32_4x4x1f32 v[4:7], v100, v110, v[120:123]"
#define S8 "v_mfma_f32_16x16x4f32 v[4:7], v100, v110, v[120:123]"
#define S16 "v_mfma_f32_32x32x2f32 v[4:19], v100, v110, v[120:135]"
#define D4 "v_mfma_f64_4x4x4f64 v[4:5], v[100:101], v[110:111], v[120:121]"
#define D16 "v_mfma_f64_16x16x4f64 v[4:11], v[100:101], v[110:111], v[120:127]"
#define WIDE                                                                   \
  "v_mfma_f32_16x16x32_f16 v[4:7], v[100:103], v[110:113], v[120:123]"
#define READ "v_mov_b32 v180, v4"
#define OVERWRITE "v_mov_b32 v4, v180"
#define OVER_C "v_mov_b32 v120, v180"
#define STORE "global_store_dword v200, v4, s[2:3]"
#define LDS_STORE "ds_write_b32 v200, v4"
#define LDS_LOAD "ds_read_b32 v4, v200"
#define A_OF_4                                                                 \
  "v_mfma_f32_16x16x16f16 v[170:173], v[4:5], v[110:111], v[180:183]"
#define A_OF_S "v_mfma_f32_16x16x4f32 v[170:173], v4, v110, v[180:183]"
#define A_OF_D                                                                 \
  "v_mfma_f64_16x16x4f64 v[170:177], v[4:5], v[110:111], v[180:187]"
#define C_OF_4                                                                 \
  "v_mfma_f32_16x16x16f16 v[170:173], v[140:141], v[144:145], v[4:7]"
#define C_OF_8                                                                 \
  "v_mfma_f32_32x32x8f16 v[170:185], v[140:141], v[144:145], v[4:19]"
#define PART_4                                                                 \
  "v_mfma_f32_16x16x16f16 v[170:173], v[140:141], v[144:145], v[2:5]"
#define PART_S "v_mfma_f32_16x16x4f32 v[170:173], v140, v144, v[2:5]"
#define PART_D                                                                 \
  "v_mfma_f64_16x16x4f64 v[170:177], v[140:141], v[144:145], v[2:9]"
#define D4_OF_C "v_mfma_f64_4x4x4f64 v[170:171], v[140:141], v[144:145], v[4:5]"
#define D16_OF_C                                                               \
  "v_mfma_f64_16x16x4f64 v[170:177], v[140:141], v[144:145], v[4:11]"
#define MATRIX "v_mfma_f32_16x16x16f16 v[8:11], v[4:5], v[6:7], v[12:15]"
#define ACC_MATRIX "v_mfma_f32_16x16x16f16 a[0:3], v[4:5], v[6:7], a[0:3]"
#define CMPX "v_cmpx_eq_u32 v200, v200"
#define TO_SGPR "v_readfirstlane_b32 s4, v200"
#define DPP                                                                    \
  "v_mov_b32_dpp v180, v4 quad_perm:[0,1,2,3] row_mask:0xf bank_mask:0xf"
#define DOT "v_dot2_f32_f16 v4, v100, v101, v102"

const Rule rules[] = {
    {"XDL2_valu", XDL2, READ, {5, 5, 5}},
    {"XDL4_valu", XDL4, READ, {11, 7, 8}, 2},
    {"XDL8_valu", XDL8, READ, {19, 11, 12}},
    {"XDL16_valu", XDL16, READ, {19, 19, 20}},
    {"XDL8_lastRegister", XDL8, "v_mov_b32 v180, v19", {19, 11, 12}},
    {"S2_valu", S2, READ, {5, 4, 4}},
    {"S8_valu", S8, READ, {11, 10, 10}},
    {"S16_valu", S16, READ, {19, 18, 18}},
    {"D4_valu", D4, READ, {6, 6, 6}},
    {"D16_valu", D16, READ, {11, 11, 19}},
    {"wide_valu", WIDE, READ, {-1, -1, 8}, 2},
    {"XDL4_readlane", XDL4, "v_readfirstlane_b32 s5, v4", {11, 7, 8}, 2},
    {"XDL4_store", XDL4, STORE, {11, 7, 8}},
    {"XDL4_ldsStore", XDL4, LDS_STORE, {11, 7, 8}},
    {"S8_store", S8, STORE, {11, 10, 10}},
    {"D4_store", D4, STORE, {9, 9, 9}},
    {"D16_ldsStore", D16, LDS_STORE, {18, 18, 18}},
    {"XDL2_overwrite", XDL2, OVERWRITE, {5, 5, 5}},
    {"XDL4_overwrite", XDL4, OVERWRITE, {11, 7, 8}},
    {"S8_overwrite", S8, OVERWRITE, {11, 10, 10}},
    {"D16_overwrite", D16, OVERWRITE, {11, 11, 11}},
    {"XDL4_loadInto", XDL4, LDS_LOAD, {11, 7, 8}},
    {"D16_loadInto", D16, LDS_LOAD, {11, 11, 11}},
    {"XDL2_overwriteC", XDL2, OVER_C, {1, 1, 1}},
    {"XDL4_overwriteC", XDL4, OVER_C, {7, 3, 3}},
    {"XDL8_overwriteC", XDL8, OVER_C, {15, 7, 7}},
    {"XDL16_overwriteC", XDL16, OVER_C, {15, 15, 15}},
    {"S8_overwriteC", S8, OVER_C, {7, 0, 0}},
    {"D16_overwriteC", D16, OVER_C, {0, 0, 0}},
    {"XDL4_overwriteA", XDL4, "v_mov_b32 v100, v180", {0, 0, 0}},
    {"XDL2_A", XDL2, A_OF_4, {5, 5, 5}},
    {"XDL4_A", XDL4, A_OF_4, {11, 7, 8}},
    {"XDL8_A", XDL8, A_OF_S, {19, 11, 12}},
    {"S8_A", S8, A_OF_4, {11, 10, 10}},
    {"S16_A", S16, A_OF_D, {19, 18, 18}},
    {"D4_A", D4, A_OF_4, {6, 6, 6}},
    {"D16_A", D16, A_OF_D, {11, 11, 19}},
    {"XDL2_C", XDL2, C_OF_4, {0, 2, 2}},
    {"XDL4_C", XDL4, C_OF_4, {0, 0, 0}},
    {"XDL8_C", XDL8, C_OF_8, {0, 0, 0}},
    {"XDL4_largerC", XDL4, C_OF_8, {8, 5, 6}},
    {"XDL2_part", XDL2, PART_4, {2, 3, 4}},
    {"XDL2_partS", XDL2, PART_S, {2, 3, 3}},
    {"XDL2_partD", XDL2, PART_D, {3, 3, 3}},
    {"XDL4_part", XDL4, PART_4, {8, 5, 6}},
    {"XDL4_partS", XDL4, PART_S, {8, 5, 6}},
    {"XDL8_partD", XDL8, PART_D, {17, 9, 10}},
    {"S2_C", S2, C_OF_4, {0, 2, 2}},
    {"S8_part", S8, PART_4, {8, 0, 0}},
    {"S8_partS", S8, PART_S, {8, 8, 8}},
    {"S16_partD", S16, PART_D, {17, 16, 16}},
    {"D4_CofD4", D4, D4_OF_C, {4, 4, 4}},
    {"D4_CofD16", D4, D16_OF_C, {4, 4, 4}},
    {"D4_partS", D4, PART_S, {0, 4, 4}},
    {"D4_part", D4, PART_4, {0, 0, 0}},
    {"D16_CofD16", D16, D16_OF_C, {0, 0, 0}},
    {"D16_partD", D16, PART_D, {9, 9, 17}},
    {"D16_partS", D16, PART_S, {0, 9, 17}},
    {"D16_fma64",
     D16,
     "v_fma_f64 v[180:181], v[182:183], v[184:185], v[186:187]",
     {2, 2, 2}},
    {"valu_A", "v_mov_b32 v4, v200", MATRIX, {2, 2, 2}},
    {"valu_C", "v_mov_b32 v13, v200", MATRIX, {2, 2, 2}},
    {"valu_accC", "v_accvgpr_write_b32 a1, v200", ACC_MATRIX, {2, 2, 2}},
    {"cmpx_matrix", CMPX, MATRIX, {4, 4, 4}},
    {"trans_matrix", "v_exp_f32 v4, v200", MATRIX, {2, 2, 2}},
    {"cmpx_dpp", CMPX, DPP, {5, 5, 5}},
    {"cmpx_store", CMPX, STORE, {5, 5, 5}},
    {"cmpx_lds", CMPX, LDS_STORE, {0, 0, 0}},
    {"cmpx_readlane", CMPX, "v_readlane_b32 s5, v200, 0", {0, 4, 4}},
    {"valu_dpp", "v_mov_b32 v4, v200", DPP, {2, 2, 2}},
    {"valu_swap",
     "v_mov_b32 v4, v200",
     "v_permlane32_swap_b32 v4, v180",
     {-1, -1, 2}},
    {"sgpr_saddr", "v_readfirstlane_b32 s2, v201", STORE, {5, 5, 5}},
    {"sgpr_laneSelect", TO_SGPR, "v_readlane_b32 s5, v200, s4", {4, 4, 4}},
    {"sgpr_valu", TO_SGPR, "v_mov_b32 v180, s4", {0, 2, 2}, 0},
    {"sgpr_salu", TO_SGPR, "s_mov_b32 s5, s4", {0, 0, 0}},
    {"vcc_cndmask",
     "v_cmp_eq_u32 vcc, v200, v200",
     "v_cndmask_b32 v180, v200, v200, vcc",
     {0, 2, 2},
     0},
    {"vcc_divFmas",
     "v_cmp_eq_u32 vcc, v200, v200",
     "v_div_fmas_f32 v180, v200, v200, v200",
     {4, 4, 4}},
    {"valu_readlane",
     "v_mov_b32 v4, v200",
     "v_readlane_b32 s5, v4, 0",
     {0, 1, 1}},
    {"trans_valu", "v_exp_f32 v4, v200", READ, {0, 1, 1}},
    {"trans_trans", "v_exp_f32 v4, v200", "v_exp_f32 v180, v4", {0, 0, 0}},
    {"sdwa_valu",
     "v_mov_b32_sdwa v4, v200 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE "
     "src0_sel:DWORD",
     READ,
     {0, 1, 1}},
    {"dot_valu", DOT, READ, {3, 3, 3}},
    {"dot_ldsStore", DOT, LDS_STORE, {3, 3, 3}},
    {"dot_overwrite", DOT, OVERWRITE, {3, 3, 3}},
    {"dot_sameA", DOT, "v_dot2_f32_f16 v180, v4, v101, v102", {3, 3, 3}},
    {"dot_sameC", DOT, "v_dot2_f32_f16 v4, v100, v101, v4", {0, 0, 0}},
    {"store_overwrite",
     "global_store_dwordx4 v200, v[4:7], s[2:3]",
     OVERWRITE,
     {1, 2, 2}},
    {"shortStore_overwrite",
     "global_store_dwordx2 v200, v[4:5], s[2:3]",
     OVERWRITE,
     {0, 0, 0}},
    {"m0_ldsLoad",
     "s_mov_b32 m0, 0",
     "global_load_lds_dword v200, s[2:3]",
     {-1, 1, 1},
     0},
    {"m0_sendmsg",
     "s_mov_b32 m0, 0",
     "s_sendmsg sendmsg(MSG_INTERRUPT)",
     {1, 1, 1}},
};

std::string states(int n) {
  std::string s;
  for (; n > 0; n -= 16)
    s += "s_nop " + std::to_string(std::min(n, 16) - 1) + "\n";
  return s;
}

class Hazards : public testing::TestWithParam<int> {};

TEST_P(Hazards, OneStateShortAndEnough) {
  int c = GetParam();
  std::vector<AssemblyKernel> kernels;
  std::vector<std::pair<const Rule *, int>> cases; // and wait states
  auto add = [&](const Rule &r, int n) {
    kernels.push_back({"k" + std::to_string(kernels.size()),
                       "s_load_dwordx2 s[2:3], s[0:1], 0x0\n"
                       "v_mov_b32 v200, 0\ns_waitcnt lgkmcnt(0)\n"
                       "v_mov_b32 v201, s2\ns_nop 15\n" +
                           std::string(r.writer) + "\n" + states(n) +
                           r.reader});
    cases.push_back({&r, n});
  };
  for (const Rule &r : rules) {
    int need = r.need[c];
    if (need >= 0)
      add(r, need);
    if (need > 0)
      add(r, need - 1);
    if (r.tolerated > 0 && r.tolerated < need)
      add(r, r.tolerated - 1);
  }
  auto reports =
      runAssembly(chips[c], kernels, CheckHazards, {64, 1, 1}, "216");
  for (size_t k = 0; k < reports.size(); ++k) {
    auto [rule, n] = cases[k];
    SCOPED_TRACE(rule->name + (" after " + std::to_string(n)));
    int more = rule->need[c] - n;
    if (more)
      EXPECT_TRUE(contains(reports[k],
                           (std::to_string(more) + " more wait state").c_str()))
          << reports[k];
    else
      EXPECT_EQ(reports[k], "");
    EXPECT_EQ(contains(reports[k], "warning: "),
              more && c > 0 && n >= rule->tolerated);
  }
}
INSTANTIATE_TEST_SUITE_P(Chips, Hazards, testing::Range(0, 3),
                         [](const auto &info) {
                           return std::string(chips[info.param]);
                         });

// The numbers above are the compiler's. These stand in the vendor's manuals, in
// the tables of wait states that the programmer inserts (section 4.5 of the ISA
// guides): of MI200 and of MI300.
TEST(HazardsMore, NumbersOfTheManuals) {
  struct Manual {
    const char *name;
    int mi200, mi300;
  };
  const Manual manuals[] = {
      {"sgpr_saddr", 5, 5},      {"valu_dpp", 2, 2},
      {"cmpx_dpp", 5, 5},        {"vcc_divFmas", 4, 4},
      {"sgpr_laneSelect", 4, 4}, {"valu_A", 2, 2},
      {"cmpx_matrix", 4, 4},     {"dot_valu", 3, 3},
      {"XDL2_valu", 5, 5},       {"XDL4_valu", 11, 7},
      {"XDL8_valu", 19, 11},     {"XDL16_valu", 19, 19},
      {"D4_valu", 6, 6},         {"D16_valu", 11, 11},
      {"D4_store", 9, 9},        {"D16_ldsStore", 18, 18},
      {"XDL2_A", 5, 5},          {"D4_CofD4", 4, 4},
  };
  for (const Manual &m : manuals) {
    const Rule *r =
        std::find_if(std::begin(rules), std::end(rules), [&](const Rule &r) {
          return std::string(r.name) == m.name;
        });
    ASSERT_NE(r, std::end(rules)) << m.name;
    EXPECT_EQ(r->need[0], m.mi200) << m.name;
    EXPECT_EQ(r->need[1], m.mi300) << m.name;
  }
}

// Other instructions count as wait states.
TEST(HazardsMore, InstructionsAreWaitStates) {
  std::string start = "v_mov_b32 v4, 0\ns_mov_b32 s4, 0\n", end = MATRIX;
  EXPECT_NE(runAssembly("gfx942", start + end, CheckHazards), "");
  EXPECT_EQ(
      runAssembly("gfx942", start + "s_mov_b32 s5, 0\n" + end, CheckHazards),
      "");
}

// A branch does not reset anything.
TEST(HazardsMore, AcrossBranches) {
  std::string text = std::string("s_branch there\nback:\n") + READ +
                     "\ns_endpgm\nthere:\n" + XDL4 + "\n%s_branch back";
  auto with = [&](const char *nops) {
    std::string s = text;
    return runAssembly("gfx942", s.replace(s.find('%'), 1, nops), CheckHazards,
                       {64, 1, 1}, "216");
  };
  EXPECT_TRUE(contains(with("s_nop 4\n"), "v4 is read before the matrix"));
  EXPECT_EQ(with("s_nop 5\n"), "");
  // Taken from before the one that ends the block, it counts for both.
  text.replace(text.find("%s_branch"), 9, "%s_cbranch_scc0 back\ns_branch");
  text = "s_cmp_lg_u32 s2, s2\n" + text;
  EXPECT_TRUE(contains(with("s_nop 3\n"), "v4 is read before the matrix"));
  EXPECT_EQ(with("s_nop 4\n"), "");
}

struct WmmaRule {
  const char *chip, *first, *between, *second;
  bool hazard;
};
#define WMMA11 "v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[24:31]\n"
#define WMMA12 "v_wmma_f32_16x16x16_f16 v[0:7], v[8:11], v[12:15], v[24:31]\n"
#define SWMMAC "v_swmmac_f32_16x16x32_f16 v[0:7], v[8:11], v[16:23], v24\n"
const WmmaRule wmmaRules[] = {
    {"gfx1100", WMMA11, "",
     "v_wmma_f32_16x16x16_f16 v[32:39], v[0:7], v[16:23], v[24:31]", true},
    {"gfx1100", WMMA11, "",
     "v_wmma_f32_16x16x16_f16 v[32:39], v[16:23], v[7:14], v[24:31]", true},
    {"gfx1100", WMMA11, "s_mov_b32 s4, 0\n",
     "v_wmma_f32_16x16x16_f16 v[32:39], v[0:7], v[16:23], v[24:31]", true},
    {"gfx1100", WMMA11, "v_nop\n",
     "v_wmma_f32_16x16x16_f16 v[32:39], v[0:7], v[16:23], v[24:31]", false},
    {"gfx1100", WMMA11,
     "v_wmma_f32_16x16x16_f16 v[32:39], v[8:15], v[16:23], v[24:31]\n",
     "v_wmma_f32_16x16x16_f16 v[24:31], v[0:7], v[16:23], v[24:31]", false},
    {"gfx1100", WMMA11, "",
     "v_wmma_f32_16x16x16_f16 v[32:39], v[8:15], v[16:23], v[0:7]", false},
    {"gfx1151", WMMA11, "",
     "v_wmma_f32_16x16x16_f16 v[32:39], v[0:7], v[16:23], v[24:31]", true},
    {"gfx1201", WMMA12, "",
     "v_wmma_f32_16x16x16_f16 v[32:39], v[4:7], v[16:19], v[24:31]", true},
    {"gfx1201", WMMA12, "v_mov_b32 v33, 0\n",
     "v_wmma_f32_16x16x16_f16 v[32:39], v[4:7], v[16:19], v[24:31]", false},
    {"gfx1201", WMMA12, "",
     "v_swmmac_f32_16x16x32_f16 v[24:31], v[8:11], v[16:23], v7", true},
    {"gfx1201", SWMMAC, "",
     "v_wmma_f32_16x16x16_f16 v[32:39], v[8:11], v[0:3], v[24:31]", true},
    {"gfx1201", SWMMAC, "",
     "v_swmmac_f32_16x16x32_f16 v[0:7], v[8:11], v[16:23], v24", false},
    // These are interlocked.
    {"gfx1201", WMMA12, "", "v_mov_b32 v33, v0", false},
    {"gfx1201", "v_mov_b32 v4, 0\n", "",
     "v_wmma_f32_16x16x16_f16 v[32:39], v[4:7], v[16:19], v[24:31]", false},
};

TEST(HazardsMore, WmmaReadsTheOneBefore) {
  for (const WmmaRule &r : wmmaRules) {
    std::string e =
        runAssembly(r.chip, std::string(r.first) + r.between + r.second,
                    CheckHazards, {32, 1, 1});
    if (r.hazard)
      EXPECT_TRUE(contains(e, "is read by a matrix instruction right after"))
          << r.chip << " " << r.second << " " << e;
    else
      EXPECT_EQ(e, "") << r.chip << " " << r.second;
  }
}

} // namespace
