// Description.h: which fields of a model's description greta-llm understands.
// A field that may change what the model computes and that nobody reads would
// give wrong answers without a word, so only fields of this table are taken.
#ifndef GRETA_LLM_DESCRIPTION_H
#define GRETA_LLM_DESCRIPTION_H

#include "model/Architecture.h"

#include <nlohmann/json.hpp>
#include <string>

namespace greta::llm {

// The place of the fields: config.json, that of a model with a vision tower
// around its text part, objects about rope and about quantisation (by fp8 and
// by compressed-tensors those of their own), or GGUF's metadata under the
// architecture's name.
enum class Description {
  Config,
  Vision,
  Rope,
  Quantisation,
  Fp8,
  Compressed,
  CompressedSparsity,
  CompressedGroup,
  CompressedWeights,
  Gguf
};

// Fails with the name of a field that the table does not have, or that has
// another value than greta-llm can honour. A null counts as absent.
// Some fields are for architectures with certain traits alone.
void checkFields(Description where, const std::string &path,
                 const nlohmann::json &fields,
                 const Architecture *architecture);

} // namespace greta::llm
#endif
