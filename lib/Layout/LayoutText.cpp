//===- LayoutText.cpp - printing and parsing layouts ----------------------===//
#include "greta/Layout/Layout.h"
#include "llvm/ADT/STLExtras.h"

using namespace greta;
using llvm::StringRef;

static void printList(llvm::raw_ostream &os, llvm::ArrayRef<int32_t> list) {
  os << '[';
  llvm::interleave(list, os, ", ");
  os << ']';
}

void Layout::print(llvm::raw_ostream &os) const {
  auto printBases = [&](StringRef name, const Bases &bases) {
    os << name << " = [";
    llvm::interleave(
        bases, os, [&](const Basis &basis) { printList(os, basis); }, ", ");
    os << "], ";
  };
  os << '{';
  printBases("reg", reg_);
  printBases("lane", lane_);
  printBases("wave", wave_);
  os << "rep = ";
  printList(os, rep_);
  os << '}';
}

std::string Layout::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os);
  return text;
}

namespace {
/// Reads the text form; the first thing that does not fit ends it.
class Parser {
public:
  Parser(StringRef text, std::string &error) : rest(text), error(error) {}

  bool token(StringRef wanted) {
    rest = rest.ltrim();
    if (rest.consume_front(wanted))
      return true;
    return fail("expected '" + wanted.str() + "'");
  }

  bool list(Basis &list) {
    return elements([&] {
      rest = rest.ltrim();
      int32_t value;
      if (rest.consumeInteger(10, value))
        return fail("expected an integer below 2^31");
      list.push_back(value);
      return true;
    });
  }

  bool bases(StringRef name, Bases &bases) {
    return token(name) && token("=") &&
           elements([&] { return list(bases.emplace_back()); }) && token(",");
  }

  bool end() {
    rest = rest.ltrim();
    return rest.empty() || fail("expected the end");
  }

private:
  template <typename Fn> bool elements(Fn element) {
    if (!token("["))
      return false;
    rest = rest.ltrim();
    if (rest.consume_front("]"))
      return true;
    do {
      if (!element())
        return false;
      rest = rest.ltrim();
    } while (rest.consume_front(","));
    return token("]");
  }

  bool fail(std::string message) {
    error = message + (rest.empty() ? " at the end of the layout"
                                    : " before '" + rest.str() + "'");
    return false;
  }

  StringRef rest;
  std::string &error;
};
} // namespace

llvm::FailureOr<Layout> Layout::parse(StringRef text, std::string &error) {
  Parser parser(text, error);
  Bases reg, lane, wave;
  Basis rep;
  if (!(parser.token("{") && parser.bases("reg", reg) &&
        parser.bases("lane", lane) && parser.bases("wave", wave) &&
        parser.token("rep") && parser.token("=") && parser.list(rep) &&
        parser.token("}") && parser.end()))
    return llvm::failure();
  Layout layout(reg, lane, wave, rep);
  if (std::optional<std::string> problem = layout.verify()) {
    error = *problem;
    return llvm::failure();
  }
  return layout;
}
