// AllOf.cpp: see AllOf.h.
#include "grammar/AllOf.h"
#include "grammar/Grammar.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <tuple>

namespace greta::llm {
namespace {

[[noreturn]] void wrong(const std::string &what) {
  throw std::runtime_error(what);
}

/// A value fits both; alike ones are one.
OrderedJson together(const OrderedJson &a, const OrderedJson &b) {
  if (a.is_boolean() || b.is_boolean()) {
    const OrderedJson &says = a.is_boolean() ? a : b;
    return says.get<bool>() ? (a.is_boolean() ? b : a) : OrderedJson(false);
  }
  return a == b ? a : OrderedJson{{"allOf", OrderedJson::array({a, b})}};
}

/// A member fits what the other schema says of names that it does not list.
OrderedJson limited(const OrderedJson &member, const OrderedJson &other) {
  return other.contains("additionalProperties")
             ? together(member, other["additionalProperties"])
             : member;
}

OrderedJson listOf(const OrderedJson &value) {
  return value.is_array() ? value : OrderedJson::array({value});
}

/// The types that are of both; an integer is a number.
OrderedJson typesOf(const OrderedJson &a, const OrderedJson &b) {
  OrderedJson types = OrderedJson::array(), others = listOf(b);
  auto has = [](const OrderedJson &list, const OrderedJson &type) {
    return std::find(list.begin(), list.end(), type) != list.end();
  };
  for (const OrderedJson &list : {listOf(a), others})
    for (const OrderedJson &type : list)
      if (!type.is_string())
        wrong("'type' has to be a text, or a list of texts");
  for (const OrderedJson &type : listOf(a))
    if (has(others, type) || (type == "integer" && has(others, "number")))
      types.push_back(type);
    else if (type == "number" && has(others, "integer"))
      types.push_back("integer");
  return types.size() == 1 ? types[0] : types;
}

/// The values that both list; -1.0 is -1, and an object's order does not count.
OrderedJson valuesOf(const OrderedJson &a, const OrderedJson &b) {
  if (!a.is_array() || !b.is_array())
    wrong("'enum' has to be a list");
  constexpr size_t most = 1000;
  if (a.size() > most || b.size() > most)
    wrong("'allOf' of JSON schemas that list more than 1000 values is not "
          "supported");
  std::vector<nlohmann::json> others(b.begin(), b.end());
  OrderedJson values = OrderedJson::array();
  for (const OrderedJson &value : a)
    if (std::find(others.begin(), others.end(), nlohmann::json(value)) !=
        others.end())
      values.push_back(value);
  return values;
}

/// `a` or `b`, whichever bounds more.
const OrderedJson &nearer(const std::string &key, const OrderedJson &a,
                          const OrderedJson &b) {
  if (!a.is_number() || !b.is_number())
    wrong("'" + key + "' has to be a number");
  bool isLow = key.find("min") == 0 || key.find("Min") != key.npos;
  return (a.get<double>() > b.get<double>()) == isLow ? a : b;
}

bool isBound(const std::string &key) {
  for (const char *name :
       {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
        "minLength", "maxLength", "minItems", "maxItems", "minProperties",
        "maxProperties"})
    if (key == name)
      return true;
  return false;
}

/// A keyword says what both say by it.
OrderedJson bothSay(const std::string &key, const OrderedJson &a,
                    const OrderedJson &b) {
  if (a == b)
    return a;
  if (isBound(key))
    return nearer(key, a, b);
  if (key == "type")
    return typesOf(a, b);
  if (key == "enum")
    return valuesOf(a, b);
  if (key == "items" || key == "propertyNames" || key == "additionalProperties")
    return together(a, b);
  if (key == "uniqueItems" && a.is_boolean() && b.is_boolean())
    return true;
  if (key == "required" && a.is_array() && b.is_array()) {
    OrderedJson names = a;
    names.insert(names.end(), b.begin(), b.end());
    return names;
  }
  if (key == "multipleOf" && a.is_number_integer() && b.is_number_integer())
    if (auto x = a.get<int64_t>(), y = b.get<int64_t>();
        std::min(x, y) > 0 && std::max(x, y) <= 1'000'000'000)
      return std::lcm(x, y);
  wrong("'allOf' of JSON schemas with different '" + key.substr(0, 60) +
        "' is not supported");
}

/// Refuses keywords whose sense depends on others of the same schema.
void checkPairs(const OrderedJson &a, const OrderedJson &b) {
  auto refuse = [](const char *one, const char *other) {
    wrong(std::string("'allOf' of JSON schemas of which one has '") + one +
          "' and another '" + other + "' is not supported");
  };
  constexpr const char *pattern = "patternProperties",
                       *additional = "additionalProperties";
  for (const auto &[x, y] : {std::tie(a, b), std::tie(b, a)}) {
    if (x.contains("prefixItems"))
      for (const char *other : {"items", "prefixItems"})
        if (y.contains(other))
          refuse("prefixItems", other);
    if (!x.contains(pattern))
      continue;
    if (y.contains(additional))
      refuse(pattern, additional);
    for (const char *other : {"properties", pattern})
      if (x.contains(additional) && y.contains(other))
        refuse(additional, other);
  }
}

/// Members of one name in both have to fit both.
OrderedJson membersOf(const char *key, const OrderedJson &a,
                      const OrderedJson &b) {
  OrderedJson members = OrderedJson::object(), none = members;
  const OrderedJson &ours = a.contains(key) ? a[key] : none,
                    &theirs = b.contains(key) ? b[key] : none;
  if (!ours.is_object() || !theirs.is_object())
    wrong(std::string("'") + key + "' has to be an object");
  for (const auto &[name, member] : ours.items())
    members[name] = theirs.contains(name) ? together(member, theirs[name])
                                          : limited(member, b);
  for (const auto &[name, member] : theirs.items())
    if (!ours.contains(name))
      members[name] = limited(member, a);
  return members;
}

/// Values to copy or compare: 32 bytes of a text count as one, and names that
/// are looked for one by one as their square.
int64_t valuesIn(const OrderedJson &json) {
  auto textsIn = [](const std::string &text) {
    return static_cast<int64_t>(text.size() / 32);
  };
  int64_t count = 1;
  if (json.is_string())
    count += textsIn(json.get_ref<const std::string &>());
  if (json.is_object()) {
    count += static_cast<int64_t>(json.size() * json.size() / 256);
    for (const auto &[name, one] : json.items())
      count += textsIn(name) + valuesIn(one);
  } else if (json.is_array()) {
    for (const OrderedJson &one : json)
      count += valuesIn(one);
  }
  return count;
}

} // namespace

/// Counts values that are copied, or looked through.
void AllOf::charge(int64_t values) {
  left -= values;
  if (left < 0)
    wrong("'allOf' of JSON schemas is too large: it takes too long to bring "
          "them together");
}

/// The schemas that a schema stands for, without references and `allOf`.
void AllOf::collect(const OrderedJson &schema, std::vector<OrderedJson> &parts,
                    int depth) {
  if (depth == deepestAllOf)
    wrong("'allOf' of JSON schemas is nested too deep, or contains itself");
  charge(valuesIn(schema));
  if (!schema.is_object()) {
    if (!schema.is_boolean())
      wrong("a JSON schema has to be an object");
    parts.push_back(schema);
    return;
  }
  if (schema.contains("$ref")) {
    if (!schema["$ref"].is_string())
      wrong("'$ref' has to be a text");
    size_t passed = 0;
    const OrderedJson &other =
        schemaAt(root, schema["$ref"].get<std::string>(), &passed);
    charge(static_cast<int64_t>(passed / 256));
    collect(other, parts, depth + 1);
  }
  if (schema.contains("allOf")) {
    if (!schema["allOf"].is_array() || schema["allOf"].empty())
      wrong("'allOf' has to be a list");
    for (const OrderedJson &one : schema["allOf"])
      collect(one, parts, depth + 1);
  }
  OrderedJson rest = OrderedJson::object();
  for (const auto &[key, value] : schema.items())
    if (key == "const" && !schema.contains("enum"))
      rest["enum"] = OrderedJson::array({value});
    else if (!isAnnotation(key) && key != "$ref" && key != "allOf")
      rest[key] = value;
  if (!rest.empty())
    parts.push_back(std::move(rest));
}

OrderedJson AllOf::both(const OrderedJson &a, const OrderedJson &b) {
  charge(valuesIn(a) + valuesIn(b));
  if (a.is_boolean() || b.is_boolean())
    return together(a, b);
  // Each way of one is a way with the other.
  for (const auto &[x, y] : {std::tie(a, b), std::tie(b, a)})
    for (const char *key : {"anyOf", "oneOf"}) {
      if (!x.contains(key))
        continue;
      if (!x[key].is_array() || x[key].empty())
        wrong(std::string("'") + key + "' has to be a list");
      OrderedJson rest = x, ways = OrderedJson::array();
      rest.erase(key);
      for (const OrderedJson &way : x[key])
        ways.push_back({{"allOf", OrderedJson::array({way, rest, y})}});
      return {{"anyOf", ways}};
    }
  checkPairs(a, b);
  OrderedJson all = OrderedJson::object();
  for (const auto *from : {&a, &b})
    for (const auto &[key, value] : from->items())
      if (from == &b && a.contains(key))
        continue; // said already
      else if (key == "properties" || key == "patternProperties")
        all[key] = membersOf(key.c_str(), a, b);
      else
        all[key] =
            from == &a && b.contains(key) ? bothSay(key, value, b[key]) : value;
  for (const char *key : {"type", "enum"})
    if (all.contains(key) && all[key].is_array() && all[key].empty())
      return false;
  return all;
}

OrderedJson AllOf::merged(const OrderedJson &schema) {
  std::vector<OrderedJson> parts;
  collect(schema, parts, 0);
  OrderedJson all = true;
  for (const OrderedJson &part : parts)
    all = both(all, part);
  return all;
}

} // namespace greta::llm
