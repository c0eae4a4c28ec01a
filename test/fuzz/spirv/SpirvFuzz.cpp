// SpirvFuzz.cpp: libFuzzer over the check of SPIR-V modules. The manifest is
// one that the module could have: its entry point, size and push constants.
// Most mutations know words and instructions.
#include "Evaluate.h"
#include "vulkan/ModuleCheck.h"
#include "vulkan/Spirv.h"

#include <cstring>
#include <random>

using namespace greta_fuzz;
using namespace spv;

extern "C" size_t LLVMFuzzerMutate(uint8_t *Data, size_t Size, size_t MaxSize);

namespace {
constexpr size_t headerWords = 5;

std::vector<uint32_t> words(const uint8_t *Data, size_t Size) {
  std::vector<uint32_t> W(Size / 4);
  if (!W.empty())
    memcpy(W.data(), Data, W.size() * 4);
  return W;
}

// The offsets of instructions, as far as their counts make sense.
std::vector<size_t> instructions(const std::vector<uint32_t> &W) {
  std::vector<size_t> All;
  for (size_t I = headerWords; I < W.size();) {
    size_t Count = W[I] >> 16;
    if (Count == 0 || Count > W.size() - I)
      break;
    All.push_back(I);
    I += Count;
  }
  return All;
}

// A manifest for the module.
struct Guess {
  KernelDecl K;
  Requirements Requires;
  explicit Guess(const std::vector<uint32_t> &W) {
    K.File = "objects/fuzz.spv";
    K.Block = {64, 1, 1};
    K.LdsBytes = 1 << 16;
    Requires.Features = {"shaderFloat16",
                         "shaderInt64",
                         "shaderInt16",
                         "shaderInt8",
                         "storageBuffer16BitAccess",
                         "storageBuffer8BitAccess",
                         "shaderRoundingModeRTEFloat16",
                         "vulkanMemoryModel",
                         "bufferDeviceAddress",
                         "cooperativeMatrix",
                         "shaderBFloat16Type",
                         "shaderBFloat16CooperativeMatrix"};
    Requires.SubgroupOps = {"basic", "shuffle"};
    for (uint32_t N : {8, 16})
      Requires.Coopmat.push_back({16, N, 16, "f16", "f16", "f32", "f32"});
    Requires.Coopmat.push_back({8, 8, 8, "f16", "f16", "f32", "f32"});
    Requires.Coopmat.push_back({16, 8, 32, "i8", "i8", "i32", "i32"});
    std::map<uint32_t, size_t> Ids; // of types and variables
    for (size_t I : instructions(W)) {
      size_t Count = W[I] >> 16;
      uint32_t Op = W[I] & 0xffff;
      if (Op == OpEntryPoint && Count > 3) {
        const char *Name = reinterpret_cast<const char *>(&W[I + 3]);
        K.Entry = printable(std::string(Name, strnlen(Name, (Count - 3) * 4)));
      } else if (Op == OpExecutionMode && Count == 6 &&
                 W[I + 2] == ExecutionModeLocalSize) {
        K.Block = {W[I + 3], W[I + 4], W[I + 5]};
      } else if (Op >= OpTypeVoid && Op <= OpTypePointer && Count > 1) {
        Ids[W[I + 1]] = I;
      } else if (Op == OpVariable && Count == 4 &&
                 W[I + 3] == StorageClassPushConstant) {
        // Pointer, struct, members; each is where one of its size would be.
        size_t Pointer = Ids[W[I + 1]];
        size_t Struct =
            Pointer && W[Pointer] >> 16 == 4 ? Ids[W[Pointer + 3]] : 0;
        for (size_t M = 2; Struct && M < W[Struct] >> 16 && M < 32; ++M) {
          size_t Member = Ids[W[Struct + M]];
          bool Word = Member && W[Member] == (4 << 16 | OpTypeInt) &&
                      W[Member + 2] == 32;
          K.Args.emplace_back();
          K.Args.back().Which = Word ? KernelArg::I32 : KernelArg::Arg;
        }
      }
    }
  }
};

} // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *Data, size_t Size,
                                          size_t MaxSize, unsigned Seed) {
  std::minstd_rand Random(Seed);
  std::vector<uint32_t> W = words(Data, Size);
  std::vector<size_t> All = instructions(W);
  if (All.empty() || Random() % 16 == 0)
    return LLVMFuzzerMutate(Data, Size, MaxSize);
  auto Pick = [&] { return All[Random() % All.size()]; };
  size_t At = Pick(), Count = W[At] >> 16;
  auto Begin = [&](size_t I) { return W.begin() + static_cast<long>(I); };
  switch (Random() % 6) {
  case 0: // An operand becomes another id or a small number.
  case 1:
    W[At + Random() % Count] = Random() % (W[3] % 4096 + 1);
    break;
  case 2: { // An operand of another instruction.
    size_t From = Pick();
    W[At + Count - 1] = W[From + Random() % (W[From] >> 16)];
    break;
  }
  case 3: // Another opcode.
    W[At] = (W[At] & 0xffff0000) | (W[Pick()] & 0xffff);
    break;
  case 4:
    W.erase(Begin(At), Begin(At + Count));
    break;
  default: { // A copy elsewhere.
    std::vector<uint32_t> Copy(Begin(At), Begin(At + Count));
    W.insert(Begin(Pick()), Copy.begin(), Copy.end());
  }
  }
  if (W.size() * 4 > MaxSize)
    return LLVMFuzzerMutate(Data, Size, MaxSize);
  memcpy(Data, W.data(), W.size() * 4);
  return W.size() * 4;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *Data, size_t Size) {
  expectOneDiagnostic([&] {
    Guess G(words(Data, Size));
    vulkan::checkModule({Data, Data + Size}, G.K, G.Requires);
  });
  return 0;
}
