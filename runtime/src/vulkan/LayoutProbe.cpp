// LayoutProbe.cpp: which element of a cooperative matrix each lane holds, found
// by loading matrices of row and column numbers and writing out what every lane
// sees. The answer is kept as linear bases, (row, column) added by XOR for each
// bit of the lane and of the element index; it is cached on disk by device and
// driver version.
#include "Coopmat.h"
#include "Error.h"
#include "Files.h"
#include "ProbeModule.h"

#include <cstring>
#include <nlohmann/json.hpp>

namespace greta::rt::vulkan {
namespace {
using nlohmann::json;

constexpr uint32_t untouched =
    0xffffffff; // the output's value before the kernel ran

constexpr char probingFailed[] = "probing failed: ";

// Appends a small integer as an element of the type.
void append(std::vector<uint8_t> &Bytes, const std::string &DType,
            uint32_t Value) {
  uint32_t Bits = Value;
  size_t Size = 4;
  if (DType == "f32" || DType == "bf16") {
    float F = static_cast<float>(Value);
    memcpy(&Bits, &F, 4);
    if (DType == "bf16") {
      Bits >>= 16;
      Size = 2;
    }
  } else if (DType == "f16") {
    uint32_t Exponent = Value ? 31 - __builtin_clz(Value) : 0;
    Bits =
        Value ? (Exponent + 15) << 10 | (Value << (10 - Exponent) & 0x3ff) : 0;
    Size = 2;
  } else if (DType == "i8" || DType == "u8") {
    Size = 1;
  }
  for (size_t B = 0; B < Size; ++B)
    Bytes.push_back(static_cast<uint8_t>(Bits >> 8 * B));
}

// Loads a matrix that holds its row (or column) numbers and returns the probe's
// output.
std::vector<uint32_t> runProbe(const CoreRef &C, const KernelRef &K,
                               const ProbeMatrix &M, uint32_t Lanes,
                               uint32_t Stride, bool Rows) {
  std::vector<uint8_t> Input;
  for (uint32_t R = 0; R < M.Rows; ++R)
    for (uint32_t Col = 0; Col < M.Cols; ++Col)
      append(Input, M.DType, Rows ? R : Col);
  std::vector<uint32_t> Output(1 + Lanes * Stride);
  size_t Bytes = Output.size() * 4;
  MemoryRef In = std::make_shared<VulkanMemory>(C, Input.size(),
                                                /*HostVisible=*/false),
            Out =
                std::make_shared<VulkanMemory>(C, Bytes, /*HostVisible=*/false);
  std::unique_ptr<Stream> S = createStream(C);
  S->write(In, 0, Input.data(), Input.size());
  S->fill(Out, 0, Bytes, untouched);
  uint8_t Block[16];
  memcpy(Block, &In->Address, 8);
  memcpy(Block + 8, &Out->Address, 8);
  Use Uses[] = {{&In, 0, In->Size, false}, {&Out, 0, Bytes, true}};
  S->launch({&K, {1, 1, 1}, {Block, 16}, {Uses, 2}});
  S->read(Out, 0, Output.data(), Bytes);
  return Output;
}

// Finds the bases, or returns why there are none.
std::string linearBases(const std::vector<uint32_t> &Rows,
                        const std::vector<uint32_t> &Cols, uint32_t Lanes,
                        uint32_t Stride, CoopLayout &L) {
  uint32_t Length = Rows[0];
  if (Length == untouched)
    return "the probe did not run on this device";
  if (Length == 0 || Length > Stride || (Length & (Length - 1)))
    return concat("a lane holds ", Length,
                  " elements, which is not a power of two");
  auto At = [&](uint32_t Lane, uint32_t Element) -> std::array<uint32_t, 2> {
    size_t I = 1 + size_t(Lane) * Stride + Element;
    return {Rows[I], Cols[I]};
  };
  for (uint32_t Bit = 1; Bit < Lanes; Bit *= 2)
    L.Lane.push_back(At(Bit, 0));
  for (uint32_t Bit = 1; Bit < Length; Bit *= 2)
    L.Element.push_back(At(0, Bit));
  for (uint32_t Lane = 0; Lane < Lanes; ++Lane)
    for (uint32_t E = 0; E < Length; ++E) {
      std::array<uint32_t, 2> Want{0, 0};
      for (size_t B = 0; B < L.Lane.size(); ++B)
        for (int D = 0; D < 2; ++D)
          Want[D] ^= Lane >> B & 1 ? L.Lane[B][D] : 0;
      for (size_t B = 0; B < L.Element.size(); ++B)
        for (int D = 0; D < 2; ++D)
          Want[D] ^= E >> B & 1 ? L.Element[B][D] : 0;
      if (At(Lane, E) != Want || Want[0] >= L.Rows || Want[1] >= L.Cols)
        return concat("lane ", Lane, " element ", E, " holds (", At(Lane, E)[0],
                      ",", At(Lane, E)[1],
                      "), which is not linear in the bits");
    }
  return "";
}

ProbedLayout probe(const CoreRef &C, const ProbeMatrix &M, uint32_t Lanes) {
  ProbedLayout P;
  P.Layout.Use = M.Use;
  P.Layout.DType = M.DType;
  P.Layout.Rows = M.Rows;
  P.Layout.Cols = M.Cols;
  P.SubgroupSize = Lanes;
  if (!canProbe(M.DType)) {
    P.Why = "cannot be probed: element type " + M.DType;
    return P;
  }
  if (M.DType == "bf16" &&
      !C->Physical.Features.count("shaderBFloat16CooperativeMatrix")) {
    P.Why = "cannot be probed: no shaderBFloat16CooperativeMatrix";
    return P;
  }
  try {
    // A lane may hold anything up to the whole matrix.
    uint32_t Stride = M.Rows * M.Cols;
    std::vector<uint32_t> Words = probeModule(M, Lanes, Stride);
    KernelDecl K;
    K.File =
        concat("layout probe ", M.Use, " ", M.Rows, "x", M.Cols, " ", M.DType);
    K.Entry = "probe";
    K.Block = {Lanes, 1, 1};
    K.Args.resize(2); // two pointers
    KernelRef Code = std::make_shared<VulkanKernel>(
        std::make_shared<VulkanPipeline>(C, Lanes, K, Words,
                                         /*CaptureStatistics=*/false),
        K.IsResident);
    P.Why = linearBases(runProbe(C, Code, M, Lanes, Stride, /*Rows=*/true),
                        runProbe(C, Code, M, Lanes, Stride, /*Rows=*/false),
                        Lanes, Stride, P.Layout);
  } catch (const Error &E) {
    P.Why = concat(probingFailed, E.what());
  }
  if (!P.Why.empty()) {
    P.Layout.Lane.clear();
    P.Layout.Element.clear();
  }
  return P;
}

// Returns every matrix type of the device's matrix products.
std::vector<ProbeMatrix> matrices(const PhysicalDevice &P) {
  std::vector<ProbeMatrix> All;
  auto Add = [&](const char *Use, const std::string &DType, uint32_t Rows,
                 uint32_t Cols) {
    for (const ProbeMatrix &M : All)
      if (M.Use == Use && M.DType == DType && M.Rows == Rows && M.Cols == Cols)
        return;
    All.push_back({Use, DType, Rows, Cols});
  };
  for (const CoopShape &S : P.Coopmat) {
    Add("a", S.A, S.M, S.K);
    Add("b", S.B, S.K, S.N);
    Add("acc", S.C, S.M, S.N);
    Add("acc", S.Result, S.M, S.N);
  }
  return All;
}

std::string cacheName(const CoreRef &C) {
  return "vulkan-layouts-1-" + C->Physical.cacheKey();
}

bool load(const CoreRef &C, std::vector<ProbedLayout> &All) {
  std::vector<uint8_t> Bytes;
  if (!readCache(cacheName(C), Bytes))
    return false;
  try {
    for (const json &J : json::parse(Bytes)) {
      ProbedLayout P;
      P.Layout = {J.at("use"),  J.at("dtype"), J.at("rows"),
                  J.at("cols"), J.at("lane"),  J.at("element")};
      P.SubgroupSize = J.at("subgroup_size");
      P.Why = J.at("reason");
      All.push_back(std::move(P));
    }
    return true;
  } catch (const json::exception &) {
    All.clear();
    return false;
  }
}

void save(const CoreRef &C, const std::vector<ProbedLayout> &All) {
  json J = json::array();
  for (const ProbedLayout &P : All)
    J.push_back({{"use", P.Layout.Use},
                 {"dtype", P.Layout.DType},
                 {"rows", P.Layout.Rows},
                 {"cols", P.Layout.Cols},
                 {"lane", P.Layout.Lane},
                 {"element", P.Layout.Element},
                 {"subgroup_size", P.SubgroupSize},
                 {"reason", P.Why}});
  std::string Text = J.dump();
  writeCache(cacheName(C), {Text.begin(), Text.end()});
}

} // namespace

const std::vector<ProbedLayout> &probedLayouts(const CoreRef &C) {
  std::lock_guard<std::mutex> Guard(C->LayoutLock);
  if (C->Layouts)
    return *C->Layouts;
  std::vector<ProbedLayout> All;
  if (!load(C, All)) {
    const PhysicalDevice &P = C->Physical;
    for (uint32_t Lanes = P.V13.minSubgroupSize; Lanes <= P.V13.maxSubgroupSize;
         Lanes *= 2) {
      if (!canPinSubgroup(P, Lanes))
        continue;
      for (const ProbeMatrix &M : matrices(P))
        All.push_back(probe(C, M, Lanes));
    }
    // A probe that failed (without memory, say) may succeed next time.
    bool Final = true;
    for (const ProbedLayout &L : All)
      Final &= L.Why.compare(0, strlen(probingFailed), probingFailed) != 0;
    if (Final)
      save(C, All);
  }
  C->Layouts = std::move(All);
  return *C->Layouts;
}

} // namespace greta::rt::vulkan
