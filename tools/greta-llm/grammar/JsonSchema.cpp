// JsonSchema.cpp: a JSON schema as a grammar of the values that it allows, or
// of some of them: properties come in the order of the schema, and between
// tokens there is a space, or a line break and some more, or nothing. A keyword
// that is not known is an error that names it.
#include "grammar/Schema.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace greta::llm {

using Expression = GrammarBuilder::Expression;

namespace {

// Keywords that say nothing about a value.
const std::set<std::string> annotations = {
    "title", "description", "default",      "examples", "$schema",
    "$id",   "$comment",    "deprecated",   "readOnly", "writeOnly",
    "$defs", "definitions", "discriminator"};
// The keywords that imply a type where none is named.
const std::map<std::string, std::string> typeOf = {
    {"properties", "object"},
    {"required", "object"},
    {"items", "array"},
    {"additionalProperties", "object"},
    {"patternProperties", "object"},
    {"propertyNames", "object"},
    {"minProperties", "object"},
    {"maxProperties", "object"},
    {"prefixItems", "array"},
    {"minItems", "array"},
    {"maxItems", "array"},
    {"uniqueItems", "array"},
    {"minLength", "string"},
    {"maxLength", "string"},
    {"format", "string"},
    {"pattern", "string"},
    {"multipleOf", "number"},
    {"minimum", "integer"},
    {"maximum", "integer"},
    {"exclusiveMinimum", "integer"},
    {"exclusiveMaximum", "integer"}};

const OrderedJson none;

} // namespace

/// The values that are of a type, or of one of several.
std::vector<OrderedJson> Schema::valuesOfType(const OrderedJson &values,
                                              const OrderedJson &type) {
  if (!values.is_array())
    wrong("'enum' has to be a list");
  std::vector<OrderedJson> fitting;
  for (const OrderedJson &value : values) {
    auto is = [&](const OrderedJson &name) {
      return name == value.type_name() ||
             (name == "integer" && value.is_number() &&
              value.get<double>() == std::floor(value.get<double>()));
    };
    if (type.is_null() ||
        (type.is_array() ? std::any_of(type.begin(), type.end(), is)
                         : is(type)))
      fitting.push_back(value);
  }
  return fitting;
}

int64_t Schema::numberOf(const OrderedJson &schema, const char *key,
                         int64_t otherwise) {
  if (!schema.contains(key))
    return otherwise;
  const OrderedJson &value = schema[key];
  bool isWhole =
      value.is_number_integer() ||
      (value.is_number_float() && std::abs(value.get<double>()) < 1e15 &&
       value.get<double>() == std::floor(value.get<double>()));
  if (!isWhole || std::abs(value.get<double>()) > 1e15)
    wrong(std::string("'") + key + "' has to be a whole number below 1e15");
  auto number = static_cast<int64_t>(value.get<double>());
  // Lengths of texts and lists have no sign.
  if (number < 0 && std::string(key).find("imum") == std::string::npos)
    wrong(std::string("'") + key + "' is negative");
  return number;
}

/// A character of a string.
Expression Schema::character() {
  if (characterRule < 0) {
    characterRule = b.newRule();
    Expression escape = b.sequence(
        {b.literal("\\"), b.choice({b.characters({{'"', '"'},
                                                  {'\\', '\\'},
                                                  {'/', '/'},
                                                  {'b', 'b'},
                                                  {'f', 'f'},
                                                  {'n', 'n'},
                                                  {'r', 'r'},
                                                  {'t', 't'}}),
                                    b.sequence({b.literal("u"), escaped()})})});
    b.define(characterRule,
             b.choice({b.characters(plainCharacters()), escape}));
  }
  return b.call(characterRule);
}

Expression Schema::anyValue() {
  if (valueRule < 0) {
    valueRule = b.newRule();
    objectRule = b.newRule();
    Expression any = b.call(valueRule);
    Expression text = quoted(b.repeat(character(), 0, -1));
    Expression element = pair(text, any);
    b.define(objectRule, list("{", separated(element, element), "}"));
    b.define(valueRule,
             b.choice({b.call(objectRule), list("[", separated(any, any), "]"),
                       text, number(), b.literal("true"), b.literal("false"),
                       b.literal("null")}));
  }
  return b.call(valueRule);
}

Expression Schema::reference(const std::string &pointer) {
  auto [it, isNew] = references.try_emplace(pointer, -1);
  if (!isNew)
    return b.call(it->second);
  const OrderedJson &at = schemaAt(root, pointer);
  it->second = b.newRule();
  pending.push_back({it->second, &at});
  return b.call(it->second);
}

/// A schema with `allOf`: one alone is that, others are brought together.
Expression Schema::ofAll(const OrderedJson &schema) {
  const OrderedJson &some = schema["allOf"];
  bool isAlone =
      some.is_array() && some.size() == 1 &&
      std::all_of(schema.items().begin(), schema.items().end(),
                  [](const auto &one) {
                    return one.key() == "allOf" || isAnnotation(one.key());
                  });
  if (isAlone)
    return of(some[0]);
  if (depthOfAll == deepestAllOf)
    wrong("'allOf' of JSON schemas is nested too deep, or contains itself");
  ++depthOfAll;
  Expression one = of(all.merged(schema));
  --depthOfAll;
  return one;
}

Expression Schema::of(const OrderedJson &schema) {
  if (schema.is_boolean())
    return schema.get<bool>() ? anyValue() : b.choice({});
  if (!schema.is_object())
    wrong("a JSON schema has to be an object");
  if (schema.contains("allOf"))
    return ofAll(schema);
  // One of these stands alone, but for a type, which the values have.
  const char *whole = nullptr;
  std::string inferred, first;
  const OrderedJson &type = schema.contains("type") ? schema["type"] : none;
  for (const auto &[key, value] : schema.items()) {
    if (isAnnotation(key) || key == "type")
      continue;
    bool stands = key == "$ref" || key == "enum" || key == "const" ||
                  key == "anyOf" || key == "oneOf";
    auto it = typeOf.find(key);
    if (!stands && it == typeOf.end())
      wrong("'" + key.substr(0, 60) + "' of a JSON schema is not supported");
    if (!first.empty() && (whole || stands))
      wrong("'" + first + "' beside '" + key +
            "' in a JSON schema is not supported");
    if (stands)
      whole = key == "$ref"    ? "$ref"
              : key == "enum"  ? "enum"
              : key == "const" ? "const"
              : key == "anyOf" ? "anyOf"
                               : "oneOf";
    else if (inferred.empty() || (inferred == "integer" && key == "multipleOf"))
      inferred = it->second;
    first = key;
  }
  if (whole) {
    const OrderedJson &value = schema[whole];
    std::string name = whole;
    if (name == "const" || name == "enum") {
      std::vector<std::string> texts;
      for (const OrderedJson &one : valuesOfType(
               name == "enum" ? value : OrderedJson::array({value}), type))
        texts.push_back(dumped(one));
      return b.oneOf(std::move(texts));
    }
    if (!type.is_null())
      wrong("'type' beside '" + name + "' in a JSON schema is not supported");
    if (name == "$ref")
      return reference(textOf(value, "$ref"));
    if (!value.is_array() || value.empty())
      wrong("'" + name + "' has to be a list");
    std::vector<Expression> ways;
    for (const OrderedJson &one : value)
      ways.push_back(of(one));
    return b.choice(std::move(ways));
  }
  if (type.is_null())
    return inferred.empty() ? anyValue() : ofType(inferred, schema);
  std::vector<Expression> ways;
  for (const OrderedJson &one :
       type.is_array() ? type : OrderedJson::array({type})) {
    if (!one.is_string())
      wrong("'type' has to be a text, or a list of texts");
    ways.push_back(ofType(one.get<std::string>(), schema));
  }
  return b.choice(std::move(ways));
}

/// Follows references, and brings the parts of `allOf` together.
const OrderedJson &Schema::behindLinks(const OrderedJson &schema) {
  const OrderedJson *at = &schema;
  for (int links = 0; links < 8; ++links) {
    if (at->contains("allOf"))
      return mergedSchemas.emplace_back(all.merged(*at));
    if (!at->contains("$ref"))
      break;
    at = &schemaAt(root, textOf(at->at("$ref"), "$ref"));
  }
  return *at;
}

/// The texts of a schema's values, each value once; a schema that does not list
/// them is an error.
std::vector<std::string> Schema::listedTexts(const OrderedJson &schema) {
  const OrderedJson *at = &behindLinks(schema);
  const OrderedJson &type = at->contains("type") ? at->at("type") : none;
  OrderedJson values = {true, false, nullptr};
  if (at->contains("enum"))
    values = at->at("enum");
  else if (at->contains("const"))
    values = OrderedJson::array({at->at("const")});
  else if (OrderedJson types =
               type.is_array() ? type : OrderedJson::array({type});
           !std::all_of(types.begin(), types.end(), [](const auto &one) {
             return one == "boolean" || one == "null";
           }))
    wrong("'uniqueItems' of a JSON schema is supported for items of 'enum', "
          "'const' and the types boolean and null");
  // Numbers and objects may be equal and have different texts. More than
  // uniqueItems takes need not be compared.
  constexpr size_t enough = 65;
  std::vector<nlohmann::json> seen;
  std::vector<std::string> texts;
  for (const OrderedJson &value : valuesOfType(values, type))
    if (nlohmann::json sorted = value;
        texts.size() < enough &&
        std::find(seen.begin(), seen.end(), sorted) == seen.end()) {
      seen.push_back(std::move(sorted));
      texts.push_back(dumped(value));
    }
  return texts;
}

Expression Schema::ofType(const std::string &type, const OrderedJson &schema) {
  if (type == "object")
    return ofObject(schema);
  if (type == "array")
    return ofArray(schema);
  if (type == "string")
    return ofString(schema);
  if (type == "integer")
    return ofInteger(schema);
  if (type == "number") {
    if (schema.contains("multipleOf"))
      return addMultiple(b, schema, /*isWhole=*/false);
    for (const char *key :
         {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
      if (schema.contains(key))
        return addBoundNumber(b, schema);
    return number();
  }
  if (type == "boolean")
    return b.choice({b.literal("true"), b.literal("false")});
  if (type == "null")
    return b.literal("null");
  wrong("'type': '" + type.substr(0, 60) + "' of a JSON schema is not known");
}

Expression Schema::ofString(const OrderedJson &schema) {
  if (schema.contains("pattern")) {
    std::string pattern = textOf(schema["pattern"], "pattern");
    for (const char *key : {"minLength", "maxLength", "format"})
      if (schema.contains(key))
        wrong(std::string("'pattern' beside '") + key +
              "' in a JSON schema is not supported");
    return quoted(addPattern(b, pattern, character()));
  }
  if (schema.contains("format")) {
    std::string format = textOf(schema["format"], "format");
    if (schema.contains("minLength") || schema.contains("maxLength"))
      wrong("'format' beside a length in a JSON schema is not supported");
    return quoted(addFormat(b, format, character()));
  }
  return quoted(b.repeat(character(), numberOf(schema, "minLength", 0),
                         numberOf(schema, "maxLength", -1)));
}

Expression Schema::ofInteger(const OrderedJson &schema) {
  if (schema.contains("multipleOf"))
    return addMultiple(b, schema, /*isWhole=*/true);
  constexpr int64_t largest = 1'000'000'000'000'000 - 1;
  bool isBound = false;
  int64_t least = -largest, most = largest;
  for (const char *key :
       {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
    if (schema.contains(key)) {
      isBound = true;
      bool isLeast = std::string(key).find("inimum") != std::string::npos;
      int64_t by = key[0] == 'e';
      int64_t value = numberOf(schema, key, 0);
      if (isLeast)
        least = std::max(least, value + by);
      else
        most = std::min(most, value - by);
    }
  if (!isBound)
    return integer();
  if (least > most)
    wrong("no integer fits the bounds of a JSON schema");
  return integersBetween(b, least, most);
}

Expression Schema::ofArray(const OrderedJson &schema) {
  int64_t least = numberOf(schema, "minItems", 0);
  int64_t most = numberOf(schema, "maxItems", -1);
  if (most >= 0 && least > most)
    wrong("'minItems' is more than 'maxItems'");
  bool isUnique =
      schema.contains("uniqueItems") && schema["uniqueItems"] != false;
  if (isUnique && schema["uniqueItems"] != true)
    wrong("'uniqueItems' has to be true or false");
  std::vector<Expression> parts;
  if (schema.contains("prefixItems")) {
    // As tuples are written: all of them, and nothing more.
    const OrderedJson &prefix = schema["prefixItems"];
    bool isWhole = !schema.contains("items") || schema["items"] == false;
    auto count = static_cast<int64_t>(prefix.size());
    if (!prefix.is_array() || prefix.empty() || !isWhole || least > count ||
        (most >= 0 && most < count) || isUnique)
      wrong("'prefixItems' of a JSON schema is supported for lists of just "
            "these items");
    for (const OrderedJson &one : prefix) {
      if (!parts.empty()) {
        parts.push_back(b.literal(","));
        parts.push_back(w());
      }
      parts.push_back(of(one));
    }
    return b.sequence({b.literal("["), w(), b.sequence(std::move(parts)), w(),
                       b.literal("]")});
  }
  if (most == 0)
    return b.sequence({b.literal("["), w(), b.literal("]")});
  int32_t rule = b.newRule();
  b.define(rule, schema.contains("items") ? of(schema["items"]) : anyValue());
  Expression item = b.call(rule), comma = b.sequence({b.literal(","), w()});
  Expression items =
      isUnique && most != 1
          ? uniqueItems(
                b,
                listedTexts(schema.contains("items") ? schema["items"] : none),
                comma, std::max<int64_t>(least, 1), most)
          : b.sequence({item, b.repeat(b.sequence({comma, item}),
                                       std::max<int64_t>(least - 1, 0),
                                       most < 0 ? -1 : most - 1)});
  return least ? b.sequence({b.literal("["), w(), items, w(), b.literal("]")})
               : list("[", items, "]");
}

bool isAnnotation(const std::string &keyword) {
  return annotations.count(keyword) != 0;
}

const OrderedJson &schemaAt(const OrderedJson &root, const std::string &pointer,
                            size_t *passed) {
  if (pointer.empty() || pointer[0] != '#' ||
      (pointer.size() > 1 && pointer[1] != '/'))
    Schema::wrong("'$ref' has to begin with #, for the schema itself");
  const OrderedJson *at = &root;
  for (size_t begin = 2; begin <= pointer.size();) {
    size_t end = std::min(pointer.find('/', begin), pointer.size());
    std::string name;
    for (size_t i = begin; i < end; ++i)
      if (pointer[i] == '~' && i + 1 < end)
        name += pointer[++i] == '1' ? '/' : '~';
      else
        name += pointer[i];
    if (!at->is_object() || !at->contains(name))
      Schema::wrong("'$ref' names something that is not there");
    if (passed)
      *passed += at->size();
    at = &(*at)[name];
    begin = end + 1;
  }
  return *at;
}

Expression addSchema(GrammarBuilder &builder, const OrderedJson &schema,
                     const OrderedJson &root) {
  return Schema(builder, root).value(schema);
}

Grammar grammarOfSchema(const OrderedJson &schema) {
  GrammarBuilder builder;
  int32_t root = builder.newRule();
  builder.define(root, addSchema(builder, schema, schema));
  return builder.finish(root);
}

Grammar grammarOfJson(bool isObject) {
  GrammarBuilder builder;
  int32_t root = builder.newRule();
  OrderedJson any = OrderedJson::object();
  Schema schema(builder, any);
  builder.define(root, isObject ? schema.anyObject() : schema.anyValue());
  return builder.finish(root);
}

} // namespace greta::llm
