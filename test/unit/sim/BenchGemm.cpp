//===- BenchGemm.cpp - speed of the simulator on an MFMA GEMM -------------===//
//
// greta-sim-bench GEMM.cl [repetitions]: compiles the kernel for gfx942 with
// waves of 64x64 and of 32x32, checks 512^3 against double once, then prints
// the median time of a launch on one thread with the checks off and on.
//
//===----------------------------------------------------------------------===//
#include "Compile.h"
#include "greta/Sim/Simulator.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>

using namespace greta::sim;

/// Measures waves of `tiles` x `tiles` matrix instructions; false on an error.
static bool measure(const std::string &source, unsigned tiles,
                    int repetitions) {
  llvm::ExitOnError exitOnError("greta-sim-bench: ");
  std::vector<uint8_t> code = compileKernel(
      "gfx942", source, "cl", "-O3 -DTILES=" + std::to_string(tiles));
  if (code.empty())
    return false;
  constexpr unsigned n = 512;
  auto device = exitOnError(Device::create("gfx942"));
  auto module = exitOnError(device->load(code));
  const Kernel *kernel = module->find("gemm");
  if (!kernel) {
    llvm::errs() << "greta-sim-bench: no kernel 'gemm'\n";
    return false;
  }
  auto *a = static_cast<_Float16 *>(device->allocate(n * n * 2));
  auto *b = static_cast<_Float16 *>(device->allocate(n * n * 2));
  auto *c = static_cast<float *>(device->allocate(n * n * 4));
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (unsigned k = 0; k < n * n; ++k) {
    a[k] = _Float16(normal(random));
    b[k] = _Float16(normal(random));
  }
  struct {
    void *a, *b, *c;
    uint32_t n, k;
  } args = {a, b, c, n, n};
  LaunchConfig config;
  LaunchStats stats;
  config.grid = {n / (64 * tiles), n / (64 * tiles), 1};
  config.block = {256, 1, 1};
  config.kernarg =
      llvm::ArrayRef<uint8_t>(reinterpret_cast<uint8_t *>(&args), sizeof(args));
  config.threads = 1;
  config.stats = &stats;
  exitOnError(device->launch(*kernel, config));
  config.stats = nullptr;
  for (unsigned i = 0; i < n; i += 37)
    for (unsigned j = 0; j < n; j += 41) {
      double sum = 0;
      for (unsigned k = 0; k < n; ++k)
        sum += double(a[i * n + k]) * double(b[j * n + k]);
      if (!(std::fabs(sum - c[i * n + j]) < 1e-3)) {
        llvm::errs() << "greta-sim-bench: wrong result at " << i << "," << j
                     << "\n";
        return false;
      }
    }
  for (unsigned checks : {unsigned(CheckNone), unsigned(CheckAll)}) {
    config.checks = checks;
    std::vector<double> times;
    for (int r = 0; r < repetitions; ++r) {
      auto start = std::chrono::steady_clock::now();
      exitOnError(device->launch(*kernel, config));
      times.push_back(std::chrono::duration<double, std::milli>(
                          std::chrono::steady_clock::now() - start)
                          .count());
    }
    std::sort(times.begin(), times.end());
    llvm::outs() << (checks ? "checks on" : "checks off") << ",512,"
                 << stats.instructions << ","
                 << llvm::formatv("{0:f2},{1:f2},{2:f2}\n", times.front(),
                                  times[times.size() / 2], times.back());
  }
  return true;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    llvm::errs() << "usage: greta-sim-bench GEMM.cl [repetitions]\n";
    return 1;
  }
  std::ifstream file(argv[1]);
  std::string source((std::istreambuf_iterator<char>(file)), {});
  int repetitions = argc > 2 ? std::max(1, std::atoi(argv[2])) : 7;
  return measure(source, 2, repetitions) && measure(source, 1, repetitions) ? 0
                                                                            : 1;
}
