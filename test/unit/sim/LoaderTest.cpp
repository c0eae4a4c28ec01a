//===- LoaderTest.cpp - code objects, good, wrong and mutated -------------===//
#include "SimTest.h"
#include <random>

using namespace greta::sim;
using namespace greta::sim::test;

namespace {

const char source[] = R"(
constant int table[4] = {10, 20, 30, 40};
__attribute__((reqd_work_group_size(64, 1, 1)))
kernel void k(global int *o, int n) {
  local int t[64];
  uint i = __builtin_amdgcn_workitem_id_x();
  t[i] = i;
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
  int sum = 0;
  for (int j = 0; j < n; ++j)
    sum += t[(i + j) & 63] + table[j & 3];
  o[i] = sum;
})";

std::vector<uint8_t> object(const std::string &chip,
                            const char *flags = "-O2") {
  static std::map<std::string, std::vector<uint8_t>> cache;
  auto &o = cache[chip + flags];
  if (o.empty())
    o = compileKernel(chip, source, "cl", flags);
  return o;
}
std::string loadError(const std::string &chip, llvm::ArrayRef<uint8_t> bytes) {
  auto device = llvm::cantFail(Device::create(chip));
  auto m = device->load(bytes);
  return m ? "" : llvm::toString(m.takeError());
}
bool contains(const std::string &s, const char *part) {
  return s.find(part) != std::string::npos;
}

TEST(Loader, ReadsKernelInfo) {
  for (const char *flags :
       {"-O2 -mcode-object-version=5", "-O2 -mcode-object-version=6"}) {
    auto device = llvm::cantFail(Device::create("gfx942"));
    auto m = device->load(object("gfx942", flags));
    ASSERT_TRUE(bool(m)) << llvm::toString(m.takeError());
    const Kernel *k = (*m)->find("k");
    ASSERT_TRUE(k);
    EXPECT_EQ(k->info().ldsBytes, 256u);
    EXPECT_EQ(k->info().waveSize, 64u);
    EXPECT_EQ(k->info().explicitKernargBytes, 12u);
    ASSERT_GE(k->info().args.size(), 2u);
    EXPECT_EQ(k->info().args[1].offset, 8u);
  }
}

// AMD's assembly leaves the descriptor's size at zero: unspecified.
TEST(Loader, ArgumentBytesOfTheMetadata) {
  auto bytes = object("gfx942");
  auto device = llvm::cantFail(Device::create("gfx942"));
  uint32_t size =
      llvm::cantFail(device->load(bytes))->find("k")->info().kernargBytes;
  // group_segment_fixed_size 256, private_segment_fixed_size 0, kernarg_size
  const uint32_t descriptor[] = {256, 0, size};
  auto at = std::search(bytes.begin(), bytes.end(),
                        reinterpret_cast<const uint8_t *>(descriptor),
                        reinterpret_cast<const uint8_t *>(descriptor + 3));
  ASSERT_NE(at, bytes.end());
  std::fill(at + 8, at + 12, uint8_t(0));
  auto m = device->load(bytes);
  ASSERT_TRUE(bool(m)) << llvm::toString(m.takeError());
  EXPECT_EQ((*m)->find("k")->info().kernargBytes, size);
}

TEST(Loader, RefusesWhatItCannotRun) {
  auto good = object("gfx942");
  EXPECT_TRUE(contains(loadError("gfx1100", good),
                       "is for gfx942, this device is gfx1100"));
  EXPECT_TRUE(contains(loadError("gfx942", {}), "no ELF header"));
  std::string bundle = "CCOB....";
  EXPECT_TRUE(contains(
      loadError("gfx942", llvm::ArrayRef<uint8_t>(
                              reinterpret_cast<const uint8_t *>(bundle.data()),
                              bundle.size())),
      "unbundle"));
  auto device = Device::create("gfx900");
  ASSERT_FALSE(bool(device));
  EXPECT_TRUE(
      contains(llvm::toString(device.takeError()), "has no chip 'gfx900'"));
  auto relocatable = compileKernel("gfx942", source, "cl", "-O2 -c");
  EXPECT_TRUE(contains(loadError("gfx942", relocatable), "not linked"));
}

TEST(Loader, TooFewArgumentBytes) {
  Bench b("gfx942", source);
  EXPECT_TRUE(contains(b.arg(uint64_t(0)).launch({1, 1, 1}, {64, 1, 1}),
                       "8 bytes of arguments given, 12 needed"));
}

TEST(Loader, KernelsNeedNoArguments) {
  Bench b("gfx942", "kernel void k() {}");
  EXPECT_EQ(b.launch({1, 1, 1}, {64, 1, 1}), "");
}

TEST(Loader, EveryTruncationIsAnError) {
  auto good = object("gfx1100");
  for (size_t n = 0; n < good.size(); n += 97)
    EXPECT_NE(loadError("gfx1100", llvm::ArrayRef<uint8_t>(good.data(), n)), "")
        << n;
}

/// Every word of the ELF, program and section headers, the notes and kernel
/// descriptors in turn says something extreme: an error of one line, or a
/// module whose every kernel lies inside it.
TEST(Loader, EveryWordOfItsTables) {
  for (const char *chip : {"gfx942", "gfx1100"}) {
    std::vector<uint8_t> good = object(chip);
    ASSERT_GT(good.size(), 1024u);
    auto device = llvm::cantFail(Device::create(chip));
    auto word = [&](size_t at) {
      uint64_t x;
      std::memcpy(&x, &good[at], 8);
      return x;
    };
    size_t sections = word(0x28), refused = 0, tried = 0;
    auto damage = [&](size_t at, uint64_t x, unsigned bytes) {
      std::vector<uint8_t> bad = good;
      std::memcpy(&bad[at], &x, bytes);
      auto m = device->load(bad);
      ++tried;
      if (m)
        return;
      ++refused;
      std::string text = llvm::toString(m.takeError());
      EXPECT_FALSE(text.empty() || contains(text, "\n")) << at << ": " << text;
    };
    for (size_t at = 0; at + 8 <= good.size(); at += 4)
      if (at < 1024 || at >= sections)
        for (uint64_t x :
             {uint64_t(0), uint64_t(1), uint64_t(good.size() + 1), word(at) + 1,
              uint64_t(1) << 31, ~uint64_t(0), ~uint64_t(0) / 2, ~word(at)}) {
          damage(at, x, 4);
          if (at % 8 == 0)
            damage(at, x, 8);
        }
    EXPECT_GT(refused, tried / 6);
    EXPECT_LT(refused, tried);
  }
}

/// Random damage must give an error or a run that ends: no crash, no hang. The
/// sanitizer build runs this too.
TEST(Loader, SurvivesMutations) {
  for (const char *chip : {"gfx90a", "gfx1201"}) {
    auto good = object(chip);
    ASSERT_FALSE(good.empty());
    auto device = llvm::cantFail(Device::create(chip));
    std::mt19937 random(3);
    int loaded = 0, ran = 0;
    for (int round = 0; round < 800; ++round) {
      std::vector<uint8_t> bytes = good;
      int changes = 1 + int(random() % 4);
      for (int c = 0; c < changes; ++c) {
        // Half of the damage goes to the headers, the note and the descriptor.
        size_t at = random() % 2
                        ? random() % bytes.size()
                        : random() % std::min<size_t>(bytes.size(), 2048);
        bytes[at] = random() % 3 ? uint8_t(1u << random() % 8 ^ bytes[at])
                                 : uint8_t(random());
      }
      auto m = device->load(bytes);
      if (!m) {
        llvm::consumeError(m.takeError());
        continue;
      }
      ++loaded;
      for (const Kernel &k : (*m)->kernels()) {
        std::vector<uint8_t> args(
            std::min<uint32_t>(k.info().explicitKernargBytes + 8, 4096));
        void *out = device->allocate(256);
        std::memcpy(args.data(), &out, 8);
        LaunchConfig config;
        config.block = {64, 1, 1};
        config.kernarg = args;
        config.instructionBudget = 20000;
        config.threads = 1;
        if (llvm::Error e = device->launch(k, config))
          llvm::consumeError(std::move(e));
        else
          ++ran;
        llvm::cantFail(device->free(out));
      }
    }
    EXPECT_GT(loaded, 100);
    EXPECT_GT(ran, 10);
  }
}

} // namespace
