// Pipelines.cpp: finds the pipeline of an equal module.
#include "Pipelines.h"
#include "Spirv.h"

#include <iterator>

using namespace spv;

namespace greta::rt::vulkan {

std::vector<uint32_t> withoutNames(const std::vector<uint32_t> &Words) {
  constexpr size_t Header = 5, Name = 3; // words before a name's first
  std::vector<uint32_t> Out(Words.begin(), Words.begin() + Header);
  for (size_t At = Header; At < Words.size();) {
    size_t Count = Words[At] >> WordCountShift;
    auto First = Words.begin() + static_cast<ptrdiff_t>(At);
    auto End = First + static_cast<ptrdiff_t>(Count);
    At += Count;
    switch (*First & OpCodeMask) {
    case OpName:
    case OpMemberName:
      continue;
    case OpEntryPoint: {
      // The last word of a text ends in a zero.
      auto Behind = First + Name;
      while (*Behind++ >> 24) {
      }
      // Without the number of variables these might be other instructions.
      Out.push_back(static_cast<uint32_t>(End - Behind));
      Out.insert(Out.end(), First + 1, First + Name);
      Out.insert(Out.end(), Behind, End);
      continue;
    }
    default:
      Out.insert(Out.end(), First, End);
    }
  }
  return Out;
}

bool PipelineTable::isUnused(Entry &Of) {
  std::unique_lock<std::mutex> Guard(Of.Making, std::try_to_lock);
  return Guard && Of.Made.expired();
}

std::shared_ptr<PipelineTable::Entry>
PipelineTable::entryOf(std::vector<uint32_t> Key) {
  std::lock_guard<std::mutex> Guard(Lock);
  if (auto Found = Entries.find(Key); Found != Entries.end())
    return Found->second;
  for (auto Old = Entries.begin(); Old != Entries.end();)
    Old = Old->second.use_count() == 1 && isUnused(*Old->second)
              ? Entries.erase(Old)
              : std::next(Old);
  return Entries.emplace(std::move(Key), std::make_shared<Entry>())
      .first->second;
}

PipelineRef PipelineTable::get(std::vector<uint32_t> Key,
                               const std::function<PipelineRef()> &Make) {
  std::shared_ptr<Entry> Of = entryOf(std::move(Key));
  std::lock_guard<std::mutex> Guard(Of->Making);
  PipelineRef Pipeline = Of->Made.lock();
  if (!Pipeline)
    Of->Made = Pipeline = Make();
  return Pipeline;
}

} // namespace greta::rt::vulkan
