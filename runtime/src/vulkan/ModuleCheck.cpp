// ModuleCheck.cpp: see ModuleCheck.h. One pass over the module: the order of
// its sections, word counts, ids, decorations, the entry point, and the blocks
// of its one function.
#include "ModuleChecker.h"

#include <algorithm>
#include <cstring>

namespace greta::rt::vulkan {
using namespace spv;
using namespace spirv;

namespace {
constexpr uint32_t maxBound = 0x3fffff; // the specification's universal limit
constexpr size_t maxBytes = 64u << 20;
constexpr uint32_t firstVersion = 0x10400, lastVersion = 0x10600;
} // namespace

void ModuleChecker::run() {
  need(Words.size() >= 5 && Words[0] == MagicNumber, "not a SPIR-V module");
  need(Words[1] >= firstVersion && Words[1] <= lastVersion &&
           (Words[1] & 0xff) == 0,
       "a version of SPIR-V other than 1.4 to 1.6");
  Bound = Words[3];
  need(Bound > 0 && Bound <= maxBound, "the bound of ids is out of range");
  for (At = 5; At < Words.size(); At = End)
    instruction();
  Row = nullptr;
  finish();
}

void ModuleChecker::instruction() {
  Op = Words[At] & 0xffff;
  uint32_t Count = Words[At] >> 16;
  Row = nullptr;
  if (Count == 0 || Count > Words.size() - At)
    bad("an instruction of ", Count, " words, ", Words.size() - At,
        " are left");
  End = At + Count;
  Row = findInstruction(Op);
  if (!Row)
    bad("opcode ", Op, " is none that GRETA's compiler writes");
  section();
  operands();
  if (InFunction)
    insideFunction();
  else
    outsideFunction();
  if (!Result)
    return;
  size_t Block = InBlock ? Flow.Blocks.size() - 1 : noBlock;
  Ids[Result] = {At, Op == OpFunction ? 0 : Type, Block};
  checkDecorations();
}

void ModuleChecker::section() {
  Section Where = Row->Where;
  if (Where == Section::Any)
    Where = InFunction ? Section::Function : Section::Global;
  need(Where >= Now, "stands behind a later section of the module");
  Now = Where;
}

void ModuleChecker::operands() {
  Type = Result = 0;
  Operands.clear();
  Cursor = At + 1;
  for (const char *Kind = Row->Operands; *Kind; ++Kind) {
    bool Optional = Kind[1] == '?', Repeated = Kind[1] == '*';
    if (!Optional && !Repeated)
      operand(*Kind);
    while ((Optional || Repeated) && Cursor < End) {
      operand(*Kind);
      if (Optional)
        break;
    }
    Kind += Optional || Repeated;
  }
  need(Cursor == End, "has more words than operands");
}

uint32_t ModuleChecker::next() {
  need(Cursor < End, "has fewer words than operands");
  return Words[Cursor++];
}

uint32_t ModuleChecker::nextId() {
  uint32_t Id = next();
  if (Id == 0 || Id >= Bound)
    bad("id ", Id, ", the bound is ", Bound);
  return Id;
}

std::string ModuleChecker::nextString() {
  need(Cursor < End, "has fewer words than operands");
  const char *Begin = reinterpret_cast<const char *>(&Words[Cursor]);
  size_t Room = (End - Cursor) * 4, Length = strnlen(Begin, Room);
  need(Length < Room, "a string without an end");
  Cursor += Length / 4 + 1;
  return std::string(Begin, Length);
}

void ModuleChecker::operand(char Kind) {
  switch (Kind) {
  case 'T':
    Type = nextId();
    need(isType(Type), "the result's type is none");
    return;
  case 'R':
    Result = nextId();
    if (Ids.count(Result))
      bad("id ", Result, " is defined twice");
    return;
  case 's':
    Text = nextString();
    return;
  case 'm':
    memoryOperands();
    return;
  case 'n':
    Operands.push_back(next());
    return;
  case 'P':
    while (Cursor < End)
      for (int Word = 0; Word < 2; ++Word)
        Operands.push_back(nextId());
    return;
  }
  uint32_t Id = nextId();
  Operands.push_back(Id);
  if (Kind == 't' && !isType(Id))
    bad("id ", Id, " is not a type");
  if (Kind == 'k' && !isConstant(Id))
    bad("id ", Id, " is not a constant");
  if (Kind == 'v')
    useValue(Id);
}

void ModuleChecker::useValue(uint32_t Id) {
  const Definition &D = defined(Id);
  if (!D.Type)
    bad("id ", Id, " is not a value");
  checkArithmetic(D.Type);
  if (D.Block != noBlock)
    Uses.push_back({At, Flow.Blocks.size() - 1, Id});
}

void ModuleChecker::memoryOperands() {
  Aligned = false;
  if (Cursor == End)
    return;
  uint32_t Mask = next();
  need(!(Mask &
         ~(MemoryAccessVolatileMask + MemoryAccessAlignedMask +
           MemoryAccessNontemporalMask + MemoryAccessNonPrivatePointerMask)),
       "unknown memory operands");
  Aligned = Mask & MemoryAccessAlignedMask;
  if (Aligned) {
    uint32_t Bytes = next();
    need(Bytes && Bytes <= 4096 && !(Bytes & (Bytes - 1)),
         "an alignment that is no power of two");
  }
  if (Mask & MemoryAccessNonPrivatePointerMask)
    needCapability(CapabilityVulkanMemoryModel, "NonPrivatePointer");
}

void ModuleChecker::needs(const char *Name,
                          const std::vector<std::string> &Named) const {
  if (Name && std::find(Named.begin(), Named.end(), Name) == Named.end())
    bad("needs ", Name, ", which the manifest's `requires` does not name");
}

void ModuleChecker::outsideFunction() {
  switch (Op) {
  case OpCapability: {
    const CapabilityRow *C = findCapability(Operands[0]);
    if (!C)
      bad("capability ", Operands[0],
          " is none that GRETA's compiler declares");
    needs(C->Feature, Requires.Features);
    needs(C->SubgroupOp, Requires.SubgroupOps);
    Capabilities.insert(Operands[0]);
    return;
  }
  case OpExtension: {
    const char *Feature = nullptr;
    if (!findExtension(Text, Feature))
      bad("extension '", printable(Text),
          "' is none that GRETA's compiler uses");
    needs(Feature, Requires.Features);
    return;
  }
  case OpExtInstImport:
    need(Text == "GLSL.std.450", "instructions other than GLSL.std.450");
    return;
  case OpMemoryModel:
    need(!HasModel, "a second memory model");
    HasModel = true;
    need(Operands[0] == AddressingModelPhysicalStorageBuffer64,
         "addressing other than PhysicalStorageBuffer64");
    need(Operands[1] == MemoryModelGLSL450 || Operands[1] == MemoryModelVulkan,
         "a memory model other than GLSL450 and Vulkan");
    needCapability(CapabilityShader, "a kernel");
    needCapability(CapabilityPhysicalStorageBufferAddresses, "the addressing");
    if (Operands[1] == MemoryModelVulkan)
      needCapability(CapabilityVulkanMemoryModel, "the memory model");
    return;
  case OpEntryPoint:
    return entryPoint();
  case OpExecutionMode:
    return executionMode();
  case OpName:
  case OpMemberName:
    Named.push_back(Operands[0]);
    return;
  case OpDecorate:
  case OpMemberDecorate:
    return decorate();
  case OpFunction:
    need(HasModel, "a module without a memory model");
    need(!HasFunction, "a second function");
    need(Result == Entry, "a function that is not the entry point");
    need(code(Type) == OpTypeVoid && code(Operands[1]) == OpTypeFunction &&
             parameter(Operands[1], 0) == Type,
         "an entry point that is not of type void()");
    need(Operands[0] <= 3, "unknown function control");
    HasFunction = InFunction = true;
    return;
  case OpVariable:
    return checkVariable();
  case OpUndef:
  case OpConstantTrue:
  case OpConstantFalse:
  case OpConstant:
  case OpConstantComposite:
  case OpConstantNull:
    return checkConstant();
  default:
    need(Now == Section::Global, "stands outside of a function");
    checkTypeInstruction();
  }
}

void ModuleChecker::entryPoint() {
  need(!Entry, "a second entry point");
  need(Operands[0] == ExecutionModelGLCompute, "a model other than GLCompute");
  if (Text != K.Entry)
    bad("no compute entry point '", K.Entry, "', but '", printable(Text), "'");
  Entry = Operands[1];
  Interface.assign(Operands.begin() + 2, Operands.end());
}

void ModuleChecker::executionMode() {
  need(Operands[0] == Entry, "of what is no entry point");
  if (Operands[1] == ExecutionModeRoundingModeRTE) {
    need(Operands.size() == 3 &&
             (Operands[2] == 16 || Operands[2] == 32 || Operands[2] == 64),
         "RoundingModeRTE of no width");
    needCapability(CapabilityRoundingModeRTE, "RoundingModeRTE");
    return;
  }
  if (Operands[1] != ExecutionModeLocalSize)
    bad("execution mode ", Operands[1],
        " is none that GRETA's compiler writes");
  need(!Sized && Operands.size() == 5, "LocalSize is not three numbers, once");
  Sized = true;
  if (!std::equal(K.Block.begin(), K.Block.end(), Operands.begin() + 2))
    bad("LocalSize is ", Operands[2], "x", Operands[3], "x", Operands[4],
        ", the manifest says ", K.Block[0], "x", K.Block[1], "x", K.Block[2]);
}

void ModuleChecker::decorate() {
  bool OfMember = Op == OpMemberDecorate;
  Decorations &D = Decorated[Operands[0]];
  uint32_t Kind = Operands[OfMember ? 2 : 1];
  size_t Literals = Operands.size() - (OfMember ? 3 : 2);
  if (OfMember && Kind == DecorationOffset && Literals == 1) {
    need(D.Offsets.emplace(Operands[1], Operands[3]).second,
         "a member with two offsets");
  } else if (OfMember && Kind == DecorationNonWritable && Literals == 0) {
    D.Readonly.insert(Operands[1]);
  } else if (!OfMember && Kind == DecorationArrayStride && Literals == 1) {
    need(!D.Stride && Operands[2], "no array stride, or a second one");
    D.Stride = Operands[2];
  } else if (!OfMember && Kind == DecorationBuiltIn && Literals == 1) {
    need(!D.HasBuiltIn && builtInLanes(Operands[2]),
         "a built-in that GRETA's compiler does not use, or a second one");
    D.HasBuiltIn = true;
    D.BuiltIn = Operands[2];
  } else if (!OfMember && Kind == DecorationBlock && Literals == 0) {
    D.IsBlock = true;
  } else if (!OfMember && Kind == DecorationNoContraction && Literals == 0) {
    D.NoContraction = true;
  } else {
    bad("decoration ", Kind, " with ", Literals,
        " literals is none that GRETA's compiler writes");
  }
}

// Checks that the result just defined can have each of its decorations.
void ModuleChecker::checkDecorations() {
  auto Found = Decorated.find(Result);
  if (Found == Decorated.end())
    return;
  const Decorations &D = Found->second;
  bool IsStruct = Op == OpTypeStruct;
  need(IsStruct || (!D.IsBlock && D.Offsets.empty() && D.Readonly.empty()),
       "Block, Offset or NonWritable of what is no struct");
  if (!D.Offsets.empty() && D.Offsets.rbegin()->first >= count(Result) - 2)
    bad("an offset of member ", D.Offsets.rbegin()->first, ", there are ",
        count(Result) - 2);
  need(D.Readonly.empty() || *D.Readonly.rbegin() < count(Result) - 2,
       "NonWritable of no member");
  need(!D.Stride || Op == OpTypeArray || Op == OpTypeRuntimeArray,
       "ArrayStride of what is no array");
  need(!D.HasBuiltIn || Op == OpVariable, "BuiltIn of what is no variable");
  need(!D.NoContraction || Row->Types == Rule::FloatArith,
       "NoContraction of what is no arithmetic");
}

void ModuleChecker::insideFunction() {
  if (Op == OpLabel) {
    need(!InBlock, "a block inside a block");
    InBlock = true;
    Merging = false;
    AtStart = true;
    Flow.Blocks.push_back({Result, 0, 0, {}});
    return;
  }
  if (Op == OpFunctionEnd) {
    need(!InBlock, "a block without an end");
    return endFunction();
  }
  need(InBlock, "stands outside of a block");
  need(!Merging || Op == OpBranch || Op == OpBranchConditional,
       "stands between a merge instruction and its branch");
  AtStart &= Op == OpPhi;
  switch (Op) {
  case OpLoopMerge:
    // The control is don't-care, unroll or don't-unroll.
    need(Operands[2] <= 2, "unknown loop control");
    Flow.Blocks.back().Continue = Operands[1];
    Flow.Blocks.back().Merge = Operands[0];
    Merging = true;
    return;
  case OpSelectionMerge:
    need(Operands[1] <= 2, "unknown selection control");
    Flow.Blocks.back().Merge = Operands[0];
    Merging = true;
    return;
  case OpBranch:
    need(!Merging || Flow.Blocks.back().Continue,
         "a selection without a condition");
    return terminate({Operands[0]});
  case OpBranchConditional:
    need(code(typeOf(Operands[0])) == OpTypeBool,
         "a condition that is no bool");
    return terminate({Operands[1], Operands[2]});
  case OpReturn:
    return terminate({});
  case OpPhi:
    need(Flow.Blocks.size() > 1, "in the entry block");
    need(AtStart, "behind other instructions of its block");
    need(!isLogicalPointer(Type), "a pointer that is no address");
    Phis.push_back({At, Flow.Blocks.size() - 1});
    return;
  case OpVariable:
    return checkVariable();
  default:
    checkRule();
  }
}

void ModuleChecker::terminate(std::initializer_list<uint32_t> Targets) {
  Flow.Blocks.back().Targets = Targets;
  InBlock = false;
}

void ModuleChecker::endFunction() {
  if (std::string Why = Flow.analyze(); !Why.empty())
    bad(Why);
  for (const Use &U : Uses)
    if (!Flow.dominates(defined(U.Id).Block, U.Block)) {
      At = U.At;
      Row = findInstruction(Words[At] & 0xffff);
      bad("id ", U.Id, " is not defined on every way to here");
    }
  for (auto [Place, Block] : Phis) {
    At = Place;
    Row = findInstruction(OpPhi);
    uint32_t Count = Words[At] >> 16;
    std::set<size_t> From;
    for (uint32_t I = 3; I + 1 < Count; I += 2) {
      const Definition &Value = defined(Words[At + I]);
      need(Value.Type == Words[At + 1], "a value of another type");
      need(code(Words[At + I + 1]) == OpLabel, "from what is no block");
      size_t Parent = Flow.index(Words[At + I + 1]);
      need(Value.Block == noBlock || Flow.dominates(Value.Block, Parent),
           "a value that is not defined on every way to here");
      need(From.insert(Parent).second, "a block named twice");
    }
    const std::vector<size_t> &Want = Flow.predecessors(Block);
    need(From == std::set<size_t>(Want.begin(), Want.end()),
         "its blocks are not those that branch here");
  }
  InFunction = false;
  Now = Section::Any; // nothing comes behind the function
}

void ModuleChecker::finish() {
  if (!Entry)
    bad("no compute entry point '", K.Entry, "'");
  if (!Sized)
    bad("entry point '", K.Entry, "' has no LocalSize");
  need(HasFunction && !InFunction, "the entry point's function is not there");
  for (const auto &[Target, Unused] : Decorated)
    if (!Ids.count(Target))
      bad("id ", Target, " is decorated and not defined");
  for (uint32_t Target : Named)
    if (!Ids.count(Target))
      bad("id ", Target, " is named and not defined");
  std::set<uint32_t> Listed(Interface.begin(), Interface.end());
  need(Listed.size() == Interface.size() && Listed == Globals,
       "the interface of the entry point is not the module's variables");
  if (SharedBytes > K.LdsBytes)
    bad(SharedBytes, " bytes of shared memory, the manifest says ", K.LdsBytes);
  if (PushConstants)
    finishPushConstants(parameter(typeOf(PushConstants), 1));
}

// docs/internals/package.md, "Argument ABI": there is a member for each
// argument, at its natural alignment.
void ModuleChecker::finishPushConstants(uint32_t Struct) {
  uint32_t Members = count(Struct) - 2;
  if (Members != K.Args.size())
    bad(Members, " push constants, the manifest has ", K.Args.size(),
        " arguments");
  std::vector<uint32_t> Offsets = argumentOffsets(K.Args);
  for (uint32_t I = 0; I < Members; ++I) {
    uint32_t Member = parameter(Struct, I);
    uint32_t Size = K.Args[I].bytes();
    bool IsScalar = isScalarInt(Member) || code(Member) == OpTypeFloat;
    if (!(IsScalar || isPointer(Member)) || Types.at(Member).Size != Size ||
        Decorated.at(Struct).Offsets.at(I) != Offsets[I])
      bad("push constant ", I, " is not the manifest's: ", Size,
          " bytes at offset ", Offsets[I]);
  }
}

std::vector<uint32_t> checkModule(const std::vector<uint8_t> &Object,
                                  const KernelDecl &K,
                                  const Requirements &Requires) {
  if (Object.size() % 4 || Object.size() > maxBytes)
    fail(GRETA_ERROR_BAD_PACKAGE, "'", K.File, "': not a SPIR-V module");
  std::vector<uint32_t> Words(Object.size() / 4);
  if (!Words.empty())
    memcpy(Words.data(), Object.data(), Object.size());
  ModuleChecker(Words, K, Requires).run();
  return Words;
}

} // namespace greta::rt::vulkan
