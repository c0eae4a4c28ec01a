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
  unsigned Bits = 0; // bits of an element; 0 for i1
  std::vector<Expr> Shape;
  std::vector<int64_t> StaticShape; // -1: the dim is not a constant
  bool IsScalar = false;            // a scalar argument
  std::optional<size_t> Tied;       // the argument that a result begins as
  bool IsZeroed = false;            // a temporary with zeros between launches
  uint64_t Align = 16;              // bytes that divide its offset
  uint64_t MaxBytes = UINT64_MAX;   // kernels reach no more bytes
};

struct KernelArg {
  enum Kind { Arg, Result, Temp, I32, I64, Scalar } Which;
  size_t Index = 0;         // number of argument, result or temporary
  Expr Value;               // an I32's or I64's
  uint32_t ScalarBytes = 0; // bytes of a Scalar argument
  int64_t Most = INT32_MAX; // largest value of an I32
  bool ByRows = false;      // each part has its own rows of it
  // Bytes in the argument block.
  uint32_t bytes() const {
    return Which == I32 ? 4 : Which == Scalar ? ScalarBytes : 8;
  }
};

// A cooperative-matrix product, with types by name.
struct CoopShape {
  uint32_t M, N, K;
  std::string A, B, C, Result;
};

// The element that each lane holds: each bit of the lane and of the element
// index adds its (row, column) by XOR.
struct CoopLayout {
  std::string Use, DType; // use: a, b, acc
  uint32_t Rows, Cols;
  std::vector<std::array<uint32_t, 2>> Lane, Element;
};

struct Requirements {
  std::string Arch;          // hip and host
  uint32_t SubgroupSize = 0; // 0: the module uses no subgroup operations
  uint64_t SharedBytes = 0;
  uint32_t ComputeUnits = 0; // least number
  bool Communicator = false; // a launch sums over ranks
  uint32_t Resident = 0;     // workgroups that have to run at a time
  std::vector<std::string> Features, SubgroupOps;
  std::vector<CoopShape> Coopmat;
  std::vector<CoopLayout> Layouts;
  std::string
      Unknown; // requirements of a newer runtime, which this one cannot meet
};

// Returns the offset of each argument in a kernel's argument block, and last
// the block's size: docs/internals/package.md, "Argument ABI".
std::vector<uint32_t> argumentOffsets(const std::vector<KernelArg> &Args);

// A value that a kernel prints: an integer is i or u, its bits, with or without
// sign, else a float. Fewer than 64 bits take one word of the log.
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
  std::vector<LogValue> Values; // printed values
  std::string Where;            // an assertion's place, as "kernels.py:304"
  std::vector<uint32_t> Shape;  // shape of an assertion's condition
  size_t Elements = 1;
  size_t Words = 0; // words of a record behind its header
};

struct LogDecl {
  size_t Temp = 0;
  size_t Words = 0; // words of the temporary
  std::vector<LogSite> Sites;
};

struct KernelDecl {
  std::string File, Entry;
  std::array<uint32_t, 3> Block;
  std::vector<Expr> Grid; // three extents
  uint64_t LdsBytes = 0;
  bool IsResident = false; // its workgroups wait for each other
  // The argument that is 1 when they only try whether they run at a time.
  std::optional<size_t> Trial;
  std::vector<KernelArg> Args;
  std::optional<LogDecl> Log;
};

// A sum over ranks of tensors of one dtype, behind so many of the kernels. In
// parts it has PartRows of the Rows, and the kernels before it and behind it
// may be launched in the same parts: Rows is a symbol then.
struct SumDecl {
  size_t After;
  KernelArg From, To;
  int64_t PartRows = 0; // 0: the sum has one part
  Expr Rows;
  bool Before = false, Behind = false;
};

struct Range;

struct Variant {
  std::string Id, Target, Backend;
  Requirements Requires;
  uint32_t ComputeUnits = 0; // it was tuned for so many; 0: any
  std::vector<TensorDecl> Temps;
  std::vector<KernelDecl> Kernels;
  std::vector<SumDecl> Sums; // in the order of launches
  std::vector<Range> Ranges; // they have kernels of their own
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
    std::optional<size_t> Dim; // none: the value of a scalar
  };
  std::string Name;
  std::vector<Symbol> Symbols;
  std::vector<TensorDecl> Args, Results;
  bool InPlace = false; // arguments are memory and may overlap
  std::vector<Variant> Variants;
};

// Returns the tensor that an argument of a kernel is, which is no scalar.
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

// Reads the functions of a manifest's text. `Hashes` receives the SHA-256
// (lower-case hex) that each member must have.
std::vector<FunctionDecl>
parseManifest(const std::string &Text,
              std::map<std::string, std::string> &Hashes);

std::string sha256(const void *Data, size_t Size);

} // namespace greta::rt
#endif
