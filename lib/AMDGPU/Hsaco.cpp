//===- Hsaco.cpp - a kernel at the lane level to an AMD code object -------===//
//
// greta-tile-to-rocdl, LLVM IR, optimisation, code generation and linking, all
// in process and without device libraries.
//
// Precision. f32 division and square root may be off by 2.5 ulp (the bound
// that OpenCL sets; what LLVM makes of it is within 1 to 1.5): that is
// v_rcp_f32 or v_sqrt_f32 with the exponent taken care of, 8 instructions and
// right for denormals, instead of the 12 with a change of mode of the correctly
// rounded ones. Everything else is IEEE, denormals included.
//
//===----------------------------------------------------------------------===//

#include "greta/AMDGPU/Hsaco.h"
#include "GretaTile/GretaTile.h"
#include "greta/AMDGPU/DualOperands.h"
#include "greta/AMDGPU/TileToROCDL.h"
#include "greta/AMDGPU/WaitStates.h"
#include "greta/AMDGPU/WideDpp.h"
#include "greta/Interface/AccessNotes.h"
#include "greta/Link/Lld.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/ROCDL/ROCDLToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineModuleInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/PassRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_sha1_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <map>
#include <mutex>
#include <set>

extern "C" {
void LLVMInitializeAMDGPUTargetInfo();
void LLVMInitializeAMDGPUTarget();
void LLVMInitializeAMDGPUTargetMC();
void LLVMInitializeAMDGPUAsmPrinter();
}

using namespace mlir;
using namespace greta;

static std::unique_ptr<llvm::TargetMachine> createMachine(const TargetRow &row,
                                                          std::string &error) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTarget();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmPrinter();
  });
  llvm::Triple triple("amdgcn-amd-amdhsa");
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  // On CDNA LLVM 22.1 turns sums of products of bytes that begin at zero into
  // v_dot4c_i32_i8 with an intrinsic's number in place of the zero.
  StringRef features = row.waveSize == 64 ? "-dot7-insts" : "";
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, row.name, features, llvm::TargetOptions(), llvm::Reloc::PIC_,
      std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

/// Converts a kernel, in a module of its own, to the LLVM dialect.
static FailureOr<OwningOpRef<ModuleOp>> lowerKernel(tile::FuncOp kernel,
                                                    const TargetRow &row) {
  MLIRContext *context = kernel.getContext();
  context->loadDialect<cf::ControlFlowDialect, LLVM::LLVMDialect,
                       ROCDL::ROCDLDialect, vector::VectorDialect>();
  OwningOpRef<ModuleOp> module =
      ModuleOp::create(kernel.getLoc(), kernel.getName());
  module->push_back(kernel->clone());
  if (failed(convertTileToROCDL(*module, row.name)) || failed(verify(*module)))
    return failure();
  return module;
}

/// Returns a location without names, and without calls one side of which is not
/// known, since MLIR's pass for debug information takes neither.
static LocationAttr plainLocation(LocationAttr loc) {
  if (auto named = dyn_cast<NameLoc>(loc))
    return plainLocation(named.getChildLoc());
  auto call = dyn_cast<CallSiteLoc>(loc);
  if (!call)
    return loc.findInstanceOf<FileLineColLoc>();
  LocationAttr callee = plainLocation(call.getCallee());
  LocationAttr caller = plainLocation(call.getCaller());
  return callee && caller
             ? LocationAttr(CallSiteLoc::get(callee, Location(caller)))
         : callee ? callee
                  : caller;
}

static LogicalResult addLineTables(ModuleOp module) {
  module.walk([](Operation *op) {
    LocationAttr plain = plainLocation(op->getLoc());
    op->setLoc(plain ? Location(plain) : UnknownLoc::get(op->getContext()));
  });
  PassManager passes(module.getContext());
  passes.addPass(LLVM::createDIScopeForLLVMFuncOpPass());
  return passes.run(module);
}

/// Sets attributes that MLIR cannot express.
static void annotate(llvm::Module &module) {
  module.addModuleFlag(llvm::Module::Error, "amdhsa_code_object_version", 600);
  llvm::MDNode *precision =
      llvm::MDBuilder(module.getContext()).createFPMath(2.5f);
  for (llvm::Function &function : module)
    for (llvm::Instruction &inst : llvm::instructions(function)) {
      if (!inst.getType()->getScalarType()->isFloatTy())
        continue;
      auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&inst);
      if (inst.getOpcode() == llvm::Instruction::FDiv ||
          (call && call->getIntrinsicID() == llvm::Intrinsic::sqrt))
        inst.setMetadata(llvm::LLVMContext::MD_fpmath, precision);
    }
}

/// The extrema of a kernel that may be any number if an operand is NaN, which
/// the flag nnan says at the lane level. In LLVM the flag makes such an
/// extremum, and everything computed from it, poison, so optimisations must not
/// see it. Instruction selection does see it: without the flag operands are
/// made quiet, which takes 1 to 12 instructions in attention's loops. It also
/// takes the extremum itself for a number. Only comparisons with an extremum
/// would show that, and our kernels have none.
class AnyExtrema {
public:
  explicit AnyExtrema(llvm::Module &module) : module(module) {
    forAll([&](llvm::IntrinsicInst &call) {
      if (call.hasNoNaNs()) {
        call.setHasNoNaNs(false);
        call.setMetadata(name, llvm::MDNode::get(module.getContext(), {}));
      }
    });
  }
  ~AnyExtrema() {
    forAll([&](llvm::IntrinsicInst &call) {
      if (call.getMetadata(name)) {
        call.setHasNoNaNs(true);
        call.setMetadata(name, nullptr);
      }
    });
  }

private:
  template <typename VisitorT> void forAll(VisitorT visit) {
    for (llvm::Function &function : module)
      for (llvm::Instruction &inst : llvm::instructions(function))
        if (auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&inst))
          if (call->getIntrinsicID() == llvm::Intrinsic::maxnum ||
              call->getIntrinsicID() == llvm::Intrinsic::minnum)
            visit(*call);
  }

  static constexpr llvm::StringLiteral name = "greta.any";
  llvm::Module &module;
};

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  llvm::ModulePassManager passes =
      builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3);
  AnyExtrema extrema(module);
  passes.run(module, modules);
}

/// Tells the simulator's checks the source line of each access and the
/// arguments through which it reaches memory (AccessNotes.h), beside the line
/// table: debug locations are lost where code generation moves accesses. LLVM
/// writes the addresses of all instructions with the same metadata, and then
/// the number.
static void noteAccesses(llvm::Module &module, StringRef kernel) {
  llvm::LLVMContext &context = module.getContext();
  llvm::MapVector<std::string, std::set<std::string>,
                  std::map<std::string, unsigned>>
      places;
  llvm::MDBuilder builder(context);
  llvm::Function &function = *module.getFunction(kernel);
  // Clauses are bundles, inside of which nothing has an address.
  function.addFnAttr("amdgpu-hard-clause-length-limit", "1");
  for (llvm::Instruction &inst : llvm::instructions(function)) {
    const llvm::DILocation *place = inst.getDebugLoc();
    if (!inst.mayReadOrWriteMemory() || !place || !place->getLine())
      continue;
    SmallVector<const llvm::Value *> objects;
    for (llvm::Value *operand : inst.operands())
      if (operand->getType()->isPointerTy() &&
          !llvm::isa<llvm::Function>(operand))
        llvm::getUnderlyingObjects(operand, objects, nullptr, /*MaxLookup=*/0);
    if (objects.empty())
      continue;
    SmallString<128> file(place->getDirectory());
    llvm::sys::path::append(file, place->getFilename());
    auto [line, isNew] = places.insert({(file + ":" + Twine(place->getLine()) +
                                         ":" + Twine(place->getColumn()))
                                            .str(),
                                        {}});
    for (const llvm::Value *object : objects) {
      auto *argument = llvm::dyn_cast<llvm::Argument>(object);
      line->second.insert(argument ? std::to_string(argument->getArgNo())
                                   : "*");
    }
    uint32_t word = accesses::mark | uint32_t(line - places.begin());
    word |= inst.mayReadFromMemory() ? accesses::reads : 0;
    word |= inst.mayWriteToMemory() ? accesses::writes : 0;
    inst.setMetadata(llvm::LLVMContext::MD_pcsections,
                     builder.createPCSections(
                         {{accesses::pcsName,
                           {llvm::ConstantInt::get(
                               llvm::Type::getInt32Ty(context), word)}}}));
  }
  std::string text;
  for (const auto &[place, arguments] : places)
    text += place + " " + llvm::join(arguments, ",") + "\n";
  llvm::Constant *data = llvm::ConstantDataArray::getString(context, text);
  auto *note = new llvm::GlobalVariable(
      module, data->getType(), /*isConstant=*/true,
      llvm::GlobalValue::ExternalLinkage, data, accesses::notesName, nullptr,
      llvm::GlobalValue::NotThreadLocal, /*AddressSpace=*/4);
  note->setVisibility(llvm::GlobalValue::ProtectedVisibility);
}

/// Does what TargetMachine::addPassesToEmitFile does, with passes of ours, and
/// without one of LLVM's.
static LogicalResult generateCode(llvm::Module &module,
                                  llvm::TargetMachine &machine,
                                  const TargetRow &row,
                                  llvm::CodeGenFileType type,
                                  SmallVectorImpl<char> &output) {
  llvm::raw_svector_ostream os(output);
  llvm::legacy::PassManager passes;
  llvm::TargetPassConfig *config = machine.createPassConfig(passes);
  auto *functions = new llvm::MachineModuleInfoWrapperPass(&machine);
  config->setDisableVerify(true);
  // It sinks loads over barriers, which are no stores to it, and WMMA into the
  // branches of masked stores, where its operands miss the lanes that are
  // masked but which the instruction reads.
  config->disablePass(&llvm::MachineSinkingLegacyID);
  // RDNA's hardware waits by itself.
  if (row.waveSize == 64)
    config->insertPass(&llvm::PostRAHazardRecognizerID, createWaitStatesPass());
  if (row.hasFeature("dual_issue"))
    config->insertPass(&llvm::MachineBlockPlacementID,
                       createDualOperandsPass());
  const llvm::PassInfo *fold =
      llvm::PassRegistry::getPassRegistry()->getPassInfo(
          StringRef("si-fold-operands"));
  if (row.name.starts_with("gfx12") && fold)
    config->insertPass(fold->getTypeInfo(), getWideDppPass());
  passes.add(config);
  passes.add(functions);
  if (config->addISelPasses())
    return failure();
  config->addMachinePasses();
  config->setInitialized();
  if (machine.addAsmPrinter(passes, os, nullptr, type,
                            functions->getMMI().getContext()))
    return failure();
  passes.add(llvm::createFreeMachineFunctionPass());
  passes.run(module);
  return success();
}

/// LLVM's orders of instructions (`amdgpu-sched-strategy`) that are tried where
/// its usual one spills, misses waves or leaves matrix units idle.
static constexpr StringLiteral schedulings[] = {
    "iterative-ilp", "max-memory-clause", "max-ilp", "iterative-minreg"};

namespace {
/// A kernel in LLVM IR. After optimisation, every order of instructions starts
/// from it.
struct LLVMKernel {
  llvm::LLVMContext context;
  /// The backend says here what it cannot do.
  std::string complaint;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::Module> module;
};
} // namespace

static FailureOr<std::unique_ptr<LLVMKernel>>
translateKernel(tile::FuncOp kernel, const TargetRow &row,
                const CompileOptions &options) {
  TimingScope scope = options.nest("convert to LLVM");
  FailureOr<OwningOpRef<ModuleOp>> lowered = lowerKernel(kernel, row);
  if (failed(lowered))
    return failure();
  if (options.lineTables && failed(addLineTables(**lowered)))
    return failure();
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerROCDLDialectTranslation(registry);
  kernel.getContext()->appendDialectRegistry(registry);
  auto result = std::make_unique<LLVMKernel>();
  result->module = translateModuleToLLVMIR(lowered->get(), result->context,
                                           kernel.getName());
  if (!result->module)
    return failure();
  return result;
}

/// Converts a kernel to LLVM IR and optimises that.
static FailureOr<std::unique_ptr<LLVMKernel>>
optimizeKernel(tile::FuncOp kernel, const TargetRow &row,
               const CompileOptions &options) {
  FailureOr<std::unique_ptr<LLVMKernel>> translated =
      translateKernel(kernel, row, options);
  if (failed(translated))
    return failure();
  std::unique_ptr<LLVMKernel> result = std::move(*translated);
  llvm::Module &module = *result->module;
  std::string error;
  result->machine = createMachine(row, error);
  if (!result->machine)
    return kernel.emitError(error);
  module.setTargetTriple(result->machine->getTargetTriple());
  module.setDataLayout(result->machine->createDataLayout());
  annotate(module);
  result->context.setDiagnosticHandlerCallBack(
      [](const llvm::DiagnosticInfo *info, void *text) {
        if (info->getSeverity() != llvm::DS_Error)
          return;
        llvm::raw_string_ostream os(*static_cast<std::string *>(text));
        llvm::DiagnosticPrinterRawOStream printer(os);
        info->print(printer);
      },
      &result->complaint);

  TimingScope scope = options.nest("optimize");
  optimize(module, *result->machine);
  if (options.lineTables)
    noteAccesses(module, kernel.getName());
  return result;
}

/// Compiles in the order `scheduling`; LLVM's usual one if that is empty. The
/// kernel is optimised once, for the first order.
static FailureOr<HsacoKernel>
compileOrdered(tile::FuncOp kernel, const TargetRow &row,
               const CompileOptions &options, StringRef scheduling,
               std::unique_ptr<LLVMKernel> &optimized) {
  if (!optimized) {
    FailureOr<std::unique_ptr<LLVMKernel>> made =
        optimizeKernel(kernel, row, options);
    if (failed(made))
      return failure();
    optimized = std::move(*made);
  }
  HsacoKernel result;
  // Code generation changes the module.
  std::unique_ptr<llvm::Module> module = llvm::CloneModule(*optimized->module);
  if (!scheduling.empty())
    module->getFunction(kernel.getName())
        ->addFnAttr("amdgpu-sched-strategy", scheduling);
  if (options.artifact == Artifact::LLVMIR) {
    llvm::raw_string_ostream(result.object) << *module;
    return result;
  }

  TimingScope scope = options.nest("generate code");
  bool assembly = options.artifact == Artifact::Assembly;
  SmallVector<char, 0> code;
  LogicalResult generated =
      generateCode(*module, *optimized->machine, row,
                   assembly ? llvm::CodeGenFileType::AssemblyFile
                            : llvm::CodeGenFileType::ObjectFile,
                   code);
  std::string complaint = std::exchange(optimized->complaint, {});
  if (failed(generated) || !complaint.empty())
    return kernel.emitError("LLVM failed to generate code for ")
           << row.name << ": " << complaint;
  if (assembly) {
    result.object.assign(code.begin(), code.end());
    return result;
  }

  scope = options.nest("link");
  SmallVector<char, 0> linked;
  StringRef object(code.data(), code.size());
  if (llvm::Error linkError = linkShared(object, LinkKind::Amdgpu, linked))
    return kernel.emitError(llvm::toString(std::move(linkError)));
  result.object.assign(linked.begin(), linked.end());
  llvm::Expected<KernelStats> stats =
      readHsacoStats(result.object, kernel.getName(), row);
  if (!stats)
    return kernel.emitError(llvm::toString(stats.takeError()));
  if (tile::hasOp<tile::MmaOp>(kernel)) {
    scope = options.nest("look at the main loop");
    llvm::Expected<std::optional<LoopStats>> loop =
        readHsacoLoop(result.object, kernel.getName(),
                      kernel.getBlockSize() / row.waveSize, stats->occupancy);
    if (!loop)
      return kernel.emitError(llvm::toString(loop.takeError()));
    stats->loop = *loop;
  }
  result.stats = *stats;
  return result;
}

/// Calls compileOrdered, unless the object is there already.
static FailureOr<HsacoKernel>
emitOrdered(tile::FuncOp kernel, const TargetRow &row,
            const CompileOptions &options, StringRef scheduling,
            std::unique_ptr<LLVMKernel> &optimized) {
  if (!options.objects || options.artifact != Artifact::Object)
    return compileOrdered(kernel, row, options, scheduling, optimized);
  llvm::raw_sha1_ostream key;
  key << row.name << '\n' << scheduling << '\n';
  OpPrintingFlags flags;
  kernel->print(key, flags.useLocalScope().enableDebugInfo(options.lineTables));
  auto [it, isNew] = options.objects->compiled.try_emplace(key.sha1());
  if (!isNew)
    return it->second;
  FailureOr<HsacoKernel> object =
      compileOrdered(kernel, row, options, scheduling, optimized);
  if (succeeded(object))
    it->second = *object;
  else
    options.objects->compiled.erase(it);
  return object;
}

/// Whether an order of instructions is better than another by more than the
/// estimate's error: by the main loops' shares of matrix instructions, of which
/// the code has as many in any order, else by scratch memory.
static bool isFaster(const KernelStats &stats, const KernelStats &other) {
  constexpr double error = 0.05;
  return stats.loop && other.loop
             ? (1 - error) * stats.loop->matrixShare > other.loop->matrixShare
             : stats.scratchBytes < other.scratchBytes;
}

/// Whether a sixth fewer registers would leave half as many waves again on a
/// SIMD: another order of instructions may need so few.
static bool missesWaves(const KernelStats &stats, tile::FuncOp kernel,
                        const TargetRow &row) {
  unsigned fewer = (stats.vgprs + stats.agprs) * 5 / 6;
  return stats.loop &&
         2 * getOccupancy(row, fewer, /*agprs=*/0, stats.sgprs, stats.ldsBytes,
                          kernel.getBlockSize()) >=
             3 * stats.occupancy;
}

/// Whether so few waves that they do not hide each other's waits leave matrix
/// units idle for half of the main loop, by the estimate.
static bool leavesIdle(const KernelStats &stats) {
  constexpr unsigned few = 2;
  return stats.loop && stats.loop->matrixShare > 0 &&
         stats.loop->matrixShare < 0.5 && stats.occupancy <= few;
}

/// Whether an order that was faster than another serves, and no other one is
/// tried: registers keep no waves out, and matrix units are busy. The
/// tutorials' attention gained by none that came later.
static bool isGood(const KernelStats &stats, tile::FuncOp kernel,
                   const TargetRow &row) {
  return stats.loop && stats.loop->matrixShare >= 0.6 &&
         !missesWaves(stats, kernel, row);
}

/// Replaces an object that spills, whose registers keep waves out, or whose few
/// waves leave matrix units idle, by one in another order of instructions that
/// is faster: the first good one, or the fastest. Returns the order. If more is
/// spilled than a lane has registers, LLVM takes many times as long for each
/// order, and scratch memory does not tell which one is faster
/// (docs/experiments/schedules.md).
static StringRef reorder(HsacoKernel &object, tile::FuncOp kernel,
                         const TargetRow &row, const CompileOptions &options,
                         std::unique_ptr<LLVMKernel> &optimized) {
  // The usual order serves where another cannot be compiled.
  ScopedDiagnosticHandler silence(kernel.getContext(),
                                  [](Diagnostic &) { return success(); });
  StringRef taken;
  if (object.stats->vgprSpills > row.vgprs.perWave)
    return taken;
  bool isSlow =
      missesWaves(*object.stats, kernel, row) || leavesIdle(*object.stats);
  // The first order takes registers, which are gone where it spills; the last
  // one is for fewer spills.
  ArrayRef<StringLiteral> orders = schedulings;
  for (StringRef scheduling :
       object.stats->scratchBytes ? orders.drop_front() : orders.drop_back()) {
    bool spills = object.stats->scratchBytes;
    if (!spills &&
        (!isSlow || (!taken.empty() && isGood(*object.stats, kernel, row))))
      break;
    FailureOr<HsacoKernel> next =
        emitOrdered(kernel, row, options, scheduling, optimized);
    if (failed(next) || !isFaster(*next->stats, *object.stats) ||
        (!spills && next->stats->scratchBytes))
      continue;
    object = std::move(*next);
    taken = scheduling;
  }
  return taken;
}

FailureOr<HsacoKernel> greta::emitHsaco(tile::FuncOp kernel,
                                        const TargetRow &row,
                                        const CompileOptions &options) {
  if (options.artifact == Artifact::Nothing) {
    if (failed(translateKernel(kernel, row, options)))
      return failure();
    return HsacoKernel();
  }
  bool isObject = options.artifact == Artifact::Object;
  std::unique_ptr<LLVMKernel> optimized;
  if (!isObject && !options.reorders)
    return emitOrdered(kernel, row, options, {}, optimized);
  // The object tells what spills, also where its text is asked for.
  CompileOptions how = options;
  how.artifact = Artifact::Object;
  FailureOr<HsacoKernel> object = emitOrdered(kernel, row, how, {}, optimized);
  if (failed(object))
    return failure();
  StringRef scheduling;
  if (options.reorders)
    scheduling = reorder(*object, kernel, row, how, optimized);
  if (!isObject)
    return emitOrdered(kernel, row, options, scheduling, optimized);
  const KernelStats &stats = *object->stats;
  // Scalars that lie in lanes of a vector register cost no memory.
  if (stats.scratchBytes || stats.vgprSpills)
    kernel.emitWarning("kernel '")
        << kernel.getName() << "' spills " << stats.vgprSpills << " vector and "
        << stats.sgprSpills << " scalar registers on " << row.name << " ("
        << stats.scratchBytes
        << " bytes of scratch per lane); choose a smaller tile";
  return object;
}
