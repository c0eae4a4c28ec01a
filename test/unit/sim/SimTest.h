//===- SimTest.h - launching a kernel in a test -----------------*- C++ -*-===//
#ifndef GRETA_TEST_SIM_SIMTEST_H
#define GRETA_TEST_SIM_SIMTEST_H

#include "Compile.h"
#include "greta/Sim/Simulator.h"
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace greta::sim::test {

/// Every report of this process, for what looks whether each check has made
/// one.
inline std::set<std::string> &allReports() {
  static std::set<std::string> reports;
  return reports;
}

/// A device with one compiled kernel; buffers live as long as it does.
struct Bench {
  std::unique_ptr<Device> device;
  std::shared_ptr<Module> module;
  std::vector<uint8_t> args;
  LaunchConfig config;
  std::vector<std::string> warnings; ///< of the latest launch

  Bench(const std::string &chip, const std::string &source,
        const std::string &language = "cl", const std::string &flags = "-O2") {
    static std::map<std::string, std::vector<uint8_t>> compiled;
    auto &code = compiled[chip + "|" + flags + "|" + source];
    if (code.empty())
      code = compileKernel(chip, source, language, flags);
    auto d = Device::create(chip);
    EXPECT_TRUE(bool(d)) << llvm::toString(d.takeError());
    device = std::move(*d);
    auto m = device->load(code);
    EXPECT_TRUE(bool(m)) << llvm::toString(m.takeError());
    if (m)
      module = std::move(*m);
  }
  template <class T> T *buffer(size_t count, const T *data = nullptr) {
    T *p = static_cast<T *>(device->allocate(count * sizeof(T)));
    if (data)
      std::memcpy(p, data, count * sizeof(T));
    else
      std::memset(static_cast<void *>(p), 0, count * sizeof(T));
    return p;
  }
  template <class T> Bench &arg(T x) {
    args.resize((args.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T));
    const uint8_t *b = reinterpret_cast<const uint8_t *>(&x);
    args.insert(args.end(), b, b + sizeof(T));
    return *this;
  }
  /// Empty when the launch went well, else the report.
  std::string launch(Dim3 grid, Dim3 block, unsigned checks = CheckAll,
                     const char *name = nullptr) {
    if (!module || module->kernels().empty())
      return "no kernel";
    const Kernel *kernel =
        name ? module->find(name) : &module->kernels().front();
    if (!kernel)
      return "no such kernel";
    config.grid = grid;
    config.block = block;
    config.kernarg = args;
    config.checks = checks;
    warnings.clear();
    config.warnings = &warnings;
    if (llvm::Error e = device->launch(*kernel, config))
      return *allReports().insert(llvm::toString(std::move(e))).first;
    return "";
  }
};

inline bool isWave64(const std::string &chip) {
  return chip.rfind("gfx9", 0) == 0;
}

} // namespace greta::sim::test

#endif
