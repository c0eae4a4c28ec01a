//===- Frontend.cpp - from a source file to functions to compile ----------===//

#include "greta/Package/Frontend.h"
#include "Triton/Triton.h"
#include "greta/Interface/Launches.h"
#include "greta/Package/Compile.h"
#include "greta/Passes.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CrashRecoveryContext.h"

using namespace mlir;
using namespace greta;

/// A tensor that no memory holds is refused before anything multiplies its
/// extents; kernels count the elements of a dimension in an i32.
static LogicalResult checkSizes(ModuleOp module) {
  constexpr int64_t maxExtent = INT32_MAX, maxElements = int64_t(1) << 48;
  auto isTooLarge = [&](Type type) {
    auto shaped = dyn_cast<ShapedType>(type);
    int64_t elements = 1;
    for (int64_t extent :
         shaped &&shaped.hasRank() ? shaped.getShape() : ArrayRef<int64_t>()) {
      int64_t least = ShapedType::isDynamic(extent) ? 1 : extent;
      if (least > maxExtent || (least && elements > maxElements / least))
        return true;
      elements *= least;
    }
    return false;
  };
  auto check = [&](Operation *op, TypeRange types) -> WalkResult {
    for (Type type : types)
      if (isTooLarge(type))
        return op->emitError() << type << " is larger than memory; a dimension "
                               << "has up to " << maxExtent
                               << " elements, a tensor up to " << maxElements;
    return success();
  };
  return failure(
      module
          .walk([&](Operation *op) -> WalkResult {
            if (check(op, op->getResultTypes()).wasInterrupted())
              return WalkResult::interrupt();
            for (Region &region : op->getRegions())
              for (Block &block : region)
                if (check(op, block.getArgumentTypes()).wasInterrupted())
                  return WalkResult::interrupt();
            return WalkResult::advance();
          })
          .wasInterrupted());
}

/// MLIR forgets what the source calls its values; the manifest wants it.
static void nameArguments(FunctionOpInterface func,
                          const AsmParserState &state) {
  if (func.isExternal())
    return;
  const AsmParserState::BlockDefinition *block =
      state.getBlockDef(&func.getFunctionBody().front());
  for (BlockArgument arg : func.getArguments()) {
    unsigned index = arg.getArgNumber();
    if (func.getArgAttr(index, "greta.name") || !block ||
        index >= block->arguments.size())
      continue;
    llvm::SMRange range = block->arguments[index].loc;
    StringRef name(range.Start.getPointer(),
                   range.End.getPointer() - range.Start.getPointer());
    // %0 says nothing.
    if (name.consume_front("%") && !name.empty() && !llvm::isDigit(name[0]))
      func.setArgAttr(index, "greta.name",
                      StringAttr::get(func.getContext(), name));
  }
}

/// Parsers descend where brackets nest, and MLIR's have no limit of their own.
static LogicalResult checkNesting(StringRef text, Location start) {
  constexpr unsigned limit = 256;
  unsigned depth = 0;
  for (char c : text) {
    if (StringRef("([{<").contains(c) && ++depth > limit)
      return emitError(start, "brackets nest deeper than ")
             << limit << "; a function of tensor ops needs few";
    if (StringRef(")]}>").contains(c) && depth > 0)
      --depth;
  }
  return success();
}

// The error's location has no column, and so shows no line of the source.
LogicalResult greta::checkText(StringRef name, StringRef text,
                               MLIRContext *context) {
  for (auto [i, c] : llvm::enumerate(text)) {
    unsigned char byte = c, before = i > 0 ? text[i - 1] : 0;
    // U+0080 to U+009F in UTF-8
    bool isControlOfTwo = before == 0xc2 && byte >= 0x80 && byte < 0xa0;
    if ((byte >= ' ' && byte != 0x7f && !isControlOfTwo) || llvm::isSpace(c))
      continue;
    unsigned line = text.take_front(i).count('\n') + 1;
    return emitError(FileLineColLoc::get(context, name, line, 0), "byte 0x")
           << llvm::utohexstr(byte, /*LowerCase=*/true, /*Width=*/2)
           << " is of no text; a source is the text of MLIR or Triton IR";
  }
  return success();
}

/// Returns the registered op of the same dialect whose name is nearest to an
/// unknown one; "": none is near.
static StringRef nearestOp(MLIRContext *context, StringRef unknown) {
  StringRef best;
  unsigned least = std::max<size_t>(2, unknown.size() / 5) + 1;
  for (RegisteredOperationName op : context->getRegisteredOperations()) {
    StringRef name = op.getStringRef();
    if (op.getDialectNamespace() != unknown.split('.').first)
      continue;
    unsigned distance = name.edit_distance(unknown, true, least);
    if (distance < least) {
      least = distance;
      best = name;
    }
  }
  return best;
}

/// The parser says of an op that no dialect has only that it is unknown.
static void suggestOp(MLIRContext *context, Diagnostic &diagnostic) {
  std::string text = diagnostic.str();
  StringRef name = text;
  if (!name.consume_front("custom op '"))
    return;
  StringRef given = name.split('\'').first, near = nearestOp(context, given);
  // A known op is at fault in another way.
  if (!near.empty() && near != given)
    diagnostic << "; did you mean '" << near << "'?";
}

/// MLIR's parsers and verifiers trust some of what they read: an empty group of
/// tensor.expand_shape is a null pointer to them. A crash there is an error of
/// the source; whatever they were building is lost with it.
static LogicalResult parseSource(llvm::SourceMgr &sources, Block &parsed,
                                 AsmParserState &state, MLIRContext *context,
                                 Location start) {
  bool explained = false;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    explained |= diagnostic.getSeverity() == DiagnosticSeverity::Error;
    suggestOp(context, diagnostic);
    return failure(); // it goes on to whoever prints it
  });
  llvm::CrashRecoveryContext::Enable();
  llvm::CrashRecoveryContext recovery;
  LogicalResult result = failure();
  bool survived = recovery.RunSafely([&] {
    result =
        parseAsmSourceFile(sources, &parsed, ParserConfig(context), &state);
  });
  llvm::CrashRecoveryContext::Disable();
  if (survived || explained)
    return result;
  return emitError(start, "MLIR's parser crashed: an op in this file is "
                          "malformed in a way that LLVM ")
         << LLVM_VERSION_STRING << " does not check";
}

/// Fails if a function's arguments or results have types that packages do not
/// hold.
static LogicalResult checkBoundary(func::FuncOp func) {
  if (!func.getBody().hasOneBlock())
    return func.emitError("function '")
           << func.getSymName()
           << "' has branches; a function is one block of tensor ops";
  bool launches = launchesKernels(func);
  if (func.getNumResults() == 0 && !launches)
    return func.emitError("function '")
           << func.getSymName()
           << "' returns nothing; what it computes is lost";
  auto check = [&](StringRef what, unsigned index, Type type) -> LogicalResult {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (launches && what == "argument" && tile::isScalarArgument(type))
      return success();
    if (!tensor && launches)
      return func.emitError(what)
             << " " << index << " of function '" << func.getSymName()
             << "' has type " << type
             << "; a function that launches kernels takes ranked tensors, "
                "integers of 1 to 64 bits and floats of 16 to 64, and returns "
                "ranked tensors";
    if (!tensor)
      return func.emitError(what)
             << " " << index << " of function '" << func.getSymName()
             << "' has type " << type
             << "; functions take and return ranked tensors: pass a scalar as "
                "tensor<f32>";
    if (!getDtypeName(tensor.getElementType(), launches).empty())
      return success();
    return func.emitError(what)
           << " " << index << " of function '" << func.getSymName()
           << "' has element type " << tensor.getElementType()
           << "; buffers hold f32, f16, bf16, i8, i32 or 8-bit floats"
           << (launches ? ", those of block programs f64, i16 and i64, too"
                        : "")
           << ": convert it";
  };
  for (auto [index, type] : llvm::enumerate(func.getArgumentTypes()))
    if (failed(check("argument", index, type)))
      return failure();
  for (auto [index, type] : llvm::enumerate(func.getResultTypes()))
    if (failed(check("result", index, type)))
      return failure();
  return success();
}

/// Converts kernels of Triton IR to block programs, and to functions that
/// launch them.
static LogicalResult importTriton(ModuleOp module, const AsmParserState &state,
                                  const TritonOptions &options) {
  if (module.getOps<triton::FuncOp>().empty()) {
    if (options.isExpected || !options.grid.empty() || options.numWarps ||
        options.numStages)
      return emitError(module.getLoc(),
                       "no Triton IR, which --triton-to-package, --grid, "
                       "--num-warps and --num-stages are for; say "
                       "--greta-to-package alone");
    return success();
  }
  for (auto func : module.getOps<triton::FuncOp>())
    nameArguments(func, state);
  PassManager passes(module.getContext());
  passes.addPass(createTritonToTilePass(
      {options.grid, options.numWarps, options.numStages}));
  return passes.run(module);
}

/// The public functions of a source, in its order.
struct PublicFunctions {
  SmallVector<StringRef> names;
  DictionaryAttr metadata;
  bool calls = false; ///< some function calls another
};

static FailureOr<PublicFunctions> findFunctions(ModuleOp module,
                                                const AsmParserState &state) {
  PublicFunctions found;
  for (Operation &op : *module.getBody()) {
    op.walk([&](func::CallOp) { found.calls = true; });
    if (isa<tile::FuncOp>(op))
      continue;
    auto func = dyn_cast<func::FuncOp>(op);
    if (!func)
      return op.emitError("only functions and kernels are compiled, not '")
             << op.getName() << "'";
    if (!func.isPublic() && launchesKernels(func))
      return func.emitError("private function '")
             << func.getSymName()
             << "' launches kernels, over symbols of its own; launch them in "
                "the public function";
    nameArguments(func, state);
    if (!func.isPublic())
      continue;
    found.names.push_back(func.getSymName());
    if (Attribute least = func->getAttr(computeUnitsName)) {
      auto units = dyn_cast<IntegerAttr>(least);
      if (!units || !units.getValue().isIntN(20) || units.getValue().isZero())
        return func.emitError()
               << computeUnitsName << " has to be an integer from 1 to "
               << llvm::maxUIntN(20);
    }
    if (Attribute given = func->removeAttr(metadataName)) {
      auto entries = dyn_cast<DictionaryAttr>(given);
      if (found.metadata || !entries ||
          llvm::any_of(entries, [](NamedAttribute entry) {
            return !isa<StringAttr>(entry.getValue());
          }))
        return func.emitError()
               << metadataName
               << " has to be a dictionary of strings, on one function";
      found.metadata = entries;
    }
  }
  return found;
}

/// Makes control flow structured, inlines calls, and checks the types at
/// functions' boundaries.
static LogicalResult prepareFunctions(ModuleOp module,
                                      const PublicFunctions &found) {
  PassManager pm(module.getContext());
  pm.addPass(createGretaTileStructurePass());
  if (found.calls) {
    pm.addPass(createInlinerPass());
    pm.addPass(createSymbolDCEPass());
  }
  pm.addPass(createCanonicalizerPass());
  if (failed(pm.run(module)))
    return failure();
  WalkResult left = module.walk([](func::CallOp call) {
    call.emitError("calls '")
        << call.getCallee()
        << "', which has no body, or calls itself: kernels have no stack, "
           "write it as a loop";
    return WalkResult::interrupt();
  });
  if (left.wasInterrupted())
    return failure();
  SymbolTable symbols(module);
  for (StringRef name : found.names) {
    auto func = symbols.lookup<func::FuncOp>(name);
    if (failed(checkBoundary(func)) || failed(checkLaunches(func)))
      return failure();
  }
  PassManager shapes(module.getContext());
  shapes.addNestedPass<func::FuncOp>(createGretaAnnotateShapesPass());
  return shapes.run(module);
}

FailureOr<std::vector<SourceFunction>>
greta::readSource(llvm::SourceMgr &sources, MLIRContext *context,
                  TimingScope &timing, const TritonOptions &options) {
  TimingScope parsing = timing.nest("parse");
  Block parsed;
  AsmParserState state;
  const llvm::MemoryBuffer *buffer =
      sources.getMemoryBuffer(sources.getMainFileID());
  Location start =
      FileLineColLoc::get(context, buffer->getBufferIdentifier(), 1, 1);
  if (failed(checkText(buffer->getBufferIdentifier(), buffer->getBuffer(),
                       context)) ||
      failed(checkNesting(buffer->getBuffer(), start)) ||
      failed(parseSource(sources, parsed, state, context, start)))
    return failure();
  // A file is a module, or the contents of one.
  OwningOpRef<ModuleOp> module;
  if (parsed.getOperations().size() == 1 && isa<ModuleOp>(parsed.front())) {
    module = cast<ModuleOp>(parsed.front());
    module->getOperation()->remove();
  } else {
    module = ModuleOp::create(start);
    module->getBody()->getOperations().splice(module->getBody()->end(),
                                              parsed.getOperations());
    if (failed(verify(*module)))
      return failure();
  }
  if (failed(checkSizes(*module)) ||
      failed(importTriton(*module, state, options)))
    return failure();
  auto found = findFunctions(*module, state);
  if (failed(found))
    return failure();
  if (found->names.empty()) {
    emitError(start, "no public function to compile");
    return failure();
  }
  parsing.stop();

  TimingScope preparing = timing.nest("functions");
  if (failed(prepareFunctions(*module, *found)))
    return failure();
  SymbolTable symbols(*module);
  std::vector<SourceFunction> functions;
  for (StringRef name : found->names) {
    auto func = symbols.lookup<func::FuncOp>(name);
    SourceFunction &function = functions.emplace_back();
    function.spec = getFunctionSpec(func);
    function.module = withKernels(func, symbols);
    function.metadata = found->metadata;
  }
  return functions;
}
