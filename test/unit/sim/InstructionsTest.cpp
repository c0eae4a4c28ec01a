//===- InstructionsTest.cpp - instruction groups against references -------===//
//
// A table of OpenCL C expressions over three words a, b, c of a work item, each
// with its reference on the host. One code object per chip has a kernel for
// each row; which instructions they become is clang's choice, per chip.
//
//===----------------------------------------------------------------------===//
#include "EveryChip.h"
#include "InstructionRows.h"
#include "SimTest.h"
#include <cmath>
#include <random>

using namespace greta::sim;
using namespace greta::sim::test;

namespace {

bool runsOn(const Row &r, const std::string &chip) {
  return chip.rfind(r.chips, 0) == 0;
}

constexpr int count = 1024;
struct Chip {
  std::unique_ptr<Device> device;
  std::shared_ptr<Module> module;
  u32 *in[3], *out;
};

/// Compiled once per chip: the process keeps it.
Chip &chip(const std::string &name) {
  static std::map<std::string, Chip> chips;
  Chip &c = chips[name];
  if (c.device)
    return c;
  std::string source = prelude;
  for (const Row &r : rows)
    if (runsOn(r, name))
      source += std::string("KERNEL(k_") + r.name + ", " +
                (r.kind == Float ? "float" : "uint") + ", (" + r.expression +
                "))\n";
  auto code = compileKernel(name, source, "cl",
                            "-O2 -ffp-contract=off -fdenormal-fp-math=ieee");
  c.device = llvm::cantFail(Device::create(name));
  auto m = c.device->load(code);
  EXPECT_TRUE(bool(m)) << llvm::toString(m.takeError());
  if (m)
    c.module = std::move(*m);
  static const u32 special[] = {
      0,          1,          2,          3,          0x80000000, 0x7fffffff,
      ~0u,        0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000,
      0x00800000, 0x007fffff, 0x80000001, 0x3c00,     0x7c00,     0x7bff,
      0x0400,     0x03ff,     0x40490fdb, 0x7f7fffff};
  std::mt19937 random(7);
  for (u32 *&p : c.in) {
    p = static_cast<u32 *>(c.device->allocate(count * 4));
    for (int k = 0; k < count; ++k) {
      unsigned how = random() % 4;
      p[k] = how == 0   ? special[random() % std::size(special)]
             : how == 1 ? random()
             : how == 2 ? B(float(i32(random())) * 0x1p-24f)
                        : random() % 64;
    }
  }
  c.out = static_cast<u32 *>(c.device->allocate(count * 4));
  return c;
}

class Instructions
    : public testing::TestWithParam<std::tuple<const char *, int>> {};

TEST_P(Instructions, MatchReference) {
  auto [name, index] = GetParam();
  const Row &r = rows[index];
  Chip &c = chip(name);
  ASSERT_TRUE(c.module);
  const Kernel *k = c.module->find(std::string("k_") + r.name);
  ASSERT_TRUE(k);
  void *args[] = {c.out, c.in[0], c.in[1], c.in[2]};
  LaunchConfig config;
  config.grid = {count / 64, 1, 1};
  config.block = {64, 1, 1};
  config.kernarg =
      llvm::ArrayRef<uint8_t>(reinterpret_cast<uint8_t *>(args), sizeof(args));
  if (llvm::Error e = c.device->launch(*k, config))
    FAIL() << llvm::toString(std::move(e));
  int shown = 0;
  for (int i = 0; i < count && shown < 5; ++i) {
    In in{c.in[0], c.in[1], c.in[2], i, isWave64(name) ? 64 : 32};
    u32 want = r.reference(in), got = c.out[i];
    bool same = got == want;
    if (r.kind == HalfBits)
      same |= (got & 0x7fff) > 0x7c00 && (want & 0x7fff) > 0x7c00;
    if (r.kind == Float) {
      float g = F(got), w = F(want);
      same |= (g != g && w != w) || g == w;
      if (r.ulps && std::isfinite(g) && std::isfinite(w))
        same |= std::fabs(double(g) - w) <=
                r.ulps * std::ldexp(1., std::max(std::ilogb(w), -126) - 23);
    }
    if (!same) {
      ++shown;
      ADD_FAILURE() << r.name << "[" << i << "] a=" << std::hex << in.a()
                    << " b=" << in.b() << " c=" << in.c() << ": got " << got
                    << ", want " << want;
    }
  }
}

std::vector<std::tuple<const char *, int>> cases() {
  std::vector<std::tuple<const char *, int>> all;
  for (const char *name : everyChip())
    for (int k = 0; k < int(std::size(rows)); ++k)
      if (runsOn(rows[k], name))
        all.push_back({name, k});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Chips, Instructions, testing::ValuesIn(cases()),
                         [](const auto &info) {
                           return std::string(std::get<0>(info.param)) + "_" +
                                  rows[std::get<1>(info.param)].name;
                         });

} // namespace
