// ModuleFlow.h: the control flow of one function of a SPIR-V module: that it is
// structured as the specification's section "Structured Control Flow" wants,
// and which block dominates which.
#ifndef GRETA_RUNTIME_VULKAN_MODULEFLOW_H
#define GRETA_RUNTIME_VULKAN_MODULEFLOW_H

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace greta::rt::vulkan {

class ControlFlow {
public:
  struct Block {
    uint32_t Label;
    uint32_t Merge = 0, Continue = 0; // labels; 0: none
    std::vector<uint32_t> Targets;    // labels of the branch at its end
  };
  std::vector<Block> Blocks; // in the module's order, the entry first

  // Returns the error, or "", in which case the other members may be used.
  std::string analyze();
  bool dominates(size_t A, size_t B) const {
    return First[A] <= First[B] && Last[B] <= Last[A];
  }
  const std::vector<size_t> &predecessors(size_t B) const { return Before[B]; }
  size_t index(uint32_t Label) const { return Index.at(Label); }

private:
  std::string link();
  std::string order();
  std::string dominators();
  std::string headers();
  std::string edges() const;
  // Returns whether a block lies between a header and its merge block.
  bool isInside(size_t Header, size_t B) const {
    return dominates(Header, B) && !dominates(index(Blocks[Header].Merge), B);
  }

  std::unordered_map<uint32_t, size_t> Index;
  std::vector<std::vector<size_t>> Before, After; // edges
  std::vector<size_t> Turn;                       // place in reverse postorder
  std::vector<size_t> Reverse;                    // blocks in reverse postorder
  std::vector<size_t> First, Last; // interval in the dominator tree
  std::unordered_map<size_t, size_t> LeavesLoop; // merge or continue -> header
};

} // namespace greta::rt::vulkan
#endif
