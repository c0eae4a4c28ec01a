//===- Assembly.h - kernels written in assembly -----------------*- C++ -*-===//
#ifndef GRETA_TEST_SIM_ASSEMBLY_H
#define GRETA_TEST_SIM_ASSEMBLY_H

#include "SimTest.h"

namespace greta::sim::test {

struct AssemblyKernel {
  std::string name, body;
};

/// Kernels of one pointer argument, s[0:1] at their start, and 1 KiB of LDS.
inline std::string assembly(const std::string &chip,
                            const std::vector<AssemblyKernel> &kernels,
                            const std::string &vgprs = "40") {
  bool wave64 = isWave64(chip);
  std::string text = ".amdgcn_target \"amdgcn-amd-amdhsa--" + chip + "\"\n",
              metadata = ".amdgpu_metadata\n---\namdhsa.version: [1, 2]\n"
                         "amdhsa.kernels:\n";
  for (const AssemblyKernel &k : kernels) {
    const std::string &n = k.name;
    text += ".text\n.globl " + n + "\n.p2align 8\n.type " + n + ",@function\n" +
            n + ":\n" + k.body +
            "\n s_endpgm\n.rodata\n.p2align 6\n.amdhsa_kernel " + n +
            "\n .amdhsa_next_free_vgpr " + vgprs +
            "\n .amdhsa_next_free_sgpr 16\n"
            " .amdhsa_user_sgpr_kernarg_segment_ptr 1\n"
            " .amdhsa_kernarg_size 8\n"
            " .amdhsa_group_segment_fixed_size 1024\n"
            " .amdhsa_system_vgpr_workitem_id 0\n" +
            (wave64 ? " .amdhsa_accum_offset " + vgprs
                    : std::string(" .amdhsa_wavefront_size32 1")) +
            "\n.end_amdhsa_kernel\n";
    metadata += "  - .name: " + n + "\n    .symbol: " + n +
                ".kd\n    .kernarg_segment_size: 8\n"
                "    .group_segment_fixed_size: 1024\n"
                "    .private_segment_fixed_size: 0\n"
                "    .kernarg_segment_align: 8\n    .wavefront_size: " +
                (wave64 ? "64" : "32") +
                "\n    .sgpr_count: 16\n    .vgpr_count: 40\n"
                "    .max_flat_workgroup_size: 256\n    .args:\n"
                "      - .offset: 0\n        .size: 8\n"
                "        .value_kind: global_buffer\n"
                "        .address_space: global\n";
  }
  return text + metadata + "...\n.end_amdgpu_metadata\n";
}

/// Runs each kernel; empty, or the report, or the first warning.
inline std::vector<std::string>
runAssembly(const std::string &chip, const std::vector<AssemblyKernel> &kernels,
            unsigned checks, Dim3 block, const char *vgprs = "40") {
  Bench b(chip, assembly(chip, kernels, vgprs), "asm", "");
  int *o = b.buffer<int>(256);
  for (int k = 0; k < 256; ++k)
    o[k] = k;
  b.arg(o);
  std::vector<std::string> reports;
  for (const AssemblyKernel &k : kernels) {
    reports.push_back(b.launch({1, 1, 1}, block, checks, k.name.c_str()));
    if (reports.back().empty() && !b.warnings.empty())
      reports.back() = "warning: " + b.warnings[0];
  }
  return reports;
}
inline std::string runAssembly(const std::string &chip, const std::string &body,
                               unsigned checks = CheckAll,
                               Dim3 block = {64, 1, 1},
                               const char *vgprs = "40") {
  return runAssembly(chip, {AssemblyKernel{"k", body}}, checks, block,
                     vgprs)[0];
}

inline bool contains(const std::string &s, const char *part) {
  return s.find(part) != std::string::npos;
}

} // namespace greta::sim::test

#endif
