// Describe.cpp: what a manifest says about functions, as text for people.
#include "Describe.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace greta_run {
namespace {
using nlohmann::json;

// An expression of the manifest (docs/internals/package.md, "Expressions") in
// infix:
// ["ceildiv", "d0", 4] is "d0 ceildiv 4".
std::string expression(const json &E, bool IsInner = false) {
  if (E.is_string())
    return E.get<std::string>();
  if (!E.is_array() || E.size() != 3 || !E[0].is_string())
    return E.dump();
  std::string Text = expression(E[1], true) + " " + E[0].get<std::string>() +
                     " " + expression(E[2], true);
  return IsInner ? "(" + Text + ")" : Text;
}

std::string shape(const json &Dims) {
  std::string Text;
  for (const json &D : Dims)
    Text += expression(D, true) + "x";
  return Text;
}

// "name: 4096xf16", "n: i32", "r0: 4096xf16 in place of argument 1"
std::string tensor(const json &T) {
  std::string Text = T["name"].get<std::string>() + ": " +
                     shape(T.value("shape", json::array())) +
                     T["dtype"].get<std::string>();
  if (T.contains("tied"))
    Text += " in place of argument " + T["tied"].dump();
  return Text;
}

// [[..], 1, 1] -> "(d0 ceildiv 4, 1, 1)"
std::string extents(const json &Dims) {
  std::string Text;
  for (const json &D : Dims)
    Text += (Text.empty() ? "" : ", ") + expression(D);
  return "(" + Text + ")";
}

// [["d0", 2, 8]] -> "d0 from 2 to 8"
std::string conditions(const json &When) {
  std::string Text;
  for (const json &C : When)
    Text += (Text.empty() ? "" : ", ") + expression(C[0]) + " from " +
            C[1].dump() + (C[2] == INT64_MAX ? "" : " to " + C[2].dump());
  return Text;
}

std::string describeKernel(const json &K) {
  std::string Text = "    " + K["entry"].get<std::string>() + ": block " +
                     extents(K["block"]) + ", grid " + extents(K["grid"]) +
                     ", LDS " + K.value("lds_bytes", json(0)).dump() + "\n";
  if (K.contains("config"))
    Text += "      config: " + flat(K["config"]) + "\n";
  for (const json &Worse : K.value("passed_over", json::array()))
    Text += "      passed over: " + flat(Worse["config"]) + ", which spills " +
            Worse["vgpr_spills"].dump() + " registers\n";
  if (!K.contains("stats"))
    return Text;
  json Stats = K["stats"];
  json Loop = Stats.value("loop", json());
  Stats.erase("loop");
  Text += "      stats: " + flat(Stats) + "\n";
  if (!Loop.is_object())
    return Text;
  char Share[128];
  snprintf(Share, sizeof(Share), "%.1f", 100 * Loop.value("matrix_share", 0.0));
  return Text + "      main loop: " + Loop.value("matrix", json(0)).dump() +
         " matrix instructions of " +
         Loop.value("instructions", json(0)).dump() +
         ", matrix units busy for " + Share + " % of its time\n";
}

// The parts of a sum over ranks, and the kernels that are launched in them.
std::string partsOf(const json &Sum) {
  if (!Sum.contains("parts"))
    return "";
  const json &Parts = Sum["parts"];
  std::string With;
  for (const char *Which : {"before", "behind"})
    if (Parts[Which])
      With += (With.empty() ? ", with the kernel " : " and the one ") +
              std::string(Which) + " it";
  return ", in parts of " + Parts["rows"].dump() + " rows" + With;
}

// The kernels of a launch, and the sums over ranks between them.
std::string describeKernels(const json &Of) {
  auto Place = [](const json &Tensor) {
    return Tensor["kind"].get<std::string>() + " " + Tensor["index"].dump();
  };
  std::string Text;
  const json &Kernels = Of["kernels"];
  for (size_t I = 0; I <= Kernels.size(); ++I) {
    for (const json &S : Of.value("sums", json::array()))
      if (S["after"] == I)
        Text += "    sum over ranks: " + Place(S["from"]) + " to " +
                Place(S["to"]) + partsOf(S) + "\n";
    if (I < Kernels.size())
      Text += describeKernel(Kernels[I]);
  }
  return Text;
}

} // namespace

std::string flat(const json &Object) {
  std::string Text;
  for (const auto &[Key, Value] : Object.items())
    Text += (Text.empty() ? "" : ", ") + Key + " " +
            (Value.is_string() ? Value.get<std::string>() : Value.dump());
  return Text;
}

std::string describeFunction(const json &F, const json *Device) {
  std::string Args, Results;
  for (const json &A : F["args"])
    Args += (Args.empty() ? "" : ", ") + tensor(A);
  for (const json &R : F["results"])
    Results += (Results.empty() ? "" : ", ") + tensor(R);
  std::string Text =
      F["name"].get<std::string>() + "(" + Args + ") -> (" + Results + ")\n";
  for (const json &V : F["variants"]) {
    std::string Id = V["id"];
    size_t Kernels = V["kernels"].size();
    Text += "  " + Id + ": " + V["backend"].get<std::string>() + ", " +
            std::to_string(Kernels) + (Kernels == 1 ? " kernel" : " kernels") +
            ", needs " + V["requires"].dump() + "\n";
    Text += describeKernels(V);
    for (const json &R : V.value("ranges", json::array())) {
      Text +=
          "    for " + conditions(R["when"]) +
          (R["requires"] == V["requires"] ? ""
                                          : ", needs " + R["requires"].dump()) +
          "\n";
      Text += describeKernels(R);
    }
    if (!Device || !Device->contains(Id))
      continue;
    const json &D = (*Device)[Id];
    if (!D["runnable"].get<bool>()) {
      Text +=
          "    not on this device: " + D["reason"].get<std::string>() + "\n";
      continue;
    }
    for (const json &K : D["kernels"])
      for (const json &E : K["executables"])
        Text += "    driver, " + K["kernel"].get<std::string>() + ": " +
                flat(E.value("statistics", json::object())) + "\n";
  }
  return Text;
}

std::string describeManifest(const std::string &Manifest) {
  std::string Text;
  const json Parsed = json::parse(Manifest);
  for (const json &F : Parsed["functions"])
    Text += describeFunction(F, nullptr);
  return Text;
}

} // namespace greta_run
