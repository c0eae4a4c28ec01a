// Grammar.h: context-free grammars over bytes. In: expressions, which GBNF's
// text (Gbnf.cpp) and JSON schemas (JsonSchema.cpp) become. Out: a graph of
// nodes, which Matcher.h runs along a text.
//
// Grammars come from clients. Everything about them is bounded: what is too
// large, nested too deep or left-recursive is an error of one sentence.
#ifndef GRETA_LLM_GRAMMAR_H
#define GRETA_LLM_GRAMMAR_H

#include <bitset>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace greta::llm {

// A rule is entered at a node and left at one of kind End.
struct Grammar {
  enum Kind : uint8_t {
    Bytes, // one byte of a set, then `next`
    Call,  // what a rule says, then `next`
    Split, // `next` or `other`, without a byte
    End
  };
  struct Node {
    Kind kind = End;
    int32_t which = 0; // set or rule
    int32_t next = -1, other = -1;
  };

  std::vector<Node> nodes;
  std::vector<std::bitset<256>> sets;
  std::vector<int32_t> entries; // of rules
  int32_t root = 0;
};

// Code points from the first to the second.
using CharacterRanges = std::vector<std::pair<uint32_t, uint32_t>>;

class GrammarBuilder {
public:
  // An expression; they are made from others, never changed.
  using Expression = int32_t;

  Expression empty() { return sequence({}); }
  Expression literal(const std::string &bytes);
  Expression bytes(const std::bitset<256> &set);
  // One character of these, as UTF-8. There are no surrogates.
  Expression characters(const CharacterRanges &ranges);
  Expression sequence(std::vector<Expression> parts);
  // A choice of no parts fits nothing.
  Expression choice(std::vector<Expression> parts);
  // Any of these texts, with common beginnings once.
  Expression oneOf(std::vector<std::string> texts);
  // At most `most` times; -1: any number.
  Expression repeat(Expression part, int64_t least, int64_t most);
  Expression optional(Expression part) { return repeat(part, 0, 1); }

  // Rules may be called before they are defined.
  int32_t newRule();
  void define(int32_t rule, Expression expression);
  Expression call(int32_t rule);

  Grammar finish(int32_t root);

  // All JSON schemas of a grammar may cost so much before they are rules.
  struct Work {
    int64_t names = 2'000'000; // nodes that patterns of names look at
    int64_t values = 200'000;  // that `allOf` copies, or looks through
  };
  Work work;

private:
  enum class What { Set, Sequence, Choice, Repeat, Call };
  struct Part {
    What what;
    std::vector<Expression> parts;
    int64_t least = 0, most = 0; // of Repeat
    int32_t which = 0;           // set or rule
  };

  Expression add(Part part);
  Expression byteRange(unsigned first, unsigned last);
  int32_t setOf(const std::bitset<256> &bytes);
  int32_t node(Grammar::Node node);
  int32_t compile(Expression expression, int32_t next, int depth);
  int32_t compileRepeat(const Part &part, int32_t next, int depth);
  void checkRecursion();
  void cutDeadEnds();

  Grammar grammar;
  std::vector<Part> all;
  std::vector<Expression> definitions; // of rules; -1: none yet
  std::vector<bool> scratch;           // nodes that checkRecursion has seen
};

// Throw what is wrong, for whoever wrote it.
Grammar grammarOfGbnf(const std::string &text);
Grammar grammarOfSchema(const nlohmann::ordered_json &schema);
// Any JSON object, or any value.
Grammar grammarOfJson(bool isObject);

// Whole numbers of up to 15 digits, as JSON has them.
GrammarBuilder::Expression integersBetween(GrammarBuilder &builder,
                                           int64_t least, int64_t most);

// Numbers within the bounds of a JSON schema, in decimals.
GrammarBuilder::Expression addBoundNumber(GrammarBuilder &builder,
                                          const nlohmann::ordered_json &schema);

// Multiples of `multipleOf` of a JSON schema within its bounds, in decimals.
GrammarBuilder::Expression addMultiple(GrammarBuilder &builder,
                                       const nlohmann::ordered_json &schema,
                                       bool isWhole);

// These characters stand for themselves between JSON's quotation marks.
CharacterRanges plainCharacters();
// The expression has all texts of these characters that are none of `names`.
GrammarBuilder::Expression otherNames(GrammarBuilder &builder,
                                      const std::vector<std::string> &names);

// The texts in which a regular expression of JavaScript finds something, as
// JSON has them between quotation marks. `any`: any character, as JSON has it.
// Anything that is not supported is an exception.
GrammarBuilder::Expression addPattern(GrammarBuilder &builder,
                                      const std::string &pattern,
                                      GrammarBuilder::Expression any);

// Texts of a JSON schema's `format`, as JSON has them between quotation marks.
GrammarBuilder::Expression addFormat(GrammarBuilder &builder,
                                     const std::string &format,
                                     GrammarBuilder::Expression any);
// Lists of `least` to `most` of these texts, at least one, none of which comes
// twice; -1: any number. `comma` is between two of them. More than 64 texts,
// or too many sets of them, are an exception.
GrammarBuilder::Expression uniqueItems(GrammarBuilder &builder,
                                       const std::vector<std::string> &texts,
                                       GrammarBuilder::Expression comma,
                                       int64_t least, int64_t most);

// A name and its value, which may be left out.
struct ObjectMember {
  GrammarBuilder::Expression pair;
  bool isNeeded;
};
// `least` to `most` members of an object, at least one, in their order, with
// commas between; -1: any number. Behind them may be any number of `others`.
GrammarBuilder::Expression
objectMembers(GrammarBuilder &builder, const std::vector<ObjectMember> &members,
              std::optional<GrammarBuilder::Expression> others,
              GrammarBuilder::Expression comma, int64_t least, int64_t most);

// A JSON schema as a part of a grammar. Its references lead into `root`, which
// it may be itself.
GrammarBuilder::Expression addSchema(GrammarBuilder &builder,
                                     const nlohmann::ordered_json &schema,
                                     const nlohmann::ordered_json &root);
// The schema that a `$ref` names, which has to be in `root`; `passed` grows by
// the names that were looked through.
const nlohmann::ordered_json &schemaAt(const nlohmann::ordered_json &root,
                                       const std::string &pointer,
                                       size_t *passed = nullptr);
// A keyword that says nothing about values.
bool isAnnotation(const std::string &keyword);

} // namespace greta::llm
#endif
