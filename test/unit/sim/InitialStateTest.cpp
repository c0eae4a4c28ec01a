//===- InitialStateTest.cpp - what a wave's registers hold at first -------===//
//
// In: kernel descriptors with every combination of the workgroup's ids, its
// size and the work item's ids. Out: scalar registers 2 to 6, the registers of
// RDNA 4 that need no descriptor, and the vector registers, as each wave of a
// launch with a block and a grid of three dimensions finds them.
//
//===----------------------------------------------------------------------===//
#include "Assembly.h"
#include <algorithm>
#include <array>

using namespace greta::sim;
using namespace greta::sim::test;

namespace {

/// The registers behind the kernel's only user SGPRs, the arguments' address.
struct Enabled {
  bool id[3], info;
  unsigned items; ///< ENABLE_VGPR_WORKITEM_ID
};

constexpr unsigned Words = 12; ///< of a lane's record
constexpr uint32_t Unset = 0xfafafafa;

std::string kernelOf(const std::string &chip, const Enabled &e,
                     const std::string &body) {
  bool wave64 = isWave64(chip);
  std::string text =
      ".amdgcn_target \"amdgcn-amd-amdhsa--" + chip +
      "\"\n.text\n.globl k\n.p2align 8\n.type k,@function\nk:\n" + body +
      "\n s_endpgm\n.rodata\n.p2align 6\n.amdhsa_kernel k"
      "\n .amdhsa_next_free_vgpr 32"
      "\n .amdhsa_next_free_sgpr 32"
      "\n .amdhsa_user_sgpr_kernarg_segment_ptr 1"
      "\n .amdhsa_kernarg_size 8";
  for (unsigned d = 0; d < 3; ++d)
    text += std::string("\n .amdhsa_system_sgpr_workgroup_id_") + "xyz"[d] +
            (e.id[d] ? " 1" : " 0");
  text +=
      std::string("\n .amdhsa_system_sgpr_workgroup_info ") +
      (e.info ? "1" : "0") + "\n .amdhsa_system_vgpr_workitem_id " +
      std::to_string(e.items) +
      (wave64 ? "\n .amdhsa_accum_offset 32"
              : "\n .amdhsa_wavefront_size32 1") +
      "\n.end_amdhsa_kernel\n.amdgpu_metadata\n---\namdhsa.version: [1, 2]\n"
      "amdhsa.kernels:\n  - .name: k\n    .symbol: k.kd\n"
      "    .kernarg_segment_size: 8\n    .group_segment_fixed_size: 0\n"
      "    .private_segment_fixed_size: 0\n    .kernarg_segment_align: 8\n"
      "    .wavefront_size: " +
      (wave64 ? "64" : "32") +
      "\n    .sgpr_count: 32\n    .vgpr_count: 32\n"
      "    .max_flat_workgroup_size: 256\n    .args:\n"
      "      - .offset: 0\n        .size: 8\n"
      "        .value_kind: global_buffer\n"
      "        .address_space: global\n";
  return text + "...\n.end_amdgpu_metadata\n";
}

/// Each wave takes a number from the first word of the buffer, and stores what
/// it found at that place behind it.
std::string recordState(const std::string &chip) {
  bool gfx11 = chip.rfind("gfx11", 0) == 0, gfx12 = chip.rfind("gfx12", 0) == 0,
       wave64 = isWave64(chip);
  std::string wait = gfx12 ? "\n s_wait_loadcnt 0\n s_wait_kmcnt 0"
                           : "\n s_waitcnt vmcnt(0) lgkmcnt(0)",
              store = gfx11 || gfx12 ? "\n global_store_b32 "
                                     : "\n global_store_dword ",
              text;
  // Registers 0 to 2 stay as they are; 10 on have what is stored.
  for (unsigned k = 0; k < 6; ++k)
    text += "\n v_mov_b32 v" + std::to_string(10 + k) + ", s" +
            std::to_string(2 + k);
  for (unsigned k = 0; k < 3; ++k)
    text += "\n v_mov_b32 v" + std::to_string(16 + k) + ", " +
            (gfx12 ? "ttmp" + std::to_string(7 + k) : "0");
  for (unsigned k = 0; k < 3; ++k)
    text +=
        "\n v_mov_b32 v" + std::to_string(19 + k) + ", v" + std::to_string(k);
  text += gfx11 || gfx12 ? "\n s_load_b64 s[8:9], s[0:1], 0x0"
                         : "\n s_load_dwordx2 s[8:9], s[0:1], 0x0";
  text += wait;
  text += wave64 ? "\n s_mov_b64 s[12:13], exec\n s_mov_b64 exec, 1"
                 : "\n s_mov_b32 s12, exec_lo\n s_mov_b32 exec_lo, 1";
  text += "\n v_mov_b32 v4, 1\n v_mov_b32 v5, 0\n global_atomic_add";
  text += gfx11 || gfx12 ? "_u32 v6, v5, v4, s[8:9]" : " v6, v5, v4, s[8:9]";
  text += gfx12 ? " th:TH_ATOMIC_RETURN" : chip == "gfx942" ? " sc0" : " glc";
  text += wait + "\n v_readfirstlane_b32 s10, v6";
  text += wave64 ? "\n s_mov_b64 exec, s[12:13]" : "\n s_mov_b32 exec_lo, s12";
  text += "\n v_mbcnt_lo_u32_b32 v7, -1, 0";
  if (wave64)
    text += "\n v_mbcnt_hi_u32_b32 v7, -1, v7";
  // The wave's number times its bytes, and the lane times its.
  text += "\n v_mul_u32_u24 v7, " + std::to_string(4 * Words) +
          ", v7\n s_mul_i32 s10, s10, " +
          std::to_string(4 * Words * (wave64 ? 64 : 32)) +
          (chip[3] == '9' ? "\n v_add_u32 v7, s10, v7"
                          : "\n v_add_nc_u32 v7, s10, v7");
  for (unsigned k = 0; k < Words; ++k)
    text += store + "v7, v" + std::to_string(10 + k) +
            ", s[8:9] offset:" + std::to_string(4 + 4 * k);
  return text;
}

using Record = std::array<uint32_t, Words>;

/// The registers that a lane finds, by the manuals.
Record expected(const std::string &chip, const Enabled &e, Dim3 block,
                const uint32_t (&group)[3], unsigned wave, unsigned waves,
                unsigned item) {
  Record r;
  r.fill(Unset);
  bool gfx12 = chip.rfind("gfx12", 0) == 0;
  unsigned at = 0;
  for (unsigned d = 0; d < 3; ++d)
    if (e.id[d] && !gfx12)
      r[at++] = group[d];
  if (e.info)
    r[at++] = gfx12 ? waves
              : chip == "gfx90a"
                  ? (wave == 0 ? 1u << 31 : 0) | wave << 6 | waves
                  : (wave == 0 ? 1u << 31 : 0) | wave << 20 | waves;
  for (unsigned k = 6; k < 9; ++k)
    r[k] = 0;
  if (gfx12) {
    bool yz = e.id[1] || e.id[2];
    r[6] = yz ? group[1] | group[2] << 16 : Unset;
    r[7] = wave << 25 | (yz ? 1u << 30 : 0);
    r[8] = group[0];
  }
  uint32_t x = item % block.x, y = item / block.x % block.y,
           z = item / block.x / block.y;
  if (chip == "gfx1030") {
    r[9] = x;
    r[10] = e.items > 0 ? y : Unset;
    r[11] = e.items > 1 ? z : Unset;
  } else {
    r[9] = x | (e.items > 0 ? y << 10 : 0) | (e.items > 1 ? z << 20 : 0);
  }
  return r;
}

const char *const chipsHere[] = {"gfx90a", "gfx942", "gfx1030", "gfx1100",
                                 "gfx1201"};

TEST(InitialState, FollowsTheDescriptor) {
  constexpr Dim3 grid{2, 3, 2}, block{8, 4, 4};
  for (const std::string chip : chipsHere)
    for (unsigned bits = 0; bits < 16; ++bits) {
      Enabled e{{bool(bits & 1), bool(bits & 2), bool(bits & 4)},
                bool(bits & 8),
                bits % 3};
      unsigned lanes = isWave64(chip) ? 64 : 32,
               waves = unsigned(block.count()) / lanes,
               items = unsigned(grid.count() * block.count());
      Bench b(chip, kernelOf(chip, e, recordState(chip)), "asm", "");
      uint32_t *out = b.buffer<uint32_t>(1 + size_t(items) * Words);
      ASSERT_EQ(b.arg(out).launch(grid, block, CheckNone), "") << chip;
      std::vector<Record> got(items), want;
      std::memcpy(got.data(), out + 1, items * sizeof(Record));
      for (uint32_t z = 0; z < grid.z; ++z)
        for (uint32_t y = 0; y < grid.y; ++y)
          for (uint32_t x = 0; x < grid.x; ++x)
            for (unsigned item = 0; item < block.count(); ++item)
              want.push_back(expected(chip, e, block, {x, y, z}, item / lanes,
                                      waves, item));
      // Registers that nobody promises may hold anything.
      for (Record &r : got)
        for (unsigned k = 0; k < Words; ++k)
          if (want[0][k] == Unset)
            r[k] = Unset;
      std::sort(got.begin(), got.end());
      std::sort(want.begin(), want.end());
      ASSERT_EQ(got, want) << chip << " " << bits;
    }
}

// A register that the descriptor does not ask for holds what was there before.
TEST(InitialState, OthersAreUninitialised) {
  for (const std::string chip : chipsHere) {
    bool gfx12 = chip.rfind("gfx12", 0) == 0,
         gfx11 = chip.rfind("gfx11", 0) == 0;
    std::string body =
        gfx12   ? "s_load_b64 s[8:9], s[0:1], 0x0\n s_wait_kmcnt 0"
                  "\n v_mov_b32 v3, ttmp7\n v_mov_b32 v4, 0"
                  "\n global_load_b32 v5, v3, s[8:9]"
        : gfx11 ? "s_load_b64 s[8:9], s[0:1], 0x0\n s_waitcnt lgkmcnt(0)"
                  "\n v_mov_b32 v3, s3\n global_load_b32 v5, v3, s[8:9]"
                : "s_load_dwordx2 s[8:9], s[0:1], 0x0\n s_waitcnt lgkmcnt(0)"
                  "\n v_mov_b32 v3, s3\n global_load_dword v5, v3, s[8:9]";
    for (bool hasY : {false, true}) {
      Bench b(chip, kernelOf(chip, {{true, hasY, false}, false, 0}, body),
              "asm", "");
      std::string report =
          b.arg(b.buffer<int>(64)).launch({1, 1, 1}, {32, 1, 1});
      if (hasY)
        EXPECT_EQ(report, "") << chip;
      else
        EXPECT_TRUE(contains(report, "uninitialised v3 is used as an address"))
            << chip << report;
    }
  }
}

} // namespace
