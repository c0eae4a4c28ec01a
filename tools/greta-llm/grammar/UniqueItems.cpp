// UniqueItems.cpp: lists in which no item comes twice. In: the texts that items
// may have. Out: an expression of the lists, a rule for each set of items that
// a list may have so far.
#include "grammar/Grammar.h"

#include <map>
#include <stdexcept>

namespace greta::llm {
namespace {

using Expression = GrammarBuilder::Expression;

constexpr size_t mostSets = 512; // as many as nine items have

class UniqueItems {
public:
  UniqueItems(GrammarBuilder &builder, const std::vector<std::string> &texts,
              Expression comma, int64_t least, int64_t most)
      : b(builder), comma(comma), least(least), most(most) {
    // Rules have each text once.
    for (const std::string &text : texts) {
      int32_t rule = b.newRule();
      b.define(rule, b.literal(text));
      items.push_back(b.call(rule));
    }
  }

  /// The rest of a list behind `count` items, which are those of `used`.
  Expression behind(uint64_t used, int64_t count) {
    auto [it, isNew] = rules.try_emplace(used, -1);
    if (!isNew)
      return b.call(it->second);
    if (rules.size() > mostSets || items.size() > 64)
      throw std::runtime_error(
          "'uniqueItems' in a JSON schema is supported for up to nine values, "
          "or for a 'maxItems' with which they make up 512 sets");
    int32_t rule = it->second = b.newRule();
    std::vector<Expression> ways;
    if (count >= least)
      ways.push_back(b.empty());
    for (size_t i = 0; i < items.size() && count != most; ++i)
      if (uint64_t bit = uint64_t(1) << i; !(used & bit))
        ways.push_back(b.sequence({count ? comma : b.empty(), items[i],
                                   behind(used | bit, count + 1)}));
    b.define(rule, b.choice(std::move(ways)));
    return b.call(rule);
  }

private:
  GrammarBuilder &b;
  std::vector<Expression> items;
  const Expression comma;
  const int64_t least, most; // most: -1: any number
  std::map<uint64_t, int32_t> rules;
};

} // namespace

Expression uniqueItems(GrammarBuilder &builder,
                       const std::vector<std::string> &texts, Expression comma,
                       int64_t least, int64_t most) {
  return UniqueItems(builder, texts, comma, least, most).behind(0, 0);
}

} // namespace greta::llm
