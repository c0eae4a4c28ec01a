// FunctionVariants.cpp: the choice of a function's variant for a device, and
// why others are not taken.
#include "Error.h"
#include "Function.h"
#include "Health.h"

namespace greta::rt {

// Returns why the device does not run the variant, without a trial of kernels
// whose workgroups wait for each other, which takes their compilation.
static std::string whyNotAtOnce(const std::shared_ptr<Device> &D,
                                const FunctionDecl &F, const Variant &V,
                                bool NativeCode) {
  std::string Why = D->whyNot(V);
  if (uint32_t Least = V.Requires.ComputeUnits, Units = D->computeUnits();
      Why.empty() && Units < Least)
    Why =
        concat(Least, " compute units are needed, the device ",
               Units ? concat("has ", Units) : "does not say how many it has");
  if (Why.empty())
    Why = whyUnhealthy(D, F, V);
  if (!Why.empty() || V.Backend != "host")
    return Why;
  if (nativeCodeIsRefused())
    return "it is native code, which this process refuses";
  return NativeCode ? ""
                    : "it is native code; ask for the device by its name, "
                      "host, if you trust the package";
}

std::string whyNot(const std::shared_ptr<Device> &D, const Package &P,
                   const FunctionDecl &F, const Variant &V, bool NativeCode) {
  std::string Why = whyNotAtOnce(D, F, V, NativeCode);
  return Why.empty() ? whyNotTogether(D, P, V) : Why;
}

// Says that no variant of a function is for a device of this kind, and how to
// compile one; "" if there is one.
static std::string whyNoneIsFor(const Device &D, const FunctionDecl &F) {
  bool IsSim = D.Spec.rfind("sim:", 0) == 0;
  std::string Kind = IsSim ? "hip" : D.Spec.substr(0, D.Spec.find(':'));
  std::set<std::string> Targets;
  for (const Variant &V : F.Variants) {
    if (V.Backend == Kind)
      return "";
    Targets.insert(V.Backend == "hip" ? V.Requires.Arch : V.Backend);
  }
  std::string All;
  for (const std::string &Target : Targets)
    All += (All.empty() ? "" : ", ") + Target;
  return concat("the package is for ", All, "; compile it with --targets=",
                IsSim           ? D.Spec.substr(4)
                : Kind == "hip" ? "CHIP, the name of this chip,"
                                : Kind,
                " as well");
}

const Variant &chooseVariant(const std::shared_ptr<Device> &D, const Package &P,
                             const FunctionDecl &F, const std::string &Forced,
                             bool NativeCode) {
  if (!Forced.empty()) {
    std::string Ids;
    for (const Variant &V : F.Variants) {
      Ids += (Ids.empty() ? "" : ", ") + V.Id;
      if (V.Id != Forced)
        continue;
      std::string Why = whyNot(D, P, F, V, NativeCode);
      if (!Why.empty())
        fail(GRETA_ERROR_UNSUPPORTED, "variant '", V.Id, "' of '", F.Name,
             "' does not run on ", D->Spec, " (", D->Name, "): ", Why);
      return V;
    }
    fail(GRETA_ERROR_NOT_FOUND, "function '", F.Name, "' has no variant '",
         Forced, "'; it has ", Ids);
  }
  // The first criterion is this family of devices, then cooperative matrices,
  // then a subgroup size that the driver takes by itself, then a nearly equal
  // number of compute units in tuning. The first of equals wins, as variants
  // are listed best first.
  std::vector<const Variant *> Possible;
  auto Rank = [&](const Variant &V) {
    return 4 * D->madeFor(V) + (V.Requires.Coopmat.empty() ? 0 : 2) +
           (V.Requires.SubgroupSize == D->defaultSubgroupSize() ? 1 : 0);
  };
  auto Distance = [&, Units = D->computeUnits()](const Variant &V) {
    return Units && V.ComputeUnits
               ? std::abs(std::log2(double(V.ComputeUnits) / Units))
               : 0;
  };
  auto IsBetter = [&](const Variant *V, const Variant *Than) {
    unsigned Own = Rank(*V), Other = Rank(*Than);
    // The package's first is taken of those that are equally good.
    return Own > Other ||
           (Own == Other &&
            std::pair(Distance(*V), V) < std::pair(Distance(*Than), Than));
  };
  std::string Reasons;
  auto Refuse = [&](const Variant &V, const std::string &Why) {
    Reasons += concat(Reasons.empty() ? "" : "; ", V.Id, ": ", Why);
  };
  for (const Variant &V : F.Variants) {
    std::string Why = whyNotAtOnce(D, F, V, NativeCode);
    if (Why.empty())
      Possible.push_back(&V);
    else
      Refuse(V, Why);
  }
  std::sort(Possible.begin(), Possible.end(), IsBetter);
  for (const Variant *V : Possible) {
    std::string Why = whyNotTogether(D, P, *V);
    if (Why.empty())
      return *V;
    Refuse(*V, Why);
  }
  std::string Lacks = whyNoneIsFor(*D, F);
  if (!Lacks.empty())
    Reasons = Lacks;
  fail(GRETA_ERROR_UNSUPPORTED, "no variant of '", F.Name, "' runs on ",
       D->Spec, " (", D->Name, "): ", Reasons);
}

} // namespace greta::rt
