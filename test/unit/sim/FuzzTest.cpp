//===- FuzzTest.cpp - the code object fuzzer for a moment -----------------===//
//
// Part of the sanitizer build only, which has the fuzzer. Seeds are code
// objects and machine code of every chip family.
//
//===----------------------------------------------------------------------===//
#include "Compile.h"
#include "greta/Sim/Simulator.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

namespace {

const char source[] = R"(
kernel void k(global float *o, global const float *x, int n) {
  local float t[64];
  volatile int s[8];
  uint i = __builtin_amdgcn_workitem_id_x();
  s[i & 7] = n;
  t[i & 63] = x[i] * 2.0f + __builtin_sqrtf(x[i + 1]);
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
  for (int j = 0; j < s[i & 3]; ++j)
    o[i] += t[(i + j) & 63] / x[j];
  __hip_atomic_fetch_add((global uint *)o, i, __ATOMIC_RELAXED, 1);
})";

void write(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(Fuzz, CodeObjectsForAMoment) {
  char folder[] = "/tmp/greta-sim-fuzz-XXXXXX";
  ASSERT_TRUE(mkdtemp(folder));
  std::string corpus = folder;
  const char *const chips[] = {"gfx90a",  "gfx942",  "gfx950", "gfx1030",
                               "gfx1100", "gfx1150", "gfx1201"};
  // The fuzzer's number of each chip is its place in the simulator's list.
  const char indices[] = {0, 1, 2, 3, 7, 10};
  for (unsigned k = 0; k < std::size(chips); ++k) {
    std::vector<uint8_t> code = compileKernel(chips[k], source);
    ASSERT_FALSE(code.empty());
    std::string bytes(code.begin(), code.end());
    write(corpus + "/object-" + chips[k], bytes);
    auto file = llvm::cantFail(llvm::object::ObjectFile::createObjectFile(
        llvm::MemoryBufferRef(bytes, "seed")));
    for (const llvm::object::SectionRef &s : file->sections())
      if (llvm::cantFail(s.getName()) == ".text")
        write(corpus + "/text-" + chips[k],
              indices[k] + llvm::cantFail(s.getContents()).str());
  }
  std::string log = corpus + ".log";
  std::string command =
      std::string(GRETA_TEST_FUZZER) +
      " -seed=1 -max_total_time=30 -timeout=20 -max_len=16384 -verbosity=0"
      " -artifact_prefix=" +
      corpus + "- " + corpus + " > " + log + " 2>&1";
  int status = std::system(command.c_str());
  std::ifstream in(log);
  EXPECT_EQ(status, 0) << std::string(std::istreambuf_iterator<char>(in), {});
  std::system(("rm -rf " + corpus + " " + log).c_str());
}

} // namespace
