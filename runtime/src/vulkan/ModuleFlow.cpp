// ModuleFlow.cpp: see ModuleFlow.h. Nothing recurses: a hostile module nests as
// deep as it likes.
#include "ModuleFlow.h"

#include <algorithm>

namespace greta::rt::vulkan {
namespace {
constexpr size_t maxBlocks = 4096;
constexpr size_t none = SIZE_MAX;
std::string name(uint32_t Label) { return "block " + std::to_string(Label); }
} // namespace

std::string ControlFlow::analyze() {
  for (auto Step : {&ControlFlow::link, &ControlFlow::order,
                    &ControlFlow::dominators, &ControlFlow::headers})
    if (std::string Why = (this->*Step)(); !Why.empty())
      return Why;
  return edges();
}

// Replaces labels by indices.
std::string ControlFlow::link() {
  size_t N = Blocks.size();
  if (N == 0)
    return "a function without blocks";
  if (N > maxBlocks)
    return std::to_string(N) + " blocks, the limit is " +
           std::to_string(maxBlocks);
  for (size_t B = 0; B < N; ++B)
    Index[Blocks[B].Label] = B;
  Before.resize(N);
  After.resize(N);
  for (size_t B = 0; B < N; ++B) {
    for (uint32_t Label : {Blocks[B].Merge, Blocks[B].Continue})
      if (Label && !Index.count(Label))
        return name(Label) + " is not of this function";
    for (uint32_t Label : Blocks[B].Targets) {
      auto Found = Index.find(Label);
      if (Found == Index.end())
        return name(Label) + " is not of this function";
      if (Found->second == 0)
        return "a branch to the entry block";
      After[B].push_back(Found->second);
      Before[Found->second].push_back(B);
    }
  }
  return "";
}

std::string ControlFlow::order() {
  size_t N = Blocks.size();
  std::vector<bool> Seen(N);
  std::vector<std::pair<size_t, size_t>> Path = {{0, 0}};
  Seen[0] = true;
  while (!Path.empty()) {
    auto &[B, Next] = Path.back();
    if (Next == After[B].size()) {
      Reverse.push_back(B);
      Path.pop_back();
    } else if (size_t Target = After[B][Next++]; !Seen[Target]) {
      Seen[Target] = true;
      Path.push_back({Target, 0});
    }
  }
  for (size_t B = 0; B < N; ++B)
    if (!Seen[B])
      return name(Blocks[B].Label) + " cannot be reached";
  std::reverse(Reverse.begin(), Reverse.end());
  Turn.resize(N);
  for (size_t I = 0; I < N; ++I)
    Turn[Reverse[I]] = I;
  return "";
}

// Finds immediate dominators by iteration (Cooper, Harvey and Kennedy), then
// the tree as intervals. If every loop has one entry the first pass is right,
// and a module that the second pass changes is not structured.
std::string ControlFlow::dominators() {
  size_t N = Blocks.size();
  std::vector<size_t> Above(N, none);
  Above[0] = 0;
  for (int Pass = 0; Pass < 2; ++Pass)
    for (size_t B : Reverse) {
      size_t Best = B == 0 ? 0 : none;
      for (size_t P : Before[B]) {
        if (Above[P] == none)
          continue;
        if (Best == none)
          Best = P;
        for (size_t Other = P; Best != Other;) {
          while (Turn[Best] > Turn[Other])
            Best = Above[Best];
          while (Turn[Other] > Turn[Best])
            Other = Above[Other];
        }
      }
      if (Pass > 0 && Above[B] != Best)
        return name(Blocks[B].Label) + " is in a loop with two entries";
      Above[B] = Best;
    }
  for (size_t B = 1; B < N; ++B)
    if (Above[B] >= B)
      return name(Blocks[B].Label) + " stands before a block that dominates it";
  // A block stands behind its dominator, so sizes add up from the back.
  std::vector<size_t> Size(N, 1), Next(N);
  for (size_t B = N - 1; B > 0; --B)
    Size[Above[B]] += Size[B];
  First.resize(N);
  Last.resize(N);
  for (size_t B = 0; B < N; ++B) {
    if (B > 0) {
      First[B] = Next[Above[B]];
      Next[Above[B]] += Size[B];
    }
    Next[B] = First[B] + 1;
    Last[B] = First[B] + Size[B] - 1;
  }
  return "";
}

std::string ControlFlow::headers() {
  std::unordered_map<size_t, size_t> Merges; // merge block -> its header
  for (size_t H = 0; H < Blocks.size(); ++H) {
    const Block &Header = Blocks[H];
    if (!Header.Merge)
      continue;
    size_t Merge = index(Header.Merge);
    if (Merge == H || !dominates(H, Merge))
      return name(Header.Label) + " does not dominate its merge block";
    if (!Merges.emplace(Merge, H).second)
      return name(Header.Merge) + " is the merge block of two headers";
    if (!Header.Continue)
      continue;
    size_t Continue = index(Header.Continue);
    if (!isInside(H, Continue))
      return "the continue target of " + name(Header.Label) +
             " is not in its loop";
    if (!LeavesLoop.emplace(Merge, H).second ||
        !LeavesLoop.emplace(Continue, H).second)
      return "two loops share a merge or continue block";
  }
  return "";
}

std::string ControlFlow::edges() const {
  std::vector<size_t> BackEdges(Blocks.size());
  for (size_t B = 0; B < Blocks.size(); ++B) {
    bool Leaves = false;
    for (size_t T : After[B]) {
      Leaves |= LeavesLoop.count(T) != 0;
      if (Turn[T] > Turn[B])
        continue;
      if (!Blocks[T].Continue || !dominates(index(Blocks[T].Continue), B))
        return "a backward branch from " + name(Blocks[B].Label) +
               " that is not from a loop's continue target to its header";
      ++BackEdges[T];
    }
    if (After[B].size() > 1 && !Blocks[B].Merge && !Leaves)
      return name(Blocks[B].Label) + " has two successors and no merge block";
  }
  for (size_t H = 0; H < Blocks.size(); ++H) {
    if (Blocks[H].Continue && BackEdges[H] != 1)
      return "the loop of " + name(Blocks[H].Label) + " has " +
             std::to_string(BackEdges[H]) + " backward branches, not one";
    if (!Blocks[H].Merge)
      continue;
    // A construct is entered through its header. A branch that leaves it goes
    // to its merge block, or leaves a loop around it.
    for (size_t B = 0; B < Blocks.size(); ++B) {
      if (!isInside(H, B))
        continue;
      for (size_t P : Before[B])
        if (B != H && !isInside(H, P))
          return "a branch from " + name(Blocks[P].Label) +
                 " enters the construct of " + name(Blocks[H].Label) +
                 " past its header";
      for (size_t T : After[B]) {
        if (isInside(H, T) || T == index(Blocks[H].Merge))
          continue;
        auto Loop = LeavesLoop.find(T);
        if ((Loop == LeavesLoop.end() || !isInside(Loop->second, H)) &&
            !(Blocks[T].Continue && isInside(T, H)))
          return "a branch from " + name(Blocks[B].Label) +
                 " leaves the construct of " + name(Blocks[H].Label) +
                 " past its merge block";
      }
    }
  }
  return "";
}

} // namespace greta::rt::vulkan
