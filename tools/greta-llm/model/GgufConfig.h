// GgufConfig.h: what a GGUF file's metadata says of a model. In: its values by
// key. Out: sizes, rope, windows, and the numbers that the architecture has.
#ifndef GRETA_LLM_GGUF_CONFIG_H
#define GRETA_LLM_GGUF_CONFIG_H

#include "model/Model.h"

namespace greta::llm {

// The metadata, by key.
class GgufMetadata {
public:
  GgufMetadata(std::string path, nlohmann::json values)
      : path(std::move(path)), values(std::move(values)) {}

  const nlohmann::json *find(const std::string &key) const {
    auto it = values.find(key);
    return it == values.end() ? nullptr : &*it;
  }
  std::string text(const std::string &key) const {
    const nlohmann::json &value = get(key, "text");
    if (!value.is_string())
      failOther(key, "a text");
    return value.get<std::string>();
  }
  double number(const std::string &key) const {
    const nlohmann::json &value = get(key, "number");
    if (!value.is_number())
      failOther(key, "a number");
    return value.get<double>();
  }
  double number(const std::string &key, double otherwise) const {
    return find(key) ? number(key) : otherwise;
  }
  int64_t size(const std::string &key) const {
    double value = number(key);
    if (!find(key)->is_number_integer())
      failOther(key, "a whole number");
    return value >= 0 && value < 1e15 ? static_cast<int64_t>(value) : -1;
  }
  bool flag(const std::string &key) const {
    const nlohmann::json &value = get(key, "flag");
    if (!value.is_boolean())
      failOther(key, "true or false");
    return value.get<bool>();
  }
  // The values whose keys begin so, without the beginning.
  nlohmann::json below(const std::string &prefix) const {
    nlohmann::json some = nlohmann::json::object();
    for (const auto &[key, value] : values.items())
      if (key.rfind(prefix, 0) == 0)
        some[key.substr(prefix.size())] = value;
    return some;
  }
  std::string path;

private:
  const nlohmann::json &get(const std::string &key, const char *kind) const {
    const nlohmann::json *value = find(key);
    if (!value)
      fail(path + ": the GGUF metadata lacks the " + kind + " '" + key + "'");
    return *value;
  }
  [[noreturn]] void failOther(const std::string &key, const char *kind) const {
    fail(path + ": '" + key + "' of the GGUF metadata is not " + kind);
  }
  nlohmann::json values;
};

Config configOf(const GgufMetadata &data);

} // namespace greta::llm
#endif
