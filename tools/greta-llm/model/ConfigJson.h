// ConfigJson.h: what Hugging Face's config.json says of a model. In: its
// fields, those that the architecture assumes included. Out: sizes, rope,
// windows, and the numbers that the architecture has.
#ifndef GRETA_LLM_CONFIG_JSON_H
#define GRETA_LLM_CONFIG_JSON_H

#include "model/Model.h"

namespace greta::llm {

// Fields that are absent get what the architecture assumes, in `object`.
Config configOf(const std::string &path, nlohmann::json &object);

} // namespace greta::llm
#endif
