// ToolParameters.h: the arguments of calls that models write between tags, each
// by itself: <parameter=NAME>, a line break, the value, a line break,
// </parameter>. Texts are written as they are, other values as JSON, so only
// the function's parameters say what a value is. In: functions as OpenAI has
// them, and what a model wrote. Out: a grammar of such arguments, and the
// arguments as a JSON object.
#ifndef GRETA_LLM_TOOL_PARAMETERS_H
#define GRETA_LLM_TOOL_PARAMETERS_H

#include "grammar/Grammar.h"

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

namespace greta::llm {

// The kinds of JSON that a parameter may be, by the names that the library has
// for them ("number" for integers, too); none: any.
using ParameterKinds = std::map<std::string, std::set<std::string>>;

// The kinds of each function's parameters, by the function's name.
std::map<std::string, ParameterKinds>
kindsOfParameters(const nlohmann::ordered_json &tools);

// The expression matches the arguments that a model may write between a
// function's tags. `schema` is that of the function's parameters; a keyword
// that is not supported is an exception.
GrammarBuilder::Expression addParameters(GrammarBuilder &builder,
                                         const nlohmann::ordered_json &schema);

// The arguments that a model wrote between a function's tags; nothing if the
// text is something else.
std::optional<nlohmann::ordered_json>
readParameters(const std::string &text, const ParameterKinds &kinds);

} // namespace greta::llm
#endif
