// GgufConfig.h: what a GGUF file's metadata says of a model. In: its values by
// key. Out: sizes, rope, windows, and the numbers that the architecture has.
#ifndef GRETA_LLM_GGUF_CONFIG_H
#define GRETA_LLM_GGUF_CONFIG_H

#include "model/Model.h"

namespace greta::llm {

// The type that a value of a file has to have.
struct GgufType {
  const char *article, *noun;
  bool (nlohmann::json::*holds)() const noexcept;
};
inline constexpr GgufType ggufText{"a ", "text", &nlohmann::json::is_string},
    ggufNumber{"a ", "number", &nlohmann::json::is_number},
    ggufInteger{"a ", "whole number", &nlohmann::json::is_number_integer},
    ggufFlag{"", "true or false", &nlohmann::json::is_boolean};

// Fails where the value is of another type; isArray: where it is no array of
// values of the type, which are all of one type in a file.
void checkType(const std::string &path, const std::string &key,
               const nlohmann::json &value, const GgufType &type,
               bool isArray = false);

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
    return get(key, ggufText).get<std::string>();
  }
  double number(const std::string &key) const {
    return get(key, ggufNumber).get<double>();
  }
  double number(const std::string &key, double otherwise) const {
    return find(key) ? number(key) : otherwise;
  }
  int64_t size(const std::string &key) const {
    double value = number(key);
    get(key, ggufInteger);
    return value >= 0 && value < 1e15 ? static_cast<int64_t>(value) : -1;
  }
  bool flag(const std::string &key, bool otherwise) const {
    return find(key) ? get(key, ggufFlag).get<bool>() : otherwise;
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
  const nlohmann::json &get(const std::string &key,
                            const GgufType &type) const {
    const nlohmann::json *value = find(key);
    if (!value)
      fail(path + ": the GGUF metadata lacks the " + type.noun + " '" + key +
           "'");
    checkType(path, key, *value, type);
    return *value;
  }
  nlohmann::json values;
};

Config configOf(const GgufMetadata &data);

} // namespace greta::llm
#endif
