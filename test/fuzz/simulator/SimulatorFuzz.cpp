//===- CodeObjectFuzz.cpp - libFuzzer over loader, decoder, execution -----===//
//
// A code object is loaded and its kernels run, one workgroup each, with all
// checks and a small instruction budget: whatever the code does must end, in an
// error or well. Anything else is machine code for the chip its first byte
// names, which is decoded and bound.
//
//===----------------------------------------------------------------------===//
#include "Chip.h"
#include "Code/Program.h"
#include "greta/Sim/Simulator.h"
#include <cstring>
#include <map>
#include <memory>

using namespace greta::sim;

static void loadAndRun(llvm::ArrayRef<uint8_t> bytes) {
  auto chip = chipOfCodeObject(bytes);
  if (!chip)
    return llvm::consumeError(chip.takeError());
  auto device = llvm::cantFail(Device::create(*chip));
  auto module = device->load(bytes);
  if (!module)
    return llvm::consumeError(module.takeError());
  void *buffer = device->allocate(4096);
  std::memset(buffer, 0, 4096);
  for (const Kernel &kernel : (*module)->kernels()) {
    std::vector<uint8_t> arguments(kernel.info().explicitKernargBytes);
    for (size_t at = 0; at + 8 <= arguments.size(); at += 8)
      std::memcpy(&arguments[at], &buffer, 8);
    LaunchConfig config;
    config.grid = {1, 1, 1};
    config.block = {std::min(kernel.info().maxWorkgroupSize, 64u), 1, 1};
    config.kernarg = arguments;
    config.checks = CheckAll;
    config.threads = 1;
    config.instructionBudget = 1000;
    llvm::consumeError(device->launch(kernel, config));
  }
}

static void decodeText(llvm::ArrayRef<uint8_t> bytes) {
  if (bytes.empty())
    return;
  const Chip &chip = chips()[bytes[0] % chips().size()];
  bool wave32 = !chip.isGfx9() && !(bytes[0] & 0x80);
  Program program(chip, bytes.drop_front(), 0);
  llvm::cantFail(program.prepare(wave32));
  if (!program.size())
    __builtin_trap();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::ArrayRef<uint8_t> bytes(data, size);
  if (size >= 4 && !std::memcmp(data,
                                "\x7f"
                                "ELF",
                                4))
    loadAndRun(bytes);
  else
    decodeText(bytes);
  return 0;
}
