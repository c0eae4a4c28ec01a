// Tools.cpp: see Tools.h.
#include "server/Tools.h"
#include "model/Json.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace greta::llm {

using json = nlohmann::ordered_json;

namespace {
constexpr const char *callBegin = "<tool_call>", *callEnd = "</tool_call>",
                     *mistralMark = "[TOOL_CALLS]",
                     *pythonMark = "<|python_tag|>";

bool begins(const std::string &text, const std::string &with) {
  return text.compare(0, with.size(), with) == 0;
}

// So many bytes at the end may be the beginning of a mark.
size_t openBytes(const std::string &text, const std::string &mark) {
  for (size_t size = std::min(text.size(), mark.size() - 1); size; --size)
    if (text.compare(text.size() - size, size, mark, 0, size) == 0)
      return size;
  return 0;
}
} // namespace

ToolStyle toolStyleOf(const std::string &chatTemplate) {
  auto has = [&](const char *text) {
    return chatTemplate.find(text) != std::string::npos;
  };
  if (!has("tools"))
    return ToolStyle::None;
  return has(callBegin)     ? ToolStyle::Hermes
         : has(mistralMark) ? ToolStyle::Mistral
                            : ToolStyle::Llama;
}

const char *toolMark(ToolStyle style) {
  return style == ToolStyle::Hermes    ? callBegin
         : style == ToolStyle::Mistral ? mistralMark
                                       : pythonMark;
}

//===----------------------------------------------------------------------===//
// The grammar of calls
//===----------------------------------------------------------------------===//

Grammar grammarOfCalls(const json &tools, const ToolChoice &choice) {
  GrammarBuilder b;
  std::string values =
      choice.style == ToolStyle::Llama ? "parameters" : "arguments";
  std::vector<GrammarBuilder::Expression> ways;
  for (const json &tool : tools) {
    const json &function = tool.at("function");
    std::string name = function.at("name").get<std::string>();
    if (!choice.name.empty() && name != choice.name)
      continue;
    json any = {{"type", "object"}};
    ways.push_back(b.sequence(
        {b.literal("{\"name\": " + json(name).dump() + ", \"" + values +
                   "\": "),
         addSchema(b, function.contains("parameters") ? function["parameters"]
                                                      : any),
         b.literal("}")}));
  }
  int32_t call = b.newRule(), root = b.newRule();
  b.define(call, b.choice(std::move(ways)));
  GrammarBuilder::Expression one = b.call(call), all;
  auto separated = [&](const char *separator) {
    return choice.isSingle
               ? b.empty()
               : b.repeat(b.sequence({b.literal(separator), one}), 0, 63);
  };
  switch (choice.style) {
  case ToolStyle::Mistral:
    all = b.sequence({b.literal(choice.isBegun ? "[" : "[TOOL_CALLS]["), one,
                      separated(", "), b.literal("]")});
    break;
  case ToolStyle::Llama:
    all = one;
    break;
  default:
    all = b.sequence({b.literal(choice.isBegun ? "\n" : "<tool_call>\n"), one,
                      separated("\n</tool_call>\n<tool_call>\n"),
                      b.literal("\n</tool_call>")});
  }
  b.define(root, all);
  return b.finish(root);
}

//===----------------------------------------------------------------------===//
// What a model said
//===----------------------------------------------------------------------===//

/// Calls as JSON, one or a list, of functions that are offered. False: it is
/// none.
bool CallReader::readCalls(const std::string &text, Part &part) const {
  std::vector<ToolCall> calls;
  auto take = [&](const json &call) {
    if (!call.is_object() || !call.contains("name") ||
        !call["name"].is_string() ||
        std::find(names.begin(), names.end(),
                  call["name"].get<std::string>()) == names.end())
      return false;
    const json *values = call.contains("arguments")    ? &call["arguments"]
                         : call.contains("parameters") ? &call["parameters"]
                                                       : nullptr;
    calls.push_back(
        {call["name"].get<std::string>(),
         !values ? "{}"
         : values->is_string()
             ? values->get<std::string>()
             : values->dump(-1, ' ', false, json::error_handler_t::replace)});
    return true;
  };
  // Depth is bounded, and nothing throws.
  bool isCall = false;
  try {
    (void)parseJson(text, "a call");
    json whole = json::parse(text);
    isCall = whole.is_array() && !whole.empty()
                 ? std::all_of(whole.begin(), whole.end(), take)
                 : take(whole);
  } catch (const std::exception &) {
  }
  if (isCall)
    part.calls.insert(part.calls.end(), calls.begin(), calls.end());
  return isCall;
}

/// The first bytes of what was held for a call are the answer's text.
void CallReader::giveUp(size_t end, Part &part) {
  if (style == ToolStyle::Hermes)
    part.text += space + callBegin;
  else if (style == ToolStyle::Mistral)
    part.text += space + mistralMark;
  part.text += held.substr(0, end);
  held.erase(0, end);
  space.clear();
  searched = ends = 0;
  isInCall = false;
}

CallReader::Part CallReader::take(const std::string &more, bool isLast) {
  Part part;
  if (style == ToolStyle::None) {
    part.text = more;
    return part;
  }
  // What was looked through before holds no mark.
  size_t looked = held.size();
  held += more;
  if (style == ToolStyle::Llama && !isInCall && !isText) {
    // Only an answer that begins as a call is one.
    size_t begin = held.find_first_not_of(" \n\t");
    std::string rest = begin == held.npos ? "" : held.substr(begin);
    if (begins(rest, pythonMark)) {
      held = rest.substr(strlen(pythonMark));
      isInCall = true;
    } else if (begins(rest, "{")) {
      isInCall = true;
    } else if (!rest.empty() && !begins(pythonMark, rest)) {
      isText = true;
    }
  }
  while (true) {
    if (isInCall) {
      // An argument may hold what ends a call.
      constexpr size_t mostEnds = 8;
      size_t from =
          std::max(searched, looked - std::min(looked, strlen(callEnd)));
      size_t end =
          style == ToolStyle::Hermes ? held.find(callEnd, from) : held.npos;
      looked = 0;
      if (end == held.npos) {
        if (!isLast)
          return part;
        if (readCalls(held, part))
          held.clear();
        else
          giveUp(held.size(), part);
        return part;
      }
      searched = end + strlen(callEnd);
      if (readCalls(held.substr(0, end), part)) {
        held.erase(0, searched);
        space.clear();
        searched = ends = 0;
        isInCall = false;
        isBehindCall = true;
        continue;
      }
      size_t begin = held.find_first_not_of(" \n");
      if ((held[begin] != '{' && held[begin] != '[') || ++ends == mostEnds)
        giveUp(searched, part);
      continue;
    }
    if (style == ToolStyle::Llama) {
      if (isText || isLast)
        part.text += std::exchange(held, {});
      return part;
    }
    // Line breaks between calls are no text.
    if (isBehindCall) {
      held.erase(0, std::min(held.find_first_not_of(" \n"), held.size()));
      isBehindCall = held.empty();
    }
    std::string mark = toolMark(style);
    size_t begin = held.find(mark);
    if (begin == held.npos) {
      size_t open = isLast ? 0 : openBytes(held, mark);
      // Whitespace in front of a call is none of the answer either.
      size_t text = held.size() - open;
      if (!isLast && held.size() < 64)
        while (text && (held[text - 1] == '\n' || held[text - 1] == ' '))
          --text;
      part.text += held.substr(0, text);
      held.erase(0, text);
      return part;
    }
    std::string before = held.substr(0, begin);
    space = before.substr(before.find_last_not_of(" \n") + 1);
    part.text += before.substr(0, before.size() - space.size());
    held.erase(0, begin + mark.size());
    isInCall = true;
  }
}

} // namespace greta::llm
