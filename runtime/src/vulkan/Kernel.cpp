// Kernel.cpp: a SPIR-V module as a compute pipeline with its subgroup size
// pinned.
#include "Device.h"
#include "Error.h"

#include <cstring>
#include <nlohmann/json.hpp>

namespace greta::rt::vulkan {
namespace {

// Drivers trust SPIR-V: an entry point that is not there crashes some of them.
// Looks at the instructions that name entry points and workgroup sizes, and
// says what is wrong.
void checkModule(const KernelDecl &K, const std::vector<uint32_t> &Words) {
  constexpr uint32_t magic = 0x07230203, opEntryPoint = 15,
                     opExecutionMode = 16, opFunction = 54;
  constexpr uint32_t glCompute = 5, localSize = 17;
  auto Bad = [&](const std::string &What) {
    fail(GRETA_ERROR_BAD_PACKAGE, "'", K.File, "': ", What);
  };
  if (Words.size() < 5 || Words[0] != magic)
    Bad("not a SPIR-V module");
  uint32_t Id = 0;
  bool Sized = false;
  for (size_t I = 5; I < Words.size();) {
    uint32_t Count = Words[I] >> 16, Op = Words[I] & 0xffff;
    if (Count == 0 || Count > Words.size() - I)
      Bad("truncated SPIR-V");
    if (Op == opFunction)
      break;
    if (Op == opEntryPoint && Count > 3 && Words[I + 1] == glCompute) {
      const char *Name = reinterpret_cast<const char *>(&Words[I + 3]);
      size_t Room = (Count - 3) * 4;
      if (std::string(Name, strnlen(Name, Room)) == K.Entry)
        Id = Words[I + 2];
    }
    if (Op == opExecutionMode && Count == 6 && Id && Words[I + 1] == Id &&
        Words[I + 2] == localSize) {
      Sized = true;
      for (int D = 0; D < 3; ++D)
        if (Words[I + 3 + D] != K.Block[D])
          Bad(concat("LocalSize is ", Words[I + 3], "x", Words[I + 4], "x",
                     Words[I + 5], ", the manifest says ", K.Block[0], "x",
                     K.Block[1], "x", K.Block[2]));
    }
    I += Count;
  }
  if (!Id)
    Bad("no compute entry point '" + K.Entry + "'");
  if (!Sized)
    Bad("entry point '" + K.Entry + "' has no LocalSize");
}

uint32_t argumentBytes(const KernelDecl &K) {
  size_t Bytes = 0;
  for (const KernelArg &A : K.Args) {
    size_t Size = A.Which == KernelArg::I32 ? 4 : 8;
    Bytes = (Bytes + Size - 1) / Size * Size + Size;
  }
  return static_cast<uint32_t>(Bytes);
}

} // namespace

VulkanKernel::VulkanKernel(CoreRef Owner, uint32_t SubgroupSize,
                           const KernelDecl &K,
                           const std::vector<uint8_t> &Object,
                           bool CaptureStatistics)
    : C(std::move(Owner)) {
  if (Object.size() % 4)
    fail(GRETA_ERROR_BAD_PACKAGE, "'", K.File, "': not a SPIR-V module");
  std::vector<uint32_t> Words(Object.size() / 4);
  memcpy(Words.data(), Object.data(), Object.size());
  checkModule(K, Words);

  uint32_t Bytes = argumentBytes(K);
  VkPushConstantRange Range{VK_SHADER_STAGE_COMPUTE_BIT, 0, Bytes};
  VkPipelineLayoutCreateInfo LayoutInfo{
      VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  LayoutInfo.pushConstantRangeCount = Bytes ? 1 : 0;
  LayoutInfo.pPushConstantRanges = &Range;
  check(C->Fn.CreatePipelineLayout(C->Handle, &LayoutInfo, nullptr, &Layout),
        "vkCreatePipelineLayout");

  VkShaderModuleCreateInfo ModuleInfo{
      VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  ModuleInfo.codeSize = Object.size();
  ModuleInfo.pCode = Words.data();
  VkShaderModule Module = VK_NULL_HANDLE;
  VkResult Result =
      C->Fn.CreateShaderModule(C->Handle, &ModuleInfo, nullptr, &Module);
  if (Result == VK_SUCCESS) {
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo Required{
        VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO};
    Required.requiredSubgroupSize = SubgroupSize;
    VkComputePipelineCreateInfo Info{
        VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    Info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    Info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    Info.stage.module = Module;
    Info.stage.pName = K.Entry.c_str();
    Info.layout = Layout;
    const PhysicalDevice &P = C->Physical;
    if (SubgroupSize) {
      // Where the size cannot be pinned it is fixed anyway (canPinSubgroup),
      // and a workgroup whose x size is a multiple of it has only full
      // subgroups.
      if (P.Features.count("subgroupSizeControl") &&
          (P.V13.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT))
        Info.stage.pNext = &Required;
      if (P.Features.count("computeFullSubgroups"))
        Info.stage.flags |=
            VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    }
    Captured = CaptureStatistics && C->Fn.GetPipelineExecutableStatistics;
    if (Captured)
      Info.flags |= VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR;
    // The cache is the driver's to lock.
    Result = C->Fn.CreateComputePipelines(C->Handle, C->Cache, 1, &Info,
                                          nullptr, &Pipeline);
    C->CacheChanged = true;
    C->Fn.DestroyShaderModule(C->Handle, Module, nullptr);
  }
  if (Result != VK_SUCCESS) {
    C->Fn.DestroyPipelineLayout(C->Handle, Layout, nullptr);
    check(Result, "compiling kernel '", K.Entry, "' of '", K.File, "' on ",
          C->Physical.Props.deviceName);
  }
}

VulkanKernel::~VulkanKernel() {
  C->Fn.DestroyPipeline(C->Handle, Pipeline, nullptr);
  C->Fn.DestroyPipelineLayout(C->Handle, Layout, nullptr);
}

void VulkanKernel::statistics(nlohmann::json &Out) const {
  if (!Captured)
    return;
  VkPipelineInfoKHR Info{VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR};
  Info.pipeline = Pipeline;
  uint32_t Count = 0;
  check(
      C->Fn.GetPipelineExecutableProperties(C->Handle, &Info, &Count, nullptr),
      "pipeline executables");
  std::vector<VkPipelineExecutablePropertiesKHR> Executables(
      Count, {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR,
              nullptr,
              0,
              {},
              {},
              0});
  check(C->Fn.GetPipelineExecutableProperties(C->Handle, &Info, &Count,
                                              Executables.data()),
        "pipeline executables");
  Out = nlohmann::json::array();
  for (uint32_t E = 0; E < Count; ++E) {
    VkPipelineExecutableInfoKHR Which{
        VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR};
    Which.pipeline = Pipeline;
    Which.executableIndex = E;
    uint32_t N = 0;
    check(C->Fn.GetPipelineExecutableStatistics(C->Handle, &Which, &N, nullptr),
          "pipeline statistics");
    std::vector<VkPipelineExecutableStatisticKHR> Stats(
        N, {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR,
            nullptr,
            {},
            {},
            {},
            {}});
    check(C->Fn.GetPipelineExecutableStatistics(C->Handle, &Which, &N,
                                                Stats.data()),
          "pipeline statistics");
    nlohmann::json J = {{"name", Executables[E].name},
                        {"subgroup_size", Executables[E].subgroupSize}};
    for (const VkPipelineExecutableStatisticKHR &S : Stats) {
      nlohmann::json &Value = J["statistics"][S.name];
      switch (S.format) {
      case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR:
        Value = S.value.b32 != 0;
        break;
      case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
        Value = S.value.i64;
        break;
      case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR:
        Value = S.value.u64;
        break;
      default:
        Value = S.value.f64;
        break;
      }
    }
    Out.push_back(std::move(J));
  }
}

} // namespace greta::rt::vulkan
