// Json.h: JSON from a file or a client that nobody has checked. The library
// parses any depth, but copies and writes values by recursion, and an array
// takes some twenty times the bytes of its text. Both are bounded before
// anything is parsed. A name that an object has twice is an error: the library
// keeps its last value, other readers the first.
#ifndef GRETA_LLM_JSON_H
#define GRETA_LLM_JSON_H

#include "model/Mapping.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace greta::llm {

// Its objects keep the order of their fields.
using OrderedJson = nlohmann::ordered_json;

struct JsonLimits {
  size_t depth = 64;          // arrays and objects in each other
  size_t values = 64u << 20u; // of all arrays and objects together
};

// Calls `visit` with each bracket, comma and colon outside of strings. They are
// the structure up to the first mistake in the text, which ends the parser too.
// Returns whether the text ends inside a string.
template <typename Visit>
bool eachSign(std::string_view text, const Visit &visit) {
  bool isInString = false;
  for (size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    if (isInString) {
      at += c == '\\';
      isInString = c != '"';
      continue;
    }
    isInString = c == '"';
    if (c == '[' || c == '{' || c == ']' || c == '}' || c == ',' || c == ':')
      visit(c);
  }
  return isInString;
}

// The most names that one object of a text can have: colons in it.
inline size_t mostNames(std::string_view text) {
  std::vector<size_t> open; // the colons of each array and object
  size_t most = 0;
  eachSign(text, [&](char c) {
    if (c == '[' || c == '{')
      open.push_back(0);
    else if (open.empty())
      return;
    else if (c == ']' || c == '}')
      open.pop_back();
    else if (c == ':')
      most = std::max(most, ++open.back());
  });
  return most;
}

// The names in all objects of a value.
template <typename Json> size_t countNames(const Json &value) {
  size_t count = value.is_object() ? value.size() : 0;
  for (const Json &one : value)
    if (one.is_structured())
      count += countNames(one);
  return count;
}

// Fails with one line that begins with `what`, such as the file's name.
template <typename Json = nlohmann::json>
Json parseJson(std::string_view text, const std::string &what,
               JsonLimits limits = {}) {
  size_t depth = 0, values = 0, names = 0;
  eachSign(text, [&](char c) {
    bool begins = c == '[' || c == '{';
    if (begins)
      ++depth;
    else if ((c == ']' || c == '}') && depth)
      --depth;
    values += begins || c == ',';
    names += c == ':';
    if (depth > limits.depth)
      fail(what + ": the JSON is nested more than " +
           std::to_string(limits.depth) + " deep");
    if (values > limits.values)
      fail(what + ": the JSON has more than " + std::to_string(limits.values) +
           " values");
  });
  Json value = Json::parse(text, nullptr, false);
  if (value.is_discarded())
    fail(what + ": is no JSON");
  if (countNames(value) != names)
    fail(what + ": an object of the JSON has a name twice");
  return value;
}

} // namespace greta::llm
#endif
