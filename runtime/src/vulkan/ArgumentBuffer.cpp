// ArgumentBuffer.cpp: see ArgumentBuffer.h. Before and after:
//
//   %p    = OpTypePointer PushConstant %args     .. PhysicalStorageBuffer %args
//   %v    = OpVariable %p PushConstant           %w, of a struct of one %p
//   (the function's first block)                 %m = OpAccessChain %w %zero
//                                                %v = OpLoad %m
//   %a    = OpAccessChain %pi32 %v %n            the same; %pi32 is physical
//   %x    = OpLoad %i32 %a                       %x = OpLoad %i32 %a Aligned 4
//
// All pointers to push constants come from the one variable, so their types
// change as a whole, and what is done with them stays as it is.
#include "ArgumentBuffer.h"
#include "ModuleGrammar.h"

#include <unordered_map>
#include <unordered_set>

namespace greta::rt::vulkan {
using namespace spv;
using namespace spirv;

namespace {

class Rewriter {
public:
  explicit Rewriter(const std::vector<uint32_t> &In) : In(In) {}
  std::vector<uint32_t> run();

private:
  void collect();
  void instruction(size_t At, uint32_t Op, uint32_t Count);
  void emit(Op Code, std::initializer_list<uint32_t> Operands) {
    Out.push_back(static_cast<uint32_t>(Operands.size() + 1) << 16 | Code);
    Out.insert(Out.end(), Operands);
  }
  void declare();
  void entryPoint(size_t At, uint32_t Count);
  void load(size_t At, uint32_t Count);

  const std::vector<uint32_t> &In;
  std::vector<uint32_t> Out;
  // These are ids of the module before the rewrite.
  std::unordered_set<uint32_t> Pointers;     // types, to push constants
  std::unordered_map<uint32_t, bool> IsWide; // types, if wider than 4 bytes
  uint32_t Variable = 0, PointerType = 0, Int = 0;
  std::unordered_set<uint32_t> Values; // of a type in Pointers, so far
  // The rewrite adds these ids.
  uint32_t Zero = 0, Struct = 0, StructPointer = 0, MemberPointer = 0,
           NewVariable = 0, Member = 0, NewInt = 0;
  bool Decorated = false, InFunction = false, Loaded = false;
};

void Rewriter::collect() {
  for (size_t At = 5; At < In.size(); At += In[At] >> 16) {
    const uint32_t *I = &In[At];
    switch (I[0] & 0xffff) {
    case OpTypeInt:
      IsWide[I[1]] = I[2] > 32;
      if (I[2] == 32 && !Int)
        Int = I[1];
      break;
    case OpTypeFloat:
      IsWide[I[1]] = I[2] > 32;
      break;
    case OpTypeStruct:
      IsWide[I[1]] = true;
      break;
    case OpTypePointer:
      IsWide[I[1]] = true;
      if (I[2] == StorageClassPushConstant)
        Pointers.insert(I[1]);
      break;
    case OpVariable:
      if (I[3] == StorageClassPushConstant) {
        PointerType = I[1];
        Variable = I[2];
      }
      break;
    }
  }
}

// Called when all types are there.
void Rewriter::declare() {
  if (NewInt)
    emit(OpTypeInt, {NewInt, 32, 0});
  emit(OpConstant, {Int, Zero, 0});
  emit(OpTypeStruct, {Struct, PointerType});
  emit(OpTypePointer, {StructPointer, StorageClassPushConstant, Struct});
  emit(OpTypePointer, {MemberPointer, StorageClassPushConstant, PointerType});
  emit(OpVariable, {StructPointer, NewVariable, StorageClassPushConstant});
}

// The entry point lists the module's variables behind its name.
void Rewriter::entryPoint(size_t At, uint32_t Count) {
  size_t Begin = Out.size();
  Out.insert(Out.end(), &In[At], &In[At] + Count);
  size_t I = Begin + 3;
  auto EndsText = [](uint32_t Word) {
    return !(Word & 0xff) || !(Word & 0xff00) || !(Word & 0xff0000) ||
           !(Word & 0xff000000);
  };
  while (!EndsText(Out[I]))
    ++I;
  for (++I; I < Out.size(); ++I)
    if (Out[I] == Variable)
      Out[I] = NewVariable;
}

// A load through an address needs an alignment: the value's own size.
void Rewriter::load(size_t At, uint32_t Count) {
  uint32_t Mask = Count > 4 ? In[At + 4] : 0;
  if (Mask & MemoryAccessAlignedMask) {
    Out.insert(Out.end(), &In[At], &In[At] + Count);
    return;
  }
  auto Found = IsWide.find(In[At + 1]);
  uint32_t Bytes = Found != IsWide.end() && Found->second ? 8 : 4;
  emit(OpLoad, {In[At + 1], In[At + 2], In[At + 3],
                Mask | MemoryAccessAlignedMask, Bytes});
}

void Rewriter::instruction(size_t At, uint32_t Op, uint32_t Count) {
  const Instruction *Row = findInstruction(Op);
  bool HasValue = Row && Row->Operands[0] == 'T' && Row->Operands[1] == 'R';
  bool IsDeclaration =
      !InFunction && Row &&
      (Row->Where == Section::Any || Row->Where >= Section::Global);
  if (IsDeclaration && !Decorated) {
    emit(OpDecorate, {Struct, DecorationBlock});
    emit(OpMemberDecorate, {Struct, 0, DecorationOffset, 0});
    Decorated = true;
  }
  if (Op == OpFunction) {
    declare();
    InFunction = true;
  } else if (InFunction && !Loaded && Op != OpLabel && Op != OpVariable) {
    emit(OpAccessChain, {MemberPointer, Member, NewVariable, Zero});
    emit(OpLoad, {PointerType, Variable, Member});
    Loaded = true;
  }
  if (HasValue && Pointers.count(In[At + 1]))
    Values.insert(In[At + 2]);
  if (Op == OpEntryPoint)
    return entryPoint(At, Count);
  if (Op == OpVariable && In[At + 2] == Variable)
    return;
  if (Op == OpLoad && Values.count(In[At + 3]))
    return load(At, Count);
  Out.insert(Out.end(), &In[At], &In[At] + Count);
  if (Op == OpTypePointer && Pointers.count(In[At + 1]))
    Out[Out.size() - 2] = StorageClassPhysicalStorageBuffer;
}

std::vector<uint32_t> Rewriter::run() {
  collect();
  if (!Variable)
    return In; // it reads no argument
  Out.assign(In.begin(), In.begin() + 5);
  if (!Int)
    Int = NewInt = Out[3]++;
  for (uint32_t *Id :
       {&Zero, &Struct, &StructPointer, &MemberPointer, &NewVariable, &Member})
    *Id = Out[3]++;
  for (size_t At = 5; At < In.size(); At += In[At] >> 16)
    instruction(At, In[At] & 0xffff, In[At] >> 16);
  return std::move(Out);
}

} // namespace

std::vector<uint32_t> argumentsFromBuffer(const std::vector<uint32_t> &Words) {
  return Rewriter(Words).run();
}

} // namespace greta::rt::vulkan
