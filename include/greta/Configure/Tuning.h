//===- Tuning.h - the tuning database ---------------------------*- C++ -*-===//
//
// Measurements of GEMMs' configurations: greta-tune writes them,
// greta-configure takes what fits. docs/guide/tuning.md has the file's schema.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_CONFIGURE_TUNING_H
#define GRETA_CONFIGURE_TUNING_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include "llvm/Support/JSON.h"
#include <optional>

namespace greta {

struct TargetRow;

/// The GEMM that a configuration is for.
struct TuningKey {
  std::string target; // name of the row
  std::string op;     // matmul f16 nt -> f16
  /// M, N, K; mlir::ShapedType::kDynamic where dynamic.
  llvm::SmallVector<int64_t> shape;

  bool operator==(const TuningKey &other) const {
    return target == other.target && op == other.op && shape == other.shape;
  }
  /// Whether measurements of `other` are good for this GEMM: every extent
  /// has the same power of two at or above it, or is dynamic in both.
  bool sharesBucket(const TuningKey &other) const;
};

struct TuningCandidate {
  llvm::json::Object config;
  double microseconds = 0;
  std::string rejected; // why it cannot be taken; empty: it can
};

struct TuningEntry {
  TuningKey key;
  /// The device's name, or one that begins with `estimate`.
  std::string device;
  int64_t computeUnits = 0;  // of the device; 0: not known
  llvm::json::Object config; // what greta.config takes; the best
  std::vector<TuningCandidate> candidates;

  static constexpr llvm::StringLiteral estimate = "estimate";
  bool isEstimate() const {
    return llvm::StringRef(device).starts_with(estimate);
  }
  /// Whether it was measured on a device like the row's, as far as is known.
  bool isMeasuredFor(const TargetRow &row) const;
};

struct TuningDatabase {
  /// Anything but a database gives one line that says what and where.
  static llvm::Expected<TuningDatabase> parse(llvm::StringRef text);
  static llvm::Expected<TuningDatabase> load(llvm::StringRef path);
  /// The entries that ship with the compiler: measured tiles for shapes on
  /// which the model is more than 4 % slower (lib/Configure/Measured.json).
  static const TuningDatabase &shipped();
  std::string print() const;
  /// Whether `greta.config` could be this, by its form.
  static bool isConfig(const llvm::json::Object &config);

  /// The entry for a GEMM: of its own shape before its bucket's, measured on
  /// such a device before others, first in the file; null: none.
  const TuningEntry *find(const TuningKey &key, const TargetRow &row) const;

  std::vector<TuningEntry> entries;
};

/// A GEMM of a function.
struct TunableGemm {
  TuningKey key;
  int64_t rows = 0; // of a dynamic M, that its kernels serve at most; 0: any
  /// The compiler's choice, then what the model judges best.
  std::vector<llvm::json::Object> candidates;
};

/// The GEMMs of a function after greta-fuse that have no `greta.config` for
/// `row`, each kind once.
mlir::FailureOr<std::vector<TunableGemm>>
findTunable(mlir::Operation *function, const TargetRow &row, unsigned count);

/// A configuration as the attribute `greta.config`.
mlir::DictionaryAttr toAttribute(mlir::MLIRContext *context,
                                 const llvm::json::Object &config);

} // namespace greta

#endif
