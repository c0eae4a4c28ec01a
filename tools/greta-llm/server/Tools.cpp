// Tools.cpp: see Tools.h.
#include "server/Tools.h"
#include "model/Json.h"
#include "server/ToolMarks.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

namespace greta::llm {

using json = nlohmann::ordered_json;

namespace {
bool begins(const std::string &text, const std::string &with) {
  return text.compare(0, with.size(), with) == 0;
}

bool isDeepSeek(ToolStyle style) {
  return style == ToolStyle::DeepSeek || style == ToolStyle::DeepSeekPlain;
}
} // namespace

ToolStyle toolStyleOf(const std::string &chatTemplate) {
  auto has = [&](const char *text) {
    return chatTemplate.find(text) != std::string::npos;
  };
  if (has("<|channel|>") && has("<|message|>"))
    return ToolStyle::Harmony;
  if (has(separatorOfDeepSeek))
    return has("```json") ? ToolStyle::DeepSeek : ToolStyle::DeepSeekPlain;
  if (!has("tools"))
    return ToolStyle::None;
  return has(functionBegin) && has(parameterBegin) ? ToolStyle::Coder
         : has(callBegin)                          ? ToolStyle::Hermes
         : has(mistralValues)                      ? ToolStyle::MistralNamed
         : has(mistralMark)                        ? ToolStyle::Mistral
         : has(graniteMark)                        ? ToolStyle::Granite
         : has(callsEndOfCohere)                   ? ToolStyle::Cohere
         : has("<|observation|>")                  ? ToolStyle::Glm
                                                   : ToolStyle::Llama;
}

std::vector<std::string> toolMarks(ToolStyle style) {
  switch (style) {
  case ToolStyle::None:
    return {};
  case ToolStyle::Hermes:
  case ToolStyle::Coder:
    return {callBegin, callEnd};
  case ToolStyle::Mistral:
    return {mistralMark};
  case ToolStyle::MistralNamed:
    return {mistralMark, mistralNumber, mistralValues};
  case ToolStyle::Granite:
    return {graniteMark};
  case ToolStyle::Cohere:
    return {callsBeginOfCohere, callsEndOfCohere};
  case ToolStyle::Llama:
    return {pythonMark};
  case ToolStyle::DeepSeek:
  case ToolStyle::DeepSeekPlain:
    return {callsBeginOfDeepSeek, callBeginOfDeepSeek, separatorOfDeepSeek,
            callEndOfDeepSeek, callsEndOfDeepSeek};
  case ToolStyle::Glm:
    return {glmMark};
  case ToolStyle::Harmony:
    return {"<|channel|>", "<|start|>", "<|constrain|>", "<|message|>",
            "<|end|>"};
  }
  return {};
}

std::vector<std::string> toolEnds(ToolStyle style) {
  return style == ToolStyle::Harmony
             ? std::vector<std::string>{"<|call|>", "<|return|>"}
         : style == ToolStyle::Glm ? std::vector<std::string>{"<|observation|>"}
                                   : std::vector<std::string>();
}

std::vector<std::pair<int32_t, std::string>>
shownTokens(const Tokenizer &tokenizer, const ToolChoice &choice) {
  std::vector<std::pair<int32_t, std::string>> shown;
  for (const std::vector<std::string> &marks :
       {toolMarks(choice.style), thoughtMarks(choice.thought)})
    for (const std::string &mark : marks)
      if (auto token = tokenizer.find(mark);
          token && tokenizer.bytesOf(*token).empty())
        shown.push_back({*token, mark});
  return shown;
}

std::string beginningOfCall(const ToolChoice &choice) {
  bool isKnown = choice.names.size() == 1 || !choice.name.empty();
  std::string name =
      choice.name.empty() && isKnown ? choice.names[0] : choice.name;
  switch (choice.style) {
  case ToolStyle::Harmony:
    return headOfFunctions + (isKnown ? name + headEndOfFunctions : "");
  case ToolStyle::MistralNamed:
    return mistralMark + (isKnown ? name + mistralValues : "");
  case ToolStyle::DeepSeek:
  case ToolStyle::DeepSeekPlain:
    return std::string(callsBeginOfDeepSeek) + callBeginOfDeepSeek;
  case ToolStyle::Llama:
  case ToolStyle::Glm:
    return "";
  default:
    return toolMarks(choice.style)[0];
  }
}

std::string beginningOfText(ToolStyle style) {
  return style == ToolStyle::Harmony ? "<|channel|>final<|message|>" : "";
}

//===----------------------------------------------------------------------===//
// Answers
//===----------------------------------------------------------------------===//

bool CallReader::isOffered(const std::string &name) const {
  return takesAny || std::find(names.begin(), names.end(), name) != names.end();
}

/// A client that wants one call at a time does not hear of others.
void CallReader::add(std::vector<ToolCall> calls, Part &part) {
  for (ToolCall &call : calls)
    if (!(isSingle && std::exchange(hasCalled, true)))
      part.calls.push_back(std::move(call));
}

/// A call whose arguments are apart. False: it is none.
bool CallReader::readCall(const std::string &name, const std::string &arguments,
                          Part &part) {
  if (!isOffered(name))
    return false;
  try {
    json values = parseJson<json>(arguments, "a call", {256, 1u << 20u});
    if (!values.is_object())
      return false;
    add({{name, values.dump(-1, ' ', false, json::error_handler_t::replace)}},
        part);
    return true;
  } catch (const std::exception &) {
    return false;
  }
}

/// A function's name and its parameters, each between tags. A call that was cut
/// has those that are whole, in an object that nobody takes for a whole one.
bool CallReader::readCoder(const std::string &text, bool isCut, Part &part) {
  static const ParameterKinds unknown;
  size_t end = text.find('>');
  std::string name = text.substr(0, end);
  if (end == text.npos || !isOffered(name))
    return false;
  auto it = kinds ? kinds->find(name) : decltype(kinds->find(name))();
  const ParameterKinds &known =
      kinds && it != kinds->end() ? it->second : unknown;
  std::string parameters = text.substr(end + 1);
  if (isCut)
    parameters.resize(parameters.size() -
                      std::max(openBytes(parameters, parameterBegin),
                               openBytes(parameters, functionEnd)));
  std::optional<json> values = readParameters(parameters, known);
  size_t last = parameters.rfind(parameterBegin);
  if (!values && isCut && last != parameters.npos)
    values = readParameters(parameters.substr(0, last), known);
  if (!values)
    return false;
  std::string arguments =
      values->dump(-1, ' ', false, json::error_handler_t::replace);
  if (isCut)
    arguments.pop_back();
  add({{name, arguments}}, part);
  return true;
}

/// Takes what is between the begin and the end of a call of DeepSeek's.
bool CallReader::readDeepSeek(const std::string &text, Part &part) {
  size_t separator = text.find(separatorOfDeepSeek);
  if (separator == text.npos)
    return false;
  std::string name = text.substr(0, separator),
              values = text.substr(separator + strlen(separatorOfDeepSeek));
  if (readCall(name, values, part))
    return true;
  const std::string fence = "```json";
  size_t line = values.find('\n'), begin = values.find(fence),
         end = values.rfind("```");
  return begin != values.npos && line < begin && end > begin &&
         readCall(
             values.substr(0, line),
             values.substr(begin + fence.size(), end - begin - fence.size()),
             part);
}

/// Calls as JSON, one or a list, of functions that are offered. False: it is
/// none.
bool CallReader::readCalls(const std::string &text, Part &part) {
  std::vector<ToolCall> calls;
  const char *nameKey = style == ToolStyle::Cohere ? "tool_name" : "name";
  auto take = [&](const json &call) {
    if (!call.is_object() || !call.contains(nameKey) ||
        !call[nameKey].is_string() ||
        !isOffered(call[nameKey].get<std::string>()))
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
        {call[nameKey].get<std::string>(),
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
  if (isCall)
    add(std::move(calls), part);
  return isCall;
}

/// The first bytes of what was held for a call are the answer's text.
void CallReader::giveUp(size_t end, Part &part) {
  part.text += opening + held.substr(0, end);
  endCall(end);
  isBehindCall = false;
  isText = style == ToolStyle::Llama || style == ToolStyle::Glm;
}

/// Drops a call that was read, and what belongs to it.
void CallReader::endCall(size_t end) {
  held.erase(0, end);
  opening.clear();
  called.clear();
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

/// A call of Qwen3-Coder's. False: its end is not there yet.
bool CallReader::takeCoder(bool isLast, bool isCut, Part &part) {
  // A parameter may hold what ends a call.
  constexpr size_t mostEnds = 8;
  size_t end = held.find(functionEnd, searched);
  if (end == held.npos && !isLast) {
    searched = std::max(searched, held.size() - openBytes(held, functionEnd));
    return false;
  }
  searched = end == held.npos ? held.size() : end + strlen(functionEnd);
  std::string text = held.substr(0, end);
  size_t open = text.rfind(parameterBegin), close = text.rfind(parameterEnd);
  bool isInside = open != text.npos &&
                  (close == text.npos || close < open ||
                   text.find_first_not_of(
                       " \n", close + strlen(parameterEnd)) != text.npos);
  if (readCoder(text, isCut && end == held.npos, part))
    endCall(searched);
  else if (end == held.npos || !isInside || ++ends == mostEnds)
    giveUp(searched, part);
  return true;
}

/// A call of DeepSeek's. False: its end is not there yet.
bool CallReader::takeBetween(bool isLast, Part &part) {
  size_t end = held.find(callEndOfDeepSeek);
  if (end == held.npos && !isLast)
    return false;
  size_t next =
      std::min(held.size(), end == held.npos ? held.size()
                                             : end + strlen(callEndOfDeepSeek));
  if (readDeepSeek(held.substr(0, end), part))
    endCall(next);
  else
    giveUp(next, part);
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
  auto read = [&](const std::string &text) {
    return called.empty() ? readCalls(text, part)
                          : readCall(called, text, part);
  };
  if (end && end != held.npos && read(held.substr(0, end)))
    endCall(end);
  else
    giveUp(end && end != held.npos ? end : held.size(), part);
  return true;
}

/// A call of Mistral's newer models, whose name is in front of the JSON. False:
/// its end is not there yet.
bool CallReader::takeNamed(bool isLast, Part &part) {
  constexpr size_t longest = 256; // of a name and the call's number
  if (called.empty()) {
    size_t end = held.find(mistralValues);
    if (end == held.npos && !isLast && held.size() < longest)
      return false;
    std::string name = held.substr(0, std::min(held.find('['), held.size()));
    if (end == held.npos || name.empty() || !isOffered(name)) {
      giveUp(held.size(), part);
      return true;
    }
    called = name;
    end += strlen(mistralValues);
    opening += held.substr(0, end);
    held.erase(0, end);
  }
  return takeJson(isLast, part);
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

/// The front of a turn in GLM's style, which may be the name of a function, or
/// text up to the next turn.
bool CallReader::beginsGlm(bool isLast, Part &part) {
  const std::string mark = glmMark;
  if (isText) {
    size_t turn = held.find(mark);
    bool isFound = turn != held.npos;
    size_t text =
        isFound ? turn : held.size() - (isLast ? 0 : openBytes(held, mark));
    part.text += held.substr(0, text);
    held.erase(0, isFound ? turn + mark.size() : text);
    isText = !isFound;
    return isFound;
  }
  size_t begin = std::min(held.find_first_not_of(" \n"), held.size());
  std::string rest = held.substr(begin);
  if (begins(rest, mark)) {
    held = rest.substr(mark.size());
    return true;
  }
  bool isOpen = begins(mark, rest);
  for (const std::string &name : names) {
    isOpen |= begins(name + "\n", rest);
    if (!begins(rest, name + "\n"))
      continue;
    called = name;
    opening = held.substr(0, begin + name.size() + 1);
    held.erase(0, opening.size());
    isInCall = true;
    return true;
  }
  if (isOpen && !isLast)
    return false;
  // Line breaks behind a call are no text.
  if (isBehindCall)
    held = rest;
  isBehindCall = false;
  isText = !held.empty();
  return isText;
}

/// The end of a text behind which there are blanks, and perhaps a mark and
/// blanks, up to `end`.
static size_t frontOf(const std::string &text, size_t end,
                      const std::string &mark) {
  auto skipBack = [&](size_t at) {
    while (at && (text[at - 1] == '\n' || text[at - 1] == ' '))
      --at;
    return at;
  };
  size_t at = skipBack(end);
  bool isMarked = !mark.empty() && at >= mark.size() &&
                  text.compare(at - mark.size(), mark.size(), mark) == 0;
  return isMarked ? skipBack(at - mark.size()) : at;
}

/// Text up to the mark of a call. False: there is no mark.
bool CallReader::beginsMarked(bool isLast, Part &part) {
  bool isCoder = style == ToolStyle::Coder;
  std::string mark = isDeepSeek(style) ? callBeginOfDeepSeek
                     : isCoder         ? functionBegin
                                       : toolMarks(style)[0];
  // Marks around all calls, or around each, which are no text either.
  std::string before = isDeepSeek(style) ? callsBeginOfDeepSeek
                       : isCoder         ? callBegin
                                         : "",
              behind = isDeepSeek(style)            ? callsEndOfDeepSeek
                       : style == ToolStyle::Cohere ? callsEndOfCohere
                       : isCoder                    ? callEnd
                                                    : "";
  // Line breaks between calls are no text.
  if (isBehindCall) {
    held.erase(0, std::min(held.find_first_not_of(" \n"), held.size()));
    if (!behind.empty() && begins(held, behind)) {
      held.erase(0, behind.size());
      return true;
    }
    if (!isLast && !behind.empty() && begins(behind, held))
      return false;
    isBehindCall = held.empty();
  }
  size_t begin = held.find(mark);
  if (begin == held.npos) {
    size_t open = isLast ? 0
                         : std::max(openBytes(held, mark),
                                    openBytes(held, before + mark));
    // Whitespace in front of a call is none of the answer either.
    size_t text = held.size() - open;
    if (size_t front = frontOf(held, text, before);
        !isLast && text - front < 64)
      text = front;
    part.text += held.substr(0, text);
    held.erase(0, text);
    return false;
  }
  size_t text = frontOf(held, begin, before);
  part.text += held.substr(0, text);
  opening = held.substr(text, begin - text) + mark;
  held.erase(0, begin + mark.size());
  isInCall = true;
  return true;
}

/// Messages in channels. Without a head, which is up to <|message|>, it is the
/// answer's text. False: more has to come.
bool CallReader::takeHarmony(bool isLast, Part &part) {
  const std::string headEnd = "<|message|>", functions = "to=functions.";
  auto upTo = [](const std::string &text, size_t begin, const char *ends) {
    return text.substr(
        begin, std::min(text.find_first_of(ends, begin), text.size()) - begin);
  };
  if (!isText) {
    bool hasHead = false, mayHave = false;
    for (const char *front : {"<|start|>", "<|channel|>", " to=", "to="}) {
      hasHead |= begins(held, front);
      mayHave |= begins(front, held);
    }
    size_t end = held.find(headEnd);
    hasHead &= end != held.npos || !isLast || begins(held, "<");
    if ((mayHave || (hasHead && end == held.npos)) && !isLast)
      return false;
    opening = hasHead ? held.substr(0, end) : "";
    size_t named = opening.find("<|channel|>"),
           function = opening.find(functions);
    channel = named == opening.npos ? "" : upTo(opening, named + 11, " <");
    called = function == opening.npos
                 ? ""
                 : upTo(opening, function + functions.size(), " <");
    held.erase(0, opening.size() + (hasHead ? headEnd.size() : 0));
    isText = true;
  }
  size_t end = held.npos, size = 0, open = 0;
  for (const std::string mark : {"<|end|>", "<|call|>", "<|return|>"}) {
    if (size_t at = held.find(mark); at < end)
      end = at, size = mark.size();
    open = std::max(open, openBytes(held, mark));
  }
  bool isEnd = end != held.npos;
  bool isCall = !called.empty();
  if (isCall && !isEnd && !isLast)
    return false;
  std::string body =
      held.substr(0, isEnd ? end : held.size() - (isLast ? 0 : open));
  held.erase(0, body.size() + size);
  // A call that is none is shown as it is.
  if (isCall && !readCall(called, body, part))
    part.text += opening + headEnd + body;
  else if (!isCall)
    (channel == "analysis" ? part.reasoning : part.text) += body;
  if (isEnd)
    isText = false;
  return isEnd && !held.empty();
}

CallReader::Part CallReader::take(const std::string &more, bool isLast,
                                  bool isCut) {
  Part part;
  std::string text = thoughts.take(more, isLast, part.reasoning);
  if (style == ToolStyle::None) {
    part.text = text;
    return part;
  }
  held += text;
  auto goesOn = [&] {
    if (style == ToolStyle::Harmony)
      return takeHarmony(isLast, part);
    if (isInCall)
      return style == ToolStyle::Hermes         ? takeTagged(isLast, part)
             : style == ToolStyle::Coder        ? takeCoder(isLast, isCut, part)
             : isDeepSeek(style)                ? takeBetween(isLast, part)
             : style == ToolStyle::MistralNamed ? takeNamed(isLast, part)
                                                : takeJson(isLast, part);
    return style == ToolStyle::Llama ? beginsLlama(isLast, part)
           : style == ToolStyle::Glm ? beginsGlm(isLast, part)
                                     : beginsMarked(isLast, part);
  };
  while (goesOn()) {
  }
  return part;
}

} // namespace greta::llm
