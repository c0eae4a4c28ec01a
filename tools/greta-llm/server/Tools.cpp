// Tools.cpp: see Tools.h.
#include "server/Tools.h"
#include "model/Json.h"

#include <algorithm>
#include <cstring>
#include <set>
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
    ways.push_back(
        b.sequence({b.literal("{\"name\": " + json(name).dump() + ", \"" +
                              values + "\": "),
                    addSchema(b, function.contains("parameters") &&
                                         !function["parameters"].is_null()
                                     ? function["parameters"]
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
bool CallReader::readCalls(const std::string &text, Part &part) {
  std::vector<ToolCall> calls;
  auto take = [&](const json &call) {
    if (!call.is_object() || !call.contains("name") ||
        !call["name"].is_string() ||
        std::find(names.begin(), names.end(),
                  call["name"].get<std::string>()) == names.end())
      return false;
    // An answer that is JSON may have a name, too.
    static const std::set<std::string> keys = {"name", "arguments",
                                               "parameters", "type"};
    for (const auto &[key, value] : call.items())
      if (style == ToolStyle::Llama && !keys.count(key))
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
  // Depth is bounded, by more than a grammar of calls has, and nothing throws.
  bool isCall = false;
  try {
    json whole = parseJson<json>(text, "a call", {256, 1u << 20u});
    isCall = whole.is_array() && !whole.empty()
                 ? std::all_of(whole.begin(), whole.end(), take)
                 : take(whole);
  } catch (const std::exception &) {
  }
  // A client that wants one call at a time does not hear of others.
  for (ToolCall &call : calls)
    if (isCall && !(isSingle && std::exchange(hasCalled, true)))
      part.calls.push_back(std::move(call));
  return isCall;
}

/// The first bytes of what was held for a call are the answer's text.
void CallReader::giveUp(size_t end, Part &part) {
  part.text += opening + held.substr(0, end);
  endCall(end);
  isBehindCall = false;
  isText = style == ToolStyle::Llama;
}

/// Drops a call that was read, and what belongs to it.
void CallReader::endCall(size_t end) {
  held.erase(0, end);
  opening.clear();
  searched = ends = depth = 0;
  isInCall = isInString = false;
  isBehindCall = true;
}

/// A call between tags. False: its end is not there yet.
bool CallReader::takeTagged(bool isLast, Part &part) {
  // An argument may hold what ends a call.
  constexpr size_t mostEnds = 8;
  size_t end = held.find(callEnd, searched);
  if (end == held.npos) {
    searched = std::max(searched, held.size() - openBytes(held, callEnd));
    if (!isLast)
      return false;
    if (readCalls(held, part))
      endCall(held.size());
    else
      giveUp(held.size(), part);
    return true;
  }
  searched = end + strlen(callEnd);
  size_t begin = held.find_first_not_of(" \n");
  std::string text = held.substr(0, end);
  if (readCalls(text, part))
    endCall(searched);
  else if ((held[begin] != '{' && held[begin] != '[') ||
           !eachSign(text, [](char) {}) || ++ends == mostEnds)
    giveUp(searched, part);
  return true;
}

/// Returns the end of the object or list at the front of `held`; 0 if there is
/// none, npos if its end has not come yet.
size_t CallReader::jsonEnd() {
  for (; searched < held.size(); ++searched) {
    char c = held[searched];
    if (isInString) {
      searched += c == '\\';
      isInString = c != '"';
    } else if (c == '"') {
      isInString = depth != 0;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && depth && --depth == 0) {
      return ++searched;
    }
    if (!depth && c != ' ' && c != '\n' && c != '\t')
      return 0;
  }
  return held.npos;
}

/// A call that is JSON without a tag behind it.
bool CallReader::takeJson(bool isLast, Part &part) {
  size_t end = jsonEnd();
  if (end == held.npos && !isLast)
    return false;
  if (end && end != held.npos && readCalls(held.substr(0, end), part))
    endCall(end);
  else
    giveUp(end && end != held.npos ? end : held.size(), part);
  return true;
}

/// Reads the front of an answer in Llama's style, or what follows a call.
bool CallReader::beginsLlama(bool isLast, Part &part) {
  size_t begin = held.find_first_not_of(isBehindCall ? " \n\t;" : " \n\t");
  std::string rest = begin == held.npos ? "" : held.substr(begin);
  std::string front = held.substr(0, held.size() - rest.size());
  bool mayBegin = !isBehindCall || front.find(';') != front.npos;
  if (mayBegin && !isText) {
    size_t mark =
        !isBehindCall && begins(rest, pythonMark) ? strlen(pythonMark) : 0;
    if (mark || begins(rest, "{")) {
      opening = front + rest.substr(0, mark);
      held = rest.substr(mark);
      isInCall = true;
      return true;
    }
  }
  if (!isText && !isLast &&
      (rest.empty() || (!isBehindCall && begins(pythonMark, rest))))
    return false;
  // Only an answer that begins as a call is one.
  isText = isText || !rest.empty();
  bool isEnd = isBehindCall && rest.empty();
  part.text += isEnd ? "" : held;
  held.clear();
  isBehindCall = false;
  return false;
}

/// Text up to the mark of a call. False: there is no mark.
bool CallReader::beginsMarked(bool isLast, Part &part) {
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
    return false;
  }
  size_t text = held.find_last_not_of(" \n", begin ? begin - 1 : 0) + 1;
  if (!begin)
    text = 0;
  part.text += held.substr(0, text);
  opening = held.substr(text, begin - text) + mark;
  held.erase(0, begin + mark.size());
  isInCall = true;
  return true;
}

CallReader::Part CallReader::take(const std::string &more, bool isLast) {
  Part part;
  if (style == ToolStyle::None) {
    part.text = more;
    return part;
  }
  held += more;
  while (isInCall ? style == ToolStyle::Hermes ? takeTagged(isLast, part)
                                               : takeJson(isLast, part)
         : style == ToolStyle::Llama ? beginsLlama(isLast, part)
                                     : beginsMarked(isLast, part)) {
  }
  return part;
}

} // namespace greta::llm
