// PatternTest.cpp: which texts a JSON schema's `pattern`, its `format` and the
// bounds of its numbers allow, and which of them are refused.
#include "GrammarHelpers.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <random>

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
      {R"(^\cA[\cj]$)", {R"("\u0001\n")"}, {R"("\u0001j")", R"("cA\n")"}},
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
      {R"(\c1)", none},
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

std::string formatSchema(const std::string &format) {
  return R"({"format": ")" + format + "\"}";
}

TEST(Grammar, Formats) {
  const std::string part62(62, 'a');
  const std::string names = part62 + "." + part62 + "." + part62;
  struct {
    const char *format;
    std::vector<std::string> good, bad;
  } const cases[] = {
      {"date",
       {"2026-11-30", "2028-02-29", "2026-12-31"},
       {"2026-11-31", "2026-00-10", "2026-1-1", "", "2026-02-30", "2026-01-32",
        "2026-13-01"}},
      {"time",
       {"23:59:59Z", "00:00:00.123-11:30"},
       {"24:00:00Z", "10:00Z", "10:00:00", "10:00:00.Z", "10:00:00+24:00"}},
      {"date-time", {"2026-11-30T01:02:03Z"}, {"2026-11-30 01:02:03Z"}},
      {"duration",
       {"P3Y6M4DT12H30M5S", "P4W", "PT1M", "P1Y", "P1YT5S", "P2M3D"},
       {"P", "PT", "1D", "P1D2H", "P1Y3D", "PT1H5S", "P1W2D", "P1S"}},
      {"uuid",
       {"123e4567-E89b-12d3-a456-426614174000"},
       {"123e4567-e89b-12d3-a456-42661417400", "123e4567e89b12d3a456"}},
      {"hostname",
       {"localhost", "a-b.example.org", "xn-a-b", names + "." + part62},
       {"", "-a", "a-", "a..b", ".a", "a.", "a_b", "a--b", names + "a",
        names + "." + part62 + ".a"}},
      {"email",
       {"joe@example.org", "a.b+c@d", std::string(64, 'x') + "@" + names},
       {"joe", "@a", "joe@", ".a@b", "a.@b", "a..b@c", "a@b@c", "a@-b",
        std::string(65, 'x') + "@a", "a@" + names + ".a"}},
      {"ipv4",
       {"0.0.0.0", "255.249.199.10"},
       {"256.0.0.1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.4."}},
      {"uri",
       {"https://example.org", "ftp://a:21/b/%20c?d=e#f", "http://a/#"},
       {"example.org", "http://", "http://a b", "http://a/%2", "http://a/#b#c",
        "http://a/\\u0020"}},
  };
  for (const auto &one : cases) {
    Grammar grammar = schema(formatSchema(one.format).c_str());
    for (const std::string &text : one.good)
      EXPECT_TRUE(fits(grammar, '"' + text + '"'))
          << one.format << ": " << text;
    for (const std::string &text : one.bad)
      EXPECT_FALSE(fits(grammar, '"' + text + '"'))
          << one.format << ": " << text;
  }
}

/// Addresses with all numbers of groups, and `::` in any place, against the C
/// library's reader of them.
TEST(Grammar, FormatIpv6) {
  auto grammar =
      std::make_shared<const Grammar>(schema(formatSchema("ipv6").c_str()));
  std::mt19937 random(6);
  int fitting = 0;
  for (int turn = 0; turn < 4000; ++turn) {
    std::string text;
    int groups = static_cast<int>(random() % 10),
        gap = static_cast<int>(random() % 12);
    for (int i = 0; i <= groups; ++i) {
      if (i == gap)
        text += i ? ":" : "::";
      if (i == groups)
        break;
      for (unsigned digits = 1 + random() % (turn % 16 ? 4 : 5); digits;
           --digits)
        text += "0123456789abcdefABCDEFg"[random() % (turn % 8 ? 22 : 23)];
      if (i + 1 < groups || random() % 16 == 0 || i + 1 == gap)
        text += ':';
    }
    unsigned char bytes[16];
    bool is = inet_pton(AF_INET6, text.c_str(), bytes) == 1;
    Matcher now(grammar, vocabulary());
    ASSERT_EQ(now.take('"' + text + '"') && now.mayEnd(), is) << text;
    fitting += is;
  }
  EXPECT_GT(fitting, 500);
  EXPECT_LT(fitting, 3500);
}

// Numbers with up to three digits behind the point, all of them around bounds.
TEST(Grammar, BoundsOfNumbers) {
  const std::pair<const char *, const char *> bounds[] = {
      {"0", "1"},       {"0.25", "0.3"},  {"-1.5", "2.75"}, {"-0.1", "0"},
      {"-3", "-0.125"}, {"9.99", "10.2"}, {"0.5", "0.5"},   {"-2", "-2"},
      {"0.001", "3"},   {"1e-3", "1e0"},  {"-0.0", "0.07"}, {"1", "2.05"}};
  for (auto [least, most] : bounds)
    for (int open = 0; open < 4; ++open) {
      std::string text = std::string(R"({"type": "number", ")") +
                         (open & 1 ? "exclusiveMinimum" : "minimum") +
                         "\": " + least + ", \"" +
                         (open & 2 ? "exclusiveMaximum" : "maximum") +
                         "\": " + most + "}";
      double low = atof(least), high = atof(most);
      if (low == high && open) {
        EXPECT_EQ(refusal([&] { schema(text.c_str()); }), "no text fits it");
        continue;
      }
      auto grammar = std::make_shared<const Grammar>(schema(text.c_str()));
      for (int digits = 0; digits < 4; ++digits)
        for (int value = -400; value <= 400; ++value) {
          char number[32];
          snprintf(number, sizeof(number), "%.*f", digits,
                   value / (digits == 3 ? 125. : 100.));
          double is = atof(number);
          bool isInside = (open & 1 ? is > low : is >= low) &&
                          (open & 2 ? is < high : is <= high);
          Matcher now(grammar, vocabulary());
          bool fits = now.take(number) && now.mayEnd();
          // Zero has a sign where numbers below it fit.
          if (is != 0 || number[0] != '-')
            ASSERT_EQ(fits, isInside) << text << ": " << number;
          else
            ASSERT_TRUE(!fits || isInside) << text << ": " << number;
        }
    }
  Grammar half = schema(R"({"type": "number", "exclusiveMaximum": -2.5})");
  for (const char *good : {"-3", "-2.51", "-123456.789", "-2.500001"})
    EXPECT_TRUE(fits(half, good)) << good;
  for (const char *bad : {"-2.5", "-2.50", "0", "-03", "-3.", "-3e1", "-.5"})
    EXPECT_FALSE(fits(half, bad)) << bad;
  // A double beside 0.00008 is the nearest.
  Grammar small = schema(
      R"({"type": "number", "minimum": 8e-5, "exclusiveMaximum": 9.5e-5})");
  for (const char *good : {"0.00008", "0.000080", "0.000094"})
    EXPECT_TRUE(fits(small, good)) << good;
  for (const char *bad : {"0.000079", "0.000095", "0.0000950", "0"})
    EXPECT_FALSE(fits(small, bad)) << bad;
  // Numbers have up to 15 digits in front of the point, as bounds have.
  Grammar large = schema(R"({"type": "number", "minimum": 0})"),
          larger = schema(
              R"({"type": "number", "exclusiveMinimum": 999999999999999.5})");
  for (const char *good : {"999999999999999", "999999999999999.75"})
    EXPECT_TRUE(fits(large, good)) << good;
  for (const char *bad : {"1000000000000000", "1000000000000000.0", "-0.5"})
    EXPECT_FALSE(fits(large, bad)) << bad;
  EXPECT_TRUE(fits(larger, "999999999999999.75"));
  for (const char *bad : {"999999999999999.5", "1000000000000000"})
    EXPECT_FALSE(fits(larger, bad)) << bad;
  Grammar least = schema(R"({"type": "number", "maximum": 0})");
  EXPECT_TRUE(fits(least, "-999999999999999.75"));
  EXPECT_FALSE(fits(least, "-1000000000000000"));
  const std::pair<const char *, const char *> wrong[] = {
      {R"({"type": "number", "minimum": "1"})", "'minimum' has to be a number"},
      {R"({"type": "number", "maximum": 1e15})", "below 1e15"},
      {R"({"type": "number", "exclusiveMinimum": true})",
       "'exclusiveMinimum' has to be a number"},
      {R"({"type": "number", "minimum": 1e-30})", "more than 20 digits"},
      {R"({"type": "number", "minimum": 2.5, "maximum": 2.25})",
       "no number fits"}};
  for (auto [text, says] : wrong)
    EXPECT_NE(refusal([text = text] { schema(text); }).find(says),
              std::string::npos)
        << text;
}

// Integers beside the bounds, and beside those where a digit more is needed.
TEST(Grammar, BoundsOfIntegers) {
  constexpr int64_t largest = 999'999'999'999'999;
  std::mt19937_64 random(7);
  auto any = [&] {
    int64_t limit = 1;
    for (uint64_t digits = random() % 16; digits; --digits)
      limit *= 10;
    auto value = static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
    return random() % 2 ? value : -value;
  };
  for (int turn = 0; turn < 300; ++turn) {
    int64_t least = any(), most = turn % 3 ? any() : least + turn / 3;
    if (least > most)
      std::swap(least, most);
    int isOpen = turn % 4;
    std::string text = R"({"type": "integer", ")";
    text += isOpen & 1 ? "exclusiveMinimum" : "minimum";
    text += "\": " + std::to_string(least - (isOpen & 1)) + ", \"";
    text += isOpen & 2 ? "exclusiveMaximum" : "maximum";
    text += "\": " + std::to_string(most + isOpen / 2) + "}";
    auto grammar = std::make_shared<const Grammar>(schema(text.c_str()));
    std::vector<int64_t> values = {least, most};
    for (int64_t power = 1; power <= largest; power *= 10)
      for (int64_t value : {power, -power, 2 * power, least + power,
                            least - power, most + power, most - power})
        values.push_back(value);
    for (int64_t near : values)
      for (int64_t value : {near - 1, near, near + 1}) {
        Matcher now(grammar, vocabulary());
        ASSERT_EQ(now.take(std::to_string(value)) && now.mayEnd(),
                  value >= least && value <= most)
            << text << ": " << value;
      }
    for (const char *bad : {"-0", "00", "01", "1.5", "", "-", "1e3"}) {
      Matcher now(grammar, vocabulary());
      ASSERT_FALSE(now.take(bad) && now.mayEnd()) << text << ": " << bad;
    }
  }
}

} // namespace
