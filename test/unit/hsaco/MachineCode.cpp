//===- MachineCode.cpp - LLVM's machine code through passes ---------------===//

#include "MachineCode.h"
#include "llvm/CodeGen/MIRParser/MIRParser.h"
#include "llvm/CodeGen/MachineModuleInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/InitializePasses.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/PassRegistry.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Target/TargetMachine.h"
#include <gtest/gtest.h>

extern "C" {
void LLVMInitializeAMDGPUTargetInfo();
void LLVMInitializeAMDGPUTarget();
void LLVMInitializeAMDGPUTargetMC();
}

using namespace llvm;

void runPasses(StringRef chip, const std::string &text,
               const std::function<void(legacy::PassManager &)> &add) {
  LLVMInitializeAMDGPUTargetInfo();
  LLVMInitializeAMDGPUTarget();
  LLVMInitializeAMDGPUTargetMC();
  initializeCodeGen(*PassRegistry::getPassRegistry());
  Triple triple("amdgcn-amd-amdhsa");
  std::string error;
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  std::unique_ptr<TargetMachine> machine(target->createTargetMachine(
      triple, chip, "", TargetOptions(), Reloc::PIC_));
  LLVMContext context;
  std::unique_ptr<MIRParser> parser = createMIRParser(
      MemoryBuffer::getMemBufferCopy("---\nname: f\n" + text + "...\n"),
      context);
  std::unique_ptr<Module> module = parser->parseIRModule();
  module->setTargetTriple(triple);
  module->setDataLayout(machine->createDataLayout());
  auto *functions = new MachineModuleInfoWrapperPass(machine.get());
  EXPECT_FALSE(parser->parseMachineFunctions(*module, functions->getMMI()));
  legacy::PassManager passes;
  passes.add(functions);
  add(passes);
  passes.run(*module);
}
