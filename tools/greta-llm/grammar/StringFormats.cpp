// StringFormats.cpp: a JSON schema's `format` as a pattern. A pattern allows
// nothing else, but for a 29 February of other years. Patterns of host names,
// addresses of mail and URIs allow the usual part of what the formats do.
#include "grammar/Grammar.h"

#include <map>
#include <stdexcept>

namespace greta::llm {

using Expression = GrammarBuilder::Expression;

static std::map<std::string, std::string> patternsOfFormats() {
  auto group = [](const std::string &pattern) { return "(" + pattern + ")"; };
  const std::string date =
                        R"(\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|)"
                        R"((0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|[12]\d)))",
                    time = R"(([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?)"
                           R"((Z|[+-]([01]\d|2[0-3]):[0-5]\d))";
  // RFC 3339, appendix A: a unit may be followed by the next smaller one.
  const std::string
      hours = R"(T(\d{1,9}H(\d{1,9}M(\d{1,9}S)?)?|\d{1,9}M(\d{1,9}S)?|)"
              R"(\d{1,9}S))",
      days = R"((\d{1,9}Y(\d{1,9}M(\d{1,9}D)?)?|\d{1,9}M(\d{1,9}D)?|\d{1,9}D))";
  // A label has up to 62 characters of 63, so four of them have no more than
  // the 253 of a name, and three with 64 in front of them no more than the 254
  // of an address.
  const std::string label =
      R"(([\dA-Za-z]{1,20}(-[\dA-Za-z]{1,20}){1,2}|[\dA-Za-z]{1,62}))";
  auto labels = [&](const char *more) {
    return label + R"((\.)" + label + "){0," + more + "}";
  };
  const std::string local = R"([\w!#$%&'*+/=?^`{|}~-])";
  const std::string byte = R"((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d))";
  const std::string hex = R"([\dA-Fa-f])", g = hex + "{1,4}";
  // Up to seven groups in front of `::` or behind it, six around it.
  std::string ipv6 =
      "(" + g + ":){7}" + g + "|(" + g + ":){1,7}:|:(:" + g + "){1,7}|::";
  for (int before = 1; before < 7; ++before)
    ipv6 += "|(" + g + ":){" + std::to_string(before) + "}(:" + g + "){1," +
            std::to_string(7 - before) + "}";
  const std::string link = R"(([\w.~!$&'()*+,;=:@/?-]|%)" + hex + hex + ")*";
  return {
      {"date", date},
      {"time", time},
      {"date-time", date + "T" + time},
      {"duration", "P(" + days + group(hours) + R"(?|\d{1,9}W|)" + hours + ")"},
      {"uuid", hex + "{8}(-" + hex + "{4}){3}-" + hex + "{12}"},
      {"hostname", labels("3")},
      {"email", group(local + R"({1,20}(\.)" + local + "{1,20}){1,2}|" + local +
                      "{1,64}") +
                    "@" + labels("2")},
      {"ipv4", group(byte + R"(\.)") + "{3}" + byte},
      {"ipv6", ipv6},
      {"uri", "[a-z]{2,10}://" + labels("3") + R"((:\d{1,4})?(/)" + link +
                  ")?(#" + link + ")?"}};
}

Expression addFormat(GrammarBuilder &builder, const std::string &format,
                     Expression any) {
  static const std::map<std::string, std::string> patterns =
      patternsOfFormats();
  auto it = patterns.find(format);
  if (it == patterns.end())
    throw std::runtime_error("'format': '" + format.substr(0, 60) +
                             "' of a JSON schema is not supported");
  return addPattern(builder, "^(" + it->second + ")$", any);
}

} // namespace greta::llm
