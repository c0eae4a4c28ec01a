//===- SurveyTest.cpp - which instructions the simulator does not know ----===//
//
// The instructions of each chip are those of LLVM's MC tables. Two questions:
//   names   every mnemonic the assembler has for the chip is bound, or stands
//           below with a reason
//   forms   random words that decode bind as well, whatever operands, modifiers
//           and encodings they have
//
//===----------------------------------------------------------------------===//
#include "Assembler.h"
#include "Code/Program.h"
#include "EveryChip.h"
#include "gtest/gtest.h"
#include <random>

using namespace greta::sim;
using llvm::ArrayRef;
using llvm::StringRef;

namespace {

struct Exception {
  const char *names; ///< separated by spaces; "*" at an end stands for anything
  const char *reason;
};
const Exception unsupported[] = {
    {"image_* tbuffer_* buffer_load_format_* buffer_store_format_* "
     "buffer_load_d16_format_* buffer_store_d16_format_* "
     "buffer_load_d16_hi_format_x buffer_store_d16_hi_format_x",
     "textures and typed buffers"},
    {"exp export v_interp_* lds_param_load ds_param_load lds_direct_load "
     "ds_direct_load s_endpgm_ordered_ps_done s_setkill v_cube* v_mullit_f32 "
     "v_screen_partition_4se_b32",
     "graphics pipeline"},
    {"ds_bvh_stack_*", "ray tracing"},
    {"ds_gws_* ds_ordered_count ds_add_gs_reg_rtn ds_sub_gs_reg_rtn "
     "global_atomic_ordered_add_b64",
     "ordering and memory shared by all workgroups: no compiler for compute "
     "uses it"},
    {"s_scratch_* s_dcache_discard* s_atc_probe*",
     "scalar accesses to scratch, and cache lines given up: neither compilers "
     "nor AMD's assembly have them"},
    {"s_rfe_* s_cbranch_cdbg* s_cbranch_g_fork s_cbranch_i_fork "
     "s_cbranch_join s_subvector_loop_* s_alloc_vgpr",
     "trap handlers, debuggers, register allocation at run time, old control "
     "flow: no compiler emits them"},
    {"s_barrier_init s_barrier_join s_barrier_leave",
     "named barriers, and leaving the workgroup's"},
    {"v_qsad_pk_u16_u8 v_mqsad_*", "sums of differences of video codecs"},
    {"buffer_store_lds_dword", "from LDS to memory: no compiler emits it"},
    {"v_mfma_ld_scale_b32", "first half of v_mfma_scale, decoded with it"},
    {"v_illegal", "the name of an undecodable word"},
    {"v_mul_lo_i32", "another name of v_mul_lo_u32, never printed"},
};

bool matches(StringRef pattern, StringRef name) {
  if (pattern.consume_front("*"))
    return name.ends_with(pattern);
  return pattern.consume_back("*") ? name.starts_with(pattern)
                                   : name == pattern;
}

/// The pattern among `unsupported` that a name matches, or null.
const void *exceptionOf(StringRef name) {
  for (const Exception &e : unsupported) {
    llvm::SmallVector<StringRef, 16> patterns;
    StringRef(e.names).split(patterns, ' ');
    for (StringRef p : patterns)
      if (matches(p, name))
        return p.data();
  }
  return nullptr;
}

class Survey : public testing::TestWithParam<const char *> {};
/// The chips whose instructions differ; LLVM decodes the others like one of
/// them.
class Forms : public Survey {};

TEST_P(Survey, NamesAreBound) {
  std::vector<std::string> names = test::mnemonics(GetParam());
  EXPECT_GT(names.size(), 1100u);
  for (const std::string &n : names) {
    StringRef name = n;
    std::string single = name.consume_front("v_dual_") ? "v_" + name.str() : n;
    if (exceptionOf(n))
      EXPECT_EQ(findOp(n), nullptr) << n << " is listed as unsupported";
    else
      EXPECT_NE(findOp(single), nullptr) << n << " is not bound";
  }
}

/// Text that says the encoding means nothing on any device, or what the
/// simulator leaves out of instructions that it has.
bool isOdd(StringRef line) {
  // Registers past the last one wrap around; LLVM prints them as if they were.
  for (unsigned k = 256; k < 256 + 32; ++k)
    if (line.contains((":" + llvm::Twine(k) + "]").str()))
      return true;
  for (const char *mark :
       {"Invalid", "not supported", "only supports", // LLVM's own remarks
        "src_pops_exiting_wave_id", "lds_direct",    // graphics
        "src_vccz", "src_execz",                     // LLVM never reads them
        " gds", " tfe",                              // see `unsupported`
        "scale_offset",                              // gfx1250 decodes
        "th:TH_ATOMIC_CASCADE", "th:TH_ATOMIC_0x"})  // reserved policies
    if (line.contains(mark))
      return true;
  return false;
}

/// Random words with fields that are often zero, VGPRs or aligned, as many
/// encodings demand.
struct Words {
  std::mt19937 random{1};
  std::vector<uint32_t> pool; ///< few literals: each keeps a row of lanes
  Words() {
    for (unsigned k = 0; k < 2048; ++k)
      pool.push_back(uint32_t(random()));
  }
  void next(unsigned top, unsigned round, uint32_t *w) {
    auto pick = [&] { return pool[random() % pool.size()]; };
    auto bytes = [&] { // each byte is kept or cleared
      uint32_t m = 0;
      for (unsigned k = 0; k < 32; k += 8)
        m |= random() % 2 ? 0xffu << k : 0;
      return m;
    };
    w[0] = top << 16 | uint32_t(random() & 0xffff);
    w[1] = pick();
    w[2] = pick();
    switch (round % 4) {
    case 0:
      break;
    case 1: // VOP3 with three even VGPRs and an even destination
      w[0] &= 0xffff00fe;
      w[1] = (w[1] & 0x7bfdfe) | 0x4020100;
      break;
    case 2:
      w[0] &= 0xffff00ff | bytes();
      w[1] &= bytes();
      break;
    default:
      w[0] = top << 16 | (random() % 2 ? 0x7c : 0);
      w[1] &= bytes() & 0xfefefefe;
      w[2] &= bytes();
    }
    if (random() % 8 == 0) // literal constants in odd places
      w[random() % 2] |= 0xffu << random() % 25;
  }
};

TEST_P(Forms, AreBound) {
  const Chip &chip = *findChip(GetParam());
  bool wave32 = !chip.isGfx9();
  auto decoder = llvm::cantFail(Decoder::create(chip, wave32));
  Program program(chip, {}, 0);
  llvm::cantFail(program.prepare(wave32));
  Binder binder(program);
  Words words;
  std::string line;
  unsigned decoded = 0, shown = 0;
  for (unsigned top = 0; top < 0x10000; ++top) {
    // If the opcode is in the upper half, the words of one opcode are many.
    unsigned rounds = top < 0xb000 ? 1 : top < 0xbe00 ? 4 : 16;
    for (unsigned k = 0; k < rounds; ++k) {
      uint32_t w[4] = {};
      words.next(top, k, w);
      unsigned size = decoder->decode(
          ArrayRef<uint8_t>(reinterpret_cast<uint8_t *>(w), sizeof(w)), 0,
          line);
      if (!size || isOdd(line))
        continue;
      ++decoded;
      Inst i = binder.bind(line, 0, size);
      if (i.op || i.inner)
        continue;
      StringRef name = parseAssembly(line).mnemonic;
      name.consume_back("_dpp");
      if (!name.consume_back("_e64"))
        name.consume_back("_e32");
      if (!exceptionOf(name) && ++shown <= 20)
        ADD_FAILURE() << StringRef(line).trim().str();
    }
  }
  EXPECT_GT(decoded, 60000u);
}

/// A constant that LLVM's decoder takes for something else (Decoder.cpp).
TEST(Decoder, HalfConstantOf255) {
  const uint8_t words[][8] = {{0x01, 0x05, 0x00, 0x6e, 0xff, 0, 0, 0},
                              {0xff, 0x04, 0x00, 0x6e, 0xff, 0, 0, 0},
                              {0x01, 0x05, 0x00, 0x70, 0xff, 0, 0, 0}};
  const char *const lines[] = {"v_fmamk_f16 v0.l, v1.l, 0xff, v2.l",
                               "v_fmamk_f16 v0.l, 0xff, 0xff, v2.l",
                               "v_fmaak_f16 v0.l, v1.l, v2.l, 0xff"};
  for (const char *name : {"gfx1100", "gfx1201"}) {
    auto decoder = llvm::cantFail(Decoder::create(*findChip(name), true));
    for (unsigned i = 0; i < std::size(words); ++i) {
      std::string line;
      EXPECT_EQ(decoder->decode(words[i], 0, line), 8u) << name;
      EXPECT_EQ(StringRef(line).trim(), lines[i]) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Chips, Survey, testing::ValuesIn(test::everyChip()),
                         [](const auto &info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Chips, Forms,
                         testing::Values("gfx90a", "gfx942", "gfx950",
                                         "gfx1030", "gfx1100", "gfx1150",
                                         "gfx1201"),
                         [](const auto &info) { return info.param; });

} // namespace
