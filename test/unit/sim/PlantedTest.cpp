//===- PlantedTest.cpp - every check reports a planted bug ----------------===//
//
// A check is a place in lib/Sim that ends the launch with a report (a call of
// Wave::fault). Bugs for the checks that no other test covers are planted here;
// at the end of a whole run the sources are searched for such places, and the
// text of each must have been reported by some instruction, of as many
// instructions as places say the same.
//
//===----------------------------------------------------------------------===//
#include "Assembly.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include <filesystem>

using namespace greta::sim;
using namespace greta::sim::test;
using llvm::StringRef;

namespace {

//===- planted ------------------------------------------------------------===//

struct Bug {
  const char *name, *chip;
  const char *bug, *twin; ///< one line that is wrong, and right
  const char *rest;       ///< around it, at '%'
  const char *report;
  unsigned waves = 1;
  unsigned checks = CheckNone;
};
const Bug bugs[] = {
    // Every wave waits for a signal that it has not given itself.
    {"deadlock", "gfx1201", "", "s_barrier_signal -1\n", "%s_barrier_wait -1",
     "deadlock: the wave waits at a barrier", 2},
    {"scratchBounds", "gfx942", "scratch_load_dword v1, off, off\n", "",
     "%s_nop 0", "scratch access at byte 0 is outside the work item's 0 bytes"},
    {"globalAtomic", "gfx942", "2", "4",
     "s_load_dwordx2 s[2:3], s[0:1], 0x0\nv_mov_b32 v1, %\nv_mov_b32 v2, 1\n"
     "s_waitcnt lgkmcnt(0)\nglobal_atomic_add v1, v2, s[2:3]",
     "misaligned atomic at 0x"},
    {"bufferAtomic", "gfx942", "6", "8",
     "s_load_dwordx2 s[4:5], s[0:1], 0x0\nv_mov_b32 v1, %\nv_mov_b32 v2, 1\n"
     "s_mov_b32 s6, 64\ns_mov_b32 s7, 0x27000\ns_waitcnt lgkmcnt(0)\n"
     "buffer_atomic_add v2, v1, s[4:7], 0 offen",
     "misaligned buffer atomic at 0x"},
    {"scratchAtomic", "gfx942", "src_private_base", "s[2:3]",
     "s_load_dwordx2 s[2:3], s[0:1], 0x0\nv_mov_b32 v4, 1\n"
     "s_waitcnt lgkmcnt(0)\ns_mov_b64 s[6:7], %\nv_mov_b32 v2, s6\n"
     "v_mov_b32 v3, s7\nflat_atomic_add v[2:3], v4",
     "atomic on scratch memory"},
    {"transposedLoad", "gfx1201", "s_mov_b32 exec_lo, 0xffff\n", "",
     "s_load_b64 s[2:3], s[0:1], 0x0\nv_mov_b32 v1, 0\ns_wait_kmcnt 0x0\n"
     "%global_load_tr_b64 v[2:3], v1, s[2:3]",
     "a transposed load needs all lanes active"},
    {"transposedRead", "gfx950", "s_mov_b32 exec_lo, 0xffff\n", "",
     "v_mov_b32 v1, 0\n%ds_read_b64_tr_b16 v[2:3], v1",
     "a transposed read needs all lanes active"},
    {"movrels", "gfx1100", "510", "3", "s_mov_b32 m0, %\nv_movrels_b32 v1, v8",
     "M0 points outside the vector"},
    {"swaprel", "gfx1100", "250", "3", "s_mov_b32 m0, %\nv_swaprel_b32 v1, v8",
     "M0 points outside the vector"},
    {"indexed", "gfx942", "250", "3",
     "s_mov_b32 s4, %\ns_set_gpr_idx_on s4, gpr_idx(SRC0)\n"
     "v_mov_b32 v1, v8\ns_set_gpr_idx_off",
     "M0 points outside the vector"},
    {"indexedDpp", "gfx942", "v_mov_b32_dpp v1, v8 row_shr:1\n",
     "v_mov_b32 v1, v8\n",
     "s_mov_b32 s4, 3\ns_set_gpr_idx_on s4, gpr_idx(SRC0)\n%"
     "s_set_gpr_idx_off",
     "VGPR indexing of DPP and SDWA"},
    {"indexedBranch", "gfx942", "s_branch 0\n", "",
     "s_mov_b32 s4, 3\ns_set_gpr_idx_on s4, gpr_idx(SRC0)\n%"
     "s_set_gpr_idx_off",
     "a branch between s_set_gpr_idx_on"},
    {"scalarMovrels", "gfx942", "100", "3",
     "s_mov_b32 m0, %\ns_movrels_b32 s4, s8", "M0 points outside the scalar"},
    {"scalarMovrelsd", "gfx1100", "0x6e0000", "3",
     "s_mov_b32 m0, %\ns_movrelsd_2_b32 s4, s8",
     "M0 points outside the scalar"},
    {"trap", "gfx942", "s_trap 2\n", "", "%s_nop 0", "s_trap 2"},
    {"namedSignal", "gfx1201", "1", "-1", "s_barrier_signal %",
     "only the workgroup barrier (-1)"},
    {"namedSignalFirst", "gfx1201", "1", "-1", "s_barrier_signal_isfirst %",
     "only the workgroup barrier (-1)"},
    {"namedWait", "gfx1201", "1", "-1", "s_barrier_signal -1\ns_barrier_wait %",
     "only the workgroup barrier (-1)"},
    {"namedState", "gfx1201", "1", "-1", "s_get_barrier_state s4, %",
     "only the workgroup barrier (-1)"},
    {"readRegister", "gfx942", "HW_REG_LDS_ALLOC", "HW_REG_MODE",
     "s_getreg_b32 s4, hwreg(%)", "does not have this hardware register"},
    {"readBits", "gfx942", "0, 32", "9, 2",
     "s_getreg_b32 s4, hwreg(HW_REG_STATUS, %)", "does not have these bits"},
    {"writeRegister", "gfx942", "HW_REG_STATUS", "HW_REG_MODE",
     "s_setreg_imm32_b32 hwreg(%, 0, 2), 0",
     "does not have this hardware register"},
    {"writeStatePriv", "gfx1201", "HW_REG_WAVE_STATE_PRIV", "HW_REG_WAVE_MODE",
     "s_setreg_imm32_b32 hwreg(%, 0, 2), 0", "only trap handlers may write"},
    {"wmmaHalves", "gfx1100", "v_mov_b32 v7, v0\n", "v_mov_b32 v7, 0\n",
     "v_mov_b32 v0, v0\nv_mov_b32 v1, 0\nv_mov_b32 v2, 0\nv_mov_b32 v3, 0\n"
     "v_mov_b32 v4, 0\nv_mov_b32 v5, 0\nv_mov_b32 v6, 0\n%v_mov_b32 v8, 0\n"
     "v_wmma_f32_16x16x16_f16 v[16:23], v[1:8], v[1:8], 0",
     "lanes 16 and up do not repeat lanes 0 to 15", 1, CheckBounds},
    {"matrixFormat", "gfx950", "5", "0",
     "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], 0 cbsz:%",
     "unknown matrix format"},
    {"scaledFormat", "gfx950", "5", "0",
     "v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], 0, v20, v20 "
     "op_sel_hi:[0,0,0] cbsz:%",
     "unknown matrix format"},
};

class Planted : public testing::TestWithParam<Bug> {};

TEST_P(Planted, BugAndTwin) {
  const Bug &b = GetParam();
  std::vector<AssemblyKernel> kernels;
  for (const char *line : {b.bug, b.twin}) {
    std::string body = b.rest;
    body.replace(body.find('%'), 1, line);
    kernels.push_back({line == b.bug ? "bug" : "twin", body});
  }
  unsigned lanes = isWave64(b.chip) ? 64 : 32;
  std::vector<std::string> reports =
      runAssembly(b.chip, kernels, b.checks, {b.waves * lanes, 1, 1}, "40");
  EXPECT_TRUE(contains(reports[0], b.report)) << reports[0];
  EXPECT_EQ(reports[1], "");
}

INSTANTIATE_TEST_SUITE_P(All, Planted, testing::ValuesIn(bugs),
                         [](const auto &info) { return info.param.name; });

// The same instruction, in the wave size nobody has published it for.
TEST(PlantedMore, TransposedLoadOfWave64) {
  Bench b("gfx1201", R"(
kernel void k(global int *o) {
  *o = __builtin_amdgcn_global_load_tr_b64_i32(o);
})",
          "cl", "-O2 -mwavefrontsize64");
  std::string e =
      b.arg(b.buffer<int>(64)).launch({1, 1, 1}, {64, 1, 1}, CheckNone);
  EXPECT_TRUE(contains(e, "what transposed loads do in wave64")) << e;
}

//===- complete -----------------------------------------------------------===//

/// The text from an opening parenthesis to its partner.
StringRef argumentsOf(StringRef code) {
  int depth = 0;
  bool quoted = false;
  for (size_t k = 0; k < code.size(); ++k) {
    if (code[k] == '"' && code[k - 1] != '\\')
      quoted = !quoted;
    else if (!quoted)
      depth += (code[k] == '(') - (code[k] == ')');
    if (!depth)
      return code.take_front(k);
  }
  return code;
}

/// The longest string among arguments; parts in a row are one.
std::string longestText(StringRef arguments) {
  std::string longest, now;
  while (true) {
    auto [before, rest] = arguments.split('"');
    if (!before.trim().empty()) {
      longest = std::max(longest, now, [](const auto &a, const auto &b) {
        return a.size() < b.size();
      });
      now.clear();
    }
    if (rest.empty())
      return longest;
    auto [text, behind] = rest.split('"');
    now += text;
    arguments = behind.empty() ? StringRef(")") : behind;
  }
}

/// The reports that the simulator's sources make, each with its places.
std::map<std::string, std::vector<std::string>> placesOfReports() {
  std::map<std::string, std::vector<std::string>> places;
  for (const auto &file :
       std::filesystem::recursive_directory_iterator(GRETA_SIM_SOURCES)) {
    std::string name = file.path().filename().string();
    if (file.path().extension() != ".cpp")
      continue;
    std::ifstream in(file.path());
    std::string text((std::istreambuf_iterator<char>(in)), {});
    for (size_t at = 0; (at = text.find("fault(", at)) != std::string::npos;
         ++at) {
      if (llvm::isAlnum(text[at - 1]) ||
          StringRef(text).take_front(at).ends_with("Wave::"))
        continue; // another name, or the definition
      std::string report =
          longestText(argumentsOf(StringRef(text).drop_front(at + 5)));
      places[report].push_back(
          name + ":" +
          std::to_string(
              std::count(text.begin(), text.begin() + long(at), '\n') + 1));
    }
  }
  return places;
}

class EveryCheck : public testing::Environment {
  void TearDown() override {
    const testing::UnitTest &all = *testing::UnitTest::GetInstance();
    if (all.test_to_run_count() < all.total_test_count())
      return;
    auto places = placesOfReports();
    EXPECT_GT(places.size(), 25u);
    for (const auto &[text, where] : places) {
      std::set<std::string> instructions;
      for (const std::string &report : allReports()) {
        StringRef line(report);
        if (line.contains(text))
          instructions.insert(line.split("instruction at 0x")
                                  .second.split('\'')
                                  .second.split(' ')
                                  .first.str());
      }
      EXPECT_GE(instructions.size(), where.size())
          << "no planted bug for \"" << text << "\" of "
          << llvm::join(where, ", ");
    }
  }
};
[[maybe_unused]] testing::Environment *const everyCheck =
    testing::AddGlobalTestEnvironment(new EveryCheck);

} // namespace
