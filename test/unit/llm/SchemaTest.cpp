// SchemaTest.cpp: multiples of numbers, and objects whose names or number of
// members a JSON schema bounds. Multiples are compared with arithmetic.
#include "GrammarHelpers.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

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
      {R"({"propertyNames": {"anyOf": [{}]}})", "'type' beside 'anyOf'"},
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
      {R"({"patternProperties": {"a": {}, "b": {}}})",
       "'patternProperties' of a JSON schema is supported for one pattern"},
      {R"({"patternProperties": {"a": {}}, "properties": {"b": {}}})",
       "'patternProperties' of a JSON schema is supported for one pattern"},
      {R"({"properties": {"a": {}}, "required": ["a"],
           "propertyNames": {"const": "b"}})",
       "no text fits it"}};
  for (auto [text, says] : refused) {
    std::string why = refusal([text = text] { schema(text); });
    EXPECT_NE(why.find(says), why.npos) << text << ": " << why;
  }
}

} // namespace
