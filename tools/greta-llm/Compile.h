// Compile.h: a model's package. In: a model, and what it shall run on. Out: a
// package that greta-translate made, in a file that was named or in the cache.
#ifndef GRETA_LLM_COMPILE_H
#define GRETA_LLM_COMPILE_H

#include "Options.h"
#include "model/Model.h"

#include <filesystem>

namespace greta::llm {

// The path of the package that a command runs: the one that was named, else one
// in the cache, `$XDG_CACHE_HOME/greta/llm`, for the device that was asked for
// and as many sequences as `batches` lists. It is compiled where it is not
// there: its name is a hash of the functions, the target and the compiler.
std::string packageFor(const Model &model, const Options &options,
                       std::vector<int64_t> batches);

// Whether a signal that is blocked wants this process to end.
bool isEndAsked();

// The batches of so many sequences, or tokens of them: powers of two, so that a
// step of few has kernels of its own.
std::vector<int64_t> batchesFor(int64_t sequences);

// The user's folder of packages, which may not be there.
std::filesystem::path cachePath();

} // namespace greta::llm
#endif
