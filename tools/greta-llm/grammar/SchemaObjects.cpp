// SchemaObjects.cpp: objects of JSON schemas. In: the schema of one. Out: an
// expression of the objects that it allows, or of some of them: listed members
// come in the order of the schema, and others behind them.
#include "grammar/Schema.h"

#include <algorithm>
#include <optional>
#include <set>

namespace greta::llm {

using Expression = GrammarBuilder::Expression;

static const OrderedJson nothing = OrderedJson::object(),
                         nobody = OrderedJson::array(), no = false;
constexpr size_t mostProperties = 256;

static const OrderedJson &partOf(const OrderedJson &schema, const char *key,
                                 const OrderedJson &otherwise) {
  return schema.contains(key) ? schema[key] : otherwise;
}

/// The patterns of an object's names; none where there is one alone, beside
/// which no name may be.
static std::optional<PatternNames> patternsOf(const OrderedJson &schema,
                                              int64_t &work) {
  constexpr size_t mostPatterns = 4;
  if (!schema.contains("patternProperties"))
    return std::nullopt;
  const OrderedJson &patterns = schema["patternProperties"],
                    &properties = partOf(schema, "properties", nothing),
                    &others = partOf(schema, "additionalProperties", no);
  if (!patterns.is_object() || patterns.empty() ||
      patterns.size() > mostPatterns || schema.contains("propertyNames"))
    Schema::wrong("'patternProperties' of a JSON schema is supported for up to "
                  "4 patterns without 'propertyNames'");
  if (patterns.size() == 1 && properties.empty() && others == false)
    return std::nullopt;
  std::vector<std::string> texts, names;
  for (const auto &[pattern, kind] : patterns.items())
    texts.push_back(pattern);
  for (const auto &[name, kind] : properties.items())
    names.push_back(name);
  return PatternNames(texts, names, work);
}

/// The listed members of an object. `allowed`: a schema of names lists these.
/// `patterns`: what they match has to fit their schemas, too.
std::vector<ObjectMember>
Schema::membersOf(const OrderedJson &schema,
                  const std::set<std::string> *allowed,
                  PatternNames *patterns) {
  const OrderedJson &properties = partOf(schema, "properties", nothing),
                    &required = partOf(schema, "required", nobody);
  if (!properties.is_object() || !required.is_array())
    wrong("'properties' has to be an object, and 'required' a list");
  if (properties.size() > mostProperties)
    wrong("an object of a JSON schema has more than 256 properties");
  std::set<std::string> needed;
  for (const OrderedJson &name : required) {
    if (!name.is_string() || !properties.contains(name.get<std::string>()))
      wrong("'required' names something that 'properties' does not");
    needed.insert(name.get<std::string>());
  }
  std::vector<ObjectMember> members;
  for (const auto &[name, value] : properties.items()) {
    int32_t rule = b.newRule();
    std::string text = dumped(name);
    bool may = !allowed || allowed->count(text) != 0;
    OrderedJson fits = OrderedJson::array({value});
    for (size_t i = 0; patterns && i < patterns->patterns(); ++i)
      if (patterns->matches(i, name))
        fits.push_back(*std::next(schema["patternProperties"].begin(),
                                  static_cast<std::ptrdiff_t>(i)));
    b.define(rule,
             !may ? b.choice({})
                  : pair(b.literal(text),
                         fits.size() == 1 ? of(value) : of({{"allOf", fits}})));
    members.push_back({b.call(rule), needed.count(name) != 0});
  }
  return members;
}

/// A member beside the listed ones, by the patterns that its name matches.
Expression Schema::othersByPatterns(const OrderedJson &schema,
                                    PatternNames &names) {
  const OrderedJson &patterns = schema["patternProperties"];
  std::vector<Expression> ways;
  for (uint32_t some = 0; some < 1u << names.patterns(); ++some) {
    std::vector<bool> which;
    OrderedJson fits = OrderedJson::array();
    for (const OrderedJson &kind : patterns) {
      which.push_back(some >> which.size() & 1);
      if (which.back())
        fits.push_back(kind);
    }
    if (!some)
      fits.push_back(partOf(schema, "additionalProperties", no));
    if (std::find(fits.begin(), fits.end(), false) != fits.end())
      continue;
    std::optional<Expression> name = names.named(b, which);
    if (!name)
      continue;
    int32_t rule = b.newRule();
    b.define(rule,
             of(fits.size() == 1 ? fits[0] : OrderedJson{{"allOf", fits}}));
    ways.push_back(pair(quoted(*name), b.call(rule)));
  }
  return b.choice(std::move(ways));
}

/// A member beside the listed ones.
Expression Schema::othersOf(const OrderedJson &schema,
                            const std::set<std::string> *allowed) {
  std::vector<std::string> names;
  for (const auto &[name, value] :
       partOf(schema, "properties", nothing).items())
    names.push_back(name);
  const OrderedJson *kind = schema.contains("additionalProperties")
                                ? &schema["additionalProperties"]
                                : nullptr;
  Expression key;
  if (schema.contains("patternProperties")) {
    const OrderedJson &patterns = schema["patternProperties"];
    key = quoted(addPattern(b, patterns.begin().key(), character()));
    kind = &patterns.begin().value();
  } else if (allowed) {
    std::set<std::string> texts = *allowed;
    for (const std::string &name : names)
      texts.erase(dumped(name));
    key = b.oneOf({texts.begin(), texts.end()});
  } else if (schema.contains("propertyNames")) {
    const OrderedJson &named = behindLinks(schema["propertyNames"]);
    if (!names.empty())
      wrong("'propertyNames' beside 'properties' in a JSON schema is supported "
            "for names of 'enum' and 'const'");
    OrderedJson text = named;
    if (text.contains("anyOf"))
      text = {{"allOf", {text, {{"type", "string"}}}}};
    else if (text.is_object() && !text.contains("type"))
      text["type"] = "string";
    if (!text.contains("allOf") &&
        (!text.is_object() || text["type"] != "string"))
      wrong("'propertyNames' of a JSON schema is supported for texts of one "
            "form, 'enum' and 'const'");
    key = of(text);
  } else {
    key = quoted(names.empty() ? b.repeat(character(), 0, -1)
                               : otherNames(b, names));
  }
  int32_t rule = b.newRule();
  b.define(rule, kind ? of(*kind) : anyValue());
  return pair(key, b.call(rule));
}

Expression Schema::ofObject(const OrderedJson &schema) {
  auto says = [&](const char *key) { return schema.contains(key); };
  if (!says("properties") && !says("required") &&
      !says("additionalProperties") && !says("patternProperties") &&
      !says("propertyNames") && !says("minProperties") &&
      !says("maxProperties"))
    return anyObject();
  bool isListed = !partOf(schema, "properties", nothing).empty();
  // Others are allowed where the schema says so, or says nothing at all.
  bool isOpen = schema.contains("patternProperties") ||
                (schema.contains("additionalProperties")
                     ? schema["additionalProperties"] != false
                     : !isListed);
  int64_t least = numberOf(schema, "minProperties", 0),
          most = numberOf(schema, "maxProperties", -1);
  if (most >= 0 && least > most)
    wrong("'minProperties' is more than 'maxProperties'");
  std::optional<std::set<std::string>> allowed;
  if (schema.contains("propertyNames")) {
    const OrderedJson &named = behindLinks(schema["propertyNames"]);
    if (named.contains("enum") || named.contains("const")) {
      of(named); // says what is wrong beside them
      allowed.emplace();
      for (const OrderedJson &name : valuesOfType(
               named.contains("enum") ? named["enum"]
                                      : OrderedJson::array({named["const"]}),
               partOf(named, "type", OrderedJson())))
        if (name.is_string())
          allowed->insert(dumped(name));
    } else if (isListed && !isOpen) {
      wrong("'propertyNames' beside 'properties' in a JSON schema is supported "
            "for names of 'enum' and 'const'");
    }
  }
  const auto *names = allowed ? &*allowed : nullptr;
  std::optional<PatternNames> patterns = patternsOf(schema, b.work.names);
  std::vector<ObjectMember> members =
      membersOf(schema, names, patterns ? &*patterns : nullptr);
  bool isNone = least == 0 && std::none_of(members.begin(), members.end(),
                                           [](const ObjectMember &member) {
                                             return member.isNeeded;
                                           });
  if (isNone && most == 0)
    return b.sequence({b.literal("{"), w(), b.literal("}")});
  std::optional<Expression> others;
  if (isOpen)
    others = patterns ? othersByPatterns(schema, *patterns)
                      : othersOf(schema, names);
  int32_t rule = b.newRule();
  b.define(rule,
           objectMembers(b, members, others, b.sequence({b.literal(","), w()}),
                         std::max<int64_t>(least, 1), most));
  Expression some = b.call(rule);
  return isNone ? list("{", some, "}")
                : b.sequence({b.literal("{"), w(), some, w(), b.literal("}")});
}

} // namespace greta::llm
