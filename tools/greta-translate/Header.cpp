//===- Header.cpp - a package as a C header -------------------------------===//
//
// The runtime reads the package, so what it refuses gets no header, and its
// manifest can be trusted here.
//
//===----------------------------------------------------------------------===//

#include "Header.h"
#include "greta_runtime.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"
#include <nlohmann/json.hpp>

using namespace llvm;
using Json = nlohmann::ordered_json;

/// Letters, digits and underscores, not beginning with a digit.
static std::string identifier(StringRef name) {
  std::string result;
  for (char c : name)
    result += isAlnum(c) ? c : '_';
  if (result.empty() || isDigit(result[0]))
    result.insert(0, "_");
  return result;
}

/// A C expression of type int64_t; operands are never negative.
static std::string expression(const Json &json) {
  if (json.is_number_integer())
    return std::to_string(json.get<int64_t>());
  if (json.is_string())
    return json.get<std::string>();
  std::string op = json[0], a = expression(json[1]), b = expression(json[2]);
  if (op == "ceildiv")
    return "((" + a + " + " + b + " - 1) / " + b + ")";
  return "(" + a +
         (op == "floordiv" ? " / "
          : op == "mod"    ? " % "
                           : " " + op + " ") +
         b + ")";
}

static bool isScalar(const Json &tensor) {
  return tensor.value("kind", "tensor") == "scalar";
}

/// x: f16[d0, 4096], n: i32
static std::string describe(const Json &tensor) {
  std::string text = tensor["name"].get<std::string>() + ": " +
                     tensor["dtype"].get<std::string>();
  if (isScalar(tensor))
    return text;
  text += "[";
  for (const Json &extent : tensor["shape"])
    text += (&extent == &tensor["shape"].front() ? "" : ", ") +
            (extent.is_array()    ? expression(extent)
             : extent.is_string() ? extent.get<std::string>()
                                  : extent.dump());
  return text + "]";
}

namespace {
/// One tensor or scalar of a function: its names in C.
struct Parameter {
  std::string name;
  const Json *tensor;
  bool isScalar() const { return ::isScalar(*tensor); }
  std::string cType() const {
    std::string type = (*tensor)["dtype"];
    return type == "f32"                     ? "float"
           : type == "f64"                   ? "double"
           : type == "i1"                    ? "bool"
           : type == "f16" || type == "bf16" ? "uint16_t"
                                             : "int" + type.substr(1) + "_t";
  }
};
} // namespace

static std::vector<Parameter> parameters(const Json &function) {
  std::vector<Parameter> list;
  StringSet<> taken;
  for (const char *group : {"args", "results"})
    for (const Json &tensor : function[group]) {
      std::string name = identifier(tensor["name"].get<std::string>());
      while (!taken.insert(name).second)
        name += "_";
      list.push_back({name, &tensor});
    }
  return list;
}

static void writeTensors(raw_ostream &os, StringRef name,
                         ArrayRef<Parameter> list) {
  os << "  const greta_tensor " << name << "[] = {";
  for (const Parameter &parameter : list) {
    os << (&parameter == list.begin() ? "" : ",") << "\n      {";
    if (parameter.isScalar()) {
      os << "NULL, 0, NULL, 0, &" << parameter.name << "_value}";
      continue;
    }
    size_t rank = (*parameter.tensor)["shape"].size();
    os << parameter.name << "_buffer, 0, "
       << (rank ? parameter.name + "_shape" : "NULL") << ", " << rank
       << ", NULL}";
  }
  os << "};\n";
}

/// The contents of a C string literal.
static std::string escape(StringRef text) {
  std::string result;
  for (unsigned char c : text)
    if (isAlnum(c) || c == '_' || c == '.' || c == '-')
      result += c;
    else
      for (unsigned shift : {9, 6, 3, 0})
        result += shift == 9 ? '\\' : char('0' + (c >> shift & 7));
  return result;
}

/// Comments must not end early, whatever a function is called.
static std::string comment(StringRef text) {
  std::string result = text.str();
  for (size_t at; (at = result.find("*/")) != std::string::npos;)
    result.replace(at, 2, "* /");
  return result;
}

static void writeFunction(raw_ostream &os, StringRef prefix,
                          const Json &function) {
  std::string name = function["name"];
  std::string c = (prefix + "_" + identifier(name)).str();
  std::vector<Parameter> list = parameters(function);
  size_t args = function["args"].size();

  std::string signature = name + "(";
  for (size_t i = 0; i < list.size(); ++i) {
    signature += i == args ? ") -> (" : i ? ", " : "";
    signature += describe(*list[i].tensor);
  }
  os << "\n/* " << comment(signature) << ") */\n";
  os << "static inline greta_status " << c
     << "_load(greta_device *device, const greta_package *package,\n"
     << "    greta_function **function) {\n"
     << "  return greta_function_load(device, package, \"" << escape(name)
     << "\", NULL, 0, function);\n}\n";

  os << "static inline greta_status " << c
     << "_launch(greta_function *function, greta_stream *stream";
  for (const Json &symbol : function["symbols"])
    if (symbol.contains("dim"))
      os << ",\n    int64_t " << symbol["name"].get<std::string>();
  for (const Parameter &parameter : list) {
    if (parameter.isScalar())
      os << ",\n    " << parameter.cType() << " " << parameter.name << "_value";
    else
      os << ",\n    greta_buffer *" << parameter.name << "_buffer";
  }
  os << ") {\n";
  // Extents may be made of what a scalar is.
  for (const Json &symbol : function["symbols"])
    if (std::string name = symbol["name"]; !symbol.contains("dim"))
      os << "  const int64_t " << name << " = "
         << list[symbol["arg"].get<size_t>()].name << "_value;\n  (void)"
         << name << ";\n";
  for (const Parameter &parameter : list) {
    if (parameter.isScalar())
      continue;
    const Json &shape = (*parameter.tensor)["shape"];
    if (shape.empty())
      continue;
    os << "  const int64_t " << parameter.name << "_shape[] = {";
    for (const Json &extent : shape)
      os << (&extent == &shape.front() ? "" : ", ") << expression(extent);
    os << "};\n";
  }
  writeTensors(os, "arguments", ArrayRef(list).take_front(args));
  writeTensors(os, "results", ArrayRef(list).drop_front(args));
  os << "  return greta_function_launch(function, stream, arguments, " << args
     << ", results, " << list.size() - args << ");\n}\n";
}

Expected<std::string> greta::makeHeader(StringRef stem, StringRef package) {
  greta_package *handle = nullptr;
  if (greta_package_from_memory(package.data(), package.size(), &handle) !=
      GRETA_OK)
    return createStringError(inconvertibleErrorCode(), greta_last_error());
  scope_exit close([&] { greta_package_destroy(handle); });
  Json manifest = Json::parse(greta_package_manifest(handle), nullptr,
                              /*allow_exceptions=*/false);

  std::string prefix = identifier(stem), text;
  raw_string_ostream os(text);
  os << "/* Made by greta-translate --package-to-header; a C or C++ program\n"
     << " * includes it once and links libgreta_runtime.\n"
     << " *\n"
     << " *   greta_package *package;\n"
     << " *   greta_package_from_memory(" << prefix << "_package, sizeof("
     << prefix << "_package), &package);\n"
     << " */\n"
     << "#ifndef GRETA_PACKAGE_" << prefix << "_H\n"
     << "#define GRETA_PACKAGE_" << prefix << "_H\n\n"
     << "#include <greta_runtime.h>\n#include <stddef.h>\n"
     << "#include <stdbool.h>\n#include <stdint.h>\n\n"
     << "static const unsigned char " << prefix << "_package[" << package.size()
     << "] = {";
  for (size_t i = 0; i < package.size(); ++i)
    os << (i % 20 ? "" : "\n") << unsigned(uint8_t(package[i])) << ",";
  os << "};\n";
  for (const Json &function : manifest["functions"])
    writeFunction(os, prefix, function);
  os << "\n#endif\n";
  return text;
}
