//===- LoaderFuzz.cpp - libFuzzer over the simulator's module loader ------===//
//
// Whatever the bytes are, loading ends in one diagnostic of one line, or in a
// module whose kernels, arguments and symbols lie inside it. Nothing is decoded
// or run: the simulator's fuzzer does that.
//
//===----------------------------------------------------------------------===//
#include "Code/CodeObject.h"
#include "greta/Sim/Simulator.h"
#include <map>

using namespace greta::sim;

static void expectOneLine(llvm::Error e) {
  std::string text = llvm::toString(std::move(e));
  if (text.empty() || text.find('\n') != std::string::npos)
    __builtin_trap();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::ArrayRef<uint8_t> bytes(data, size);
  llvm::Expected<uint64_t> length =
      objectBytes(bytes.take_front(ObjectHeaderBytes));
  if (!length)
    expectOneLine(length.takeError());
  else if (*length < ObjectHeaderBytes || *length > LargestObject)
    __builtin_trap();
  llvm::Expected<llvm::StringRef> chip = chipOfCodeObject(bytes);
  if (!chip)
    expectOneLine(chip.takeError());
  static std::map<std::string, std::unique_ptr<Device>> devices;
  std::string name = chip ? chip->str() : "gfx942";
  std::unique_ptr<Device> &device = devices[name];
  if (!device)
    device = llvm::cantFail(Device::create(name));
  auto module = device->load(bytes);
  if (!module) {
    expectOneLine(module.takeError());
    return 0;
  }
  for (const Kernel &k : (*module)->kernels()) {
    const KernelInfo &info = k.info();
    if ((*module)->find(info.name) == nullptr ||
        info.explicitKernargBytes > info.kernargBytes)
      __builtin_trap();
    for (const KernelArgument &a : info.args)
      if (a.size > info.kernargBytes || a.offset > info.kernargBytes - a.size)
        __builtin_trap();
    if (auto symbol = (*module)->global(info.name + ".kd")) {
      auto [base, bytes] = device->allocationOf(symbol->first);
      const auto *first = static_cast<const uint8_t *>(base),
                 *at = static_cast<const uint8_t *>(symbol->first);
      if (!first || at + symbol->second > first + bytes)
        __builtin_trap();
    } else {
      llvm::consumeError(symbol.takeError());
    }
  }
  return 0;
}
