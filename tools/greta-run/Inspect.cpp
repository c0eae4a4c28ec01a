// Inspect.cpp: what a package holds and what devices there are, as text or
// JSON.
#include "Options.h"

#include <cstdio>
#include <stdexcept>

namespace greta_run {
namespace {
using nlohmann::json;

std::string shape(const json &Dims) {
  std::string Text;
  for (const json &D : Dims)
    Text += (D.is_string() ? D.get<std::string>() : D.dump()) + "x";
  return Text;
}

// "name: 4096xf16"
std::string tensor(const json &T) {
  return T["name"].get<std::string>() + ": " + shape(T["shape"]) +
         T["dtype"].get<std::string>();
}

// {"a": 1, "b": 2} -> "a 1, b 2"
std::string flat(const json &Object) {
  std::string Text;
  for (const auto &[Key, Value] : Object.items())
    Text += (Text.empty() ? "" : ", ") + Key + " " +
            (Value.is_string() ? Value.get<std::string>() : Value.dump());
  return Text;
}

void printFunction(const json &F, const json *Device) {
  std::string Args, Results;
  for (const json &A : F["args"])
    Args += (Args.empty() ? "" : ", ") + tensor(A);
  for (const json &R : F["results"])
    Results += (Results.empty() ? "" : ", ") + tensor(R);
  printf("%s(%s) -> (%s)\n", F["name"].get<std::string>().c_str(), Args.c_str(),
         Results.c_str());
  for (const json &V : F["variants"]) {
    std::string Id = V["id"];
    printf("  %s: %s, %zu kernel%s, needs %s\n", Id.c_str(),
           V["backend"].get<std::string>().c_str(), V["kernels"].size(),
           V["kernels"].size() == 1 ? "" : "s", V["requires"].dump().c_str());
    for (const json &K : V["kernels"]) {
      printf("    %s: block %s, grid %s, LDS %s\n",
             K["entry"].get<std::string>().c_str(), K["block"].dump().c_str(),
             K["grid"].dump().c_str(),
             K.value("lds_bytes", json(0)).dump().c_str());
      if (K.contains("config"))
        printf("      config: %s\n", flat(K["config"]).c_str());
      if (K.contains("stats"))
        printf("      stats: %s\n", flat(K["stats"]).c_str());
    }
    if (!Device || !Device->contains(Id))
      continue;
    const json &D = (*Device)[Id];
    if (!D["runnable"].get<bool>()) {
      printf("    not on this device: %s\n",
             D["reason"].get<std::string>().c_str());
      continue;
    }
    for (const json &K : D["kernels"])
      for (const json &E : K["executables"])
        printf("    driver, %s: %s\n", K["kernel"].get<std::string>().c_str(),
               flat(E.value("statistics", json::object())).c_str());
  }
}

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
      printFunction(F, Device.contains(F["name"])
                           ? &Device[F["name"].get<std::string>()]
                           : nullptr);
  return 0;
}

int listDevices(const Options &O) {
  json All = json::parse(greta::Runtime::devices());
  if (O.Json) {
    printf("%s\n", All.dump(2).c_str());
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
  return 0;
}

} // namespace greta_run
