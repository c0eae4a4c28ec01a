//===- MachineCode.h - LLVM's machine code through passes -------*- C++ -*-===//
//
// In: a function as MIR text, and passes. Out: what the passes leave behind.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TEST_HSACO_MACHINECODE_H
#define GRETA_TEST_HSACO_MACHINECODE_H

#include "llvm/ADT/StringRef.h"
#include <functional>
#include <string>

namespace llvm::legacy {
class PassManager;
}

/// Runs the passes that `add` adds over a machine function `f` of a chip.
/// `text` is what follows its name in MIR.
void runPasses(llvm::StringRef chip, const std::string &text,
               const std::function<void(llvm::legacy::PassManager &)> &add);

#endif
