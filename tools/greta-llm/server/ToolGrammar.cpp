// ToolGrammar.cpp: the grammar of calls that an answer has to be (Tools.h).
#include "server/ToolMarks.h"
#include "server/Tools.h"

namespace greta::llm {

using json = nlohmann::ordered_json;

namespace {
// The text around calls, and around a call's name and arguments.
struct Around {
  std::string begin, beforeName, beforeValues, behindValues, between, end;
  bool isJson = true; // the name, if something is in front of it
};

Around around(ToolStyle style) {
  std::string begin = callBeginOfDeepSeek, separator = separatorOfDeepSeek,
              end = callEndOfDeepSeek;
  switch (style) {
  case ToolStyle::Mistral:
  case ToolStyle::Granite:
    return {toolMarks(style)[0] + "[",
            "{\"name\": ",
            ", \"arguments\": ",
            "}",
            ", ",
            "]"};
  case ToolStyle::Coder:
    return {callBegin + std::string("\n"),
            functionBegin,
            ">\n",
            functionEnd,
            "\n" + std::string(callEnd) + "\n" + callBegin + "\n",
            "\n" + std::string(callEnd),
            false};
  case ToolStyle::MistralNamed:
    return {mistralMark, "", mistralValues, "", mistralMark, ""};
  case ToolStyle::Cohere:
    return {callsBeginOfCohere + std::string("["),
            "{\"tool_name\": ",
            ", \"parameters\": ",
            "}",
            ", ",
            "]" + std::string(callsEndOfCohere)};
  case ToolStyle::Llama:
    return {"", "{\"name\": ", ", \"parameters\": ", "}", "", ""};
  case ToolStyle::DeepSeek:
    return {callsBeginOfDeepSeek + begin + "function" + separator,
            "",
            "\n```json\n",
            "\n```" + end,
            "\n" + begin + "function" + separator,
            callsEndOfDeepSeek};
  case ToolStyle::DeepSeekPlain:
    return {callsBeginOfDeepSeek + begin,
            "",
            separator,
            end,
            begin,
            callsEndOfDeepSeek};
  case ToolStyle::Glm:
    return {"", "", "\n", "", "", ""};
  case ToolStyle::Harmony:
    return {headOfFunctions, "", headEndOfFunctions, "", "", ""};
  default:
    return {"<tool_call>\n",
            "{\"name\": ",
            ", \"arguments\": ",
            "}",
            "\n</tool_call>\n<tool_call>\n",
            "\n</tool_call>"};
  }
}
} // namespace

Grammar grammarOfCalls(const json &tools, const ToolChoice &choice) {
  GrammarBuilder b;
  Around all = around(choice.style);
  bool isJson = all.isJson && !all.beforeName.empty();
  // The prompt may end with the beginning, and with the name, too.
  bool isNamed = choice.begun.size() > all.begin.size();
  std::vector<GrammarBuilder::Expression> ways;
  for (const json &tool : tools) {
    const json &function = tool.at("function");
    std::string name = function.at("name").get<std::string>();
    if (!choice.name.empty() && name != choice.name)
      continue;
    json any = {{"type", "object"}};
    std::string head =
        all.beforeName + (isJson ? json(name).dump() : name) + all.beforeValues;
    const json &schema =
        function.contains("parameters") && !function["parameters"].is_null()
            ? function["parameters"]
            : any;
    ways.push_back(b.sequence({b.literal(isNamed ? "" : head),
                               choice.style == ToolStyle::Coder
                                   ? addParameters(b, schema)
                                   : addSchema(b, schema, schema),
                               b.literal(all.behindValues)}));
  }
  int32_t call = b.newRule(), root = b.newRule();
  b.define(call, b.choice(std::move(ways)));
  GrammarBuilder::Expression one = b.call(call);
  bool isAlone = choice.isSingle || isNamed || all.between.empty();
  std::string begin = isNamed ? "" : all.begin.substr(choice.begun.size());
  b.define(
      root,
      b.sequence(
          {b.literal(begin), one,
           isAlone ? b.empty()
                   : b.repeat(b.sequence({b.literal(all.between), one}), 0, 63),
           b.literal(all.end)}));
  return b.finish(root);
}

} // namespace greta::llm
