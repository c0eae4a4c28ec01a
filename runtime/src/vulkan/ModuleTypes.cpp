// ModuleTypes.cpp: the types of ModuleCheck.h's modules, and what the
// instructions of a function may do with them.
#include "ModuleChecker.h"

#include <algorithm>

namespace greta::rt::vulkan {
using namespace spv;
using namespace spirv;

namespace {
constexpr unsigned maxDepth = 8;            // of types in types
constexpr uint64_t maxTypeBytes = 1u << 30; // of one type
constexpr uint64_t maxFunctionBytes = 1u << 20;
} // namespace

const ModuleChecker::Definition &ModuleChecker::defined(uint32_t Id) const {
  auto Found = Ids.find(Id);
  if (Found == Ids.end())
    bad("id ", Id, " is not defined before its use");
  return Found->second;
}

bool ModuleChecker::isType(uint32_t Id) const {
  uint32_t C = code(Id);
  return (C >= OpTypeVoid && C <= OpTypeFunction) ||
         C == OpTypeCooperativeMatrixKHR;
}

bool ModuleChecker::isConstant(uint32_t Id) const {
  uint32_t C = code(Id);
  return C >= OpConstantTrue && C <= OpConstantNull;
}

// Of a vector or a cooperative matrix its elements' type, else the type itself.
uint32_t ModuleChecker::component(uint32_t T) const {
  uint32_t C = code(T);
  return C == OpTypeVector || C == OpTypeCooperativeMatrixKHR ? parameter(T, 0)
                                                              : T;
}

uint32_t ModuleChecker::width(uint32_t T) const {
  uint32_t C = code(component(T));
  return C == OpTypeInt || C == OpTypeFloat ? parameter(component(T), 0) : 0;
}

uint32_t ModuleChecker::lanes(uint32_t T) const {
  uint32_t C = code(T);
  return C == OpTypeVector                 ? parameter(T, 1)
         : C == OpTypeCooperativeMatrixKHR ? 0
                                           : 1;
}

bool ModuleChecker::isInt(uint32_t T) const {
  return code(component(T)) == OpTypeInt;
}
bool ModuleChecker::isAnyFloat(uint32_t T) const {
  return code(component(T)) == OpTypeFloat;
}
bool ModuleChecker::isFloat(uint32_t T) const {
  // A third operand is an encoding other than IEEE's.
  return isAnyFloat(T) && count(component(T)) == 3;
}
bool ModuleChecker::isBool(uint32_t T) const {
  return code(component(T)) == OpTypeBool;
}
bool ModuleChecker::isScalarInt(uint32_t T) const {
  return code(T) == OpTypeInt;
}
bool ModuleChecker::isPointer(uint32_t T) const {
  return code(T) == OpTypePointer;
}

bool ModuleChecker::sameShape(uint32_t A, uint32_t B) const {
  if (A == B)
    return true;
  if (lanes(A) != lanes(B))
    return false;
  if (lanes(A) != 0)
    return true;
  for (unsigned I = 1; I <= 4; ++I)
    if (constant(parameter(A, I)) != constant(parameter(B, I)))
      return false;
  return true;
}

uint32_t ModuleChecker::constant(uint32_t Id) const {
  const Definition &D = defined(Id);
  need(code(Id) == OpConstant && isScalarInt(D.Type) && width(D.Type) == 32,
       "an operand that is no constant of 32 bits");
  return Words[D.At + 3];
}

void ModuleChecker::needCapability(uint32_t Capability,
                                   const char *What) const {
  if (!Capabilities.count(Capability))
    bad(What, " without capability ", Capability);
}

void ModuleChecker::checkTypeInstruction() {
  TypeFacts F;
  auto Holds = [&](uint32_t T) -> const TypeFacts & {
    const TypeFacts &Element = Types.at(T);
    need(Element.Size, "of a type without a size");
    F.Depth = std::max(F.Depth, Element.Depth + 1);
    F.Laid &= Element.Laid;
    return Element;
  };
  auto Found = Decorated.find(Result);
  const Decorations &D =
      Found == Decorated.end() ? Decorations() : Found->second;
  switch (Op) {
  case OpTypeVoid:
    break;
  case OpTypeBool:
    F.Size = 4;
    F.Laid = false;
    break;
  case OpTypeInt:
    need(Operands[1] <= 1, "a sign that is neither 0 nor 1");
    F.Size = Operands[0] / 8;
    if (Operands[0] == 8 && !Capabilities.count(CapabilityInt8))
      needCapability(CapabilityStorageBuffer8BitAccess, "8 bits");
    else if (Operands[0] == 16 && !Capabilities.count(CapabilityInt16))
      needCapability(CapabilityStorageBuffer16BitAccess, "16 bits");
    else if (Operands[0] == 64)
      needCapability(CapabilityInt64, "64 bits");
    else
      need(Operands[0] == 8 || Operands[0] == 16 || Operands[0] == 32,
           "a width other than 8, 16, 32 or 64");
    break;
  case OpTypeFloat:
    F.Size = Operands[0] / 8;
    if (Operands.size() == 2) {
      need(Operands[0] == 16 && Operands[1] == 0, "an unknown encoding");
      needCapability(CapabilityBFloat16TypeKHR, "bfloat16");
    } else if (Operands[0] == 16 && !Capabilities.count(CapabilityFloat16)) {
      needCapability(CapabilityStorageBuffer16BitAccess, "16 bits");
    } else {
      need(Operands[0] == 16 || Operands[0] == 32,
           "a width other than 16 or 32");
    }
    break;
  case OpTypeVector: {
    uint32_t C = code(Operands[0]);
    need(C == OpTypeInt || C == OpTypeFloat || C == OpTypeBool,
         "of what is no scalar");
    need(Operands[1] >= 2 && Operands[1] <= 4, "not 2 to 4 components");
    F.Size = Holds(Operands[0]).Size * Operands[1];
    break;
  }
  case OpTypeArray: {
    const TypeFacts &Element = Holds(Operands[0]);
    uint64_t Count = constant(Operands[1]);
    need(Count && !Element.Open, "no elements, or elements without an end");
    F.Laid &= D.Stride >= Element.Size;
    F.Size = std::max<uint64_t>(D.Stride, Element.Size) * Count;
    break;
  }
  case OpTypeRuntimeArray:
    need(!Holds(Operands[0]).Open, "elements without an end");
    F.Laid &= D.Stride >= Types.at(Operands[0]).Size;
    F.Size = std::max<uint64_t>(D.Stride, 1);
    F.Open = true;
    break;
  case OpTypeStruct: {
    need(!Operands.empty(), "without members");
    for (size_t I = 0; I < Operands.size(); ++I) {
      const TypeFacts &Member = Holds(Operands[I]);
      F.Open |= Member.Open;
      need(!Member.Open || I + 1 == Operands.size(),
           "a member behind one without an end");
      auto Offset = D.Offsets.find(static_cast<uint32_t>(I));
      F.Laid &= Offset != D.Offsets.end() && Offset->second >= F.Size;
      F.Size = std::max<uint64_t>(
                   F.Size, Offset == D.Offsets.end() ? 0 : Offset->second) +
               Member.Size;
      need(F.Size <= maxTypeBytes, "too large");
    }
    break;
  }
  case OpTypePointer: {
    uint32_t Class = Operands[0];
    const TypeFacts &Pointee = Holds(Operands[1]);
    F = {8, 1, true, false};
    bool Explicit = Class == StorageClassPushConstant ||
                    Class == StorageClassPhysicalStorageBuffer;
    need(Explicit || Class == StorageClassInput ||
             Class == StorageClassWorkgroup || Class == StorageClassFunction,
         "a storage class that GRETA's compiler does not use");
    need(!Explicit || Pointee.Laid, "to a type without offsets or strides");
    need(!Pointee.Open || Class == StorageClassPhysicalStorageBuffer,
         "to elements without an end");
    break;
  }
  case OpTypeFunction:
    break;
  case OpTypeCooperativeMatrixKHR: {
    needCapability(CapabilityCooperativeMatrixKHR, "a cooperative matrix");
    uint32_t C = code(Operands[0]);
    need(C == OpTypeInt || C == OpTypeFloat, "of what is no number");
    if (C == OpTypeFloat && count(Operands[0]) == 4)
      needCapability(CapabilityBFloat16CooperativeMatrixKHR, "of bfloat16");
    need(constant(Operands[1]) == ScopeSubgroup,
         "a scope other than the subgroup");
    checkMatrixSize();
    F.Size =
        Holds(Operands[0]).Size * constant(Operands[2]) * constant(Operands[3]);
    F.Laid = false;
    break;
  }
  default:
    bad("stands outside of a function");
  }
  need(F.Depth <= maxDepth, "types nested too deeply");
  need(F.Size <= maxTypeBytes, "too large");
  Types[Result] = F;
}

// Only matrices of products that the manifest names.
void ModuleChecker::checkMatrixSize() const {
  uint32_t Rows = constant(Operands[2]), Columns = constant(Operands[3]),
           Use = constant(Operands[4]);
  need(Use <= 2, "a use other than A, B and accumulator");
  for (const CoopShape &S : Requires.Coopmat)
    if (Rows == (Use == 1 ? S.K : S.M) && Columns == (Use == 0 ? S.K : S.N))
      return;
  bad(Rows, " x ", Columns,
      " is of no product that the manifest's `requires` names");
}

void ModuleChecker::checkConstant() {
  uint32_t C = code(Type);
  const TypeFacts &F = Types.at(Type);
  need(F.Size && !F.Open, "of a type that has no values");
  switch (Op) {
  case OpConstantTrue:
  case OpConstantFalse:
    need(C == OpTypeBool, "not a bool");
    return;
  case OpConstant:
    need(C == OpTypeInt || C == OpTypeFloat, "not a number");
    need(Operands.size() == (F.Size > 4 ? 2 : 1),
         "not as many words as its type has");
    // What the type does not take of its word is zero, or the sign's.
    if (F.Size < 4) {
      uint32_t Above = Operands[0] >> F.Size * 8;
      bool Signed = C == OpTypeInt && parameter(Type, 1) &&
                    Operands[0] >> (F.Size * 8 - 1) & 1;
      need(Above == (Signed ? UINT32_MAX >> F.Size * 8 : 0),
           "a number beyond its type");
    }
    return;
  case OpConstantComposite:
    return checkParts();
  default: // OpConstantNull, OpUndef
    return;
  }
}

// The operands are the parts of a value of the result's type, one each; of a
// cooperative matrix one that is all of its elements.
void ModuleChecker::checkParts() const {
  uint32_t C = code(Type);
  need(C == OpTypeVector || C == OpTypeArray || C == OpTypeStruct ||
           C == OpTypeCooperativeMatrixKHR,
       "not a composite");
  size_t Want = C == OpTypeVector   ? lanes(Type)
                : C == OpTypeArray  ? constant(parameter(Type, 1))
                : C == OpTypeStruct ? count(Type) - 2
                                    : 1;
  need(Operands.size() == Want, "not as many parts as its type has");
  for (size_t I = 0; I < Want; ++I)
    need(typeOf(Operands[I]) ==
             parameter(Type, C == OpTypeStruct ? unsigned(I) : 0),
         "a part of another type");
}

void ModuleChecker::checkVariable() {
  need(isPointer(Type), "the result is no pointer");
  uint32_t Class = Operands[0], Pointee = parameter(Type, 1);
  need(Class == parameter(Type, 0), "not in its pointer's storage class");
  need((Class == StorageClassFunction) == InFunction,
       "a storage class for elsewhere");
  auto Found = Decorated.find(Result);
  const Decorations *D = Found == Decorated.end() ? nullptr : &Found->second;
  need((Class == StorageClassInput) == (D && D->HasBuiltIn),
       "an input that is not built in, or a built-in elsewhere");
  if (!InFunction)
    Globals.insert(Result);
  switch (Class) {
  case StorageClassFunction:
    need(Flow.Blocks.size() == 1, "outside of the entry block");
    FunctionBytes += Types.at(Pointee).Size;
    need(FunctionBytes <= maxFunctionBytes, "too many variables");
    return;
  case StorageClassWorkgroup:
    SharedBytes += Types.at(Pointee).Size;
    return;
  case StorageClassInput:
    need(isInt(Pointee) && width(Pointee) == 32 &&
             lanes(Pointee) == builtInLanes(D->BuiltIn),
         "not its built-in's type");
    if (D->BuiltIn >= BuiltInSubgroupSize)
      needCapability(CapabilityGroupNonUniform, "a subgroup's built-in");
    return;
  case StorageClassPushConstant: {
    need(!PushConstants, "a second block of push constants");
    PushConstants = Result;
    auto Block = Decorated.find(Pointee);
    need(code(Pointee) == OpTypeStruct && Block != Decorated.end() &&
             Block->second.IsBlock,
         "push constants that are no block");
    return;
  }
  default:
    bad("a variable behind a physical pointer");
  }
}

// Types of 8 and 16 bits that are only there for memory are moved and converted
// to others of their kind, no more.
void ModuleChecker::checkArithmetic(uint32_t T) const {
  if (Row->Types == Rule::IntToInt || Row->Types == Rule::FloatToFloat ||
      Op == OpLoad || Op == OpStore || Op == OpAccessChain)
    return;
  if (isInt(T) && width(T) == 8)
    needCapability(CapabilityInt8, "arithmetic of 8 bits");
  else if (isInt(T) && width(T) == 16)
    needCapability(CapabilityInt16, "arithmetic of 16 bits");
  else if (isFloat(T) && width(T) == 16)
    needCapability(CapabilityFloat16, "arithmetic of 16 bits");
}

void ModuleChecker::checkRule() {
  bool Unsigned = Op == OpUConvert || Op == OpUDiv || Op == OpUMod;
  need(!Unsigned || (isInt(Type) && !parameter(component(Type), 1)),
       "the result is no unsigned integer");
  if (Type)
    checkArithmetic(Type);
  auto Operand = [&](size_t I) { return typeOf(Operands[I]); };
  size_t N = Operands.size();
  switch (Row->Types) {
  case Rule::FloatArith:
    need(isFloat(Type), "the result is no number with a point");
    for (size_t I = 0; I < N; ++I)
      need(Operand(I) == Type, "an operand of another type");
    return;
  case Rule::BoolArith:
    need(isBool(Type), "the result is no bool");
    for (size_t I = 0; I < N; ++I)
      need(Operand(I) == Type, "an operand of another type");
    return;
  case Rule::IntArith:
    need(isInt(Type), "the result is no integer");
    for (size_t I = 0; I < N; ++I)
      need(isInt(Operand(I)) && sameShape(Operand(I), Type) &&
               width(Operand(I)) == width(Type),
           "an operand of another type");
    return;
  case Rule::Shift:
    need(isInt(Type) && isInt(Operand(0)) && isInt(Operand(1)) &&
             sameShape(Operand(0), Type) && sameShape(Operand(1), Type) &&
             width(Operand(0)) == width(Type),
         "not integers");
    return;
  case Rule::IntCompare:
    need(isBool(Type) && isInt(Operand(0)) && isInt(Operand(1)) &&
             width(Operand(0)) == width(Operand(1)) &&
             sameShape(Operand(0), Type) && sameShape(Operand(1), Type),
         "not two integers to a bool");
    return;
  case Rule::FloatCompare:
    need(isBool(Type) && isFloat(Operand(0)) && Operand(0) == Operand(1) &&
             sameShape(Operand(0), Type),
         "not two numbers with a point to a bool");
    return;
  case Rule::FloatTest:
    need(isBool(Type) && isFloat(Operand(0)) && sameShape(Operand(0), Type),
         "not a number with a point to a bool");
    return;
  case Rule::FloatToInt:
    need(isInt(Type) && isAnyFloat(Operand(0)) && sameShape(Operand(0), Type),
         "not a number with a point to an integer");
    return;
  case Rule::IntToFloat:
    need(isAnyFloat(Type) && isInt(Operand(0)) && sameShape(Operand(0), Type),
         "not an integer to a number with a point");
    return;
  case Rule::IntToInt:
    need(isInt(Type) && isInt(Operand(0)) && sameShape(Operand(0), Type) &&
             width(Operand(0)) != width(Type),
         "not an integer to one of another width");
    return;
  case Rule::FloatToFloat:
    need(isAnyFloat(Type) && isAnyFloat(Operand(0)) &&
             sameShape(Operand(0), Type) &&
             component(Operand(0)) != component(Type),
         "not a number with a point to one of another type");
    return;
  case Rule::Own:
    break;
  }
  switch (Op) {
  case OpUndef:
    return checkConstant();
  case OpLoad:
  case OpStore:
  case OpAccessChain:
    return checkMemory();
  case OpCompositeConstruct:
  case OpCompositeExtract:
  case OpCompositeInsert:
    return checkComposite();
  case OpBitcast:
  case OpConvertPtrToU:
  case OpConvertUToPtr:
    return checkConversion();
  case OpCooperativeMatrixLoadKHR:
  case OpCooperativeMatrixStoreKHR:
  case OpCooperativeMatrixMulAddKHR:
  case OpCooperativeMatrixLengthKHR:
    return checkMatrix();
  default:
    return checkOther();
  }
}

// The type of a part. An index that is known lies inside.
uint32_t ModuleChecker::step(uint32_t T, bool IsKnown, uint32_t Index) const {
  uint32_t C = code(T), Count = 0;
  if (C == OpTypeStruct) {
    need(IsKnown && Index < count(T) - 2, "an index beyond the members");
    return parameter(T, Index);
  }
  if (C == OpTypeVector)
    Count = lanes(T);
  else if (C == OpTypeArray)
    Count = constant(parameter(T, 1));
  else if (C == OpTypeCooperativeMatrixKHR)
    Count = constant(parameter(T, 2)) * constant(parameter(T, 3));
  else
    need(C == OpTypeRuntimeArray, "an index into what has no parts");
  need(C == OpTypeRuntimeArray || !IsKnown || Index < Count,
       "an index beyond the elements");
  return parameter(T, 0);
}

void ModuleChecker::checkMemory() {
  uint32_t Pointer = typeOf(Operands[0]);
  need(isPointer(Pointer), "through what is no pointer");
  uint32_t Class = parameter(Pointer, 0), Pointee = parameter(Pointer, 1);
  if (Op == OpAccessChain) {
    for (size_t I = 1; I < Operands.size(); ++I) {
      need(isScalarInt(typeOf(Operands[I])), "an index that is no integer");
      bool Known =
          code(Operands[I]) == OpConstant && width(typeOf(Operands[I])) == 32;
      Pointee = step(Pointee, Known, Known ? constant(Operands[I]) : 0);
    }
    need(isPointer(Type) && parameter(Type, 0) == Class &&
             parameter(Type, 1) == Pointee,
         "the result points to something else");
    return;
  }
  need(!Types.at(Pointee).Open, "of elements without an end");
  need(Class != StorageClassPhysicalStorageBuffer || Aligned,
       "a physical pointer without Aligned");
  if (Op == OpLoad)
    need(Type == Pointee, "the result is of another type");
  else
    need(typeOf(Operands[1]) == Pointee && Class != StorageClassInput &&
             Class != StorageClassPushConstant,
         "a value of another type, or to what is only read");
}

uint32_t ModuleChecker::extracted(uint32_t T, size_t FirstIndex) const {
  for (size_t I = FirstIndex; I < Operands.size(); ++I) {
    need(code(T) != OpTypeRuntimeArray, "a runtime array that is a value");
    T = step(T, true, Operands[I]);
  }
  return T;
}

void ModuleChecker::checkComposite() {
  if (Op == OpCompositeExtract) {
    need(extracted(typeOf(Operands[0]), 1) == Type,
         "the result is of another type");
    return;
  }
  if (Op == OpCompositeInsert) {
    need(typeOf(Operands[1]) == Type &&
             extracted(Type, 2) == typeOf(Operands[0]),
         "parts of other types");
    return;
  }
  uint32_t C = code(Type);
  if (C == OpTypeVector) {
    uint32_t Lanes = 0;
    for (uint32_t Part : Operands) {
      uint32_t T = typeOf(Part);
      need(component(T) == parameter(Type, 0) && lanes(T) != 0,
           "a part of another type");
      Lanes += lanes(T);
    }
    need(Lanes == lanes(Type), "not as many components as its type has");
    return;
  }
  checkParts();
}

void ModuleChecker::checkConversion() {
  uint32_t From = typeOf(Operands[0]);
  if (Op == OpBitcast) {
    auto Bits = [&](uint32_t T) { return lanes(T) * width(T); };
    need(Type != From && Bits(Type) && Bits(Type) == Bits(From),
         "not as many bits");
    return;
  }
  uint32_t Pointer = Op == OpConvertUToPtr ? Type : From;
  uint32_t Integer = Op == OpConvertUToPtr ? From : Type;
  need(isPointer(Pointer) &&
           parameter(Pointer, 0) == StorageClassPhysicalStorageBuffer &&
           isScalarInt(Integer) && width(Integer) == 64,
       "not between a physical pointer and 64 bits");
}

void ModuleChecker::checkMatrix() {
  auto Matrix = [&](uint32_t T, uint32_t Use) {
    need(code(T) == OpTypeCooperativeMatrixKHR, "not a cooperative matrix");
    need(Use > 2 || constant(parameter(T, 4)) == Use,
         "a matrix of another use");
    return T;
  };
  constexpr uint32_t anyUse = 3;
  switch (Op) {
  case OpCooperativeMatrixLoadKHR:
  case OpCooperativeMatrixStoreKHR: {
    bool Store = Op == OpCooperativeMatrixStoreKHR;
    Matrix(Store ? typeOf(Operands[1]) : Type, anyUse);
    uint32_t Pointer = typeOf(Operands[0]);
    need(isPointer(Pointer), "through what is no pointer");
    uint32_t Class = parameter(Pointer, 0), Pointee = parameter(Pointer, 1);
    need(Class == StorageClassWorkgroup ||
             Class == StorageClassPhysicalStorageBuffer,
         "neither shared memory nor a buffer");
    need((isInt(Pointee) || isAnyFloat(Pointee)) && lanes(Pointee),
         "a pointer to what is no number");
    need(Class == StorageClassWorkgroup || Aligned,
         "a physical pointer without Aligned");
    need(constant(Operands[Store ? 2 : 1]) <= 1, "unknown layout");
    need(isScalarInt(typeOf(Operands[Store ? 3 : 2])),
         "a stride that is no integer");
    return;
  }
  case OpCooperativeMatrixLengthKHR:
    need(isScalarInt(Type) && width(Type) == 32, "not an integer of 32 bits");
    Matrix(Operands[0], anyUse);
    return;
  default: {
    uint32_t A = Matrix(typeOf(Operands[0]), 0),
             B = Matrix(typeOf(Operands[1]), 1),
             C = Matrix(typeOf(Operands[2]), 2);
    need(Type == C, "the result is not of the accumulator's type");
    need(Operands.size() == 3 || Operands[3] <= 15, "unknown operands");
    auto Rows = [&](uint32_t T) { return constant(parameter(T, 2)); };
    auto Columns = [&](uint32_t T) { return constant(parameter(T, 3)); };
    need(Rows(A) == Rows(C) && Columns(A) == Rows(B) &&
             Columns(B) == Columns(C),
         "sizes that do not fit each other");
    for (const CoopShape &S : Requires.Coopmat)
      if (S.M == Rows(C) && S.N == Columns(C) && S.K == Rows(B))
        return;
    bad("a product of ", Rows(C), " x ", Columns(C), " x ", Rows(B),
        ", which the manifest's `requires` does not name");
  }
  }
}

// At most one order, of memory that GRETA's kernels share.
void ModuleChecker::checkSemantics(uint32_t Semantics) const {
  constexpr uint32_t orders = 0x1e,
                     memories = 0x40 | 0x80 | 0x100, // uniform to workgroup
      available = 0x2000 | 0x4000; // MakeAvailable, MakeVisible
  uint32_t Order = Semantics & orders;
  need(!(Semantics & ~(orders | memories | available)) &&
           !(Order & (Order - 1)) && (Order || !(Semantics & available)),
       "unknown memory semantics");
  if (Semantics & available)
    needCapability(CapabilityVulkanMemoryModel, "MakeAvailable");
}

void ModuleChecker::checkOther() {
  auto Operand = [&](size_t I) { return typeOf(Operands[I]); };
  switch (Op) {
  case OpSelect:
    need(isBool(Operand(0)) &&
             (lanes(Operand(0)) == 1 || sameShape(Operand(0), Type)),
         "a condition that is no bool");
    need(Operand(1) == Type && Operand(2) == Type && lanes(Type) &&
             !Types.at(Type).Open,
         "operands of other types");
    return;
  case OpExtInst: {
    need(code(Operands[0]) == OpExtInstImport, "of no imported set");
    const ExtendedInstruction *E = findExtended(Operands[1]);
    if (!E)
      bad("instruction ", Operands[1],
          " of GLSL.std.450 is none that GRETA's compiler writes");
    need(Operands.size() == 2u + E->Operands, "not as many operands as it has");
    need((E->Float ? isFloat(Type) : isInt(Type)) && lanes(Type),
         "the result is of another type");
    for (size_t I = 2; I < Operands.size(); ++I)
      need(Operand(I) == Type, "an operand of another type");
    return;
  }
  case OpControlBarrier:
    for (uint32_t I : {0, 1}) {
      uint32_t Scope = constant(Operands[I]);
      need(Scope == ScopeWorkgroup || Scope == ScopeSubgroup,
           "a scope other than workgroup and subgroup");
    }
    checkSemantics(constant(Operands[2]));
    return;
  case OpGroupNonUniformShuffle:
  case OpGroupNonUniformShuffleXor:
    needCapability(CapabilityGroupNonUniformShuffle, "a shuffle");
    need(constant(Operands[0]) == ScopeSubgroup,
         "a scope other than the subgroup");
    need(Operand(1) == Type && width(Type) && lanes(Type),
         "the value is of another type");
    need(isScalarInt(Operand(2)) && width(Operand(2)) == 32,
         "a lane that is no integer of 32 bits");
    return;
  default:
    bad("stands inside of a function");
  }
}

} // namespace greta::rt::vulkan
