// Inspect.cpp: what a package holds and what devices there are, as text or
// JSON.
#include "Describe.h"
#include "Options.h"

#include <cstdio>
#include <stdexcept>

namespace greta_run {
namespace {
using nlohmann::json;

// Per variant id of `Name`: whether the device runs it, and what its driver
// made of it.
json onDevice(greta::Runtime &Runtime, const greta::Package &Package,
              const std::string &Name) {
  json Result = json::object();
  json Variants = json::parse(Runtime.variants(Package, Name));
  for (json &V : Variants) {
    std::string Id = V["id"];
    if (V["runnable"].get<bool>())
      V["kernels"] = json::parse(
          Runtime.load(Package, Name, Id, GRETA_LOAD_CAPTURE_STATISTICS)
              .statistics());
    Result[Id] = std::move(V);
  }
  return Result;
}

} // namespace

int inspect(const Options &O) {
  if (O.Package.empty())
    throw std::runtime_error("--inspect needs a package");
  greta::Package Package(O.Package);
  json Manifest = json::parse(Package.manifest());
  json Device = json::object();
  std::vector<std::string> Names = Package.functions();
  if (!O.Device.empty()) {
    greta::Runtime Runtime(O.Device);
    for (const std::string &Name : Names)
      if (O.Function.empty() || O.Function == Name)
        Device[Name] = onDevice(Runtime, Package, Name);
    Runtime.close();
  }
  bool Found = false;
  for (json &F : Manifest["functions"])
    Found |= O.Function.empty() || F["name"] == O.Function;
  if (!Found)
    throw std::runtime_error("the package has no function '" + O.Function +
                             "'");
  if (O.Json) {
    if (!O.Device.empty())
      Manifest["device"] = Device;
    printf("%s\n", Manifest.dump(2).c_str());
    return 0;
  }
  for (const json &F : Manifest["functions"])
    if (O.Function.empty() || F["name"] == O.Function)
      printf("%s",
             describeFunction(F, Device.contains(F["name"])
                                     ? &Device[F["name"].get<std::string>()]
                                     : nullptr)
                 .c_str());
  return 0;
}

int listDevices(const Options &O) {
  std::string Found = greta::Runtime::devices();
  json All = json::parse(Found);
  std::vector<std::string> Advice;
  if (O.Diagnose)
    Advice = diagnose(Found);
  if (O.Json) {
    json Shown = O.Diagnose ? json{{"devices", All}, {"advice", Advice}} : All;
    printf("%s\n", Shown.dump(2).c_str());
    return 0;
  }
  for (const json &D : All) {
    std::string Spec = D["spec"];
    if (!D["available"].get<bool>()) {
      printf("%-10s not available: %s\n", Spec.c_str(),
             D.value("reason", "").c_str());
      continue;
    }
    printf("%-10s %s", Spec.c_str(), D["name"].get<std::string>().c_str());
    if (D.contains("driver"))
      printf(" (%s)", D["driver"].get<std::string>().c_str());
    printf("\n");
    for (const auto &[Key, Value] : D.items()) {
      if (Key == "spec" || Key == "name" || Key == "driver" ||
          Key == "available" || Key == "backend")
        continue;
      if ((Key == "coopmat" || Key == "layouts") && Value.is_array()) {
        for (const json &Row : Value)
          printf("           %s: %s\n", Key.c_str(), flat(Row).c_str());
        continue;
      }
      std::string Text = Value.is_string()   ? Value.get<std::string>()
                         : Value.is_object() ? flat(Value)
                                             : "";
      if (Value.is_array())
        for (const json &Entry : Value)
          Text += (Text.empty() ? "" : " ") +
                  (Entry.is_string() ? Entry.get<std::string>() : Entry.dump());
      printf("           %s: %s\n", Key.c_str(),
             (Text.empty() ? Value.dump() : Text).c_str());
    }
  }
  for (const std::string &Text : Advice)
    printf("-> %s\n", Text.c_str());
  return 0;
}

} // namespace greta_run
