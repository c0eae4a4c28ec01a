// Pipelines.h: pipelines that kernels of equal modules share. In: a module, and
// what else a pipeline is made of. Out: one pipeline for all kernels that
// differ in their names alone, as long as one of them is loaded.
//
// Layers of two kinds, say, have most of their kernels in common. As pipelines
// of their own these would lie at two addresses, and a GPU whose instruction
// cache holds one kind's kernels would read them from memory at each change.
#ifndef GRETA_RUNTIME_VULKAN_PIPELINES_H
#define GRETA_RUNTIME_VULKAN_PIPELINES_H

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace greta::rt::vulkan {

struct VulkanPipeline;
using PipelineRef = std::shared_ptr<VulkanPipeline>;

// Returns the words of a module that passed checkModule without its names.
std::vector<uint32_t> withoutNames(const std::vector<uint32_t> &Words);

class PipelineTable {
public:
  // Returns the pipeline of this key, which `Make` makes if nobody holds one.
  // Threads that ask for the same one at a time wait for the first.
  PipelineRef get(std::vector<uint32_t> Key,
                  const std::function<PipelineRef()> &Make);

private:
  struct Entry {
    std::mutex Making;
    std::weak_ptr<VulkanPipeline> Made; // guarded by Making
  };
  static bool isUnused(Entry &Of);
  std::shared_ptr<Entry> entryOf(std::vector<uint32_t> Key);

  std::mutex Lock; // guards Entries
  std::map<std::vector<uint32_t>, std::shared_ptr<Entry>> Entries; // by key
};

} // namespace greta::rt::vulkan
#endif
