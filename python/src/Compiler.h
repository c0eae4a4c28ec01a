//===- Compiler.h - the compiler, for the module _compiler ----------------===//
//
// In: sources, MLIR of greta's dialects or Triton IR, and what to make of them.
// Out: a package, or the text or object of one stage, and what the compiler
// said. The seam between Compiler.cpp, which is MLIR's world without
// exceptions, and CompilerModule.cpp, which is Python's.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_PYTHON_COMPILER_H
#define GRETA_PYTHON_COMPILER_H

#include <string>
#include <utility>
#include <vector>

namespace greta::python {

enum class Form {
  Package,  ///< one archive
  Tile,     ///< block programs and the functions that launch them
  LLVMIR,   ///< for AMD chips and the host
  Assembly, ///< AMD's assembly, or SPIR-V as MLIR's dialect
  Object,   ///< the bytes of the first kernel's first variant
};

struct Request {
  /// The texts, each with the grid of a Triton kernel; empty: grid_x, grid_y,
  /// grid_z. A package holds the functions of all, whose names differ.
  std::vector<std::pair<std::string, std::string>> sources;
  std::string name;    // the sources' name in messages
  std::string targets; // "gfx942,vulkan"; other forms take one
  bool isTriton = false;
  unsigned numWarps = 0, numStages = 0;
  Form form = Form::Package;
  bool lineTables = false; // for AMD code objects
};

struct Outcome {
  bool succeeded = false;
  std::string result;
  /// Errors, or warnings of a success, with the source's lines.
  std::string messages;
};

Outcome compile(const Request &request);

/// Differs between any two builds of the compiler.
std::string buildId();

} // namespace greta::python

#endif
