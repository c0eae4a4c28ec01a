//===- WaitStates.cpp - the waits that LLVM leaves out --------------------===//
//
// In: a kernel's machine code with the s_nop that LLVM's
// PostRAHazardRecognizer put into it. Out: the same with those that it missed.
//
// An instruction that uses the result of an MFMA (or of a few others) must
// stay some wait states behind it, also across branches.
// LLVM's recognizer looks for the writer depth first from an
// instruction backwards through its block's predecessors, and enters each block
// once, with the wait states of the way that happened to come first:
//
//   A: v_mfma v[0:3]   s_cbranch C        C's predecessors are B, A. A result
//   B: four others                        of 4 passes may be read 7 wait states
//   C: v_add v0                           later. By B, A is 5 away, so LLVM
//                                         adds 2; the edge from A, by which it
//                                         is 1, is not followed any more.
//
// Waits that LLVM adds to B later, for B's own instructions, may hide that B
// was such a way, so every block is asked about.
// The rules themselves are right, and a long table. So this pass asks the same
// recognizer again, about the first instructions of each block, and shows it
// the shortest ways alone: while it looks, the lists of predecessors are the
// tree of shortest ways to the block.
//
//===----------------------------------------------------------------------===//

#include "greta/AMDGPU/WaitStates.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/CodeGen/MachineBasicBlock.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/ScheduleHazardRecognizer.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"

using namespace llvm;

/// More than any rule asks for: the longest is 20, behind an MFMA of 16 passes
/// on gfx950.
static constexpr unsigned farthest = 24;

namespace {

/// Wait states as the recognizer counts them: one for an instruction, N + 1 for
/// s_nop N, nothing for inline assembly.
class Counter {
public:
  explicit Counter(const TargetInstrInfo &info) : info(info) {}

  unsigned operator()(const MachineInstr &inst) const {
    if (inst.isBundle() || inst.isInlineAsm() || inst.isMetaInstruction())
      return 0;
    return info.getName(inst.getOpcode()) == "S_NOP"
               ? inst.getOperand(0).getImm() + 1
               : 1;
  }
  unsigned operator()(const MachineBasicBlock &block) const {
    unsigned count = 0;
    for (const MachineInstr &inst : block.instrs())
      if ((count += (*this)(inst)) >= farthest)
        break;
    return count;
  }

private:
  const TargetInstrInfo &info;
};

/// The shortest ways to the beginning of a block, as far as rules reach.
struct Ways {
  struct Node {
    /// Wait states from its end to the beginning of the block.
    unsigned distance = 0;
    /// The next block of the shortest way; null: the block itself.
    MachineBasicBlock *next = nullptr;
    bool isDone = false;
  };
  llvm::MapVector<MachineBasicBlock *, Node> nodes;

  Ways(MachineBasicBlock &root, const Counter &count) {
    for (MachineBasicBlock *pred : root.predecessors())
      nodes.insert({pred, {}});
    for (;;) {
      std::pair<MachineBasicBlock *, Node> *nearest = nullptr;
      for (auto &entry : nodes)
        if (!entry.second.isDone &&
            (!nearest || entry.second.distance < nearest->second.distance))
          nearest = &entry;
      if (!nearest)
        return;
      nearest->second.isDone = true;
      MachineBasicBlock *block = nearest->first;
      unsigned distance = nearest->second.distance + count(*block);
      if (distance >= farthest)
        continue;
      for (MachineBasicBlock *pred : block->predecessors()) {
        auto it = nodes.insert({pred, {distance, block, false}}).first;
        if (distance < it->second.distance)
          it->second = {distance, block, false};
      }
    }
  }

  /// Whether the way from `block` goes through `other`.
  bool leadsThrough(MachineBasicBlock *block,
                    const MachineBasicBlock *other) const {
    for (; block; block = nodes.lookup(block).next)
      if (block == other)
        return true;
    return false;
  }
};

/// Makes lists of predecessors a tree of ways, for its lifetime.
class OnlyShortest {
public:
  OnlyShortest(MachineBasicBlock &root, const Ways &ways) {
    // The block's own list is that of all its predecessors, also where a loop
    // leads through the block again; by then the others have been entered.
    save(root);
    std::stable_partition(
        root.pred_begin(), root.pred_end(), [&](MachineBasicBlock *pred) {
          return !ways.nodes.contains(&root) || !ways.leadsThrough(&root, pred);
        });
    for (const auto &[block, node] : ways.nodes) {
      if (block == &root)
        continue;
      save(*block);
      // The recognizer enters no block twice: the block itself stands for
      // predecessors whose shortest way does not lead here.
      for (MachineBasicBlock *&pred : block->predecessors())
        if (auto from = ways.nodes.find(pred);
            from == ways.nodes.end() || from->second.next != block)
          pred = block;
    }
  }
  ~OnlyShortest() {
    for (const auto &[block, preds] : saved)
      llvm::copy(preds, block->pred_begin());
  }

private:
  void save(MachineBasicBlock &block) {
    saved.push_back({&block, llvm::to_vector<4>(block.predecessors())});
  }

  SmallVector<
      std::pair<MachineBasicBlock *, SmallVector<MachineBasicBlock *, 4>>>
      saved;
};

struct WaitStatesPass : MachineFunctionPass {
  static char ID;
  WaitStatesPass() : MachineFunctionPass(ID) {}
  StringRef getPassName() const override { return "GRETA wait states"; }

  bool runOnMachineFunction(MachineFunction &function) override {
    const TargetInstrInfo &info = *function.getSubtarget().getInstrInfo();
    std::unique_ptr<ScheduleHazardRecognizer> recognizer(
        info.CreateTargetPostRAHazardRecognizer(function));
    Counter count(info);
    bool changed = false;
    for (MachineBasicBlock &block : function) {
      Ways ways(block, count);
      OnlyShortest only(block, ways);
      unsigned distance = 0;
      for (MachineInstr &inst : block) {
        unsigned missing = recognizer->PreEmitNoops(&inst);
        info.insertNoops(block, inst, missing);
        changed |= missing > 0;
        distance += missing;
        if (!inst.isBundle())
          distance += count(inst);
        else
          for (auto it = std::next(inst.getIterator()), end = block.instr_end();
               it != end && it->isBundledWithPred(); ++it)
            distance += count(*it);
        if (distance >= farthest)
          break;
      }
    }
    return changed;
  }
};

} // namespace

char WaitStatesPass::ID = 0;

MachineFunctionPass *greta::createWaitStatesPass() {
  return new WaitStatesPass();
}
