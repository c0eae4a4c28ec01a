// ManifestReader.h: a value of manifest.json that knows where it is, so a
// message says "functions[0].variants[2].kernels[0].block: ...".
#ifndef GRETA_RUNTIME_MANIFESTREADER_H
#define GRETA_RUNTIME_MANIFESTREADER_H

#include "Error.h"
#include "Package.h"

#include <cstring>
#include <nlohmann/json.hpp>

namespace greta::rt {

constexpr size_t maxList = 4096; // functions, variants, kernels, arguments

// Reads a JSON value and knows its path.
class ManifestReader {
public:
  ManifestReader(const nlohmann::json &J, std::string Path)
      : J(J), Path(std::move(Path)) {}

  template <typename... Parts> [[noreturn]] void bad(const Parts &...P) const {
    fail(GRETA_ERROR_BAD_PACKAGE, "manifest.json: ", Path, ": ", P...);
  }
  bool has(const char *Key) const { return J.is_object() && J.contains(Key); }
  ManifestReader at(const char *Key) const {
    if (!J.is_object())
      bad("not an object");
    auto It = J.find(Key);
    if (It == J.end())
      bad("'", Key, "' is missing");
    return ManifestReader(*It, Path.empty() ? Key : Path + "." + Key);
  }
  std::vector<ManifestReader> list(size_t Min = 0, size_t Max = maxList) const {
    if (!J.is_array() || J.size() < Min || J.size() > Max)
      bad("not a list of ", Min, " to ", Max, " entries");
    std::vector<ManifestReader> R;
    for (size_t I = 0; I < J.size(); ++I)
      R.emplace_back(J[I], Path + "[" + std::to_string(I) + "]");
    return R;
  }
  std::vector<ManifestReader> optionalList(const char *Key) const {
    return has(Key) ? at(Key).list() : std::vector<ManifestReader>();
  }
  uint64_t integer(uint64_t Min, uint64_t Max) const {
    // nlohmann keeps a non-negative integer as unsigned.
    if (!J.is_number_unsigned() || J.get<uint64_t>() < Min ||
        J.get<uint64_t>() > Max)
      bad("not an integer from ", Min, " to ", Max);
    return J.get<uint64_t>();
  }
  uint32_t small(uint32_t Max) const {
    return static_cast<uint32_t>(integer(1, Max));
  }
  bool boolean() const {
    if (!J.is_boolean())
      bad("neither true nor false");
    return J.get<bool>();
  }
  const std::string &string() const {
    if (!J.is_string())
      bad("not a string");
    return J.get_ref<const std::string &>();
  }
  // Returns a name made of letters, digits and `Extra`.
  const std::string &name(const char *Extra = "_.-$") const {
    const std::string &S = string();
    bool Good = !S.empty() && S.size() <= 512;
    for (char C : S)
      Good &= (C >= 'a' && C <= 'z') || (C >= 'A' && C <= 'Z') ||
              (C >= '0' && C <= '9') || (C && strchr(Extra, C));
    if (!Good)
      bad("not a name");
    return S;
  }
  const std::string &oneOf(std::initializer_list<const char *> Choices) const {
    const std::string &S = string();
    for (const char *C : Choices)
      if (S == C)
        return S;
    bad("unknown value '", printable(S), "'");
  }
  Expr expr(const std::vector<std::string> &Symbols) const {
    return Expr::parse(J, Symbols, "manifest.json: " + Path);
  }
  const nlohmann::json &value() const { return J; }

private:
  const nlohmann::json &J;
  std::string Path;
};

// Reads the texts that a kernel prints and asserts, and their places in one of
// V's temporaries.
LogDecl readLog(const ManifestReader &R, const Variant &V);

} // namespace greta::rt
#endif
