// Fields.h: fields of requests. In: a body that a client sent. Out: values of
// the right kind, or a Refusal that names the field.
#ifndef GRETA_LLM_SERVER_FIELDS_H
#define GRETA_LLM_SERVER_FIELDS_H

#include "model/Json.h"
#include "server/Http.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

namespace greta::llm {

// Text that need not be UTF-8, as JSON.
inline std::string shown(const OrderedJson &value) {
  std::string text =
      value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 60) + ".." : text;
}

inline const OrderedJson &fieldOf(const OrderedJson &body, const char *key) {
  static const OrderedJson none;
  auto it = body.find(key);
  return it == body.end() ? none : *it;
}

inline double numberOf(const OrderedJson &body, const char *key,
                       double otherwise, double least, double most,
                       bool isWhole = false) {
  const OrderedJson &field = fieldOf(body, key);
  if (field.is_null())
    return otherwise;
  double value = field.is_number() ? field.get<double>() : NAN;
  if (!(value >= least && value <= most) ||
      (isWhole && value != std::floor(value))) {
    char text[160];
    snprintf(text, sizeof(text), "'%s' has to be a %snumber from %.9g to %.9g",
             key, isWhole ? "whole " : "", least, most);
    throw Refusal(400, text);
  }
  return value;
}

inline bool flagOf(const OrderedJson &body, const char *key,
                   bool otherwise = false) {
  const OrderedJson &field = fieldOf(body, key);
  if (field.is_null())
    return otherwise;
  if (!field.is_boolean())
    throw Refusal(400, std::string("'") + key + "' has to be true or false");
  return field.get<bool>();
}

// "" where there is none.
inline std::string textOf(const OrderedJson &body, const char *key) {
  const OrderedJson &field = fieldOf(body, key);
  if (field.is_null())
    return "";
  if (!field.is_string())
    throw Refusal(400, std::string("'") + key + "' has to be a text");
  return field.get<std::string>();
}

// An object with no other fields than these.
inline void checkKeys(const OrderedJson &object, const std::string &what,
                      const std::set<std::string> &known) {
  if (!object.is_object())
    throw Refusal(400, what + " has to be an object");
  for (const auto &[name, value] : object.items())
    if (!known.count(name) && !value.is_null()) // null: not given
      throw Refusal(400, what + ": '" + name + "' is not supported");
}

// JSON with its names in their order, in which looking for one of many takes
// long: one with an object of more than a field may have has them in the order
// of the alphabet. `what` begins an error.
OrderedJson orderedJson(const std::string &text, const std::string &what);

// A body in Ollama's or Anthropic's words in OpenAI's (Dialects.cpp).
OrderedJson fromOllama(const OrderedJson &body);
OrderedJson fromMessages(const OrderedJson &body);

} // namespace greta::llm
#endif
