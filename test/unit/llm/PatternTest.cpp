// PatternTest.cpp: which texts a JSON schema's `pattern` allows, and which
// patterns are refused.
#include "GrammarHelpers.h"

#include <gtest/gtest.h>

using namespace greta::llm;

namespace {

std::string patternSchema(const std::string &pattern) {
  return nlohmann::json{{"type", "string"}, {"pattern", pattern}}.dump();
}

TEST(Grammar, Patterns) {
  struct {
    const char *pattern;
    std::vector<std::string> good, bad; // as JSON
  } const cases[] = {
      {R"(^\d{3}-\d{4}$)",
       {R"("123-4567")"},
       {R"("123-456")", R"("x123-4567")", R"("123-45678")"}},
      {"b+", {R"("b")", R"("abc")", R"("\nb\u0041")"}, {R"("")", R"("ac")"}},
      {"^a", {R"("a")", R"("ab\"")"}, {R"("ba")"}},
      {"a$", {R"("a")", R"("ba")"}, {R"("ab")"}},
      {"^a|b$", {R"("ac")", R"("cb")"}, {R"("ca")", R"("bc")"}},
      {"^(a|bc)*?d?$", {R"("")", R"("abcad")"}, {R"("b")", R"("dd")"}},
      {"^(?:a{2,}|(?<x>b){0,1})c$",
       {R"("aaac")", R"("c")", R"("bc")"},
       {R"("ac")", R"("bbc")"}},
      {R"(^[^"\\\n]$)",
       {R"("a")", R"("é")", R"("\t")", R"("\u0000")"},
       {R"("\"")", R"("\\")", R"("\n")", R"("ab")"}},
      {R"(^["\\]{2}$)", {R"("\"\\")"}, {R"("a\"")", R"("""")"}},
      {R"(^[\w-.]+@[a-c-]$)",
       {R"("x_1-.@-")", R"("Z@b")"},
       {R"("é@a")", R"("a@d")"}},
      {R"(^\x41\u00e4\u{1F600}[\b\0]\.\/$)",
       {"\"Aä😀\\b./\"", "\"Aä😀\\u0000./\""},
       {"\"Aä😀.x\""}},
      {R"(^.\s\S\D\W$)",
       {R"("x ab-")", R"("é\t1x!")"},
       {R"("\n ab-")", R"("x  b-")", R"("x a1-")"}},
      {"^[]$|^[^]{2}$", {R"("\n\n")"}, {R"("")", R"("a")"}},
      {"^x{a}{,2}]}$", {R"("x{a}{,2}]}")"}, {R"("xa")"}},
      {"", {R"("")", R"("any")"}, {"1"}},
      {"^a||b$", {R"("any")"}, {"1"}},
  };
  for (const auto &one : cases) {
    Grammar grammar = schema(patternSchema(one.pattern).c_str());
    for (const std::string &text : one.good)
      EXPECT_TRUE(fits(grammar, text)) << one.pattern << ": " << text;
    for (const std::string &text : one.bad)
      EXPECT_FALSE(fits(grammar, text)) << one.pattern << ": " << text;
  }
  // It says nothing of other types.
  EXPECT_TRUE(fits(
      schema(R"({"type": ["string", "integer"], "pattern": "^a$"})"), "3"));
}

TEST(Grammar, PatternsThatAreRefused) {
  const char *none = "it is no regular expression of JavaScript";
  const std::pair<std::string, const char *> cases[] = {
      {"(?=a)", "a look at what is beside"},
      {"(?!a)", "a look at what is beside"},
      {"(?<=a)b", "a look at what is beside"},
      {"(?<!a)b", "a look at what is beside"},
      {R"(\bword\b)", "a look at what is beside"},
      {R"((a)\1)", "a reference to a group"},
      {R"((?<x>a)\k<x>)", "a reference to a group"},
      {R"(\p{L})", "\\p{..} is not supported"},
      {"(?i)a", "of groups with (?..)"},
      {"a(^b)", "'^' is supported at the beginning alone"},
      {"(a$|b)", "'$' is supported at the end alone"},
      {"a$b", "'$' is supported at the end alone"},
      {R"(\ud83d)", "halves of characters"},
      {"(", none},
      {")", none},
      {"a)", none},
      {"[a", none},
      {"[b-a]", none},
      {"*", none},
      {"a**", none},
      {"a+*", none},
      {"{2}", none},
      {"a{3,2}", none},
      {"(?<>a)", none},
      {"(?<x", none},
      {"\\", none},
      {R"(\xg0)", none},
      {R"(\u{110000})", none},
      {R"(\u{})", none},
      {R"(\01)", none},
      {R"(\q)", none},
      {"[]", "no text fits it"},
      {"a{10001}", "10000 times"},
      {"a{99999999999999999999}", "10000 times"},
      {std::string(1000, '(') + std::string(1000, ')'), "nested too deep"},
      {std::string(300'000, 'a'), "it is too large"}};
  for (const auto &[pattern, says] : cases) {
    std::string why =
        refusal([text = pattern] { schema(patternSchema(text).c_str()); });
    EXPECT_NE(why.find(says), why.npos) << pattern.substr(0, 99) << ": " << why;
  }
  for (const char *beside : {"minLength", "maxLength"}) {
    std::string text = std::string(R"({"pattern": "a", ")") + beside + "\": 1}";
    EXPECT_NE(refusal([&] { schema(text.c_str()); }).find("'pattern' beside '"),
              std::string::npos);
  }
  EXPECT_NE(refusal([] {
              schema(R"({"pattern": "a", "format": "date"})");
            }).find("'pattern' beside 'format'"),
            std::string::npos);
  EXPECT_NE(refusal([] {
              schema(R"({"pattern": 1})");
            }).find("'pattern' has to be a text"),
            std::string::npos);
}

} // namespace
