//===- Translate.cpp - from functions to packages and code ----------------===//
//
// Reads a file of functions and writes one package for many targets, or the
// code of one target in the form asked for. Nothing is written unless
// everything succeeded.
//
//===----------------------------------------------------------------------===//

#include "Translate.h"
#include "Describe.h"
#include "Greta/Greta.h"
#include "Header.h"
#include "OneLine.h"
#include "Progress.h"
#include "greta/Configure/SumParts.h"
#include "greta/Configure/Tuning.h"
#include "greta/Package/Compile.h"
#include "greta/Package/Frontend.h"
#include "greta/Package/Package.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace greta;
using namespace greta::translate;

static LogicalResult error(const llvm::Twine &message) {
  llvm::WithColor::error(llvm::errs(), "greta-translate")
      << onOneLine(message.str()) << "\n";
  return failure();
}

static LogicalResult writeFile(StringRef path, StringRef bytes) {
  llvm::Error failed = writeWhole(path, bytes);
  return failed ? error(llvm::toString(std::move(failed))) : success();
}

static LogicalResult selectFunction(std::vector<SourceFunction> &functions,
                                    const Options &options) {
  if (options.function.empty())
    return success();
  llvm::erase_if(functions, [&](const SourceFunction &function) {
    return function.spec.name != options.function;
  });
  if (functions.empty())
    return error("no public function '" + options.function + "' in " +
                 options.input);
  return success();
}

/// As greta-run --inspect prints it of a package.
static void printReport(ArrayRef<CompiledFunction> functions,
                        DictionaryAttr metadata, Report report) {
  std::string manifest = describePackage(functions, metadata).manifest;
  llvm::outs() << (report == Report::Json
                       ? manifest
                       : greta_run::describeManifest(manifest));
}

/// The model's times of sums over ranks and the GEMMs before them.
static void printSums(ArrayRef<SourceFunction> functions,
                      ArrayRef<const TargetRow *> rows,
                      const TuningDatabase *tuning) {
  for (const SourceFunction &function : functions)
    for (const TargetRow *row : rows) {
      auto times = timeSums(*function.module, *row, rowsOfPrompt, tuning);
      for (const SumTime &time : times.value_or(SmallVector<SumTime>())) {
        if (time.whole == 0)
          continue;
        llvm::outs() << llvm::formatv(
            "{0} on two {1}, by the model, {2} rows: GEMM {3:f0} us, sum over "
            "ranks {4:f0} us, together {5:f0} us",
            function.spec.name, row->name, rowsOfPrompt, time.gemm, time.sum,
            time.whole);
        if (time.rows)
          llvm::outs() << llvm::formatv("; in parts of {0} rows {1:f0} us",
                                        time.rows, time.parts);
        llvm::outs() << "\n";
      }
    }
}

static LogicalResult writePackage(ArrayRef<CompiledFunction> functions,
                                  DictionaryAttr metadata,
                                  const Options &options) {
  llvm::Expected<std::string> archive =
      archivePackage(describePackage(functions, metadata));
  if (!archive)
    return error(llvm::toString(archive.takeError()));
  return writeFile(options.output, *archive);
}

/// Text of all kernels, or the bytes of the one kernel there is; of each target
/// the first variant, which is the best.
static LogicalResult writeCode(ArrayRef<CompiledFunction> functions,
                               bool isText, const Options &options) {
  std::string bytes;
  unsigned count = 0;
  for (const CompiledFunction &function : functions) {
    const TargetRow *written = nullptr;
    for (const CompiledVariant &variant : function.variants) {
      if (variant.row == written)
        continue;
      written = variant.row;
      for (auto [index, kernel] : llvm::enumerate(variant.kernels)) {
        if (options.kernel && *options.kernel != index)
          continue;
        bytes += kernel.object;
        ++count;
      }
    }
  }
  if (count == 0)
    return error("no kernel " + llvm::Twine(options.kernel.value_or(0)) +
                 " in " + options.input);
  if (count > 1 && !isText)
    return error(options.input + " becomes " + llvm::Twine(count) +
                 " code objects; choose one with --function=NAME and "
                 "--kernel=N, or write a package");
  return writeFile(options.output, bytes);
}

/// The targets asked for, checked against what is to be made of them.
static FailureOr<SmallVector<const TargetRow *>>
selectTargets(const Options &options) {
  if (options.targets.empty())
    return error("no target; say --target=gfx942 or --targets=gfx942,vulkan,"
                 "host");
  llvm::Expected<SmallVector<const TargetRow *>> rows =
      parseTargets(options.targets);
  if (!rows)
    return error(llvm::toString(rows.takeError()));
  if (options.action == Action::Package || options.action == Action::None)
    return std::move(*rows);
  if (rows->size() != 1)
    return error("'" + options.targets + "' are " + llvm::Twine(rows->size()) +
                 " targets; only a package holds more than one");
  const TargetRow &row = *rows->front();
  if ((options.action == Action::Hsaco || options.action == Action::Amdgcn) &&
      !row.isHip())
    return error("target '" + row.name +
                 "' is no AMD chip; say for example --target=gfx942");
  if (options.action == Action::Spirv && !row.isVulkan())
    return error("target '" + row.name +
                 "' is no Vulkan family; say for example "
                 "--target=vulkan:portable");
  if (options.action == Action::LLVMIR && row.isVulkan())
    return error("target '" + row.name +
                 "' has no LLVM IR; use --greta-to-spirv");
  return std::move(*rows);
}

/// The header's names begin with the output's, or else the package's name.
static LogicalResult writeHeader(const Options &options) {
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> file =
      openInputFile(options.input, &message);
  if (!file)
    return error(message);
  StringRef path = options.output == "-" ? options.input : options.output;
  llvm::Expected<std::string> header =
      makeHeader(llvm::sys::path::stem(path), file->getBuffer());
  if (!header)
    return error(options.input + ": " + llvm::toString(header.takeError()));
  return writeFile(options.output, *header);
}

static LogicalResult makeWhatIsAsked(const Options &options,
                                     TimingScope &timing) {
  bool reports = options.report != Report::None;
  if (options.action == Action::None && !reports)
    return error("nothing to make; say for example --greta-to-package");
  if (reports &&
      llvm::is_contained({Action::Amdgcn, Action::LLVMIR, Action::Header},
                         options.action))
    return error("--report is about code objects; leave it out, or the form");
  if (reports && options.action != Action::None && options.output == "-")
    return error("--report goes to stdout; say with -o where the code goes");
  if (options.action == Action::Header)
    return writeHeader(options);
  FailureOr<SmallVector<const TargetRow *>> rows = selectTargets(options);
  if (failed(rows))
    return failure();
  if (options.action == Action::Package && options.output == "-")
    return error("a package is no text; say where to write it with -o");
  std::optional<TuningDatabase> tuning;
  if (!options.tuning.empty()) {
    llvm::Expected<TuningDatabase> loaded =
        TuningDatabase::load(options.tuning);
    if (!loaded)
      return error(llvm::toString(loaded.takeError()));
    tuning = std::move(*loaded);
  }
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> file =
      openInputFile(options.input, &message);
  if (!file)
    return error(message);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBuffer(
          file->getBuffer(), onOneLine(file->getBufferIdentifier().str())),
      llvm::SMLoc());

  DialectRegistry registry;
  registerCompilerDialects(registry);
  // One function takes a tenth of a second: threads would cost more.
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  // The source's line is shown; the op's dump would bury it.
  context.printOpOnDiagnostic(false);
  SourceMgrDiagnosticHandler handler(sources, &context);
  Progress progress(options.isQuiet);
  ScopedDiagnosticHandler clearing(&context, [&](Diagnostic &) {
    progress.clear();
    return failure(); // the handler above prints it
  });
  FailureOr<std::vector<SourceFunction>> functions = readSource(
      sources, &context, timing,
      {options.isTriton, options.grid, options.numWarps, options.numStages});
  if (failed(functions) || failed(selectFunction(*functions, options)))
    return failure();
  for (SourceFunction &function : *functions)
    for (auto func : function.module->getOps<func::FuncOp>())
      if (options.checked)
        func->setAttr(checkedName, UnitAttr::get(&context));
  Artifact artifact = options.action == Action::Amdgcn   ? Artifact::Assembly
                      : options.action == Action::LLVMIR ? Artifact::LLVMIR
                                                         : Artifact::Object;
  CompileOptions how;
  how.artifact = artifact;
  how.timing = &timing;
  how.tuning = tuning ? &*tuning : nullptr;
  how.lineTables = options.lineTables;
  how.joined = options.joined;
  how.partRows = options.partRows;
  how.hasRanges =
      options.action == Action::Package || options.action == Action::None;
  size_t done = 0, all = functions->size() * rows->size();
  auto begins = [&](StringRef function, StringRef target) {
    progress.say(llvm::formatv("compiling {0} for {1} ({2} of {3})", function,
                               target, ++done, all));
  };
  FailureOr<SmallVector<CompiledFunction, 1>> compiled =
      compileFunctions(*functions, *rows, how, begins);
  progress.clear();
  if (failed(compiled))
    return failure();
  if (reports)
    printReport(*compiled, functions->front().metadata, options.report);
  if (options.report == Report::Text)
    printSums(*functions, *rows, how.tuning);
  if (options.action == Action::None)
    return success();
  TimingScope writing = timing.nest("write");
  if (options.action == Action::Package)
    return writePackage(*compiled, functions->front().metadata, options);
  return writeCode(*compiled, artifact != Artifact::Object, options);
}

int greta::translate::translate(const Options &options) {
  DefaultTimingManager manager;
  manager.setEnabled(options.timing);
  manager.setDisplayMode(DefaultTimingManager::DisplayMode::Tree);
  bool failed;
  {
    TimingScope scope = manager.getRootScope();
    failed = mlir::failed(makeWhatIsAsked(options, scope));
  }
  if (options.timing) {
    llvm::sys::TimePoint<> now;
    std::chrono::nanoseconds user, system;
    llvm::sys::Process::GetTimeUsage(now, user, system);
    llvm::errs() << llvm::formatv("process: {0:f1} ms of CPU time\n",
                                  (user + system).count() * 1e-6);
  }
  return failed;
}
