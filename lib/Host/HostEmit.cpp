//===- HostEmit.cpp - the LLVM dialect to a CPU's shared object -----------===//

#include "HostEmit.h"
#include "greta/Link/Lld.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Target/LLVMIR/ModuleTranslation.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;
using namespace greta;

StringRef host::architecture() {
  switch (Triple(sys::getProcessTriple()).getArch()) {
  case Triple::x86_64:
    return "x86-64-v3";
  case Triple::aarch64:
    return "aarch64";
  default:
    return "";
  }
}

static std::unique_ptr<TargetMachine> createMachine(std::string &error) {
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
  // Linux, whatever runs the compiler: lld makes ELF.
  Triple triple(sys::getProcessTriple());
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  // A level that every machine of the last ten years has, not the CPU that
  // happens to compile: packages travel.
  StringRef cpu = triple.getArch() == Triple::aarch64 ? "generic" : "x86-64-v3";
  return std::unique_ptr<TargetMachine>(target->createTargetMachine(
      triple, cpu, /*Features=*/"", TargetOptions(), Reloc::PIC_));
}

/// void entry(void **pointers, const int64_t *symbols)
static void addEntry(Module &module, Function *function, StringRef entry,
                     unsigned pointers, unsigned symbols) {
  LLVMContext &context = module.getContext();
  Type *pointer = PointerType::get(context, 0);
  Type *i64 = Type::getInt64Ty(context);
  function->setLinkage(GlobalValue::InternalLinkage);
  auto *wrapper = Function::Create(
      FunctionType::get(Type::getVoidTy(context), {pointer, pointer}, false),
      GlobalValue::ExternalLinkage, entry, module);
  IRBuilder<> b(BasicBlock::Create(context, "", wrapper));
  SmallVector<Value *> args;
  for (unsigned i = 0; i < pointers; ++i)
    args.push_back(b.CreateLoad(
        pointer, b.CreateConstGEP1_32(pointer, wrapper->getArg(0), i)));
  for (unsigned i = 0; i < symbols; ++i)
    args.push_back(
        b.CreateLoad(i64, b.CreateConstGEP1_32(i64, wrapper->getArg(1), i)));
  b.CreateCall(function, args);
  b.CreateRetVoid();
}

static void optimise(Module &module, TargetMachine &machine) {
  LoopAnalysisManager lam;
  FunctionAnalysisManager fam;
  CGSCCAnalysisManager cgam;
  ModuleAnalysisManager mam;
  PassBuilder builder(&machine);
  builder.registerModuleAnalyses(mam);
  builder.registerCGSCCAnalyses(cgam);
  builder.registerFunctionAnalyses(fam);
  builder.registerLoopAnalyses(lam);
  builder.crossRegisterProxies(lam, fam, cgam, mam);
  builder.buildPerModuleDefaultPipeline(OptimizationLevel::O2).run(module, mam);
}

/// A host object may call libc's memory functions and libm. Anything else, such
/// as a compiler's helper, is in no library that the object names.
static bool isLibrarySymbol(StringRef name) {
  auto known = [](StringRef name) {
    return StringSwitch<bool>(name)
        .Cases({"malloc", "free", "memcpy", "memmove", "memset"}, true)
        .Cases({"exp", "exp2", "expm1", "log", "log2", "log10", "log1p"}, true)
        .Cases({"sin", "cos", "tan", "asin", "acos", "atan", "atan2"}, true)
        .Cases({"sinh", "cosh", "tanh", "asinh", "acosh", "atanh"}, true)
        .Cases({"pow", "sqrt", "cbrt", "erf", "erfc", "fma", "fmod"}, true)
        .Cases({"floor", "ceil", "trunc", "round", "roundeven", "rint"}, true)
        .Cases({"fmin", "fmax", "fminimum", "fmaximum", "sincos"}, true)
        .Default(false);
  };
  return known(name) || (name.consume_back("f") && known(name));
}

static Error checkUndefined(StringRef object) {
  Expected<std::unique_ptr<object::ObjectFile>> file =
      object::ObjectFile::createELFObjectFile(
          MemoryBufferRef(object, "host object"));
  if (!file)
    return file.takeError();
  for (const object::SymbolRef &symbol : (*file)->symbols()) {
    Expected<uint32_t> flags = symbol.getFlags();
    if (!flags)
      return flags.takeError();
    if (!(*flags & object::SymbolRef::SF_Undefined) ||
        (*flags & object::SymbolRef::SF_FormatSpecific))
      continue;
    Expected<StringRef> name = symbol.getName();
    if (!name)
      return name.takeError();
    if (!name->empty() && !isLibrarySymbol(*name))
      return createStringError(
          inconvertibleErrorCode(),
          "the code for the host calls '" + *name +
              "', which is in neither libm nor libc; compute it in f32");
  }
  return Error::success();
}

mlir::FailureOr<std::string> host::emit(mlir::ModuleOp moduleOp,
                                        StringRef function, StringRef entry,
                                        unsigned pointers, unsigned symbols,
                                        const CompileOptions &options) {
  LLVMContext context;
  std::unique_ptr<Module> module =
      mlir::translateModuleToLLVMIR(moduleOp, context, entry);
  if (!module)
    return mlir::failure();
  if (options.artifact == Artifact::Nothing)
    return std::string();
  std::string error;
  std::unique_ptr<TargetMachine> machine = createMachine(error);
  if (!machine) {
    moduleOp.emitError("no code generator for this host: ") << error;
    return mlir::failure();
  }
  module->setTargetTriple(machine->getTargetTriple());
  module->setDataLayout(machine->createDataLayout());
  addEntry(*module, module->getFunction(function), entry, pointers, symbols);
  {
    mlir::TimingScope scope = options.nest("LLVM optimisation");
    optimise(*module, *machine);
  }
  SmallString<0> code;
  raw_svector_ostream os(code);
  if (options.artifact == Artifact::LLVMIR) {
    module->print(os, nullptr);
    return std::string(code);
  }
  bool assembly = options.artifact == Artifact::Assembly;
  {
    mlir::TimingScope scope = options.nest("LLVM code generation");
    legacy::PassManager passes;
    if (machine->addPassesToEmitFile(passes, os, /*DwoOut=*/nullptr,
                                     assembly ? CodeGenFileType::AssemblyFile
                                              : CodeGenFileType::ObjectFile)) {
      moduleOp.emitError("this host's code generator emits no such file");
      return mlir::failure();
    }
    passes.run(*module);
  }
  if (assembly)
    return std::string(code);
  mlir::TimingScope scope = options.nest("link");
  SmallString<0> linked;
  Error failure = checkUndefined(code);
  if (!failure)
    failure = linkShared({StringRef(code)}, LinkKind::Host, linked);
  if (failure) {
    moduleOp.emitError(toString(std::move(failure)));
    return mlir::failure();
  }
  return std::string(linked);
}
