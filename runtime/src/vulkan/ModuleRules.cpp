// ModuleRules.cpp: what the instructions of a function may do with the types of
// their operands.
#include "ModuleChecker.h"

namespace greta::rt::vulkan {
using namespace spv;
using namespace spirv;

// Without a capability, 8- and 16-bit types may only be moved and converted to
// others of their kind.
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

// Checks the instruction's types by its row; returns false if it has rules of
// its own.
bool ModuleChecker::checkTypes() const {
  auto Operand = [&](size_t I) { return typeOf(Operands[I]); };
  size_t N = Operands.size();
  switch (Row->Types) {
  case Rule::FloatArith:
    need(isFloat(Type), "the result is no number with a point");
    for (size_t I = 0; I < N; ++I)
      need(Operand(I) == Type, "an operand of another type");
    return true;
  case Rule::BoolArith:
    need(isBool(Type), "the result is no bool");
    for (size_t I = 0; I < N; ++I)
      need(Operand(I) == Type, "an operand of another type");
    return true;
  case Rule::IntArith:
    need(isInt(Type), "the result is no integer");
    for (size_t I = 0; I < N; ++I)
      need(isInt(Operand(I)) && sameShape(Operand(I), Type) &&
               width(Operand(I)) == width(Type),
           "an operand of another type");
    return true;
  case Rule::Shift:
    need(isInt(Type) && isInt(Operand(0)) && isInt(Operand(1)) &&
             sameShape(Operand(0), Type) && sameShape(Operand(1), Type) &&
             width(Operand(0)) == width(Type),
         "not integers");
    return true;
  case Rule::IntCompare:
    need(isBool(Type) && isInt(Operand(0)) && isInt(Operand(1)) &&
             width(Operand(0)) == width(Operand(1)) &&
             sameShape(Operand(0), Type) && sameShape(Operand(1), Type),
         "not two integers to a bool");
    return true;
  case Rule::FloatCompare:
    need(isBool(Type) && isFloat(Operand(0)) && Operand(0) == Operand(1) &&
             sameShape(Operand(0), Type),
         "not two numbers with a point to a bool");
    return true;
  case Rule::FloatTest:
    need(isBool(Type) && isFloat(Operand(0)) && sameShape(Operand(0), Type),
         "not a number with a point to a bool");
    return true;
  case Rule::FloatToInt:
    need(isInt(Type) && isAnyFloat(Operand(0)) && sameShape(Operand(0), Type),
         "not a number with a point to an integer");
    return true;
  case Rule::IntToFloat:
    need(isAnyFloat(Type) && isInt(Operand(0)) && sameShape(Operand(0), Type),
         "not an integer to a number with a point");
    return true;
  case Rule::IntToInt:
    need(isInt(Type) && isInt(Operand(0)) && sameShape(Operand(0), Type) &&
             width(Operand(0)) != width(Type),
         "not an integer to one of another width");
    return true;
  case Rule::FloatToFloat:
    need(isAnyFloat(Type) && isAnyFloat(Operand(0)) &&
             sameShape(Operand(0), Type) &&
             component(Operand(0)) != component(Type),
         "not a number with a point to one of another type");
    return true;
  case Rule::Own:
    break;
  }
  return false;
}

void ModuleChecker::checkRule() {
  bool Unsigned = Op == OpUConvert || Op == OpUDiv || Op == OpUMod;
  need(!Unsigned || (isInt(Type) && !parameter(component(Type), 1)),
       "the result is no unsigned integer");
  if (Type) {
    checkArithmetic(Type);
    checkValueSize();
  }
  if (checkTypes())
    return;
  switch (Op) {
  case OpUndef:
    return checkConstant();
  case OpLoad:
  case OpStore:
  case OpAccessChain:
    return checkMemory();
  case OpAtomicExchange:
  case OpAtomicCompareExchange:
  case OpAtomicIAdd:
  case OpAtomicSMin:
  case OpAtomicUMin:
  case OpAtomicSMax:
  case OpAtomicUMax:
  case OpAtomicAnd:
  case OpAtomicOr:
  case OpAtomicXor:
  case OpAtomicFAddEXT:
    return checkAtomic();
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

// Returns the type of a part. A known index has to lie inside.
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
      auto Found = Decorated.find(Pointee);
      if (Known && Found != Decorated.end() &&
          Found->second.Readonly.count(constant(Operands[I])))
        ReadonlyPointers.insert(Result);
      Pointee = step(Pointee, Known, Known ? constant(Operands[I]) : 0);
    }
    if (ReadonlyPointers.count(Operands[0]))
      ReadonlyPointers.insert(Result);
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
             Class != StorageClassPushConstant &&
             !ReadonlyPointers.count(Operands[0]),
         "a value of another type, or to what is only read");
}

// Atomics have 32 or 64 bits and lie in buffers; barriers order memory.
void ModuleChecker::checkAtomic() {
  uint32_t Pointer = typeOf(Operands[0]);
  need(isPointer(Pointer) &&
           (parameter(Pointer, 0) == StorageClassPhysicalStorageBuffer ||
            parameter(Pointer, 0) == StorageClassWorkgroup) &&
           parameter(Pointer, 1) == Type &&
           !ReadonlyPointers.count(Operands[0]),
       "through no pointer to the result's type in memory that is written");
  if (Op == OpAtomicFAddEXT) {
    needCapability(CapabilityAtomicFloat32AddEXT, "an addition of floats");
    need(isFloat(Type) && width(Type) == 32 && lanes(Type) == 1,
         "not of floats of 32 bits");
  } else {
    need(isScalarInt(Type) && (width(Type) == 32 || width(Type) == 64),
         "not of integers of 32 or 64 bits");
    if (width(Type) == 64)
      needCapability(CapabilityInt64Atomics, "an atomic of 64 bits");
  }
  checkScope(constant(Operands[1]));
  size_t FirstValue = Op == OpAtomicCompareExchange ? 4 : 3;
  for (size_t I = 2; I < FirstValue; ++I)
    need(constant(Operands[I]) == MemorySemanticsMaskNone, "memory semantics");
  for (size_t I = FirstValue; I < Operands.size(); ++I)
    need(typeOf(Operands[I]) == Type, "a value of another type");
}

// Accepts the scopes that synchronise with other workgroups.
void ModuleChecker::checkScope(uint32_t Scope) const {
  need(Scope == ScopeDevice || Scope == ScopeQueueFamily ||
           Scope == ScopeWorkgroup,
       "a scope other than device, queue family and workgroup");
  if (Scope == ScopeQueueFamily)
    needCapability(CapabilityVulkanMemoryModel, "the queue family's scope");
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
    need(!Store || !ReadonlyPointers.count(Operands[0]),
         "to what is only read");
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

// Accepts at most one order, of memory that GRETA's kernels share.
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
             !Types.at(Type).Open && !isLogicalPointer(Type),
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
  case OpMemoryBarrier:
    checkScope(constant(Operands[0]));
    checkSemantics(constant(Operands[1]));
    return;
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
