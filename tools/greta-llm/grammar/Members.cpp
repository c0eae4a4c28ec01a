// Members.cpp: what is between the braces of a JSON schema's objects. In: the
// members in their order, those that may be left out, others that may follow,
// and how many there may be. Out: an expression of them, with commas between,
// a rule for each member and each number of those in front of it.
#include "grammar/Grammar.h"

#include <algorithm>
#include <map>

namespace greta::llm {
namespace {

using Expression = GrammarBuilder::Expression;

class Members {
public:
  Members(GrammarBuilder &builder, const std::vector<ObjectMember> &members,
          std::optional<Expression> others, Expression comma, int64_t least,
          int64_t most)
      : b(builder), members(members), others(others), comma(comma),
        least(least), most(most), counted(std::max({int64_t(1), least, most})) {
  }

  /// Members from number `i` on, behind `count` of those before; one that is
  /// counted no further stands for all that are more.
  Expression from(size_t i, int64_t count) {
    if (i == members.size())
      return behindAll(count);
    std::vector<Expression> ways;
    if (most < 0 || count < most)
      ways.push_back(b.sequence({count ? comma : b.empty(), members[i].pair,
                                 shared(i + 1, std::min(count + 1, counted))}));
    if (!members[i].isNeeded)
      ways.push_back(count ? shared(i + 1, count) : from(i + 1, 0));
    return b.choice(std::move(ways));
  }

private:
  Expression shared(size_t i, int64_t count) {
    auto [it, isNew] = rules.try_emplace({i, count}, -1);
    if (isNew) {
      int32_t rule = it->second = b.newRule();
      b.define(rule, from(i, count));
      return b.call(rule);
    }
    return b.call(it->second);
  }
  Expression behindAll(int64_t count) {
    if (!others)
      return count < least ? b.choice({}) : b.empty();
    int64_t more = std::max<int64_t>(0, least - count),
            atMost = most < 0 ? -1 : most - count;
    Expression another = b.sequence({comma, *others});
    if (count)
      return b.repeat(another, more, atMost);
    Expression some =
        b.sequence({*others, b.repeat(another, std::max<int64_t>(0, more - 1),
                                      atMost < 0 ? -1 : atMost - 1)});
    return more ? some : b.optional(some);
  }

  GrammarBuilder &b;
  const std::vector<ObjectMember> &members;
  const std::optional<Expression> others;
  const Expression comma;
  const int64_t least, most, counted;
  std::map<std::pair<size_t, int64_t>, int32_t> rules;
};

} // namespace

Expression objectMembers(GrammarBuilder &builder,
                         const std::vector<ObjectMember> &members,
                         std::optional<Expression> others, Expression comma,
                         int64_t least, int64_t most) {
  return Members(builder, members, others, comma, least, most).from(0, 0);
}

} // namespace greta::llm
