//===- DecodingGuard.h - LLVM's disassembler on untrusted code --*- C++ -*-===//
//
// LLVM's disassembler was not written for code from strangers: a fault in it
// must not end the process. Signal handlers are the process's, so there is one
// guard at a time; what is being decoded waits for the other.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_SIM_DECODINGGUARD_H
#define GRETA_SIM_DECODINGGUARD_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include <mutex>

namespace greta::sim {

class DecodingGuard {
public:
  DecodingGuard();
  ~DecodingGuard();

  /// Runs `work`. Returns false if it faulted while a guard is alive; the state
  /// that it used is then no longer valid.
  static bool survives(llvm::function_ref<void()> work);

private:
  std::unique_lock<std::mutex> lock;
};

} // namespace greta::sim

#endif
