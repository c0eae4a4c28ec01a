// Package.h: a package as checked data. Everything here was validated against
// docs/internals/package.md when the package was opened, so the rest of the
// runtime may index without looking again.
#ifndef GRETA_RUNTIME_PACKAGE_H
#define GRETA_RUNTIME_PACKAGE_H

#include "Expr.h"

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace greta::rt {

struct TensorDecl {
  std::string Name, DType, Access;
  unsigned Bits = 0; // of an element; 0 for i1
  std::vector<Expr> Shape;
  std::vector<int64_t> StaticShape; // -1 where the dim is not a constant
  bool IsScalar = false;            // an argument that is a value
  std::optional<size_t> Tied;       // a result: the argument that it begins as
  bool IsZeroed = false;            // a temporary: zeros between launches
  uint64_t Align = 16;              // bytes; it begins at a multiple
  uint64_t MaxBytes = UINT64_MAX;   // what its kernels reach
};

struct KernelArg {
  enum Kind { Arg, Result, Temp, I32, I64, Scalar } Which;
  size_t Index = 0;         // of an argument, result or temporary
  Expr Value;               // of an I32 or I64
  uint32_t ScalarBytes = 0; // of a Scalar, which is an argument's value
  int64_t Most = INT32_MAX; // of an I32
  bool ByRows = false;      // a tensor that a part has its own rows of
  // In the argument block.
  uint32_t bytes() const {
    return Which == I32 ? 4 : Which == Scalar ? ScalarBytes : 8;
  }
};

// A cooperative-matrix product, types by name.
struct CoopShape {
  uint32_t M, N, K;
  std::string A, B, C, Result;
};

// The element that each lane holds: the (row, column) that each bit of the lane
// and of the element index adds by XOR.
struct CoopLayout {
  std::string Use, DType; // use: a, b, acc
  uint32_t Rows, Cols;
  std::vector<std::array<uint32_t, 2>> Lane, Element;
};

struct Requirements {
  std::string Arch;          // hip and host
  uint32_t SubgroupSize = 0; // 0: the module uses no subgroup operations
  uint64_t SharedBytes = 0;
  uint32_t ComputeUnits = 0; // at least
  bool Communicator = false; // a launch sums over ranks
  uint32_t Resident = 0;     // workgroups that run at a time
  std::vector<std::string> Features, SubgroupOps;
  std::vector<CoopShape> Coopmat;
  std::vector<CoopLayout> Layouts;
  std::string
      Unknown; // a requirement this runtime does not know: it cannot be met
};

// The offset of each argument in a kernel's argument block, and last the
// block's size: docs/internals/package.md, "Argument ABI".
std::vector<uint32_t> argumentOffsets(const std::vector<KernelArg> &Args);

// Values that a kernel prints: integers as i or u, their bits and with sign or
// without, or floats; those below 64 bits take one word of the log.
struct LogValue {
  std::string DType; // i32 i64 u8 u16 u32 u64 f32 f64
  std::vector<uint32_t> Shape;
  size_t Elements = 1;
  size_t words() const { return DType.substr(1) == "64" ? 2 : 1; }
};

// A print or an assertion of a kernel.
struct LogSite {
  bool IsAssert = false;
  std::string Text;
  bool Hex = false;
  std::vector<LogValue> Values; // that are printed
  std::string Where;            // of an assertion, as "kernels.py:304"
  std::vector<uint32_t> Shape;  // of an assertion's condition
  size_t Elements = 1;
  size_t Words = 0; // of a record, behind its header
};

struct LogDecl {
  size_t Temp = 0;
  size_t Words = 0; // of the temporary
  std::vector<LogSite> Sites;
};

struct KernelDecl {
  std::string File, Entry;
  std::array<uint32_t, 3> Block;
  std::vector<Expr> Grid; // three
  uint64_t LdsBytes = 0;
  bool IsResident = false; // its workgroups wait for each other
  std::vector<KernelArg> Args;
  std::optional<LogDecl> Log;
};

// A sum over ranks, behind so many of the kernels: of tensors of one dtype. In
// parts it is of PartRows of the Rows, and the kernels before it and behind it
// may be launched in the same parts: Rows is a symbol then.
struct SumDecl {
  size_t After;
  KernelArg From, To;
  int64_t PartRows = 0; // 0: it is made as a whole
  Expr Rows;
  bool Before = false, Behind = false;
};

struct Range;

struct Variant {
  std::string Id, Target, Backend;
  Requirements Requires;
  uint32_t ComputeUnits = 0; // that it was tuned for; 0: any
  std::vector<TensorDecl> Temps;
  std::vector<KernelDecl> Kernels;
  std::vector<SumDecl> Sums; // in their order
  std::vector<Range> Ranges; // that have kernels of their own
};

// Kernels that replace a variant's if each of `When` has a value from Least to
// Most. `What` has the variant's id, target and backend.
struct Range {
  struct Condition {
    Expr Value;
    int64_t Least, Most;
  };
  std::vector<Condition> When;
  Variant What;
};

struct FunctionDecl {
  struct Symbol {
    std::string Name;
    size_t Arg;
    std::optional<size_t> Dim; // of a tensor; without one the value of a scalar
  };
  std::string Name;
  std::vector<Symbol> Symbols;
  std::vector<TensorDecl> Args, Results;
  bool InPlace = false; // arguments are memory and may overlap
  std::vector<Variant> Variants;
};

// The tensor that an argument of a kernel is, no scalar.
const TensorDecl &tensorOf(const FunctionDecl &F, const Variant &V,
                           const KernelArg &A);

struct Package {
  std::string ManifestText;
  std::vector<FunctionDecl> Functions;
  std::map<std::string, std::vector<uint8_t>> Objects; // by member name

  const FunctionDecl *find(const std::string &Name) const;
};

// Both throw Error with one message that begins with `Name`.
std::shared_ptr<const Package> openPackage(const std::string &Path);
std::shared_ptr<const Package> readPackage(const void *Data, size_t Size,
                                           const std::string &Name);

// The functions of a manifest's text; `Hashes` receives the SHA-256 (lower-case
// hex) that each member must have.
std::vector<FunctionDecl>
parseManifest(const std::string &Text,
              std::map<std::string, std::string> &Hashes);

std::string sha256(const void *Data, size_t Size);

} // namespace greta::rt
#endif
