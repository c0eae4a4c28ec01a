// PatternNames.h: the names of a JSON schema's members by which patterns of
// `patternProperties` match them. In: the patterns, and the names that the
// schema lists. Out: whether a pattern matches a listed name, and an expression
// of the other names that just some patterns match, of characters that stand
// for themselves.
//
// Each pattern is an automaton of bytes, and so are the names that are not
// listed. All run beside each other, and their states together are the rules.
#ifndef GRETA_LLM_PATTERN_NAMES_H
#define GRETA_LLM_PATTERN_NAMES_H

#include "grammar/Matcher.h"

#include <string>
#include <vector>

namespace greta::llm {

class PatternNames {
public:
  // `work`: what this and others may cost, in nodes that are looked at.
  PatternNames(const std::vector<std::string> &patterns,
               const std::vector<std::string> &listed, int64_t &work);

  size_t patterns() const { return automata.size() - 1; }
  bool matches(size_t pattern, const std::string &name);
  // Nothing where there is no such name.
  std::optional<GrammarBuilder::Expression>
  named(GrammarBuilder &builder, const std::vector<bool> &which);

private:
  void join();
  void charge(int64_t nodes);

  // A place has a state of each automaton: which may end, and what follows.
  struct Joined {
    std::vector<bool> ends;
    std::vector<std::pair<size_t, std::bitset<256>>> next;
  };
  int64_t &work;
  std::vector<Matcher> automata; // the last one is of the other names
  std::vector<Joined> states;    // the first one is where names begin
};

} // namespace greta::llm
#endif
