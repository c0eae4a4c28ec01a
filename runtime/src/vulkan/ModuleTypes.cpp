// ModuleTypes.cpp: types, constants and variables of ModuleCheck.h's modules.
#include "ModuleChecker.h"

#include <algorithm>

namespace greta::rt::vulkan {
using namespace spv;
using namespace spirv;

namespace {
constexpr unsigned maxDepth = 8;            // of nested types
constexpr uint64_t maxTypeBytes = 1u << 30; // bytes of one type
// Drivers take values apart into their elements, and private memory times the
// lanes of a subgroup; the compiler writes vectors, and no private memory.
constexpr uint64_t maxValueBytes = 256, maxFunctionBytes = 1u << 16;
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

// Returns the element type of a vector or matrix, else the type itself.
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

bool ModuleChecker::isLogicalPointer(uint32_t T) const {
  return isPointer(T) && parameter(T, 0) != StorageClassPhysicalStorageBuffer;
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

void ModuleChecker::checkIntType() const {
  need(Operands[1] <= 1, "a sign that is neither 0 nor 1");
  if (Operands[0] == 8 && !Capabilities.count(CapabilityInt8))
    needCapability(CapabilityStorageBuffer8BitAccess, "8 bits");
  else if (Operands[0] == 16 && !Capabilities.count(CapabilityInt16))
    needCapability(CapabilityStorageBuffer16BitAccess, "16 bits");
  else if (Operands[0] == 64)
    needCapability(CapabilityInt64, "64 bits");
  else
    need(Operands[0] == 8 || Operands[0] == 16 || Operands[0] == 32,
         "a width other than 8, 16, 32 or 64");
}

void ModuleChecker::checkFloatType() const {
  if (Operands.size() == 2) {
    need(Operands[0] == 16 && Operands[1] == 0, "an unknown encoding");
    needCapability(CapabilityBFloat16TypeKHR, "bfloat16");
  } else if (Operands[0] == 16 && !Capabilities.count(CapabilityFloat16)) {
    needCapability(CapabilityStorageBuffer16BitAccess, "16 bits");
  } else if (Operands[0] == 64) {
    needCapability(CapabilityFloat64, "64 bits");
  } else {
    need(Operands[0] == 16 || Operands[0] == 32,
         "a width other than 16, 32 or 64");
  }
}

const ModuleChecker::TypeFacts &ModuleChecker::holds(TypeFacts &F,
                                                     uint32_t Type) const {
  const TypeFacts &Element = Types.at(Type);
  need(Element.Size, "of a type without a size");
  need(!isLogicalPointer(Type), "of pointers that are no addresses");
  F.Depth = std::max(F.Depth, Element.Depth + 1);
  F.Laid &= Element.Laid;
  return Element;
}

ModuleChecker::TypeFacts
ModuleChecker::checkStructType(const Decorations &D) const {
  TypeFacts F;
  need(!Operands.empty(), "without members");
  for (size_t I = 0; I < Operands.size(); ++I) {
    const TypeFacts &Member = holds(F, Operands[I]);
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
  return F;
}

ModuleChecker::TypeFacts ModuleChecker::checkPointerType() const {
  uint32_t Class = Operands[0];
  TypeFacts F;
  const TypeFacts &Pointee = holds(F, Operands[1]);
  bool Explicit = Class == StorageClassPushConstant ||
                  Class == StorageClassPhysicalStorageBuffer;
  need(Explicit || Class == StorageClassInput ||
           Class == StorageClassWorkgroup || Class == StorageClassFunction,
       "a storage class that GRETA's compiler does not use");
  need(!Explicit || Pointee.Laid, "to a type without offsets or strides");
  need(!Pointee.Open || Class == StorageClassPhysicalStorageBuffer,
       "to elements without an end");
  return {8, 1, true, false};
}

ModuleChecker::TypeFacts ModuleChecker::checkMatrixType() const {
  needCapability(CapabilityCooperativeMatrixKHR, "a cooperative matrix");
  uint32_t C = code(Operands[0]);
  need(C == OpTypeInt || C == OpTypeFloat, "of what is no number");
  if (C == OpTypeFloat && count(Operands[0]) == 4)
    needCapability(CapabilityBFloat16CooperativeMatrixKHR, "of bfloat16");
  need(constant(Operands[1]) == ScopeSubgroup,
       "a scope other than the subgroup");
  checkMatrixSize();
  TypeFacts F;
  F.Size = holds(F, Operands[0]).Size * constant(Operands[2]) *
           constant(Operands[3]);
  F.Laid = false;
  return F;
}

void ModuleChecker::checkTypeInstruction() {
  TypeFacts F;
  auto Found = Decorated.find(Result);
  const Decorations &D =
      Found == Decorated.end() ? Decorations() : Found->second;
  switch (Op) {
  case OpTypeVoid:
  case OpTypeFunction:
    break;
  case OpTypeBool:
    F.Size = 4;
    F.Laid = false;
    break;
  case OpTypeInt:
    F.Size = Operands[0] / 8;
    checkIntType();
    break;
  case OpTypeFloat:
    F.Size = Operands[0] / 8;
    checkFloatType();
    break;
  case OpTypeVector: {
    uint32_t C = code(Operands[0]);
    need(C == OpTypeInt || C == OpTypeFloat || C == OpTypeBool,
         "of what is no scalar");
    need(Operands[1] >= 2 && Operands[1] <= 4, "not 2 to 4 components");
    F.Size = holds(F, Operands[0]).Size * Operands[1];
    break;
  }
  case OpTypeArray: {
    const TypeFacts &Element = holds(F, Operands[0]);
    uint64_t Count = constant(Operands[1]);
    need(Count && !Element.Open, "no elements, or elements without an end");
    F.Laid &= D.Stride >= Element.Size;
    F.Size = std::max<uint64_t>(D.Stride, Element.Size) * Count;
    break;
  }
  case OpTypeRuntimeArray:
    need(!holds(F, Operands[0]).Open, "elements without an end");
    F.Laid &= D.Stride >= Types.at(Operands[0]).Size;
    F.Size = std::max<uint64_t>(D.Stride, 1);
    F.Open = true;
    break;
  case OpTypeStruct:
    F = checkStructType(D);
    break;
  case OpTypePointer:
    F = checkPointerType();
    break;
  case OpTypeCooperativeMatrixKHR:
    F = checkMatrixType();
    break;
  default:
    bad("stands outside of a function");
  }
  need(F.Depth <= maxDepth, "types nested too deeply");
  need(F.Size <= maxTypeBytes, "too large");
  Types[Result] = F;
}

// Accepts only sizes of matrix products that the manifest names.
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

// Refuses large values: arrays and structures are for memory, and a kernel
// needs no large value.
void ModuleChecker::checkValueSize() const {
  need(Types.at(Type).Size <= maxValueBytes ||
           code(Type) == OpTypeCooperativeMatrixKHR,
       "a value that is too large");
}

void ModuleChecker::checkConstant() {
  uint32_t C = code(Type);
  const TypeFacts &F = Types.at(Type);
  need(F.Size && !F.Open, "of a type that has no values");
  need(!isLogicalPointer(Type), "a pointer that is no address");
  checkValueSize();
  switch (Op) {
  case OpConstantTrue:
  case OpConstantFalse:
    need(C == OpTypeBool, "not a bool");
    return;
  case OpConstant:
    need(C == OpTypeInt || C == OpTypeFloat, "not a number");
    need(Operands.size() == (F.Size > 4 ? 2 : 1),
         "not as many words as its type has");
    // The bits of the word beyond the type are zero, or the sign.
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

// There is one operand for each part of a value of the result's type, or one
// for all elements of a cooperative matrix.
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

} // namespace greta::rt::vulkan
