// ToolParameters.cpp: see ToolParameters.h.
#include "server/ToolParameters.h"
#include "grammar/AllOf.h"
#include "model/Json.h"
#include "server/ToolMarks.h"

#include <algorithm>
#include <cstring>

namespace greta::llm {

using json = OrderedJson;
using Expression = GrammarBuilder::Expression;

namespace {

constexpr const char *blanksOfTags = " \t\n";
constexpr size_t mostParameters = 256; // of a function
constexpr int deepest = 8;             // schemas in each other

[[noreturn]] void unsupported(const std::string &what) {
  throw std::runtime_error(what + " is not supported in this model's calls");
}

// The keyword by which a schema is one of several others; "" if it is none.
std::string choiceOf(const json &schema) {
  for (const char *key : {"anyOf", "oneOf"})
    if (schema.contains(key) && schema[key].is_array())
      return key;
  return "";
}

// The kinds of values that a schema allows.
class KindsOfSchemas {
public:
  // `left`: schemas to look at.
  KindsOfSchemas(const json &root, int &left) : root(root), left(left) {}

  std::set<std::string> of(const json &schema) {
    return in(schema, 0).value_or(std::set<std::string>());
  }

private:
  /// Nothing: any kind, which is also said of schemas that are too large.
  using Kinds = std::optional<std::set<std::string>>;

  Kinds in(const json &schema, int depth) {
    if (!schema.is_object() || --left < 0 || depth > deepest)
      return std::nullopt;
    Kinds kinds;
    // The value is of what each keyword allows.
    auto keep = [&](const Kinds &others) {
      if (!kinds)
        kinds = others;
      else if (others)
        for (auto it = kinds->begin(); it != kinds->end();)
          it = others->count(*it) ? std::next(it) : kinds->erase(it);
    };
    if (schema.contains("$ref") && schema["$ref"].is_string())
      keep(in(schemaAt(root, schema["$ref"].get<std::string>()), depth + 1));
    if (schema.contains("allOf") && schema["allOf"].is_array())
      for (const json &one : schema["allOf"])
        keep(in(one, depth + 1));
    if (std::string choice = choiceOf(schema); !choice.empty())
      keep(ofAny(schema[choice], depth + 1));
    if (schema.contains("const"))
      keep({{schema["const"].type_name()}});
    if (schema.contains("enum"))
      keep(ofValues(schema["enum"]));
    if (schema.contains("type"))
      keep(ofTypes(schema["type"]));
    return kinds;
  }

  Kinds ofAny(const json &ways, int depth) {
    std::set<std::string> all;
    for (const json &way : ways) {
      Kinds its = in(way, depth);
      if (!its)
        return std::nullopt;
      all.merge(*its);
    }
    return all;
  }

  static Kinds ofValues(const json &values) {
    std::set<std::string> all;
    for (const json &value : values)
      all.insert(value.type_name());
    return all;
  }

  static Kinds ofTypes(const json &types) {
    std::set<std::string> all;
    for (const json &type : types.is_array() ? types : json::array({types}))
      all.insert(type == "integer"  ? "number"
                 : type.is_string() ? type.get<std::string>()
                                    : "");
    return all;
  }

  const json &root;
  int &left;
};

// Parameters as a grammar.
class Parameters {
public:
  Parameters(GrammarBuilder &builder, const json &root)
      : b(builder), root(root), merger(root, builder.work.values) {}

  Expression all();

private:
  Expression of(const json &schema, int depth);
  Expression reference(const std::string &pointer, int depth);
  Expression ofValues(const json &schema);
  Expression text();

  GrammarBuilder &b;
  const json &root;
  AllOf merger;
  int32_t textRule = -1;
  std::map<std::string, int32_t> references; // -1: being read
};

Expression Parameters::all() {
  if (!root.is_object())
    unsupported("anything but an object of parameters");
  static const std::set<std::string> known = {"type", "properties", "required",
                                              "additionalProperties"};
  for (const auto &[key, value] : root.items())
    if (!known.count(key) && !isAnnotation(key))
      unsupported("'" + key.substr(0, 60) + "' of a function's parameters");
  static const json nothing = json::object(), nobody = json::array();
  const json &properties =
      root.contains("properties") ? root["properties"] : nothing;
  const json &required = root.contains("required") ? root["required"] : nobody;
  if (!properties.is_object() || !required.is_array())
    throw std::runtime_error(
        "'properties' has to be an object, and 'required' a list");
  if (properties.size() > mostParameters)
    throw std::runtime_error("a function has more than 256 parameters");
  std::set<std::string> needed;
  for (const json &name : required) {
    if (!name.is_string() || !properties.contains(name.get<std::string>()))
      throw std::runtime_error(
          "'required' names something that 'properties' does not");
    needed.insert(name.get<std::string>());
  }
  std::vector<Expression> parts;
  for (const auto &[name, schema] : properties.items()) {
    if (name.empty() || name.find_first_of("<>\n") != name.npos)
      unsupported(
          "a parameter whose name is empty, or has '<', '>' or a line break");
    Expression one =
        b.sequence({b.literal(parameterBegin + name + ">\n"), of(schema, 0),
                    b.literal(std::string("\n") + parameterEnd + "\n")});
    parts.push_back(needed.count(name) ? one : b.optional(one));
  }
  return b.sequence(std::move(parts));
}

Expression Parameters::of(const json &schema, int depth) {
  if (depth > deepest)
    unsupported("a parameter of so many JSON schemas in each other");
  if (!schema.is_object())
    return schema == false ? b.choice({}) : text();
  if (schema.contains("allOf"))
    return of(merger.merged(schema), depth + 1);
  if (schema.contains("enum") || schema.contains("const"))
    return ofValues(schema);
  std::string choice = choiceOf(schema), first;
  for (const auto &[key, value] : schema.items()) {
    if (isAnnotation(key) || key == "type")
      continue;
    if ((!choice.empty() && (key != choice || schema.contains("type"))) ||
        (schema.contains("$ref") && key != "$ref"))
      unsupported("'" + key.substr(0, 60) + "' beside others in a JSON schema");
    static const std::set<std::string> ofTexts = {"minLength", "maxLength",
                                                  "pattern", "format"};
    if (!schema.contains("type") && ofTexts.count(key))
      unsupported("'" + key + "' of a text");
    first = key;
  }
  if (first == "$ref" && schema["$ref"].is_string())
    return reference(schema["$ref"].get<std::string>(), depth);
  std::vector<Expression> ways;
  if (!choice.empty()) {
    for (const json &one : schema[choice])
      ways.push_back(of(one, depth + 1));
    return b.choice(std::move(ways));
  }
  if (!schema.contains("type") && first.empty())
    return text();
  if (schema.contains("type") && schema["type"].is_array()) {
    constexpr size_t mostTypes = 7; // that JSON has
    if (schema["type"].size() > mostTypes)
      throw std::runtime_error("'type' has more than 7 types");
    for (const json &type : schema["type"]) {
      json one = schema;
      one["type"] = type;
      ways.push_back(of(one, depth + 1));
    }
    return b.choice(std::move(ways));
  }
  if (!schema.contains("type") || schema["type"] != "string")
    return addSchema(b, schema, root);
  if (!first.empty())
    unsupported("'" + first.substr(0, 60) + "' of a text");
  return text();
}

/// A schema is read once, however often it is referred to.
Expression Parameters::reference(const std::string &pointer, int depth) {
  auto [it, isNew] = references.try_emplace(pointer, -1);
  if (!isNew && it->second < 0)
    unsupported("a parameter that refers to itself");
  if (isNew) {
    Expression value = of(schemaAt(root, pointer), depth + 1);
    it->second = b.newRule();
    b.define(it->second, value);
  }
  return b.call(it->second);
}

/// One of some values, of which texts stand as they are.
Expression Parameters::ofValues(const json &schema) {
  if (schema.contains("enum") && schema.contains("const"))
    unsupported("'enum' beside 'const'");
  json others = schema;
  others.erase("const");
  others["enum"] = json::array();
  std::vector<std::string> texts;
  json values =
      schema.contains("enum") ? schema["enum"] : json::array({schema["const"]});
  if (!values.is_array())
    throw std::runtime_error("'enum' has to be a list");
  const json type = schema.contains("type") ? schema["type"] : json("string");
  bool takesTexts = type == "string" ||
                    (type.is_array() && std::find(type.begin(), type.end(),
                                                  "string") != type.end());
  for (const json &value : values) {
    if (!value.is_string() || !takesTexts) {
      others["enum"].push_back(value);
      continue;
    }
    texts.push_back(value.get<std::string>());
    if (texts.back().find(parameterEnd) != std::string::npos)
      unsupported(std::string("a text with ") + parameterEnd);
  }
  return b.choice({b.oneOf(std::move(texts)), addSchema(b, others, root)});
}

/// A text that has no end of a parameter in it: a rule for each part of that
/// end that the characters before may be.
Expression Parameters::text() {
  if (textRule >= 0)
    return b.call(textRule);
  std::vector<int32_t> rules(strlen(parameterEnd));
  for (int32_t &rule : rules)
    rule = b.newRule();
  textRule = rules[0];
  for (size_t at = 0; at < rules.size(); ++at) {
    // All characters of the end are different from its first one.
    auto next = static_cast<uint32_t>(parameterEnd[at]), first = uint32_t('<');
    std::vector<Expression> ways = {b.empty()};
    if (at + 1 < rules.size())
      ways.push_back(
          b.sequence({b.characters({{next, next}}), b.call(rules[at + 1])}));
    if (at)
      ways.push_back(
          b.sequence({b.characters({{first, first}}), b.call(rules[1])}));
    CharacterRanges others = {{'\t', '\n'}};
    uint32_t low = ' ';
    for (uint32_t one : {std::min(first, next), std::max(first, next)}) {
      if (low < one)
        others.push_back({low, one - 1});
      low = one + 1;
    }
    others.push_back({low, 0x10ffff});
    ways.push_back(b.sequence({b.characters(others), b.call(rules[0])}));
    b.define(rules[at], b.choice(std::move(ways)));
  }
  return b.call(textRule);
}

// A value as a model wrote it. Some write Python's names.
json valueOf(const std::string &text, const std::set<std::string> &kinds) {
  auto mayBe = [&](const char *kind) {
    return kinds.empty() || kinds.count(kind);
  };
  static const std::map<std::string, json> python = {
      {"True", true}, {"False", false}, {"None", nullptr}};
  json value;
  bool isRead = true;
  if (auto it = python.find(text); it != python.end())
    value = it->second;
  else
    try {
      value = parseJson<json>(text, "a value", {256, 1u << 20u});
    } catch (const std::exception &) {
      isRead = false;
    }
  // A text has no quotation marks of JSON around it.
  bool isText = !isRead || value.is_string() || !mayBe(value.type_name());
  return isText && (mayBe("string") || !isRead) ? json(text) : value;
}

} // namespace

Expression addParameters(GrammarBuilder &builder, const json &schema) {
  return Parameters(builder, schema).all();
}

std::map<std::string, ParameterKinds> kindsOfParameters(const json &tools) {
  std::map<std::string, ParameterKinds> all;
  int left = 20'000; // behind so many, parameters may be of any kind
  for (const json &tool : tools) {
    const json &function = tool.at("function");
    ParameterKinds &kinds = all[function.at("name").get<std::string>()];
    if (!function.contains("parameters") ||
        !function["parameters"].is_object() ||
        !function["parameters"].contains("properties"))
      continue;
    const json &root = function["parameters"];
    if (!root["properties"].is_object())
      continue;
    KindsOfSchemas of(root, left);
    for (const auto &[name, schema] : root["properties"].items())
      try {
        kinds[name] = of.of(schema);
      } catch (const std::exception &) { // it refers to nothing
      }
  }
  return all;
}

std::optional<json> readParameters(const std::string &text,
                                   const ParameterKinds &kinds) {
  json values = json::object();
  size_t at = 0;
  auto skipBlanks = [&](size_t from) {
    return std::min(text.find_first_not_of(blanksOfTags, from), text.size());
  };
  auto isAt = [&](size_t from, const char *mark) {
    return text.compare(from, strlen(mark), mark) == 0;
  };
  while ((at = skipBlanks(at)) < text.size()) {
    size_t close = text.find('>', at);
    if (!isAt(at, parameterBegin) || close == text.npos ||
        values.size() == mostParameters)
      return std::nullopt;
    at += strlen(parameterBegin);
    std::string name = text.substr(at, close - at);
    // The mark of a parameter's end may be in its value, too.
    size_t last = close, next = 0;
    do {
      last = text.find(parameterEnd, last + 1);
      if (last == text.npos)
        return std::nullopt;
      next = skipBlanks(last + strlen(parameterEnd));
    } while (next < text.size() && !isAt(next, parameterBegin));
    std::string value = text.substr(close + 1, last - close - 1);
    if (!value.empty() && value[0] == '\n')
      value.erase(0, 1);
    if (!value.empty() && value.back() == '\n')
      value.pop_back();
    auto it = kinds.find(name);
    values[name] = valueOf(value, it == kinds.end() ? std::set<std::string>()
                                                    : it->second);
    at = next;
  }
  return values;
}

} // namespace greta::llm
