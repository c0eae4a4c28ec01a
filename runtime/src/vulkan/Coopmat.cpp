// Coopmat.cpp: see Coopmat.h.
#include "Coopmat.h"
#include "Error.h"

#include <nlohmann/json.hpp>

namespace greta::rt::vulkan {
namespace {

std::string text(const CoopShape &S) {
  return concat(S.M, "x", S.N, "x", S.K, " ", S.A, " x ", S.B, " + ", S.C,
                " -> ", S.Result);
}

bool same(const CoopShape &A, const CoopShape &B) {
  return A.M == B.M && A.N == B.N && A.K == B.K && A.A == B.A && A.B == B.B &&
         A.C == B.C && A.Result == B.Result;
}

std::string text(const CoopLayout &L) {
  return concat("layout of ", L.Use, " ", L.Rows, "x", L.Cols, " ", L.DType);
}

} // namespace

std::string whyNotCoopmat(const CoreRef &C, const Requirements &R) {
  if (R.Coopmat.empty() && R.Layouts.empty())
    return "";
  if (!C->Physical.Features.count("cooperativeMatrix"))
    return C->Physical.CoopmatDenied
               ? "cooperative matrices are denied on this driver"
               : "no cooperative matrices (VK_KHR_cooperative_matrix)";
  for (const CoopShape &Want : R.Coopmat) {
    bool Found = false;
    for (const CoopShape &Have : C->Physical.Coopmat)
      Found |= same(Want, Have);
    if (!Found)
      return "the device does not list cooperative matrix " + text(Want);
  }
  for (const CoopLayout &Want : R.Layouts) {
    std::string Why =
        "was not probed with subgroup size " + std::to_string(R.SubgroupSize);
    for (const ProbedLayout &Have : probedLayouts(C)) {
      const CoopLayout &L = Have.Layout;
      if (Have.SubgroupSize != R.SubgroupSize || L.Use != Want.Use ||
          L.DType != Want.DType || L.Rows != Want.Rows || L.Cols != Want.Cols)
        continue;
      Why = !Have.Why.empty() ? Have.Why
            : L.Lane == Want.Lane && L.Element == Want.Element
                ? ""
                : "is another one on this device";
      break;
    }
    if (!Why.empty())
      return text(Want) + " " + Why;
  }
  return "";
}

void describeLayouts(const CoreRef &C, nlohmann::json &Out) {
  if (!C->Physical.Features.count("cooperativeMatrix"))
    return;
  Out["layouts"] = nlohmann::json::array();
  for (const ProbedLayout &P : probedLayouts(C)) {
    nlohmann::json J = {{"use", P.Layout.Use},
                        {"rows", P.Layout.Rows},
                        {"cols", P.Layout.Cols},
                        {"dtype", P.Layout.DType},
                        {"subgroup_size", P.SubgroupSize}};
    if (P.Why.empty()) {
      J["lane"] = P.Layout.Lane;
      J["element"] = P.Layout.Element;
    } else {
      J["reason"] = P.Why;
    }
    Out["layouts"].push_back(std::move(J));
  }
}

} // namespace greta::rt::vulkan
