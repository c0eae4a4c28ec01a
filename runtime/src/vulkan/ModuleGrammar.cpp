// ModuleGrammar.cpp: see ModuleGrammar.h. One row per instruction; what the
// compiler does not write has none.
#include "ModuleGrammar.h"

#include <spirv/unified1/GLSL.std.450.h>

namespace greta::rt::vulkan {
namespace {

using namespace spv;
using namespace spirv;

#define ROW(Op, Where, Operands, Types)                                        \
  {Op, #Op, Section::Where, Operands, Rule::Types}
#define FUNCTION(Op, Operands, Types) ROW(Op, Function, Operands, Types)

// These are in the order of the specification's sections.
constexpr Instruction instructions[] = {
    ROW(OpUndef, Any, "TR", Own),
    ROW(OpName, Name, "is", Own),
    ROW(OpMemberName, Name, "ins", Own),
    ROW(OpDecorate, Annotation, "inn*", Own),
    ROW(OpMemberDecorate, Annotation, "innn*", Own),
    ROW(OpExtension, Extension, "s", Own),
    ROW(OpExtInstImport, Import, "Rs", Own),
    FUNCTION(OpExtInst, "TRinv*", Own),
    ROW(OpMemoryModel, MemoryModel, "nn", Own),
    ROW(OpEntryPoint, EntryPoint, "nisi*", Own),
    ROW(OpExecutionMode, ExecutionMode, "inn*", Own),
    ROW(OpCapability, Capability, "n", Own),
    ROW(OpTypeVoid, Global, "R", Own),
    ROW(OpTypeBool, Global, "R", Own),
    ROW(OpTypeInt, Global, "Rnn", Own),
    ROW(OpTypeFloat, Global, "Rnn?", Own),
    ROW(OpTypeVector, Global, "Rtn", Own),
    ROW(OpTypeArray, Global, "Rtk", Own),
    ROW(OpTypeRuntimeArray, Global, "Rt", Own),
    ROW(OpTypeStruct, Global, "Rt*", Own),
    ROW(OpTypePointer, Global, "Rnt", Own),
    ROW(OpTypeFunction, Global, "Rt", Own),
    ROW(OpTypeCooperativeMatrixKHR, Global, "Rtkkkk", Own),
    ROW(OpConstantTrue, Global, "TR", Own),
    ROW(OpConstantFalse, Global, "TR", Own),
    ROW(OpConstant, Global, "TRnn?", Own),
    ROW(OpConstantComposite, Global, "TRk*", Own),
    ROW(OpConstantNull, Global, "TR", Own),
    ROW(OpVariable, Any, "TRn", Own),
    FUNCTION(OpFunction, "TRnt", Own),
    FUNCTION(OpFunctionEnd, "", Own),
    FUNCTION(OpLoad, "TRvm", Own),
    FUNCTION(OpStore, "vvm", Own),
    FUNCTION(OpAccessChain, "TRvv*", Own),
    FUNCTION(OpCompositeConstruct, "TRv*", Own),
    FUNCTION(OpCompositeExtract, "TRvnn*", Own),
    FUNCTION(OpCompositeInsert, "TRvvnn*", Own),
    FUNCTION(OpConvertFToU, "TRv", FloatToInt),
    FUNCTION(OpConvertFToS, "TRv", FloatToInt),
    FUNCTION(OpConvertSToF, "TRv", IntToFloat),
    FUNCTION(OpConvertUToF, "TRv", IntToFloat),
    FUNCTION(OpUConvert, "TRv", IntToInt),
    FUNCTION(OpSConvert, "TRv", IntToInt),
    FUNCTION(OpFConvert, "TRv", FloatToFloat),
    FUNCTION(OpConvertPtrToU, "TRv", Own),
    FUNCTION(OpConvertUToPtr, "TRv", Own),
    FUNCTION(OpBitcast, "TRv", Own),
    FUNCTION(OpSNegate, "TRv", IntArith),
    FUNCTION(OpFNegate, "TRv", FloatArith),
    FUNCTION(OpIAdd, "TRvv", IntArith),
    FUNCTION(OpFAdd, "TRvv", FloatArith),
    FUNCTION(OpISub, "TRvv", IntArith),
    FUNCTION(OpFSub, "TRvv", FloatArith),
    FUNCTION(OpIMul, "TRvv", IntArith),
    FUNCTION(OpFMul, "TRvv", FloatArith),
    FUNCTION(OpUDiv, "TRvv", IntArith),
    FUNCTION(OpSDiv, "TRvv", IntArith),
    FUNCTION(OpFDiv, "TRvv", FloatArith),
    FUNCTION(OpUMod, "TRvv", IntArith),
    FUNCTION(OpSRem, "TRvv", IntArith),
    FUNCTION(OpSMod, "TRvv", IntArith),
    FUNCTION(OpFRem, "TRvv", FloatArith),
    FUNCTION(OpFMod, "TRvv", FloatArith),
    FUNCTION(OpIsNan, "TRv", FloatTest),
    FUNCTION(OpIsInf, "TRv", FloatTest),
    FUNCTION(OpLogicalEqual, "TRvv", BoolArith),
    FUNCTION(OpLogicalNotEqual, "TRvv", BoolArith),
    FUNCTION(OpLogicalOr, "TRvv", BoolArith),
    FUNCTION(OpLogicalAnd, "TRvv", BoolArith),
    FUNCTION(OpLogicalNot, "TRv", BoolArith),
    FUNCTION(OpSelect, "TRvvv", Own),
    FUNCTION(OpIEqual, "TRvv", IntCompare),
    FUNCTION(OpINotEqual, "TRvv", IntCompare),
    FUNCTION(OpUGreaterThan, "TRvv", IntCompare),
    FUNCTION(OpSGreaterThan, "TRvv", IntCompare),
    FUNCTION(OpUGreaterThanEqual, "TRvv", IntCompare),
    FUNCTION(OpSGreaterThanEqual, "TRvv", IntCompare),
    FUNCTION(OpULessThan, "TRvv", IntCompare),
    FUNCTION(OpSLessThan, "TRvv", IntCompare),
    FUNCTION(OpULessThanEqual, "TRvv", IntCompare),
    FUNCTION(OpSLessThanEqual, "TRvv", IntCompare),
    FUNCTION(OpFOrdEqual, "TRvv", FloatCompare),
    FUNCTION(OpFUnordEqual, "TRvv", FloatCompare),
    FUNCTION(OpFOrdNotEqual, "TRvv", FloatCompare),
    FUNCTION(OpFUnordNotEqual, "TRvv", FloatCompare),
    FUNCTION(OpFOrdLessThan, "TRvv", FloatCompare),
    FUNCTION(OpFUnordLessThan, "TRvv", FloatCompare),
    FUNCTION(OpFOrdGreaterThan, "TRvv", FloatCompare),
    FUNCTION(OpFUnordGreaterThan, "TRvv", FloatCompare),
    FUNCTION(OpFOrdLessThanEqual, "TRvv", FloatCompare),
    FUNCTION(OpFUnordLessThanEqual, "TRvv", FloatCompare),
    FUNCTION(OpFOrdGreaterThanEqual, "TRvv", FloatCompare),
    FUNCTION(OpFUnordGreaterThanEqual, "TRvv", FloatCompare),
    FUNCTION(OpShiftRightLogical, "TRvv", Shift),
    FUNCTION(OpShiftRightArithmetic, "TRvv", Shift),
    FUNCTION(OpShiftLeftLogical, "TRvv", Shift),
    FUNCTION(OpBitwiseOr, "TRvv", IntArith),
    FUNCTION(OpBitwiseXor, "TRvv", IntArith),
    FUNCTION(OpBitwiseAnd, "TRvv", IntArith),
    FUNCTION(OpNot, "TRv", IntArith),
    FUNCTION(OpBitCount, "TRv", IntArith),
    FUNCTION(OpControlBarrier, "kkk", Own),
    FUNCTION(OpMemoryBarrier, "kk", Own),
    FUNCTION(OpAtomicExchange, "TRvkkv", Own),
    FUNCTION(OpAtomicCompareExchange, "TRvkkkvv", Own),
    FUNCTION(OpAtomicIAdd, "TRvkkv", Own),
    FUNCTION(OpAtomicSMin, "TRvkkv", Own),
    FUNCTION(OpAtomicUMin, "TRvkkv", Own),
    FUNCTION(OpAtomicSMax, "TRvkkv", Own),
    FUNCTION(OpAtomicUMax, "TRvkkv", Own),
    FUNCTION(OpAtomicAnd, "TRvkkv", Own),
    FUNCTION(OpAtomicOr, "TRvkkv", Own),
    FUNCTION(OpAtomicXor, "TRvkkv", Own),
    FUNCTION(OpAtomicFAddEXT, "TRvkkv", Own),
    FUNCTION(OpPhi, "TRP", Own),
    FUNCTION(OpLoopMerge, "lln", Own),
    FUNCTION(OpSelectionMerge, "ln", Own),
    FUNCTION(OpLabel, "R", Own),
    FUNCTION(OpBranch, "l", Own),
    FUNCTION(OpBranchConditional, "vll", Own),
    FUNCTION(OpReturn, "", Own),
    FUNCTION(OpGroupNonUniformShuffle, "TRkvv", Own),
    FUNCTION(OpGroupNonUniformShuffleXor, "TRkvv", Own),
    FUNCTION(OpCooperativeMatrixLoadKHR, "TRvkvm", Own),
    FUNCTION(OpCooperativeMatrixStoreKHR, "vvkvm", Own),
    FUNCTION(OpCooperativeMatrixMulAddKHR, "TRvvvn?", Own),
    FUNCTION(OpCooperativeMatrixLengthKHR, "TRt", Own),
};
#undef ROW
#undef FUNCTION

constexpr ExtendedInstruction extended[] = {
    {GLSLstd450RoundEven, 1, true}, {GLSLstd450Trunc, 1, true},
    {GLSLstd450FAbs, 1, true},      {GLSLstd450SAbs, 1, false},
    {GLSLstd450Floor, 1, true},     {GLSLstd450Ceil, 1, true},
    {GLSLstd450Sin, 1, true},       {GLSLstd450Cos, 1, true},
    {GLSLstd450Tanh, 1, true},      {GLSLstd450Pow, 2, true},
    {GLSLstd450Exp, 1, true},       {GLSLstd450Log, 1, true},
    {GLSLstd450Exp2, 1, true},      {GLSLstd450Log2, 1, true},
    {GLSLstd450Sqrt, 1, true},      {GLSLstd450InverseSqrt, 1, true},
    {GLSLstd450FMin, 2, true},      {GLSLstd450UMin, 2, false},
    {GLSLstd450SMin, 2, false},     {GLSLstd450FMax, 2, true},
    {GLSLstd450UMax, 2, false},     {GLSLstd450SMax, 2, false},
    {GLSLstd450Fma, 3, true},       {GLSLstd450NMin, 2, true},
    {GLSLstd450NMax, 2, true},
};

constexpr CapabilityRow capabilities[] = {
    {CapabilityShader, nullptr, nullptr},
    {CapabilityFloat16, "shaderFloat16", nullptr},
    {CapabilityFloat64, "shaderFloat64", nullptr},
    {CapabilityInt64, "shaderInt64", nullptr},
    {CapabilityInt64Atomics, "shaderBufferInt64Atomics", nullptr},
    {CapabilityAtomicFloat32AddEXT, "shaderBufferFloat32AtomicAdd", nullptr},
    {CapabilityInt16, "shaderInt16", nullptr},
    {CapabilityInt8, "shaderInt8", nullptr},
    {CapabilityGroupNonUniform, nullptr, "basic"},
    {CapabilityGroupNonUniformShuffle, nullptr, "shuffle"},
    {CapabilityStorageBuffer16BitAccess, "storageBuffer16BitAccess", nullptr},
    {CapabilityStorageBuffer8BitAccess, "storageBuffer8BitAccess", nullptr},
    {CapabilityRoundingModeRTE, "shaderRoundingModeRTEFloat16", nullptr},
    {CapabilityVulkanMemoryModel, "vulkanMemoryModel", nullptr},
    {CapabilityPhysicalStorageBufferAddresses, "bufferDeviceAddress", nullptr},
    {CapabilityCooperativeMatrixKHR, "cooperativeMatrix", nullptr},
    {CapabilityBFloat16TypeKHR, "shaderBFloat16Type", nullptr},
    {CapabilityBFloat16CooperativeMatrixKHR, "shaderBFloat16CooperativeMatrix",
     nullptr},
};

template <typename Table, typename Same>
auto find(const Table &Rows, Same IsIt) -> decltype(&Rows[0]) {
  for (const auto &Row : Rows)
    if (IsIt(Row))
      return &Row;
  return nullptr;
}

} // namespace

const Instruction *findInstruction(uint32_t Op) {
  return find(instructions, [&](auto &Row) { return Row.Op == Op; });
}

const ExtendedInstruction *findExtended(uint32_t Number) {
  return find(extended, [&](auto &Row) { return Row.Number == Number; });
}

const CapabilityRow *findCapability(uint32_t Number) {
  return find(capabilities, [&](auto &Row) { return Row.Number == Number; });
}

bool findExtension(const std::string &Name, const char *&Feature) {
  constexpr struct {
    const char *Name, *Feature;
  } Rows[] = {
      {"SPV_KHR_cooperative_matrix", "cooperativeMatrix"},
      {"SPV_KHR_bfloat16", "shaderBFloat16Type"},
      {"SPV_EXT_shader_atomic_float_add", "shaderBufferFloat32AtomicAdd"},
      {"SPV_KHR_physical_storage_buffer", nullptr},
      {"SPV_KHR_float_controls", nullptr},
      {"SPV_KHR_vulkan_memory_model", nullptr},
  };
  auto *Row = find(Rows, [&](auto &Row) { return Name == Row.Name; });
  Feature = Row ? Row->Feature : nullptr;
  return Row != nullptr;
}

unsigned builtInLanes(uint32_t BuiltIn) {
  switch (BuiltIn) {
  case BuiltInNumWorkgroups:
  case BuiltInWorkgroupId:
  case BuiltInLocalInvocationId:
  case BuiltInGlobalInvocationId:
    return 3;
  case BuiltInLocalInvocationIndex:
  case BuiltInSubgroupSize:
  case BuiltInNumSubgroups:
  case BuiltInSubgroupId:
  case BuiltInSubgroupLocalInvocationId:
    return 1;
  default:
    return 0;
  }
}

} // namespace greta::rt::vulkan
