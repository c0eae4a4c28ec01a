// Denormals.cpp: adds float controls to a module of the compiler.
//
// A package is compiled for every device of a family, and whether one keeps
// denormals is a property that only the device knows, so the modes are added
// when a module is loaded, after it was checked. f64 keeps NaN and infinity,
// too, which formulas of its functions depend on: without the mode NVIDIA's
// driver (580.159) takes comparisons as if there were no NaN.
#include "Denormals.h"
#include "Spirv.h"

#include <spirv/unified1/GLSL.std.450.h>

using namespace spv;

namespace greta::rt::vulkan {
namespace {
// Returns whether there are exponentials or logarithms. Their instructions have
// no f32 denormals, and the code that drivers add around them costs attention
// and softmax time.
bool hasExponentials(const std::vector<uint32_t> &Words) {
  constexpr size_t Number = 4; // place of the instruction's number
  for (size_t At = 5; At < Words.size(); At += Words[At] >> WordCountShift)
    if ((Words[At] & OpCodeMask) == OpExtInst)
      switch (Words[At + Number]) {
      case GLSLstd450Exp:
      case GLSLstd450Exp2:
      case GLSLstd450Log:
      case GLSLstd450Log2:
        return true;
      }
  return false;
}

// Returns the widths whose denormals are kept, all at once.
std::vector<uint32_t> widths(const VkPhysicalDeviceVulkan12Properties &Device,
                             bool HasExponentials) {
  bool Has16 = Device.shaderDenormPreserveFloat16;
  bool Has32 = Device.shaderDenormPreserveFloat32 && !HasExponentials;
  bool Has64 = Device.shaderDenormPreserveFloat64;
  switch (Device.denormBehaviorIndependence) {
  case VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL:
    break;
  case VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_32_BIT_ONLY:
    Has16 = Has64 = Has16 && Has64;
    break;
  default:
    Has16 = Has32 = Has64 = Has16 && Has32 && Has64;
  }
  std::vector<uint32_t> Widths;
  if (Has16)
    Widths.push_back(16);
  if (Has32)
    Widths.push_back(32);
  if (Has64)
    Widths.push_back(64);
  return Widths;
}
} // namespace

std::vector<uint32_t>
keepDenormals(std::vector<uint32_t> Words,
              const VkPhysicalDeviceVulkan12Properties &Device) {
  constexpr size_t Header = 5;
  constexpr uint32_t Version14 = 0x10400; // needs no extension
  if (Words.size() < Header || Words[1] < Version14)
    return Words;
  struct Mode {
    uint32_t Capability, Number;
    std::vector<uint32_t> Widths;
  };
  Mode Modes[] = {{CapabilityDenormPreserve, ExecutionModeDenormPreserve,
                   widths(Device, hasExponentials(Words))},
                  {CapabilitySignedZeroInfNanPreserve,
                   ExecutionModeSignedZeroInfNanPreserve,
                   {}}};
  if (Device.shaderSignedZeroInfNanPreserveFloat64)
    Modes[1].Widths.push_back(64);
  auto Instruction = [](uint32_t Op, std::vector<uint32_t> Operands) {
    Operands.insert(Operands.begin(),
                    (uint32_t(Operands.size()) + 1) << WordCountShift | Op);
    return Operands;
  };
  for (size_t At = Header; At < Words.size();
       At += Words[At] >> WordCountShift) {
    if ((Words[At] & OpCodeMask) != OpExecutionMode)
      continue;
    uint32_t Entry = Words[At + 1];
    auto Insert = [&](size_t Where, const std::vector<uint32_t> &What) {
      Words.insert(Words.begin() + Where, What.begin(), What.end());
    };
    for (const Mode &M : Modes)
      for (uint32_t Width : M.Widths)
        Insert(At, Instruction(OpExecutionMode, {Entry, M.Number, Width}));
    for (const Mode &M : Modes)
      if (!M.Widths.empty())
        Insert(Header, Instruction(OpCapability, {M.Capability}));
    break;
  }
  return Words;
}
} // namespace greta::rt::vulkan
