// SchemaTest.cpp: multiples of numbers, objects whose names or number of
// members a JSON schema bounds, and several schemas that a value has to fit.
// Multiples are compared with arithmetic, and objects with what schemas say.
#include "GrammarHelpers.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <regex>

using namespace greta::llm;

namespace {

struct SchemaCase {
  const char *schema;
  std::vector<std::string> good, bad;
};

void expectTexts(const std::vector<SchemaCase> &cases) {
  for (const SchemaCase &one : cases) {
    Grammar grammar = schema(one.schema);
    for (const std::string &text : one.good)
      EXPECT_TRUE(fits(grammar, text)) << one.schema << ": " << text;
    for (const std::string &text : one.bad)
      EXPECT_FALSE(fits(grammar, text)) << one.schema << ": " << text;
  }
}

TEST(Schema, Multiples) {
  expectTexts({
      {R"({"type": "integer", "multipleOf": 5})",
       {"0", "5", "-15", "123456789012345", "100"},
       {"1", "-3", "05", "-0", "5.0", "5e1", "1234567890123450", "", "-"}},
      {R"({"type": "number", "multipleOf": 0.05})",
       {"0", "1", "1.5", "1.50", "-0.05", "12345678901.95", "3.0", "0.00"},
       {"0.01", "1.501", "1.500", "1.", ".5", "-0.04", "-0", "1e2"}},
      {R"({"type": "number", "multipleOf": 0.01, "minimum": 0,
           "exclusiveMaximum": 1.005})",
       {"0", "0.99", "1", "1.00", "1.0"},
       {"-0.01", "1.01", "2", "0.001"}},
      {R"({"type": "number", "multipleOf": 2.5, "exclusiveMinimum": -5,
           "maximum": 7.5})",
       {"-2.5", "0", "0.0", "2.5", "5", "5.0", "7.5"},
       {"-5", "-5.0", "-7.5", "10", "1", "0.5", "2.0"}},
      {R"({"type": "integer", "multipleOf": 1.5})", {"3", "-6"}, {"1", "2"}},
      {R"({"type": "integer", "multipleOf": 0.5})", {"3", "-7"}, {"1.5"}},
      {R"({"multipleOf": 86400, "minimum": 100})",
       {"86400", "864000", "172800"},
       {"0", "100", "8640", "43200", "-86400"}},
      {R"({"type": "integer", "multipleOf": 1e9})",
       {"0", "7000000000"},
       {"700000000", "1"}},
      {R"({"type": "integer", "multipleOf": 1})", {"0", "-42"}, {"00"}},
      // No order of keywords makes it whole.
      {R"({"minimum": 1, "multipleOf": 0.5})", {"1.5", "2"}, {"0.5", "1.2"}},
      {R"({"multipleOf": 128})", {"128", "123456789012352"}, {"129"}},
      {R"({"multipleOf": 113, "minimum": 0, "maximum": 9999})",
       {"0", "113", "9944"},
       {"10057", "112"}},
  });
  const std::pair<const char *, const char *> refused[] = {
      {R"({"multipleOf": 0})", "'multipleOf' has to be a number above 0"},
      {R"({"multipleOf": -2})", "'multipleOf' has to be a number above 0"},
      {R"({"multipleOf": "2"})", "'multipleOf' has to be a number"},
      {R"({"multipleOf": 1e10})", "'multipleOf' has to be a number above 0"},
      {R"({"multipleOf": 1e-10})", "'multipleOf' has to be a number above 0"},
      {R"({"multipleOf": 129})", "too many remainders"},
      {R"({"multipleOf": 999999937})", "too many remainders"},
      {R"({"multipleOf": 10, "minimum": 1, "maximum": 9})", "no text fits it"},
      {R"({"type": "number", "minimum": 1e-30})",
       "'minimum' has more than 20 digits behind the point"},
      {R"({"type": "number", "maximum": 1e15})",
       "'maximum' has to be a number below 1e15"},
      {R"({"multipleOf": 10, "minimum": 3, "maximum": 1})", "no number fits"}};
  for (auto [text, says] : refused) {
    std::string why = refusal([text = text] { schema(text); });
    EXPECT_NE(why.find(says), why.npos) << text << ": " << why;
  }
}

/// Numbers of up to three digits behind the point, of random bounds.
TEST(Schema, MultiplesAreThoseOfArithmetic) {
  std::mt19937 random(11);
  auto below = [&](int64_t end) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(end));
  };
  auto text = [](int64_t thousandths, int places) {
    std::string digits = std::to_string(std::abs(thousandths));
    digits.insert(0, digits.size() < 4 ? 4 - digits.size() : 0, '0');
    digits.insert(digits.size() - 3, ".");
    digits.resize(digits.size() - static_cast<size_t>(places ? 3 - places : 4));
    return (thousandths < 0 ? "-" : "") + digits;
  };
  for (int turn = 0; turn < 60; ++turn) {
    int places = static_cast<int>(below(4));
    int64_t unit = places == 0   ? 1000
                   : places == 1 ? 100
                   : places == 2 ? 10
                                 : 1;
    int64_t factor = unit * (1 + below(turn % 2 ? 12 : 150));
    // Zeros at its end are no places.
    for (; places && factor % (10 * unit) == 0; --places)
      unit *= 10;
    int64_t least = below(400'000) - 200'000, most = least + below(300'000);
    bool isOpen = below(2);
    std::string made =
        R"({"type": "number", "multipleOf": )" + text(factor, places) + ", \"" +
        (isOpen ? "exclusiveMinimum" : "minimum") + "\": " + text(least, 3) +
        R"(, "maximum": )" + text(most, 3) + "}";
    if (refusal([&] { schema(made.c_str()); }) == "no text fits it")
      continue;
    Grammar grammar = schema(made.c_str());
    for (int i = 0; i < 300; ++i) {
      int64_t value = i % 3
                          ? (least + below(most - least + 1)) / unit * unit
                          : (below(3) - 1 + least / factor + below(8)) * factor;
      if (value == 0)
        continue; // -0
      // As short as it may be written, up to the factor's places.
      int shown = places;
      while (shown > 0 && below(2) &&
             value % (shown == 3   ? 10
                      : shown == 2 ? 100
                                   : 1000) ==
                 0)
        --shown;
      bool is = value % factor == 0 && value <= most &&
                (isOpen ? value > least : value >= least);
      EXPECT_EQ(fits(grammar, text(value, shown)), is)
          << made << ": " << text(value, shown);
    }
  }
}

TEST(Schema, NumbersOfMembers) {
  expectTexts({
      {R"({"type": "object", "minProperties": 1, "maxProperties": 2})",
       {R"({"a": 1})", R"({"a": 1, "b": []})"},
       {"{}", R"({"a": 1, "b": 2, "c": 3})", R"({"a": 1,})"}},
      {R"({"maxProperties": 0})", {"{}", "{ }"}, {R"({"a": 1})"}},
      {R"({"type": "object", "minProperties": 2,
           "additionalProperties": {"type": "integer"}})",
       {R"({"a": 1, "b": 2})", R"({"a":1,"b":2,"c":3})"},
       {"{}", R"({"a": 1})", R"({"a": 1, "b": "x"})"}},
      {R"({"properties": {"a": {"type": "null"}, "b": {"type": "null"},
           "c": {"type": "null"}}, "minProperties": 1, "maxProperties": 2})",
       {R"({"a": null})", R"({"c": null})", R"({"a": null, "c": null})",
        R"({"b": null, "c": null})"},
       {"{}", R"({"a": null, "b": null, "c": null})", R"({"d": null})"}},
      {R"({"properties": {"a": {"type": "null"}, "b": {"type": "null"},
           "c": {"type": "null"}}, "required": ["b"], "minProperties": 2,
           "additionalProperties": {"type": "integer"}, "maxProperties": 3})",
       {R"({"a": null, "b": null})", R"({"b": null, "x": 1})",
        R"({"b": null, "c": null, "x": 1})", R"({"b": null, "x": 1, "y": 2})"},
       {R"({"b": null})", R"({"a": null, "c": null})", R"({"x": 1, "y": 2})",
        R"({"a": null, "b": null, "c": null, "x": 1})"}},
  });
  const std::pair<const char *, const char *> refused[] = {
      {R"({"minProperties": 2, "maxProperties": 1})",
       "'minProperties' is more than 'maxProperties'"},
      {R"({"minProperties": -1})", "'minProperties' is negative"},
      {R"({"minProperties": 20000})", "10000 times"},
      {R"({"properties": {"a": {}}, "minProperties": 2})", "no text fits it"},
      {R"({"properties": {"a": {}}, "required": ["a"], "maxProperties": 0})",
       "no text fits it"}};
  for (auto [text, says] : refused) {
    std::string why = refusal([text = text] { schema(text); });
    EXPECT_NE(why.find(says), why.npos) << text << ": " << why;
  }
}

TEST(Schema, NamesOfMembers) {
  expectTexts({
      {R"({"propertyNames": {"pattern": "^[a-z]{2}$"},
           "additionalProperties": {"type": "integer"}})",
       {"{}", R"({"ab": 1})", R"({"ab": 1, "cd": 2})"},
       {R"({"a": 1})", R"({"ab": 1, "CD": 2})", R"({"ab": "x"})"}},
      {R"({"type": "object", "propertyNames": {"enum": ["de", "en", 1]},
           "minProperties": 1})",
       {R"({"de": 1})", R"({"en": [], "de": {}})"},
       {"{}", R"({"fr": 1})", R"({1: 1})"}},
      {R"({"propertyNames": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type":
           "string", "maxLength": 2}}})",
       {R"({"ab": 1, "": 2})"},
       {R"({"abc": 1})"}},
      {R"({"type": "object", "propertyNames": {"enum": ["a", 1], "type":
           "integer"}})",
       {"{}"},
       {R"({"a": 1})", "{1: 1}"}},
      // A listed member that may not have its name, and others.
      {R"({"properties": {"a": {"type": "null"}, "b": {"type": "null"}},
           "propertyNames": {"enum": ["b", "c"]},
           "additionalProperties": {"type": "integer"}})",
       {"{}", R"({"b": null})", R"({"b": null, "c": 1})", R"({"c": 1})"},
       {R"({"a": null})", R"({"b": 1})", R"({"a": 1})"}},
      {R"({"patternProperties": {"^x-": {"type": "boolean"}},
           "additionalProperties": false})",
       {"{}", R"({"x-a": true, "x-": false})"},
       {R"({"a": true})", R"({"x-a": 1})"}},
  });
  const std::pair<const char *, const char *> refused[] = {
      {R"({"propertyNames": {"type": "integer"}})",
       "'propertyNames' of a JSON schema is supported for texts"},
      {R"({"propertyNames": {"enum": ["a"], "maxLength": 0}})",
       "'enum' beside 'maxLength'"},
      {R"({"propertyNames": {"enum": ["a"], "const": "b"}})",
       "'enum' beside 'const'"},
      {R"({"propertyNames": {"enum": "a"}})", "'enum' has to be a list"},
      {R"({"propertyNames": true})",
       "'propertyNames' of a JSON schema is supported for texts"},
      {R"({"properties": {"a": {}}, "propertyNames": {"maxLength": 2}})",
       "'propertyNames' beside 'properties'"},
      {R"({"patternProperties": {"a": {}, "b": {}, "c": {}, "d": {}, "e": {}}})",
       "'patternProperties' of a JSON schema is supported for up to 4"},
      {R"({"patternProperties": {}})",
       "'patternProperties' of a JSON schema is supported for up to 4"},
      {R"({"patternProperties": {"a": {}}, "propertyNames": {}})",
       "'patternProperties' of a JSON schema is supported for up to 4"},
      {R"({"patternProperties": {"a": {}}, "properties": {"\"": {}}})",
       "whose name needs escapes"},
      {R"({"patternProperties": {"a.{7}$": {}}, "properties": {"b": {}}})",
       "patterns with too many states"},
      {R"({"patternProperties": {"(": {}}, "properties": {"b": {}}})",
       "'pattern': it is no regular expression"},
      {R"({"properties": {"a": {}}, "required": ["a"],
           "propertyNames": {"const": "b"}})",
       "no text fits it"}};
  for (auto [text, says] : refused) {
    std::string why = refusal([text = text] { schema(text); });
    EXPECT_NE(why.find(says), why.npos) << text << ": " << why;
  }
}

TEST(Schema, PatternsOfNames) {
  // A state for each letter, and for what is beside it.
  auto ofLetters = [](size_t count, char letter) {
    return "\"^" + std::string(count, letter) + "\": {}";
  };
  std::string large = R"({"patternProperties": {)" + ofLetters(310, 'a') +
                      R"(}, "additionalProperties": {}})",
              four = R"({"patternProperties": {)" + ofLetters(28, 'a');
  EXPECT_NE(refusal([&] { schema(large.c_str()); }).find("more than 300 rules"),
            std::string::npos);
  // Each object takes its part of the work, also where no name is left.
  std::string many = R"({"properties": {)";
  for (int i = 0; i < 250; ++i)
    many += (i ? ", \"" : "\"") + std::to_string(i) +
            R"(": {"patternProperties": {"": false, "a.{2}$": {}},
                   "additionalProperties": {}})";
  EXPECT_NE(refusal([&] {
              schema((many + "}}").c_str());
            }).find("all together, take too long"),
            std::string::npos);
  // The listed names are looked for by all patterns.
  many = R"({"$defs": {"a": {"properties": {)";
  for (int i = 0; i < 50; ++i)
    many += (i ? ", \"" : "\"") + std::string(30, 'a') + std::to_string(i) +
            "\": {}";
  many +=
      R"(}, "patternProperties": {"([ab]?){900}$": {}}, "maxProperties": 0}},
          "properties": {)";
  for (int i = 0; i < 30; ++i)
    many += (i ? ", \"" : "\"") + std::to_string(i) +
            R"(": {"allOf": [{"$ref": "#/$defs/a"}, {"minProperties": 0}]})";
  EXPECT_NE(refusal([&] { schema((many + "}}").c_str()); }).find("too long"),
            std::string::npos);
  // Schemas of one grammar, such as those of tools, share it.
  const auto one = nlohmann::ordered_json::parse(
      R"({"properties": {")" + std::string(30, 'a') +
      R"(": {}}, "patternProperties": {"([ab]?){900}$": {}}, "maxProperties": 0})");
  GrammarBuilder builder;
  EXPECT_NE(refusal([&] {
              for (int i = 0; i < 250; ++i)
                addSchema(builder, one, one);
            }).find("too long"),
            std::string::npos);
  for (char letter : {'b', 'c', 'd'})
    four += ", " + ofLetters(28, letter);
  four += R"(}, "additionalProperties": {}})";
  EXPECT_TRUE(fits(schema(four.c_str()), R"({"aa": 1})"));
  expectTexts({
      {R"({"patternProperties": {"^x": {"type": "boolean"}},
           "additionalProperties": {"type": "integer"}})",
       {"{}", R"({"x": true, "ax": 1})", R"({"a": 1, "xx": false, "": 2})",
        R"({"ä": 3})"},
       {R"({"x": 1})", R"({"a": true})", R"({"\u0078": 1})"}},
      {R"({"properties": {"xa": {"maximum": 9}, "b": {"type": "null"}},
           "patternProperties": {"^x": {"type": "integer", "minimum": 5}},
           "required": ["xa"]})",
       {R"({"xa": 5})", R"({"xa": 9, "b": null, "xb": 50})"},
       {R"({"xa": 4})", R"({"xa": 10})", R"({"xa": 5, "c": 1})",
        R"({"xa": 5, "xb": 1})", R"({"xa": 5, "xb": 7, "xa": 7})"}},
      {R"({"patternProperties": {"a": {"minimum": 3}, "b": {"maximum": 5}},
           "additionalProperties": false})",
       {R"({"a": 9, "b": 0})", R"({"ab": 4})", R"({"cba": 3})"},
       {R"({"ab": 2})", R"({"ba": 6})", R"({"c": 4})"}},
      // A pattern that fits no name of characters that stand for themselves.
      {R"({"patternProperties": {"^\"$": {"type": "null"}},
           "additionalProperties": {"type": "integer"}})",
       {R"({"a": 1})"},
       {R"({"\"": null})", R"({"\"": 1})"}},
      {R"({"patternProperties": {"": false}, "additionalProperties": {}})",
       {"{}"},
       {R"({"a": 1})"}},
  });
}

TEST(Schema, AllOf) {
  expectTexts({
      {R"({"allOf": [{"type": "number"}, {"minimum": 2, "maximum": 9}],
           "exclusiveMaximum": 5})",
       {"2", "4.9"},
       {"1", "5", "9"}},
      {R"({"allOf": [{"type": "number", "multipleOf": 4}, {"type":
           ["integer", "string"], "multipleOf": 6}]})",
       {"0", "12", "-24"},
       {"4", "6", "12.0", "\"a\""}},
      {R"({"allOf": [{"$ref": "#/$defs/named"}, {"properties": {"age":
           {"type": "integer"}}, "required": ["age", "name"]}], "title": "x",
           "$defs": {"named": {"type": "object", "properties": {"name":
           {"type": "string"}}}}})",
       {R"({"name": "a", "age": 3})"},
       {R"({"name": "a"})", R"({"age": 3})", R"({"name": 1, "age": 3})"}},
      // A member of both, one that the other does not allow, and its others.
      {R"({"allOf": [{"properties": {"a": {"minimum": 3}, "b": {"type":
           "null"}}}, {"properties": {"a": {"maximum": 5}},
           "additionalProperties": false}]})",
       {"{}", R"({"a": 3})", R"({"a": 5})"},
       {R"({"a": 2})", R"({"a": 6})", R"({"a": 4, "b": null})"}},
      {R"({"allOf": [{"properties": {"a": {"type": "integer"}}},
           {"additionalProperties": {"type": ["integer", "null"],
           "minimum": 5}}]})",
       {R"({"a": 5})", R"({"a": 7, "x": null})", R"({"x": 9})"},
       {R"({"a": null})", R"({"a": 4})", R"({"x": 4})"}},
      {R"({"allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]},
           {"oneOf": [{"type": "integer", "minimum": 3}, {"type": "string", "maxLength": 1}]}]})",
       {"3", R"("a")"},
       {"2", R"("ab")", "null"}},
      {R"({"allOf": [{"enum": ["a", {"b": 1, "c": 2}, 3]}, {"const": 3}]})",
       {"3"},
       {R"("a")"}},
      {R"({"allOf": [{"enum": [{"b": 1, "c": 2}, 1, null]}, {"type":
           ["object", "null"]}, {"enum": [{"c": 2, "b": 1}, null, 1]}]})",
       {R"({"b":1,"c":2})", "null"},
       {"1"}},
      {R"({"allOf": [{"items": {"minimum": 2}, "minItems": 1}, {"items":
           {"maximum": 4}, "maxItems": 2}, true]})",
       {"[2]", "[3, 4]"},
       {"[]", "[1]", "[5]", "[2, 2, 2]"}},
      // It calls itself by members.
      {R"({"$ref": "#/$defs/tree", "$defs": {"tree": {"allOf": [{"type":
           "object", "properties": {"n": {"type": "integer"}}}, {"properties":
           {"sub": {"$ref": "#/$defs/tree"}}, "required": ["n"]}]}}})",
       {R"({"n": 1})", R"({"n": 1, "sub": {"n": 2}})"},
       {R"({"sub": {"n": 2}})", R"({"n": 1, "sub": {}})"}},
      {R"({"allOf": [{"patternProperties": {"^x": {"minimum": 3}}},
           {"patternProperties": {"^x": {"maximum": 5}, "y": {"type":
           "integer"}}}]})",
       {R"({"xa": 3, "ay": 9})", R"({"xy": 5})"},
       {R"({"xa": 2})", R"({"xy": 6})"}},
      {R"({"properties": {"a": {"allOf": [{"type": "integer"}, {"type":
           "string"}]}}})",
       {"{}"},
       {R"({"a": 1})"}},
      // Values and names that are listed are those of all parts.
      {R"({"uniqueItems": true, "items": {"type": ["boolean", "null"],
           "allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]},
           "$defs": {"a": {"enum": [true, false, 1]}, "b": {"enum": [1, true]}}})",
       {"[true]", "[]"},
       {"[false]", "[null]", "[1]", "[true, true]"}},
      {R"({"propertyNames": {"enum": ["a", "b"], "allOf": [{"enum": ["b", "c"]},
           {"type": "string"}]}, "additionalProperties": {"type": "integer"}})",
       {"{}", R"({"b": 1})"},
       {R"({"a": 1})", R"({"c": 1})"}},
      {R"({"allOf": [{"properties": {"a": {}, "b": {}}, "propertyNames": {"enum":
           ["a", "b"]}}, {"propertyNames": {"enum": ["b", "c"]}}]})",
       {R"({"b": 1})"},
       {R"({"a": 1})", R"({"c": 1})"}},
      {R"({"propertyNames": {"allOf": [{"anyOf": [{"pattern": "^a"}, {"const":
           "b"}]}, {"type": "string"}]}})",
       {R"({"ab": 1})", R"({"b": 1})"},
       {R"({"c": 1})", R"({"bb": 1})"}},
  });
  const std::pair<const char *, const char *> refused[] = {
      {R"({"allOf": [{"type": "integer"}, {"type": "null"}]})", "no text fits"},
      {R"({"allOf": [{"enum": [1]}, {"enum": [2]}]})", "no text fits"},
      {R"({"allOf": [{"minimum": 3}, {"maximum": 2}]})", "no integer fits"},
      {R"({"allOf": [{"pattern": "a"}, {"pattern": "b"}]})",
       "'allOf' of JSON schemas with different 'pattern' is not supported"},
      {R"({"allOf": [{"not": {}}, {"type": "null"}]})",
       "'not' of a JSON schema is not supported"},
      {R"({"allOf": [{"prefixItems": [{}]}, {"items": {}}]})",
       "of which one has 'prefixItems' and another 'items'"},
      {R"({"allOf": [{"patternProperties": {"a": {}}},
           {"additionalProperties": false}]})",
       "of which one has 'patternProperties' and another "
       "'additionalProperties'"},
      {R"({"allOf": [{"minimum": "a"}, {"minimum": 2}]})",
       "'minimum' has to be a number"},
      {R"({"allOf": [{"type": 3}, {"type": "integer"}]})",
       "'type' has to be a text, or a list of texts"},
      {R"({"allOf": [{"required": 1}, {"required": []}]})",
       "'allOf' of JSON schemas with different 'required'"},
      {R"({"allOf": [{"properties": 1}, {"type": "object"}]})",
       "'properties' has to be an object"},
      {R"({"allOf": [{"$ref": "#"}, {"minimum": 1}]})",
       "'allOf' of JSON schemas is nested too deep, or contains itself"},
      {R"({"allOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties":
           {"a": {"type": "object"}}}]})",
       "'allOf' of JSON schemas is nested too deep, or contains itself"},
      {R"({"allOf": [{"anyOf": 1}, {"type": "null"}]})",
       "'anyOf' has to be a list"}};
  for (auto [text, says] : refused) {
    std::string why = refusal([text = text] { schema(text); });
    EXPECT_NE(why.find(says), why.npos) << text << ": " << why;
  }
}

TEST(Schema, AllOfIsBounded) {
  auto isTooLarge = [](const std::string &text) {
    return refusal([&] {
             schema(text.c_str());
           }).find("'allOf' of JSON schemas is too large") == 0;
  };
  std::string names = R"({"minItems": 0)", copies = R"({"allOf": [{"const": ")",
              links = R"({"$defs": {"a": {})";
  for (int i = 0; i < 4500; ++i)
    names += ", \"x" + std::to_string(i) + "\": {}";
  EXPECT_TRUE(isTooLarge(R"({"allOf": [{"properties": )" + names +
                         R"(}}, {"type": "object"}]})"));
  copies += std::string(100'000, 'a') + "\"}";
  for (int i = 0; i < 100; ++i)
    copies += R"(, {"type": "string"})";
  EXPECT_TRUE(isTooLarge(copies + "]}"));
  for (int i = 0; i < 3000; ++i)
    links += ", \"x" + std::to_string(i) + "\": {}";
  links += R"(}, "properties": {"b": {"allOf": [{})";
  for (int i = 0; i < 15'000; ++i)
    links += R"(, {"$ref": "#/$defs/a"})";
  EXPECT_TRUE(isTooLarge(links + "]}}}"));
}

/// Whether the keywords of the next test allow a value.
bool isValid(const nlohmann::json &schema, const nlohmann::json &value) {
  if (schema.is_boolean())
    return schema;
  if (schema.contains("type") && !value.is_number_integer())
    return false;
  if (value.is_number() && (value < schema.value("minimum", -99) ||
                            value > schema.value("maximum", 99)))
    return false;
  for (const auto &one : schema.value("allOf", nlohmann::json::array()))
    if (!isValid(one, value))
      return false;
  if (!value.is_object())
    return true;
  for (const auto &name : schema.value("required", nlohmann::json::array()))
    if (!value.contains(name))
      return false;
  const auto none = nlohmann::json::object();
  const auto listed = schema.value("properties", none),
             patterns = schema.value("patternProperties", none);
  const nlohmann::json others =
      schema.value("additionalProperties", nlohmann::json(true));
  for (const auto &[name, member] : value.items()) {
    bool isOther = !listed.contains(name);
    if (!isOther && !isValid(listed[name], member))
      return false;
    for (const auto &[pattern, kind] : patterns.items())
      if (std::regex_search(name, std::regex(pattern))) {
        isOther = false;
        if (!isValid(kind, member))
          return false;
      }
    if (isOther && !isValid(others, member))
      return false;
  }
  return true;
}

TEST(Schema, ObjectsAreThoseOfTheirRules) {
  using Json = nlohmann::ordered_json;
  std::mt19937 random(5);
  auto below = [&](uint32_t end) { return random() % end; };
  const std::string names[] = {"a", "b", "ab", "xa", "c"},
                    patterns[] = {"a", "^x", "b$", "^.$"};
  auto number = [&]() -> Json {
    if (below(6) == 0)
      return below(2) == 1;
    return {
        {"type", "integer"}, {"minimum", below(4)}, {"maximum", 4 + below(4)}};
  };
  auto part = [&](bool says) {
    Json made = Json::object();
    for (uint32_t i = below(3); i; --i)
      made["properties"][names[below(5)]] = number();
    if (made.contains("properties") && below(2))
      made["required"] = {made["properties"].begin().key()};
    for (uint32_t i = below(3); i; --i)
      made["patternProperties"][patterns[below(4)]] = number();
    if (says)
      made["additionalProperties"] = number();
    return made;
  };
  int compared = 0, allowed = 0;
  for (int turn = 0; turn < 300; ++turn) {
    Json made = part(true);
    made["minProperties"] = 0; // an object, whatever is left out
    if (turn % 2)
      made = {{"allOf", {made, part(below(2) == 1)}}};
    std::optional<Grammar> grammar;
    std::string why = refusal([&] { grammar = schema(made.dump().c_str()); });
    if (!grammar) {
      EXPECT_TRUE(why == "no text fits it" ||
                  why.find("'allOf' of JSON schemas of which one has") !=
                      why.npos)
          << made << ": " << why;
      continue;
    }
    for (int i = 0; i < 12; ++i) {
      std::vector<std::string> some;
      for (uint32_t count = below(4); some.size() < count;)
        if (const std::string &name = names[below(5)];
            std::find(some.begin(), some.end(), name) == some.end())
          some.push_back(name);
      std::sort(some.begin(), some.end());
      Json value = Json::object();
      for (const std::string &name : some)
        value[name] = below(8);
      // Listed members come first, in their order.
      bool fitsOne = false;
      do {
        Json ordered = Json::object();
        for (const std::string &name : some)
          ordered[name] = value[name];
        fitsOne = fitsOne || fits(*grammar, ordered.dump());
      } while (std::next_permutation(some.begin(), some.end()));
      bool is = isValid(nlohmann::json(made), nlohmann::json(value));
      EXPECT_EQ(fitsOne, is) << made << ": " << value;
      ++compared;
      allowed += is;
    }
  }
  EXPECT_GT(compared, 1500);
  EXPECT_GT(allowed, 300);
}

} // namespace
