//===- Gpu.cpp - a function for a GPU target ------------------------------===//
//
// Runs the pipeline of docs/internals/architecture.md on one function for one
// row of the target table and reads the manifest's facts off the result: which
// tensors are arguments, results or temporaries, and each launch's grid and
// scalars. hip and vulkan rows differ only in who emits the object.
//
//===----------------------------------------------------------------------===//

#include "Gpu.h"
#include "Greta/Greta.h"
#include "greta/AMDGPU/Hsaco.h"
#include "greta/Interface/Launches.h"
#include "greta/Package/Frontend.h"
#include "greta/Passes.h"
#include "greta/SPIRV/SpirvEmitter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace greta;

/// Returns the kind of a kernel's matrix instructions for a variant's id:
/// "mfma", "wmma" or "coopmat"; empty: it has none.
static StringRef matrixUnit(tile::FuncOp kernel) {
  StringRef unit;
  kernel.walk([&](tile::MmaOp mma) {
    unit = mma.getIntrinsic().split('.').first;
    return WalkResult::interrupt();
  });
  return unit;
}

/// Adds the passes from fused ops to kernels, and from these to block programs.
static void buildFusedPipeline(OpPassManager &passes, const TargetRow &row,
                               bool matrix, const CompileOptions &options) {
  std::string target = row.name.str();
  buildFusionPipeline(passes, target, matrix);
  GretaConfigurePassOptions configure;
  configure.target = target;
  configure.matrix = matrix;
  configure.spareRegisters = options.spareRegisters;
  passes.addNestedPass<func::FuncOp>(
      createGretaConfigurePass(configure, options.tuning));
  // AMD's last workgroup adds parts alone in less time than it takes to give
  // out slices that nobody else is there to take.
  passes.addPass(createGretaToTilePass({row.isHip() ? 0 : row.computeUnits}));
}

/// Adds the passes that prepare any block program for the target, and simplify
/// it. Fused ops' loops come in parts already.
static void buildBlockPipeline(OpPassManager &passes, const TargetRow &row,
                               bool matrix, bool splits) {
  passes.addPass(createGretaTileExplicitArgumentsPass());
  passes.addPass(createGretaTilePromiseArgumentsPass());
  // A loop of one iteration says how a driver's matrices are loaded whole. The
  // pattern's name is the compiler's.
  SmallVector<std::string, 2> without;
  if (row.isVulkan())
    without = {"(anonymous namespace)::SimplifyTrivialLoops",
               "{anonymous}::SimplifyTrivialLoops"};
  auto canonicalize = [&] {
    return createCanonicalizerPass(GreedyRewriteConfig(), without);
  };
  OpPassManager &kernel = passes.nest<tile::FuncOp>();
  kernel.addPass(createGretaTileSetTargetPass({row.name.str(), matrix}));
  kernel.addPass(canonicalize());
  kernel.addPass(createCSEPass());
  kernel.addPass(createGretaTileMoveInvariantsPass());
  kernel.addPass(createGretaTileInductionsPass());
  kernel.addPass(canonicalize());
  if (splits) {
    kernel.addPass(createGretaTileSplitLoopsPass({row.name.str()}));
    kernel.addPass(canonicalize());
  }
  kernel.addPass(createGretaTileRaiseAccessesPass({row.name.str()}));
  kernel.addPass(createCSEPass());
  kernel.addPass(createGretaTileMoveInvariantsPass());
}

void greta::buildGpuPipeline(OpPassManager &passes, const TargetRow &row,
                             bool matrix, bool launches,
                             const CompileOptions &options) {
  if (!launches)
    buildFusedPipeline(passes, row, matrix, options);
  buildBlockPipeline(passes, row, matrix, /*splits=*/launches);
  std::string target = row.name.str();
  passes.addNestedPass<tile::FuncOp>(
      createGretaTileSchedulePass({target, matrix}));
  passes.addNestedPass<tile::FuncOp>(
      createGretaTileAssignLayoutsPass({target}));
  passes.addNestedPass<tile::FuncOp>(createGretaTilePipelinePass({target}));
  passes.addPass(createGretaTileDistributePass({target}));
  if (options.joined) {
    // One workgroup does all if none can wait for others.
    int64_t residents =
        row.most.iterations ? 1 : options.joined * row.computeUnits;
    passes.addPass(createGretaTileJoinPass({residents, row.most.iterations}));
    passes.addPass(createGretaTileCheckJoinedPass());
  } else {
    passes.addPass(createGretaTileTailPass({target}));
    passes.addPass(createGretaTileCheckTailsPass());
  }
  // Memory is planned between barriers that are needed in any case, and those
  // that sharing it needs are added.
  passes.addNestedPass<tile::FuncOp>(createGretaTileBarriersPass({target}));
  passes.addNestedPass<tile::FuncOp>(createGretaTilePlanMemoryPass({target}));
  passes.addNestedPass<tile::FuncOp>(createGretaTileBarriersPass({target}));
  passes.addNestedPass<tile::FuncOp>(createGretaTileInterleavePass());
  passes.addNestedPass<tile::FuncOp>(
      createGretaTileExpandAtomicsPass({target}));
  passes.addNestedPass<tile::FuncOp>(createGretaExpandPass({target}));
  passes.addNestedPass<tile::FuncOp>(createCSEPass());
}

namespace {

/// The buffers of a function's tensors. A view has the buffer of its source.
class Buffers {
public:
  explicit Buffers(func::FuncOp func) {
    for (BlockArgument arg : func.getArguments())
      places[arg] = {KernelArg::Arg, arg.getArgNumber(), {}};
    auto results = func.getBody().front().getTerminator()->getOperands();
    for (auto [i, value] : llvm::enumerate(results)) {
      KernelArg result{KernelArg::Result, static_cast<unsigned>(i), {}};
      // A result that is tied to an argument is a copy of it before the first
      // kernel runs.
      if (tiedArgument(value))
        places[memoryOf(value)] = result;
      else
        places.try_emplace(memoryOf(value), result);
    }
  }

  /// Returns the place of a tensor, which is a temporary if it has no other.
  KernelArg place(Value value) {
    auto [it, isNew] = places.try_emplace(memoryOf(value));
    if (isNew) {
      it->second = {KernelArg::Temp, static_cast<unsigned>(temps.size()), {}};
      temps.push_back(specOf(it->first));
    }
    return it->second;
  }

  SmallVector<TensorSpec> temps;

private:
  /// Returns the shape and type of a temporary, which is the result of a launch
  /// or of a sum over ranks.
  static TensorSpec specOf(Value value) {
    auto result = cast<OpResult>(value);
    TensorSpec spec;
    spec.elementType = cast<RankedTensorType>(value.getType()).getElementType();
    if (auto sum = dyn_cast<AllReduceOp>(result.getOwner())) {
      spec.shape = llvm::to_vector(sum.getShape()->getResults());
      return spec;
    }
    auto launch = cast<tile::LaunchOp>(result.getOwner());
    AffineMap shape = launch.getShapeOf(result.getResultNumber());
    spec.shape = llvm::to_vector(shape.getResults());
    spec.isZeroed = launch.isZeroed(result.getResultNumber());
    return spec;
  }

  llvm::DenseMap<Value, KernelArg> places;
};

} // namespace

/// Chooses the launches that are made in the parts of a sum over ranks. A
/// launch goes with the next sum if that takes its result, else with the
/// previous sum if it reads that one's result. All others are launched as a
/// whole.
static void launchInParts(func::FuncOp func, CompiledVariant &variant) {
  SmallVector<Operation *> ops;
  for (Operation &op : func.getOps())
    if (isa<tile::LaunchOp, AllReduceOp>(op))
      ops.push_back(&op);
  llvm::SmallPtrSet<Operation *, 4> taken; // the launches in parts
  for (bool isBefore : {true, false}) {
    unsigned number = 0;
    for (auto [i, op] : llvm::enumerate(ops)) {
      auto sum = dyn_cast<AllReduceOp>(op);
      if (!sum)
        continue;
      RankSum &made = variant.sums[number++];
      Operation *before = i ? ops[i - 1] : nullptr,
                *behind = i + 1 < ops.size() ? ops[i + 1] : nullptr;
      auto launch =
          dyn_cast_or_null<tile::LaunchOp>(isBefore ? before : behind);
      if (!made.partRows || isa_and_nonnull<AllReduceOp>(before) ||
          isa_and_nonnull<AllReduceOp>(behind) || !launch ||
          !launch.getByRows())
        continue;
      bool touches = isBefore ? sum.getX().getDefiningOp() == launch
                              : llvm::is_contained(launch.getOperands(),
                                                   Value(sum.getResult()));
      if (touches && taken.insert(launch).second)
        (isBefore ? made.before : made.behind) = true;
    }
  }
  unsigned number = 0;
  for (Operation *op : ops)
    if (isa<tile::LaunchOp>(op) && !taken.contains(op))
      variant.kernels[number++].byRows.clear();
    else
      number += isa<tile::LaunchOp>(op);
}

/// Fails if a resident launch has more workgroups than run at a time, given the
/// waves of a SIMD and the shared memory. On Vulkan drivers also count
/// registers, which are not known here, so a launch that passes may still have
/// too many.
static LogicalResult checkResidents(tile::LaunchOp launch, int64_t wavesOfSimd,
                                    std::optional<int64_t> vgprs,
                                    int64_t ldsBytes, int64_t waves,
                                    const TargetRow &row) {
  int64_t shared = row.unitsPerWorkgroup;
  int64_t fit = wavesOfSimd * row.simdsPerUnit * shared / waves;
  if (ldsBytes)
    fit = std::min(fit, row.ldsBytesPerUnit * shared / ldsBytes);
  fit = std::max<int64_t>(fit, 1) * (row.computeUnits / shared);
  if (launch.getResidents() <= fit)
    return success();
  InFlightDiagnostic diag = launch.emitError("'");
  diag << launch.getKernel() << "' has " << launch.getResidents()
       << " workgroups that wait for each other; its " << waves << " waves, ";
  if (vgprs)
    diag << *vgprs << " registers ";
  return diag << "and " << ldsBytes << " bytes of shared memory let " << fit
              << " run at a time on " << row.name
              << ": join for fewer workgroups on a compute unit";
}

/// Sets the members of a kernel that follow from its launch: arguments, grid,
/// config. Bounds of scalars are attributes of the kernel's function, `code`.
static void describeLaunch(tile::LaunchOp launch, tile::FuncOp code,
                           Buffers &buffers, CompiledKernel &kernel) {
  kernel.args.clear();
  for (Value operand : launch->getOperands())
    kernel.args.push_back(buffers.place(operand));
  for (auto [i, tensor] : llvm::enumerate(launch->getResults()))
    if (!launch.getTiedOperand(i))
      kernel.args.push_back(buffers.place(tensor));
  for (AffineExpr scalar : launch.getScalars().getResults()) {
    unsigned number = kernel.args.size();
    Type type = code.getArgumentTypes()[number];
    kernel.args.push_back({KernelArg::Scalar, 0, scalar, type.isInteger(64)});
    if (auto largest =
            code.getArgAttrOfType<IntegerAttr>(number, tile::largestName))
      kernel.args.back().largest = largest.getInt();
  }
  kernel.grid = llvm::to_vector<3>(launch.getGrid().getResults());
  kernel.config = launch.getConfigAttr();
  kernel.isResident = launch.getResident();
  kernel.byRows.clear();
  if (auto byRows = launch.getByRows())
    kernel.byRows.assign(byRows->begin(), byRows->end());
  kernel.log = {};
  if (auto sites = code->getAttrOfType<ArrayAttr>(tile::logName))
    kernel.log = {buffers.place(launch.getResults().back()).index, sites};
}

/// Compiles a launch's kernel, and adds the features of devices that its code
/// needs to `needs`. Fails if a resident launch has more workgroups than run at
/// a time.
static LogicalResult emitCode(tile::LaunchOp launch, tile::FuncOp code,
                              const TargetRow &row,
                              const CompileOptions &options,
                              CompiledKernel &kernel, Requirements &needs) {
  kernel.entry = code.getSymName().str();
  kernel.block = {code.getBlockSize(), 1, 1};
  // The number of workgroups that run at a time follows from these.
  int64_t wavesOfSimd = row.maxWavesPerSimd, ldsBytes = 0;
  std::optional<int64_t> vgprs;
  if (row.isHip()) {
    // Another order may take registers that workgroups at a time need.
    CompileOptions how = options;
    how.reorders &= !kernel.isResident;
    FailureOr<HsacoKernel> hsaco = emitHsaco(code, row, how);
    if (failed(hsaco))
      return failure();
    kernel.object = std::move(hsaco->object);
    kernel.stats = hsaco->stats;
    if (!kernel.stats)
      return success();
    ldsBytes = kernel.ldsBytes = kernel.stats->ldsBytes;
    wavesOfSimd = kernel.stats->occupancy;
    vgprs = kernel.stats->vgprs;
  } else {
    TimingScope timing = options.nest("emit SPIR-V");
    FailureOr<SpirvObject> spirv = emitSpirv(code, row, options.artifact);
    if (failed(spirv))
      return failure();
    kernel.object = std::move(spirv->object);
    kernel.ldsBytes = spirv->requirements.sharedBytes;
    // NVIDIA's driver was seen to add this much to a workgroup's.
    constexpr int64_t driverBytes = 1024;
    ldsBytes = kernel.ldsBytes + driverBytes;
    addRequirements(needs, spirv->requirements);
  }
  if (!kernel.isResident)
    return success();
  return checkResidents(launch, wavesOfSimd, vgprs, ldsBytes,
                        code.getNumWaves(), row);
}

/// Compiles the lane-level programs of a module, and adds them to the variant.
static LogicalResult emitForGpu(ModuleOp module, const TargetRow &row,
                                const CompileOptions &options,
                                CompiledVariant &variant) {
  variant.row = &row;
  variant.id =
      row.isVulkan() ? ("vulkan-" + row.family()).str() : row.name.str();
  if (row.isHip())
    variant.requires_.arch = row.name.str();

  // Launches are read first: emitting replaces kernels.
  auto func = *module.getOps<func::FuncOp>().begin();
  // If no launches were joined, the plain variant is the same.
  if (options.joined &&
      llvm::none_of(func.getOps<tile::LaunchOp>(),
                    [](tile::LaunchOp launch) { return launch.getResident(); }))
    return success();
  if (auto least = func->getAttrOfType<IntegerAttr>(computeUnitsName))
    variant.requires_.computeUnits = least.getValue().getZExtValue();
  Buffers buffers(func);
  SymbolTable symbols(module);
  StringRef unit;
  // A kernel that is launched again is compiled once.
  llvm::StringMap<CompiledKernel> compiled;
  for (Operation &op : func.getOps()) {
    if (auto sum = dyn_cast<AllReduceOp>(op)) {
      variant.requires_.communicator = true;
      RankSum &made = variant.sums.emplace_back(
          RankSum{unsigned(variant.kernels.size()), buffers.place(sum.getX()),
                  buffers.place(sum.getResult())});
      if (sum.getPartRows().value_or(0)) {
        made.partRows = *sum.getPartRows();
        made.extent = sum.getShape()->getResult(0);
      }
    }
    auto launch = dyn_cast<tile::LaunchOp>(op);
    if (!launch)
      continue;
    CompiledKernel &kernel =
        variant.kernels.emplace_back(compiled.lookup(launch.getKernel()));
    auto code = symbols.lookup<tile::FuncOp>(launch.getKernel());
    describeLaunch(launch, code, buffers, kernel);
    if (kernel.isResident) {
      Requirements &needs = variant.requires_;
      needs.resident = std::max(needs.resident, launch.getResidents());
      // On each of them fit so many, says the code object. HIP counts those
      // that share a workgroup as one.
      if (row.isHip())
        needs.computeUnits = std::max<int64_t>(
            needs.computeUnits, row.computeUnits / row.unitsPerWorkgroup);
    }
    if (!kernel.entry.empty())
      continue;
    if (unit.empty())
      unit = matrixUnit(code);
    if (failed(emitCode(launch, code, row, options, kernel, variant.requires_)))
      return failure();
    compiled[kernel.entry] = kernel;
  }
  if (!unit.empty())
    variant.id += ("-" + unit).str();
  launchInParts(func, variant);
  variant.temps = std::move(buffers.temps);
  return success();
}

LogicalResult greta::compileForGpu(OwningOpRef<ModuleOp> module,
                                   const TargetRow &row, bool matrix,
                                   const CompileOptions &options,
                                   CompiledVariant &variant) {
  {
    TimingScope timing = options.nest("lower to one lane's program");
    PassManager passes(module->getContext());
    bool launches = launchesKernels(*module->getOps<func::FuncOp>().begin());
    buildGpuPipeline(passes, row, matrix, launches, options);
    if (failed(passes.run(*module)))
      return failure();
  }
  return emitForGpu(*module, row, options, variant);
}
