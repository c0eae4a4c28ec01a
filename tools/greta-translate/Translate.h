//===- Translate.h - what greta-translate was asked for ---------*- C++ -*-===//
#ifndef GRETA_TRANSLATE_TRANSLATE_H
#define GRETA_TRANSLATE_TRANSLATE_H

#include <optional>
#include <string>

namespace greta::translate {

enum class Action { None, Package, Hsaco, Amdgcn, LLVMIR, Spirv, Header };
enum class Report { None, Text, Json };

struct Options {
  Action action = Action::None;
  std::string input = "-", output = "-", targets, function, tuning;
  std::optional<unsigned> kernel;
  Report report = Report::None;
  std::optional<int64_t> partRows;
  int64_t joined = 0;
  bool timing = false, checked = false, lineTables = false, isQuiet = false;
  // The grid of Triton IR.
  bool isTriton = false;
  std::string grid;
  unsigned numWarps = 0, numStages = 0;
};

/// The whole tool; the process's exit status.
int translate(const Options &options);

} // namespace greta::translate
#endif
