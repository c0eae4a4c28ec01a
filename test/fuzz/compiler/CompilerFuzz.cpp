//===- CompilerFuzz.cpp - libFuzzer over the compiler's input -------------===//
//
// The input is a source as greta-translate reads it. An accepted input is
// compiled for a target that the text's hash chooses, up to LLVM's own part;
// SPIR-V is emitted. An input is wrong where the compiler crashes, hangs
// (-timeout), or refuses without an error, or a function with more than one.
//
// LLVM and MLIR are not instrumented, so libFuzzer's counters of branches would
// see little. Its guide is instead what an input becomes: every pair (pass, op
// that is there after it) and every different diagnostic is a feature.
//
//===----------------------------------------------------------------------===//

#include "greta/Package/Compile.h"
#include "greta/Package/Frontend.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"
#include <random>

using namespace mlir;
using namespace greta;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

/// Volatile: libFuzzer alone reads them.
__attribute__((section(
    "__libfuzzer_extra_counters"))) static volatile uint8_t features[1 << 16];

static constexpr StringLiteral targets[] = {"host", "gfx942", "gfx1100",
                                            "vulkan:portable", "vulkan:nvidia"};

static void addFeature(StringRef what) {
  features[llvm::xxh3_64bits(what) % std::size(features)] = 1;
}

/// The kind of a diagnostic: its text up to its first name or number.
static void addDiagnostic(const Diagnostic &diagnostic) {
  std::string text = diagnostic.str();
  addFeature(StringRef(text).take_while(
      [](char c) { return llvm::isAlpha(c) || c == ' ' || c == '.'; }));
}

/// Runs passes and marks what each leaves.
static void observe(llvm::function_ref<void()> run,
                    const tracing::Action &action) {
  run();
  auto *pass = llvm::dyn_cast<PassExecutionAction>(&action);
  if (!pass)
    return;
  pass->getOp()->walk([&](Operation *op) {
    StringRef type =
        op->getNumResults()
            ? op->getResult(0).getType().getAbstractType().getName()
            : "";
    addFeature((pass->getPass().getName() + op->getName().getStringRef() + type)
                   .str());
  });
}

/// A refused input has at most `most` errors and at least one, an accepted one
/// none.
static void expectErrors(bool failed, unsigned errors, unsigned most) {
  if (failed ? errors > 0 && errors <= most : errors == 0)
    return;
  llvm::errs() << (failed ? "refused" : "accepted") << " with " << errors
               << " errors\n";
  __builtin_trap();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  StringRef text(reinterpret_cast<const char *>(data), size);
  DialectRegistry registry;
  registerCompilerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.registerActionHandler(observe);
  unsigned errors = 0;
  context.getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
    errors += diagnostic.getSeverity() == DiagnosticSeverity::Error;
    addDiagnostic(diagnostic);
  });

  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBufferCopy(text, "fuzz.mlir"), llvm::SMLoc());
  TimingScope timing;
  FailureOr<std::vector<SourceFunction>> functions =
      readSource(sources, &context, timing);
  // MLIR's own parsers sometimes go on behind an error.
  expectErrors(failed(functions), errors, /*most=*/~0u);
  if (failed(functions))
    return -1; // no program; the corpus does without
  CompileOptions options;
  options.artifact = Artifact::Nothing;
  const TargetRow *row = llvm::cantFail(
      lookupTarget(targets[llvm::xxh3_64bits(text) % std::size(targets)]));
  for (SourceFunction &function : *functions) {
    errors = 0;
    SmallVector<CompiledVariant, 1> variants;
    LogicalResult result =
        compileVariants(std::move(function.module), *row, options, variants);
    expectErrors(failed(result), errors, /*most=*/1);
  }
  return 0;
}

//===----------------------------------------------------------------------===//
// Mutations of the text
//===----------------------------------------------------------------------===//

/// Words that often stand where another of the same row does.
static const SmallVector<SmallVector<StringRef>> alternatives = {
    {"f16", "bf16", "f32", "i8", "i32", "f8E4M3FN", "f8E5M2", "f8E4M3FNUZ",
     "f64", "i1", "i4", "i64", "index"},
    {"addf", "subf", "mulf", "divf", "maximumf", "minimumf", "maxnumf", "addi",
     "subi", "muli", "andi", "shrui", "maxsi", "cmpf", "remf"},
    {"exp", "tanh", "rsqrt", "sqrt", "log", "sin", "absf", "negf", "erf"},
    {"extf", "truncf", "sitofp", "fptosi", "extsi", "trunci", "bitcast",
     "extui", "uitofp"},
    {"softmax", "rms_norm", "layer_norm", "swiglu", "rope", "matmul", "dequant",
     "broadcast"},
    {"transpose_a", "transpose_b", "eps", "split", "group"},
    {"neox", "gptj"},
    {"expand_shape", "collapse_shape", "extract_slice", "cast", "splat",
     "empty", "dim"},
    {"?",    "0",    "1",     "2",          "3",
     "7",    "8",    "16",    "17",         "32",
     "48",   "64",   "100",   "128",        "129",
     "1000", "4096", "65537", "2147483648", "9223372036854775807"}};

static bool isWord(char c) {
  return llvm::isAlnum(c) || c == '_' || c == '%' || c == '?';
}

/// The words of `text`, extents of types one by one: in tensor<4x?xf16> they
/// are tensor, 4, ? and f16.
static SmallVector<StringRef> wordsOf(StringRef text) {
  SmallVector<StringRef> words;
  while (!text.empty()) {
    bool number = llvm::isDigit(text.front()) || text.front() == '?';
    StringRef word = text.take_while([&](char c) {
      return number ? llvm::isDigit(c) || c == '?' : isWord(c);
    });
    if (!word.empty())
      words.push_back(word);
    text = text.drop_front(std::max<size_t>(word.size(), 1));
    if (number)
      text.consume_front("x");
  }
  return words;
}

/// The words that may replace `word`: a row of `alternatives`, or the values of
/// `words` for a value.
static SmallVector<StringRef> alternativesOf(StringRef word,
                                             ArrayRef<StringRef> words) {
  if (llvm::isDigit(word.front()))
    word = "?";
  for (const SmallVector<StringRef> &row : alternatives)
    if (llvm::is_contained(row, word))
      return row;
  SmallVector<StringRef> same;
  llvm::copy_if(words, std::back_inserter(same),
                [&](StringRef other) { return other.front() == word.front(); });
  return same;
}

/// One word becomes another of its kind, where it stands or everywhere (so that
/// types still agree); or a line is written twice or goes.
static std::string mutate(StringRef text, std::minstd_rand &random) {
  if (random() % 4 == 0) {
    SmallVector<StringRef> lines;
    text.split(lines, '\n');
    StringRef line = lines[random() % lines.size()];
    size_t begin = line.begin() - text.begin();
    StringRef rest = text.drop_front(begin + line.size());
    StringRef more = random() % 2 ? lines[random() % lines.size()] : "";
    return (text.take_front(begin) + more + rest).str();
  }
  SmallVector<StringRef> words = wordsOf(text);
  if (words.empty())
    return text.str();
  StringRef word = words[random() % words.size()];
  SmallVector<StringRef> others = alternativesOf(word, words);
  StringRef other = others[random() % others.size()];
  bool everywhere = random() % 4 != 0;
  std::string changed;
  const char *from = text.begin();
  for (StringRef found : words)
    if (everywhere ? found == word : found.data() == word.data()) {
      changed.append(from, found.begin());
      changed += other;
      from = found.end();
    }
  return changed.append(from, text.end());
}

/// Mutations of words, and now and then of bytes.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t maxSize, unsigned seed) {
  std::minstd_rand random(seed);
  std::string changed =
      mutate(StringRef(reinterpret_cast<const char *>(data), size), random);
  if (random() % 16 == 0 || changed.size() > maxSize)
    return LLVMFuzzerMutate(data, size, maxSize);
  llvm::copy(changed, data);
  return changed.size();
}
