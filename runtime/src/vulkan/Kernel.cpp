// Kernel.cpp: a SPIR-V module as a compute pipeline with its subgroup size
// pinned.
#include "ArgumentBuffer.h"
#include "Denormals.h"
#include "Device.h"
#include "Error.h"

#include <nlohmann/json.hpp>

namespace greta::rt::vulkan {
VulkanPipeline::VulkanPipeline(CoreRef Owner, uint32_t SubgroupSize,
                               const KernelDecl &K,
                               const std::vector<uint32_t> &Words,
                               bool CaptureStatistics)
    : C(std::move(Owner)) {
  C->needDevice();
  uint32_t Bytes = argumentOffsets(K.Args).back();
  FromBuffer = Bytes > C->Physical.Props.limits.maxPushConstantsSize;
  const std::vector<uint32_t> Code = keepDenormals(
      FromBuffer ? argumentsFromBuffer(Words) : Words, C->Physical.V12);
  if (FromBuffer)
    Bytes = sizeof(uint64_t);
  VkPushConstantRange Range{VK_SHADER_STAGE_COMPUTE_BIT, 0, Bytes};
  VkPipelineLayoutCreateInfo LayoutInfo{
      VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  LayoutInfo.pushConstantRangeCount = Bytes ? 1 : 0;
  LayoutInfo.pPushConstantRanges = &Range;
  C->check(C->Fn.CreatePipelineLayout(C->Handle, &LayoutInfo, nullptr, &Layout),
           "vkCreatePipelineLayout");

  VkShaderModuleCreateInfo ModuleInfo{
      VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  ModuleInfo.codeSize = Code.size() * 4;
  ModuleInfo.pCode = Code.data();
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
      // A size that cannot be pinned is fixed anyway (canPinSubgroup),
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
    // The driver locks the cache.
    Result = C->Fn.CreateComputePipelines(C->Handle, C->Cache, 1, &Info,
                                          nullptr, &Handle);
    C->CacheChanged = true;
    C->Fn.DestroyShaderModule(C->Handle, Module, nullptr);
  }
  if (Result != VK_SUCCESS) {
    C->Fn.DestroyPipelineLayout(C->Handle, Layout, nullptr);
    C->check(Result, "compiling kernel '", K.Entry, "' of '", K.File, "' on ",
             C->Physical.Props.deviceName);
  }
}

VulkanPipeline::~VulkanPipeline() {
  C->Fn.DestroyPipeline(C->Handle, Handle, nullptr);
  C->Fn.DestroyPipelineLayout(C->Handle, Layout, nullptr);
}

void VulkanKernel::statistics(nlohmann::json &Out) const {
  if (!Pipeline->Captured)
    return;
  const CoreRef &C = Pipeline->C;
  VkPipelineInfoKHR Info{VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR};
  Info.pipeline = Pipeline->Handle;
  uint32_t Count = 0;
  C->check(
      C->Fn.GetPipelineExecutableProperties(C->Handle, &Info, &Count, nullptr),
      "pipeline executables");
  std::vector<VkPipelineExecutablePropertiesKHR> Executables(
      Count, {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR,
              nullptr,
              0,
              {},
              {},
              0});
  C->check(C->Fn.GetPipelineExecutableProperties(C->Handle, &Info, &Count,
                                                 Executables.data()),
           "pipeline executables");
  Out = nlohmann::json::array();
  for (uint32_t E = 0; E < Count; ++E) {
    VkPipelineExecutableInfoKHR Which{
        VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR};
    Which.pipeline = Pipeline->Handle;
    Which.executableIndex = E;
    uint32_t N = 0;
    C->check(
        C->Fn.GetPipelineExecutableStatistics(C->Handle, &Which, &N, nullptr),
        "pipeline statistics");
    std::vector<VkPipelineExecutableStatisticKHR> Stats(
        N, {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR,
            nullptr,
            {},
            {},
            {},
            {}});
    C->check(C->Fn.GetPipelineExecutableStatistics(C->Handle, &Which, &N,
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
