// Fields.h: fields of a JSON object, each with the type that is expected of it.
// A null counts as absent; a wrong type is an error that names the file.
#ifndef GRETA_LLM_FIELDS_H
#define GRETA_LLM_FIELDS_H

#include "model/Mapping.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace greta::llm {

class Fields {
public:
  Fields(const std::string &path, const nlohmann::json &object)
      : path(path), object(object) {}

  const nlohmann::json *find(const char *key) const {
    auto it = object.find(key);
    return it == object.end() || it->is_null() ? nullptr : &*it;
  }
  double number(const char *key) const {
    const nlohmann::json *value = find(key);
    if (!value || !value->is_number())
      fail(path + ": lacks the number '" + key + "'");
    return value->get<double>();
  }
  double number(const char *key, double otherwise) const {
    return find(key) ? number(key) : otherwise;
  }
  int64_t size(const char *key) const {
    double value = number(key);
    bool isWhole = value >= 0 && value < 1e15 && value == std::floor(value);
    return isWhole ? static_cast<int64_t>(value) : -1;
  }
  int64_t size(const char *key, int64_t otherwise) const {
    return find(key) ? size(key) : otherwise;
  }
  bool flag(const char *key) const {
    const nlohmann::json *value = find(key);
    if (value && !value->is_boolean())
      fail(path + ": '" + key + "' is neither true nor false");
    return value && value->get<bool>();
  }
  std::vector<double> numbers(const char *key) const {
    const nlohmann::json *value = find(key);
    std::vector<double> list;
    if (!value || !value->is_array())
      fail(path + ": lacks the list '" + key + "'");
    for (const nlohmann::json &one : *value) {
      if (!one.is_number())
        fail(path + ": '" + key + "' is no list of numbers");
      list.push_back(one.get<double>());
    }
    return list;
  }
  std::string text(const char *key) const {
    const nlohmann::json *value = find(key);
    if (value && !value->is_string())
      fail(path + ": '" + key + "' is no text");
    return value ? value->get<std::string>() : "";
  }

private:
  const std::string &path;
  const nlohmann::json &object;
};

} // namespace greta::llm
#endif
