// GrammarTest.cpp: which texts GBNF grammars and JSON schemas allow, that masks
// say the same as taking each token would, that what a client sends is refused
// in bounded time, and who gets his mask first.
#include "GrammarHelpers.h"
#include "server/Guides.h"

#include <chrono>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>

using namespace greta::llm;

namespace {

struct GrammarCase {
  const char *grammar;
  std::vector<std::string> good, bad;
};

TEST(Grammar, Gbnf) {
  const GrammarCase cases[] = {
      {"root ::= \"yes\" | \"no\"",
       {"yes", "no"},
       {"", "ye", "yesno", "maybe"}},
      {"root ::= item (\",\" item)* # a list\nitem ::= [a-c]+ | \"[\" root "
       "\"]\"",
       {"a", "abc,b", "[a,[b],c]"},
       {"", "a,", "[a", "d", "[]"}},
      {"root ::= [^a-y\\n]{2,3} .? \"\\x41\"",
       {"zzA", "ÄÖA", "€€€A", "zz\nA", "😀z€A"},
       {"zA", "aaA", "zzzzzA",
        "\xc3\xc3"
        "A"}},
      {"root ::= (\"a\"? \"b\"*)* \"c\"", {"c", "abbac", "aac"}, {"ab"}},
      {"root ::= ones{2}\nones ::=\n  \"1\" |\n  \"2\"{1,}",
       {"11", "122", "222"},
       {"1", "3"}},
      {"root ::= \"(\" root \")\" | \"\"", {"", "((()))"}, {"(", "())"}},
  };
  for (const GrammarCase &one : cases) {
    Grammar grammar = grammarOfGbnf(one.grammar);
    for (const std::string &text : one.good)
      EXPECT_TRUE(fits(grammar, text)) << one.grammar << ": " << text;
    for (const std::string &text : one.bad)
      EXPECT_FALSE(fits(grammar, text)) << one.grammar << ": " << text;
  }
}

TEST(Grammar, JsonSchemas) {
  const GrammarCase cases[] = {
      {R"({"type": "object", "properties": {"z": {"type": "integer"},
           "a": {"type": ["string", "null"]}, "m": {"type": "boolean"}},
           "required": ["z", "m"], "additionalProperties": false})",
       {R"({"z": -3, "a": "x\n€", "m": true})", R"({"z":0,"m":false})",
        "{\n  \"z\": 1,\n  \"a\": null,\n  \"m\": true\n}"},
       {R"({"z": 03, "m": true})", R"({"a": "x", "z": 1, "m": true})",
        R"({"z": 1})", R"({"z": 1, "m": true, "b": 1})", "{}",
        "{\"z\": 1, \"a\": \"\n\", \"m\": true}"}},
      {R"({"type": "object", "properties": {"a": {"type": "null"},
           "b": {"type": "null"}}})",
       {"{}", R"({"a": null})", R"({"b": null})", R"({"a": null, "b": null})"},
       {R"({"b": null, "a": null})", R"({"a": null,})"}},
      {R"({"type": "object", "properties": {"name": {"type": "integer"}},
           "additionalProperties": {"type": "string"}})",
       {"{}", R"({"name": 1})", R"({"name": 1, "nam": "x"})",
        R"({"names": "x", "b": ""})", R"({"": "x"})"},
       {R"({"name": "x"})", R"({"b": "", "name": "x"})",
        R"({"n\u0061me": "x"})", R"({"b": 1})"}},
      {R"({"type": "array", "items": {"enum": ["a", "ab", 3, null]},
           "minItems": 1, "maxItems": 3})",
       {R"(["a"])", R"(["ab", 3, null])"},
       {"[]", R"(["a", "a", "a", "a"])", R"(["b"])"}},
      {R"({"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object",
           "properties": {"sub": {"type": "array",
           "items": {"$ref": "#/$defs/tree"}}}, "required": ["sub"]}}})",
       {R"({"sub": []})", R"({"sub": [{"sub": [{"sub": []}]}]})"},
       {R"({"sub": [1]})", R"({})"}},
      {R"({"anyOf": [{"type": "string", "minLength": 2, "maxLength": 3},
           {"type": "integer", "minimum": -12, "exclusiveMaximum": 105},
           {"const": {"a": [1, 2]}}]})",
       {R"("ab")", R"("€€€")", R"("\u00e9\n")", "0", "104", "-12", "-1", "99",
        R"({"a":[1,2]})"},
       {R"("a")", R"("abcd")", "105", "-13", "1000", "-0"}},
      {R"({"type": "integer", "minimum": 0})",
       {"0", "7", "12345"},
       {"-1", "01"}},
      {R"({"type": "number"})", {"0", "-1.5e+10", "3.25"}, {"01", ".5", "1."}},
      {R"({"type": "string", "format": "date-time"})",
       {R"("2026-11-26T10:00:00Z")", R"("2026-11-26T10:00:00.5+01:00")"},
       {R"("2026-13-26T10:00:00Z")", R"("today")"}},
      {R"({"type": "array", "prefixItems": [{"type": "integer"},
           {"type": "boolean"}], "items": false})",
       {"[1, true]"},
       {"[1]", "[1, true, 2]"}},
      {R"({"type": "object"})", {R"({"a": [{"b": "c"}, 1.5]})"}, {"[]"}},
      {R"({"properties": {"a": false, "b": {"type": "null"}},
           "additionalProperties": false})",
       {"{}", R"({"b": null})"},
       {R"({"a": 1})"}},
      {R"({"type": "string"})",
       {R"("\ud83d\uDE00 \u00e4\uD7FF\ue000")"},
       {R"("\ud83d")", R"("\ud83d\u0041")", R"("\ude00")"}},
      {R"({"type": ["string", "null"], "enum": ["a", 1, null]})",
       {R"("a")", "null"},
       {"1"}},
      {R"({"type": "number", "const": 1.5})", {"1.5"}, {"1"}},
      {R"({"type": "object", "properties": {"a\"b": {"type": "null"}},
           "additionalProperties": {"type": "null"}})",
       {R"({"a\"b": null, "a": null})"},
       {R"({"a"b": null})"}},
      {R"({})", {"[]", "1", "{}"}, {"x"}},
  };
  for (const GrammarCase &one : cases) {
    Grammar grammar = schema(one.grammar);
    for (const std::string &text : one.good)
      EXPECT_TRUE(fits(grammar, text)) << one.grammar << ": " << text;
    for (const std::string &text : one.bad)
      EXPECT_FALSE(fits(grammar, text)) << one.grammar << ": " << text;
  }
}

TEST(Grammar, UniqueItems) {
  const GrammarCase cases[] = {
      {R"({"type": "array", "items": {"type": "string", "enum": ["a", "b", 1,
           "c"]}, "uniqueItems": true})",
       {"[]", R"(["b"])", R"(["c", "a"])", R"(["a","b","c"])", R"([ "c" ])"},
       {R"(["a", "a"])", R"(["a", "b", "a"])", "[1]", R"(["a",])", R"([,"a"])",
        R"(["c", "b", "a", "c"])"}},
      {R"({"items": {"$ref": "#/$defs/e"}, "uniqueItems": true, "minItems": 2,
           "maxItems": 2, "$defs": {"e": {"enum": [1, 1.0, [2], {"a": 1, "b":
           2}, {"b": 2, "a": 1}]}}})",
       {"[1, [2]]", R"([{"a":1,"b":2}, 1])"},
       {"[1]", "[1, 1]", "[1, 1.0]", R"([{"a":1,"b":2}, {"b":2,"a":1}])",
        R"([1, [2], {"a":1,"b":2}])"}},
      {R"({"items": {"type": ["boolean", "null"]}, "uniqueItems": true})",
       {"[true, null, false]"},
       {"[true, true]", R"(["a"])"}},
      {R"({"items": {"const": 7}, "uniqueItems": true})",
       {"[]", "[7]"},
       {"[7, 7]"}},
      // So few items are different, whatever they are.
      {R"({"items": {"type": "string"}, "uniqueItems": true, "maxItems": 1})",
       {"[]", R"(["any"])"},
       {R"(["a", "b"])"}},
      {R"({"items": {"type": "integer"}, "uniqueItems": false})",
       {"[1, 1]"},
       {"[a]"}},
  };
  for (const GrammarCase &one : cases) {
    Grammar grammar = schema(one.grammar);
    for (const std::string &text : one.good)
      EXPECT_TRUE(fits(grammar, text)) << one.grammar << ": " << text;
    for (const std::string &text : one.bad)
      EXPECT_FALSE(fits(grammar, text)) << one.grammar << ": " << text;
  }
  // All lists of nine values, or pairs of thirty.
  auto many = [](int count, const char *more) {
    std::string text = R"({"uniqueItems": true)" + std::string(more) +
                       R"(, "items": {"enum": [0)";
    for (int i = 1; i < count; ++i)
      text += ", " + std::to_string(i);
    return text + "]}}";
  };
  EXPECT_TRUE(fits(schema(many(9, "").c_str()), "[8, 7, 6, 5, 4, 3, 2, 1, 0]"));
  EXPECT_TRUE(fits(schema(many(30, R"(, "maxItems": 2)").c_str()), "[29, 3]"));
  const std::pair<std::string, const char *> refused[] = {
      {many(10, ""), "for up to nine values"},
      {many(65, R"(, "maxItems": 2)"), "for up to nine values"},
      {many(40, R"(, "maxItems": 2)"), "for up to nine values"},
      {many(100'000, ""), "for up to nine values"},
      {many(3, R"(, "minItems": 4)"), "no text fits it"},
      {R"({"uniqueItems": true})", "for items of 'enum', 'const'"},
      {R"({"uniqueItems": true, "items": {"type": "integer"}})",
       "for items of 'enum', 'const'"},
      {R"({"uniqueItems": true, "items": true})", "for items of 'enum'"},
      {R"({"uniqueItems": true, "items": {"$ref": "#"}})", "for items of"},
      {R"({"uniqueItems": true, "items": {"enum": 1}})", "has to be a list"},
      {R"({"uniqueItems": 1})", "'uniqueItems' has to be true or false"},
      {R"({"uniqueItems": true, "prefixItems": [{}]})",
       "'prefixItems' of a JSON schema is supported"}};
  for (const auto &[text, says] : refused) {
    std::string why = refusal([text = text] { schema(text.c_str()); });
    EXPECT_NE(why.find(says), why.npos) << text << ": " << why;
  }
}

TEST(Grammar, SaysWhatIsWrong) {
  std::pair<const char *, const char *> texts[] = {
      {"", "there is no rule 'root'"},
      {"root ::= a", "the rule 'a' is not defined"},
      {"root ::= \"a\nroot ::= \"b\"", "does not end"},
      {"root \"a\"", "there should be a rule"},
      {"root ::= (\"a\"", "')' is missing"},
      {"root ::= \"a\"{3,2}", "a number of repetitions is wrong"},
      {"root ::= \"a\"{99999}", "it repeats something more than 10000 times"},
      {"root ::= [z-a]", "a range of characters goes backwards"},
      {"root ::= [a", "does not end"},
      {"root ::= \"\\q\"", "no such escape"},
      {"root ::= root \"a\" | \"b\"", "calls itself before any character"},
      {"root ::= \"a\" (root | []) | \"b\" []", "no text fits it"},
      {"root ::= a* b\na ::= \"\"\nb ::= a root \"x\" | \"y\"",
       "calls itself before any character"}};
  for (auto [text, says] : texts) {
    std::string why = refusal([text = text] { grammarOfGbnf(text); });
    EXPECT_NE(why.find(says), why.npos) << text << ": " << why;
  }
  std::pair<const char *, const char *> schemas[] = {
      {R"({"not": {}})", "'not' of a JSON schema is not supported"},
      {R"({"type": "text"})", "'type': 'text' of a JSON schema is not known"},
      {R"([])", "has to be an object"},
      {R"({"$ref": "#/$defs/a"})", "names something that is not there"},
      {R"({"$ref": "http://a/b"})", "has to begin with #"},
      {R"({"$ref": "#"})", "calls itself before any character"},
      {R"({"type": "string", "format": "regex"})", "'format': 'regex'"},
      {R"({"type": "object", "required": ["a"]})", "'required' names"},
      {R"({"anyOf": [{}], "properties": {}})", "'anyOf' beside 'properties'"},
      {R"({"type": "integer", "minimum": 3, "maximum": 2})", "no integer fits"},
      {R"({"type": "string", "minLength": 20000})", "10000 times"},
      {R"({"allOf": []})", "'allOf' has to be a list"},
      {R"({"allOf": [1, {}]})", "has to be an object"},
      {R"({"enum": 1})", "'enum' has to be a list"},
      {R"({"type": "object", "anyOf": [{}]})", "'type' beside 'anyOf'"},
      {R"({"type": "string", "enum": [1]})", "no text fits it"},
      {R"({"properties": {"a": false}, "required": ["a"]})", "no text fits it"},
      {R"({"type": "array", "maxItems": -1})", "'maxItems' is negative"},
      {R"({"type": "array", "minItems": 1, "maxItems": 0})",
       "'minItems' is more than 'maxItems'"}};
  for (auto [text, says] : schemas) {
    std::string why = refusal([text = text] { schema(text); });
    EXPECT_NE(why.find(says), why.npos) << text << ": " << why;
  }
}

TEST(Grammar, SaysWhatIsTooMuch) {
  std::string rules = "root ::= r1\n", beginnings = R"({"enum": ["a")";
  for (int i = 1; i < 2001; ++i)
    rules += "r" + std::to_string(i) + " ::= \"x\"\n";
  for (size_t i = 2; i < 300; ++i)
    beginnings += ", \"" + std::string(i, 'a') + '"';
  EXPECT_EQ(refusal([&] { grammarOfGbnf(rules); }),
            "it has more than 2000 rules");
  EXPECT_EQ(refusal([&] { schema((beginnings + "]}").c_str()); }),
            "its texts have too many beginnings");
  // No reader of grammars nests expressions so deep.
  EXPECT_EQ(refusal([] {
              GrammarBuilder builder;
              int32_t root = builder.newRule();
              auto part = builder.literal("a");
              for (int i = 0; i < 1000; ++i)
                part = builder.choice({part, builder.literal("b")});
              builder.define(root, part);
              builder.finish(root);
            }),
            "it is nested too deep");
}

/// Walks along what a mask allows, and compares it with each token by itself.
TEST(Grammar, MasksSayWhatMayBeTaken) {
  std::mt19937 random(3);
  const std::vector<int32_t> ends = {0};
  for (const Grammar &grammar :
       {grammarOfJson(true), schema(R"({"type": "object", "properties":
          {"name": {"type": "string", "maxLength": 12}, "n": {"type":
          "array", "items": {"type": "integer"}}}, "required": ["name"]})"),
        grammarOfGbnf("root ::= ([a-z]{1,4} \" \")+ \"€\"? root?")}) {
    Matcher along = matcher(grammar);
    std::string text;
    for (int step = 0; step < 10; ++step) {
      std::vector<uint32_t> mask = along.mask(ends);
      std::vector<int32_t> allowed;
      for (size_t token = 1; token < tokenizer().size(); ++token) {
        std::string bytes = tokenizer().bytesOf(static_cast<int32_t>(token));
        bool isIn = mask[token / 32] >> (token % 32) & 1;
        Matcher other = matcher(grammar);
        bool may = !bytes.empty() &&
                   !tokenizer().isEnd(static_cast<int32_t>(token)) &&
                   other.take(text) && other.take(bytes);
        ASSERT_EQ(isIn, may) << text << " + " << bytes;
        if (isIn)
          allowed.push_back(static_cast<int32_t>(token));
      }
      EXPECT_EQ((mask[0] & 1) != 0, along.mayEnd());
      if (allowed.empty())
        break;
      std::string bytes =
          tokenizer().bytesOf(allowed[random() % allowed.size()]);
      ASSERT_TRUE(along.take(bytes));
      text += bytes;
    }
  }
}

TEST(Grammar, LongTextsNeedNoMoreMemory) {
  Matcher one = matcher(grammarOfJson(true));
  ASSERT_TRUE(one.take("{\"a\": ["));
  for (int i = 0; i < 20000; ++i) {
    ASSERT_TRUE(one.take(i % 2 ? "\"some text\", " : "{\"b\": 12.5}, "));
    if (i % 500 == 0)
      (void)one.mask({});
  }
  ASSERT_TRUE(one.take("0]}"));
  EXPECT_TRUE(one.mayEnd() && one.isOver());
}

// Each character is one that may begin the end, or not.
const char *const manyWays = "root ::= [a-z ]* [a-m] [a-z ]{200}";

/// Every mask is cheaper than all that its grammar has left; who takes more on
/// and on is ended.
TEST(Grammar, WorkIsCredit) {
  auto run = [](Grammar grammar, std::string text, int most, int64_t &work) {
    Matcher one = matcher(std::move(grammar));
    EXPECT_TRUE(one.take(text));
    for (int masks = 0; masks < most; ++masks) {
      try {
        (void)one.mask({});
      } catch (const GrammarTooHard &) {
        return masks;
      }
      work += one.lastWork();
      EXPECT_LE(work, 1'000'000 + 50'000 * int64_t(masks + 1));
      EXPECT_TRUE(one.take("a"));
    }
    return most;
  };
  int64_t hard = 0, easy = 0;
  int masks =
      run(grammarOfGbnf("root ::= [a-z ]* [a-m] [a-z ]{1500}"), "", 1000, hard);
  EXPECT_GT(masks, 5);
  EXPECT_LT(masks, 1000);
  EXPECT_EQ(
      run(schema(R"({"type": "string", "maxLength": 900})"), "\"", 800, easy),
      800);
  EXPECT_LT(easy / 800, 10'000);
}

/// One helper, and eight answers in a hard grammar that have asked before.
TEST(Grammar, EasyGuidesPassHardOnes) {
  Guides guides(0);
  auto guide = [](const char *gbnf) {
    return std::make_shared<Guide>(
        std::make_shared<const Grammar>(grammarOfGbnf(gbnf)), vocabulary(),
        std::vector<int32_t>{});
  };
  std::vector<std::shared_ptr<Guide>> hard;
  for (int i = 0; i < 8; ++i)
    hard.push_back(guide(manyWays));
  // They have said so much that a mask takes a while.
  for (auto &one : hard)
    for (int i = 0; i < 100; ++i) {
      guides.ask(one);
      ASSERT_TRUE(guides.computeNext());
      ASSERT_TRUE(one->isReady() && one->problem() == "");
      ASSERT_TRUE(one->take("a"));
    }
  std::shared_ptr<Guide> easy = guide("root ::= [a-z]*");
  for (int round = 0; round < 20; ++round) {
    for (auto &one : hard)
      if (one->isReady() || one->isUnasked())
        guides.ask(one);
    guides.ask(easy);
    // Whoever is before it has waited for as long as his own mask takes.
    int before = 0;
    while (!easy->isReady() && guides.computeNext())
      ++before;
    EXPECT_LE(before, round ? 2 : 1);
    ASSERT_TRUE(easy->take("b"));
  }
  // None waits for ever.
  int ready = 0;
  while (guides.computeNext())
    ++ready;
  EXPECT_LE(ready, 8);
  for (auto &one : hard)
    EXPECT_TRUE(one->isReady());
}

/// Masks behind guesses are those that the text would have there, and asking
/// for them leaves it and its credit as they are.
TEST(Grammar, MasksBehindGuesses) {
  const std::vector<int32_t> ends = {0};
  Grammar grammar = grammarOfGbnf("root ::= \"ab\" [c-f]{1,3} \"g\"");
  Matcher one = matcher(grammar);
  auto behind = [&](std::vector<std::string> texts) {
    return one.masksBehind(texts, ends);
  };
  for (int turn = 0; turn < 2; ++turn) {
    std::vector<std::vector<uint32_t>> masks = behind({"ab", "cd", "g", "g"});
    ASSERT_EQ(masks.size(), 3u);
    Matcher other = matcher(grammar);
    const char *const texts[] = {"ab", "cd", "g"};
    for (size_t i = 0; i < 3; ++i) {
      ASSERT_TRUE(other.take(texts[i]));
      EXPECT_EQ(masks[i], other.mask(ends));
    }
    EXPECT_EQ(masks[2][0] & 1, 1u);
    EXPECT_EQ(one.mask(ends), matcher(grammar).mask(ends));
  }
  EXPECT_TRUE(behind({"b"}).empty() && behind({}).empty());
  // A hard mask ends the guesses, and costs the text nothing.
  Matcher hard = matcher(grammarOfGbnf(manyWays));
  ASSERT_TRUE(hard.take(std::string(150, 'a')));
  for (int i = 0; i < 100; ++i)
    EXPECT_LT(hard.masksBehind(std::vector<std::string>(40, "a"), ends).size(),
              40u);
  EXPECT_FALSE(hard.mask(ends).empty());
}

/// A guide keeps the guesses that the grammar allows, up to where it ends.
TEST(Grammar, GuidesCheckGuesses) {
  Guides guides(0);
  auto tokenOf = [](const char *text) {
    for (size_t i = 0; i < tokenizer().size(); ++i)
      if (tokenizer().bytesOf(static_cast<int32_t>(i)) == text)
        return static_cast<int32_t>(i);
    return -1;
  };
  int32_t a = tokenOf("a"), b = tokenOf("b"), end = 0;
  ASSERT_TRUE(a > 0 && b > 0);
  using Tokens = std::vector<int32_t>;
  auto left = [&](const char *gbnf, const Tokens &guesses) {
    Guide guide(std::make_shared<const Grammar>(grammarOfGbnf(gbnf)),
                vocabulary(), {end});
    std::shared_ptr<Guide> shared(&guide, [](Guide *) {});
    auto held = shared; // somebody waits for it
    guides.ask(shared);
    EXPECT_TRUE(guides.computeNext() && guide.isReady());
    EXPECT_TRUE(guide.guesses().empty() && guide.masksBehind().empty());
    EXPECT_TRUE(guide.take("a"));
    EXPECT_TRUE(!guide.isReady() && guide.isUnasked());
    std::vector<std::string> texts;
    for (int32_t token : guesses)
      texts.push_back(tokenizer().bytesOf(token));
    guide.guess(guesses, texts);
    guides.ask(shared);
    EXPECT_TRUE(guides.computeNext() && guide.isReady());
    EXPECT_EQ(guide.problem(), "");
    EXPECT_EQ(guide.masksBehind().size(), guide.guesses().size());
    Tokens result = guide.guesses();
    // Guesses are behind this text alone.
    EXPECT_TRUE(guide.take("a") && guide.guesses().empty());
    return result;
  };
  EXPECT_EQ(left("root ::= [ab]*", {a, b, a}), Tokens({a, b, a}));
  EXPECT_EQ(left("root ::= [ab]*", {}), Tokens());
  EXPECT_EQ(left("root ::= a* b?\na ::= \"a\"\nb ::= \"b\"", {a, b, a}),
            Tokens({a, b}));
  EXPECT_EQ(left("root ::= \"a\"+", {b, a}), Tokens());
  // An end is no guess, nor is what would be behind it.
  EXPECT_EQ(left("root ::= [ab]*", {a, end, a}), Tokens({a}));
  EXPECT_EQ(left("root ::= \"aa\"", {a, a}), Tokens({a}));
}

/// New guides wait for as long as first masks take, not for nothing; and a walk
/// over the vocabulary is work, too.
TEST(Grammar, NewGuidesDoNotPassAll) {
  Guides guides(0);
  auto guide = [](const char *gbnf) {
    return std::make_shared<Guide>(
        std::make_shared<const Grammar>(grammarOfGbnf(gbnf)), vocabulary(),
        std::vector<int32_t>{});
  };
  // One that runs, whose masks are easy, beside new ones with hard first masks.
  std::shared_ptr<Guide> runs = guide("root ::= [a-z]*");
  guides.ask(runs);
  ASSERT_TRUE(guides.computeNext());
  std::vector<std::shared_ptr<Guide>> others;
  int before = 0;
  for (int round = 0; round < 20; ++round) {
    others.push_back(
        guide("root ::= [a-z]{0,60} [a-m] [a-z]{0,60} [b-n] [a-z]{0,60}"));
    guides.ask(others.back());
    ASSERT_TRUE(runs->take("a"));
    guides.ask(runs);
    while (!runs->isReady() && guides.computeNext())
      ++before;
  }
  EXPECT_LE(before, 22);
  std::string any = "root ::= [^\\x00]{0,900}";
  Matcher walks = matcher(grammarOfGbnf(any)),
          ends = matcher(grammarOfGbnf("root ::= \"a\""));
  (void)walks.mask({});
  (void)ends.mask({});
  EXPECT_GT(walks.lastWork(), ends.lastWork() + 10);
}

TEST(Grammar, HostileOnesEndSoon) {
  auto begin = std::chrono::steady_clock::now();
  auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '(') + "\"a\"" +
           std::string(static_cast<size_t>(depth), ')');
  };
  std::string many = "root ::= ", chain = "root ::= r0\n", wide = "root ::= (";
  for (int i = 0; i < 1900; ++i) {
    many += "\"" + std::string(20, 'a') + std::to_string(i) + "\" | ";
    chain += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + "?\n";
    wide += "\"a\"{0," + std::to_string(i % 90) + "} | ";
  }
  std::vector<std::string> texts = {
      "root ::= " + nested(60),
      "root ::= " + nested(5000),
      many + "\"b\"",
      chain + "r1900 ::= \"x\"",
      wide + "\"b\")*",
      "root ::= (((\"a\"{1000}){1000}){1000})",
      "root ::= (\"a\" | \"a\"? | \"a\"{0,900})* root?",
      "root ::= \"a\" root root root | \"a\"",
      "root ::= \"(\" root \")\" | [a-z]{0,9999} [a-y]{0,9999} \"b\""};
  for (const std::string &text : texts)
    (void)refusal([&] {
      Matcher one = matcher(grammarOfGbnf(text));
      for (int i = 0; i < 300; ++i) {
        (void)one.mask({});
        if (!one.take(i % 7 ? "a" : "(") && !one.take("a"))
          break;
      }
    });
  double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  RecordProperty("milliseconds", static_cast<int>(seconds * 1000));
  EXPECT_LT(seconds, 120); // the sanitizers' builds, too
}

} // namespace
