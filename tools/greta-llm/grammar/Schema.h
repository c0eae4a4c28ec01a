// Schema.h: the reader of JSON schemas (JsonSchema.cpp, SchemaObjects.cpp). In:
// a schema, and the one that its references lead into. Out: an expression of
// its values, or an exception that names what is not supported.
#ifndef GRETA_LLM_SCHEMA_H
#define GRETA_LLM_SCHEMA_H

#include "grammar/AllOf.h"
#include "grammar/Grammar.h"
#include "grammar/PatternNames.h"
#include "model/Json.h"

#include <list>
#include <map>
#include <set>
#include <stdexcept>

namespace greta::llm {

class Schema {
public:
  using Expression = GrammarBuilder::Expression;

  Schema(GrammarBuilder &builder, const OrderedJson &root)
      : b(builder), root(root), space(b.newRule()), hex(hexDigit()) {
    Expression more = b.repeat(b.characters({{' ', ' '}, {'\t', '\t'}}), 0, 20);
    b.define(space,
             b.optional(b.choice(
                 {b.literal(" "), b.sequence({b.literal("\n"), more})})));
  }

  Expression value(const OrderedJson &schema) {
    Expression whole = of(schema);
    // Rules may name others.
    while (!pending.empty()) {
      auto [rule, schema] = pending.back();
      pending.pop_back();
      b.define(rule, of(*schema));
    }
    return whole;
  }
  Expression anyObject() {
    anyValue();
    return b.call(objectRule);
  }
  Expression anyValue();

  [[noreturn]] static void wrong(const std::string &what) {
    throw std::runtime_error(what);
  }
  static std::string textOf(const OrderedJson &value, const char *key) {
    if (!value.is_string())
      wrong(std::string("'") + key + "' has to be a text");
    return value.get<std::string>();
  }
  static std::string dumped(const OrderedJson &value) {
    return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  }

private:
  Expression of(const OrderedJson &schema);
  Expression ofAll(const OrderedJson &schema);
  Expression ofType(const std::string &type, const OrderedJson &schema);
  static std::vector<OrderedJson> valuesOfType(const OrderedJson &values,
                                               const OrderedJson &type);
  std::vector<std::string> listedTexts(const OrderedJson &schema);
  Expression ofString(const OrderedJson &schema);
  Expression ofInteger(const OrderedJson &schema);
  Expression ofArray(const OrderedJson &schema);
  Expression ofObject(const OrderedJson &schema);
  const OrderedJson &behindLinks(const OrderedJson &schema);
  std::vector<ObjectMember> membersOf(const OrderedJson &schema,
                                      const std::set<std::string> *allowed,
                                      PatternNames *patterns);
  Expression othersOf(const OrderedJson &schema,
                      const std::set<std::string> *allowed);
  Expression othersByPatterns(const OrderedJson &schema, PatternNames &names);
  Expression reference(const std::string &pointer);

  Expression w() { return b.call(space); }
  Expression quoted(Expression inner) {
    return b.sequence({b.literal("\""), inner, b.literal("\"")});
  }
  Expression hexDigit() {
    return b.characters({{'0', '9'}, {'a', 'f'}, {'A', 'F'}});
  }
  Expression digits(int64_t least, int64_t most) {
    return b.repeat(b.characters({{'0', '9'}}), least, most);
  }
  // Four digits behind \\u: any character's but halves of pairs, or a pair.
  Expression escaped() {
    auto digit = [&](uint32_t from, uint32_t to) {
      return b.characters({{from, to}, {from - 'a' + 'A', to - 'a' + 'A'}});
    };
    Expression low = b.characters({{'0', '7'}}), d = digit('d', 'd'),
               high = b.characters({{'8', '9'}, {'a', 'b'}, {'A', 'B'}}),
               other = b.characters({{'0', '9'},
                                     {'a', 'c'},
                                     {'e', 'f'},
                                     {'A', 'C'},
                                     {'E', 'F'}});
    return b.choice({b.sequence({other, hex, hex, hex}),
                     b.sequence({d, low, hex, hex}),
                     b.sequence({d, high, hex, hex, b.literal("\\u"), d,
                                 digit('c', 'f'), hex, hex})});
  }
  Expression character();
  Expression integer() {
    return b.sequence(
        {b.optional(b.literal("-")),
         b.choice({b.literal("0"),
                   b.sequence({b.characters({{'1', '9'}}), digits(0, 15)})})});
  }
  Expression number() {
    Expression fraction = b.sequence({b.literal("."), digits(1, 16)});
    Expression exponent = b.sequence(
        {b.characters({{'e', 'e'}, {'E', 'E'}}),
         b.optional(b.characters({{'+', '+'}, {'-', '-'}})), digits(1, 2)});
    return b.sequence({integer(), b.optional(fraction), b.optional(exponent)});
  }
  // "[item, item]" and the like.
  Expression list(const char *open, Expression items, const char *close) {
    return b.sequence({b.literal(open), w(),
                       b.optional(b.sequence({items, w()})), b.literal(close)});
  }
  Expression separated(Expression item, Expression more) {
    return b.sequence(
        {item, b.repeat(b.sequence({b.literal(","), w(), more}), 0, -1)});
  }
  Expression pair(Expression key, Expression element) {
    return b.sequence({key, b.literal(":"), w(), element});
  }
  static int64_t numberOf(const OrderedJson &schema, const char *key,
                          int64_t otherwise);

  GrammarBuilder &b;
  const OrderedJson &root;
  const int32_t space;
  const Expression hex;
  AllOf all{root, b.work.values};
  std::list<OrderedJson> mergedSchemas; // that others hold by reference
  int depthOfAll = 0;                   // of schemas with allOf in others
  int32_t valueRule = -1, objectRule = -1, characterRule = -1;
  std::map<std::string, int32_t> references;
  std::vector<std::pair<int32_t, const OrderedJson *>> pending;
};

} // namespace greta::llm
#endif
