// Gbnf.cpp: grammars as llama.cpp's users write them.
//
//   root   ::= "yes" | "no" [.!]{1,3} # a comment
//   digits ::= [0-9]+ ("," digits)?
//
// In: the text. Out: a grammar whose root is the rule `root`.
#include "grammar/Grammar.h"

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>

namespace greta::llm {
namespace {

constexpr int deepestGroups = 64;

class Reader {
public:
  explicit Reader(const std::string &text) : text(text) {}

  Grammar read() {
    for (skip(); at < text.size(); skip()) {
      std::string name = readName();
      skip();
      if (name.empty() || text.compare(at, 3, "::=") != 0)
        wrong("there should be a rule, NAME ::= ..");
      at += 3;
      if (defined[name])
        wrong("the rule '" + name + "' is there twice");
      defined[name] = true;
      int32_t rule = ruleOf(name);
      builder.define(rule, readChoice(0));
    }
    for (const auto &[name, rule] : rules)
      if (!defined[name])
        throw std::runtime_error("the rule '" + name + "' is not defined");
    if (!defined["root"])
      throw std::runtime_error("there is no rule 'root'");
    return builder.finish(rules["root"]);
  }

private:
  using Expression = GrammarBuilder::Expression;

  [[noreturn]] void wrong(const std::string &what) const {
    throw std::runtime_error("at byte " + std::to_string(at) + ": " + what);
  }
  bool sees(char c) const { return at < text.size() && text[at] == c; }
  bool takes(char c) {
    bool is = sees(c);
    at += is;
    return is;
  }
  void skip() {
    while (at < text.size())
      if (isspace(static_cast<unsigned char>(text[at])))
        ++at;
      else if (text[at] == '#')
        at = std::min(text.find('\n', at), text.size());
      else
        return;
  }
  std::string readName() {
    size_t begin = at;
    while (at < text.size() && (isalnum(static_cast<unsigned char>(text[at])) ||
                                text[at] == '-' || text[at] == '_'))
      ++at;
    return text.substr(begin, at - begin);
  }
  int32_t ruleOf(const std::string &name) {
    auto [it, isNew] = rules.try_emplace(name, 0);
    if (isNew)
      it->second = builder.newRule();
    return it->second;
  }

  Expression readChoice(int depth) {
    if (depth > deepestGroups)
      wrong("groups are nested more than 64 deep");
    std::vector<Expression> ways;
    do
      ways.push_back(readSequence(depth));
    while (takes('|'));
    return builder.choice(std::move(ways));
  }

  Expression readSequence(int depth) {
    std::vector<Expression> parts;
    while (true) {
      skip();
      size_t begin = at;
      Expression part;
      if (takes('"')) {
        part = readLiteral();
      } else if (takes('[')) {
        part = readCharacters();
      } else if (takes('.')) {
        part = builder.characters({{0, 0x10ffff}});
      } else if (takes('(')) {
        part = readChoice(depth + 1);
        if (!takes(')'))
          wrong("')' is missing");
      } else {
        std::string name = readName();
        if (name.empty())
          return builder.sequence(std::move(parts));
        size_t behind = at;
        skip();
        if (text.compare(at, 3, "::=") == 0) { // the next rule's name
          at = begin;
          return builder.sequence(std::move(parts));
        }
        at = behind;
        part = builder.call(ruleOf(name));
      }
      parts.push_back(readRepeat(part));
    }
  }

  Expression readRepeat(Expression part) {
    for (int times = 0; at < text.size(); ++times) {
      if (times == 4)
        wrong("something is repeated in too many ways");
      if (takes('*'))
        part = builder.repeat(part, 0, -1);
      else if (takes('+'))
        part = builder.repeat(part, 1, -1);
      else if (takes('?'))
        part = builder.optional(part);
      else if (takes('{'))
        part = readNumbers(part);
      else
        break;
    }
    return part;
  }

  Expression readNumbers(Expression part) {
    auto number = [&]() -> std::optional<int64_t> {
      std::string digits;
      while (at < text.size() && isdigit(static_cast<unsigned char>(text[at])))
        digits += text[at++];
      if (digits.size() > 9)
        wrong("a number of repetitions is too large");
      return digits.empty() ? std::nullopt
                            : std::optional<int64_t>(std::stoll(digits));
    };
    std::optional<int64_t> least = number(), most = least;
    if (takes(','))
      most = number().value_or(-1);
    if (!takes('}') || (!least && (!most || *most < 0)))
      wrong("repetitions are {N}, {N,}, {,N} or {N,M}");
    return builder.repeat(part, least.value_or(0), *most);
  }

  // A code point, or what is escaped by a backslash.
  uint32_t readCharacter() {
    if (at == text.size())
      wrong("a quotation or a set of characters does not end");
    auto byte = static_cast<unsigned char>(text[at++]);
    if (byte == '\\') {
      char what = at < text.size() ? text[at++] : '\0';
      switch (what) {
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'x':
        return readHex(2);
      case 'u':
        return readHex(4);
      case 'U':
        return readHex(8);
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-':
      case '^':
        return static_cast<unsigned char>(what);
      default:
        wrong("there is no such escape behind a backslash");
      }
    }
    size_t more = byte < 0xc0 ? 0 : byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
    uint32_t code = more ? byte & (0x3fu >> more) : byte;
    for (; more && at < text.size(); --more)
      code = code << 6 | (static_cast<unsigned char>(text[at++]) & 0x3f);
    return code;
  }
  uint32_t readHex(size_t digits) {
    uint32_t code = 0;
    for (size_t i = 0; i < digits; ++i, ++at) {
      if (at == text.size() || !isxdigit(static_cast<unsigned char>(text[at])))
        wrong("there are not enough hexadecimal digits");
      char digit = text[at];
      code = code << 4 | static_cast<uint32_t>(digit <= '9' ? digit - '0'
                                                            : (digit & 7) + 9);
    }
    if (code > 0x10ffff)
      wrong("there is no such character");
    return code;
  }

  Expression readLiteral() {
    std::vector<Expression> parts;
    while (!takes('"')) {
      uint32_t code = readCharacter();
      parts.push_back(builder.characters({{code, code}}));
    }
    return builder.sequence(std::move(parts));
  }

  Expression readCharacters() {
    bool isNot = takes('^');
    CharacterRanges ranges;
    while (!takes(']')) {
      uint32_t first = readCharacter(), last = first;
      if (sees('-') && at + 1 < text.size() && text[at + 1] != ']') {
        ++at;
        last = readCharacter();
      }
      if (last < first)
        wrong("a range of characters goes backwards");
      ranges.push_back({first, last});
    }
    return builder.characters(isNot ? others(ranges) : ranges);
  }
  static CharacterRanges others(CharacterRanges ranges) {
    std::sort(ranges.begin(), ranges.end());
    CharacterRanges result;
    uint32_t next = 0;
    for (auto [first, last] : ranges) {
      if (first > next)
        result.push_back({next, first - 1});
      next = std::max(next, last + 1);
    }
    if (next <= 0x10ffff)
      result.push_back({next, 0x10ffff});
    return result;
  }

  const std::string &text;
  size_t at = 0;
  GrammarBuilder builder;
  std::map<std::string, int32_t> rules;
  std::map<std::string, bool> defined;
};

} // namespace

Grammar grammarOfGbnf(const std::string &text) { return Reader(text).read(); }

} // namespace greta::llm
