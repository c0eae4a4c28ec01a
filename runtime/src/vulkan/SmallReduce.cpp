// SmallReduce.cpp: the kernel of comm/SmallReduce.h as a pipeline.
#include "Device.h"

namespace greta::rt::vulkan {

static constexpr uint32_t words[] = {
#include "SmallReduce.inc"
};

KernelRef VulkanDevice::smallReduce(size_t ArgumentBytes) {
  if (!C->Physical.Features.count("shaderInt64"))
    lacks("shaderInt64");
  KernelDecl K;
  K.File = "SmallReduce.comp";
  K.Entry = "main";
  K.Block = {256, 1, 1};
  K.Args.resize(ArgumentBytes / 8); // as many words as pointers have
  std::vector<uint32_t> Words(std::begin(words), std::end(words));
  return std::make_shared<VulkanKernel>(
      std::make_shared<VulkanPipeline>(C, 0, K, Words,
                                       /*CaptureStatistics=*/false),
      K.IsResident);
}

} // namespace greta::rt::vulkan
