// ProbeModule.cpp: writes the probe as SPIR-V words. In GLSL:
//
//   layout(push_constant) uniform P { T *in; uint *out; };
//   coopmat<T, gl_ScopeSubgroup, ROWS, COLS, USE> m;
//   coopMatLoad(m, in, 0, COLS, RowMajor);
//   for (uint i = 0; i < m.length() && i < STRIDE; i++)
//     out[1 + gl_SubgroupInvocationID * STRIDE + i] = uint(m[i]);
//   out[0] = m.length();
//
// The matrix type is a parameter, so no fixed binary will do, and the runtime
// carries no shader compiler.
#include "ProbeModule.h"
#include "Spirv.h"

#include <cstring>

namespace greta::rt::vulkan {
namespace {

using namespace spv;
using namespace spirv;

struct Type {
  const char *Name;
  enum { Float, BFloat, Signed, Unsigned } Kind;
  uint32_t Bits;
  bool isFloat() const { return Kind <= BFloat; }
};
constexpr Type types[] = {{"f16", Type::Float, 16},   {"f32", Type::Float, 32},
                          {"bf16", Type::BFloat, 16}, {"i8", Type::Signed, 8},
                          {"u8", Type::Unsigned, 8},  {"i32", Type::Signed, 32},
                          {"u32", Type::Unsigned, 32}};

const Type *find(const std::string &Name) {
  for (const Type &T : types)
    if (Name == T.Name)
      return &T;
  return nullptr;
}

class Writer {
public:
  void op(uint32_t Code, std::initializer_list<uint32_t> Operands) {
    Words.push_back(static_cast<uint32_t>(Operands.size() + 1) << 16 | Code);
    Words.insert(Words.end(), Operands);
  }
  // Writes an instruction whose operands are words, a string, and words again.
  void opText(uint32_t Code, std::initializer_list<uint32_t> Before,
              const char *Text, std::initializer_list<uint32_t> After) {
    std::vector<uint32_t> Chars(strlen(Text) / 4 + 1);
    memcpy(Chars.data(), Text, strlen(Text));
    Words.push_back(
        static_cast<uint32_t>(Before.size() + Chars.size() + After.size() + 1)
            << 16 |
        Code);
    Words.insert(Words.end(), Before);
    Words.insert(Words.end(), Chars.begin(), Chars.end());
    Words.insert(Words.end(), After);
  }
  std::vector<uint32_t> Words;
};

// Numbers the module's results.
enum Id : uint32_t {
  None,
  Main,
  TVoid,
  TMain,
  TBool,
  TU32,
  TElem,
  TF32,
  TIn,
  TOut,
  TInArray,
  TOutArray,
  TArgs,
  PIn,
  POut,
  PArgs,
  PInArray,
  POutArray,
  PU32,
  PElemFn,
  PMatrix,
  TMatrix,
  Args,
  Lane,
  PInput,
  CUse,
  CScope,
  CRows,
  CCols,
  CStride,
  CZero,
  COne,
  CLayout,
  Entry,
  Matrix,
  LoopCounter,
  InAddr,
  OutAddr,
  InPtr,
  PElemIn,
  Loaded,
  Length,
  LengthPtr,
  LaneValue,
  LaneBase,
  Header,
  Test,
  Body,
  Continue,
  Merge,
  I0,
  InRange,
  InRoom,
  Go,
  I1,
  ElemPtr,
  Elem,
  Wide,
  Value,
  Word,
  At,
  OutPtr,
  I2,
  I3,
  POutU32,
  PFnU32,
  Bound
};

// Writes capabilities, entry point and decorations.
void writeHead(Writer &W, const Type &T, uint32_t Lanes) {
  for (uint32_t C :
       {uint32_t(CapabilityShader), uint32_t(CapabilityGroupNonUniform),
        uint32_t(CapabilityPhysicalStorageBufferAddresses),
        uint32_t(CapabilityVulkanMemoryModel), CapabilityCooperativeMatrixKHR})
    W.op(OpCapability, {C});
  if (T.Kind == Type::BFloat) {
    W.op(OpCapability, {CapabilityBFloat16TypeKHR});
    W.op(OpCapability, {CapabilityBFloat16CooperativeMatrixKHR});
  } else if (T.isFloat() && T.Bits == 16) {
    W.op(OpCapability, {CapabilityFloat16});
  }
  if (T.Bits == 16)
    W.op(OpCapability, {CapabilityStorageBuffer16BitAccess});
  if (T.Bits == 8) {
    W.op(OpCapability, {CapabilityInt8});
    W.op(OpCapability, {CapabilityStorageBuffer8BitAccess});
  }
  W.opText(OpExtension, {}, "SPV_KHR_cooperative_matrix", {});
  if (T.Kind == Type::BFloat)
    W.opText(OpExtension, {}, "SPV_KHR_bfloat16", {});
  W.op(OpMemoryModel,
       {AddressingModelPhysicalStorageBuffer64, MemoryModelVulkan});
  W.opText(OpEntryPoint, {ExecutionModelGLCompute, Main}, "probe",
           {Args, Lane});
  W.op(OpExecutionMode, {Main, ExecutionModeLocalSize, Lanes, 1, 1});

  W.op(OpDecorate, {Lane, DecorationBuiltIn, BuiltInSubgroupLocalInvocationId});
  W.op(OpDecorate, {TInArray, DecorationArrayStride, T.Bits / 8});
  W.op(OpDecorate, {TOutArray, DecorationArrayStride, 4});
  for (uint32_t S : {TIn, TOut, TArgs})
    W.op(OpDecorate, {S, DecorationBlock});
  for (uint32_t S : {TIn, TOut, TArgs})
    W.op(OpMemberDecorate, {S, 0, DecorationOffset, 0});
  W.op(OpMemberDecorate, {TArgs, 1, DecorationOffset, 8});
}

// Writes types, constants and variables. `ElemType` is an element's.
void writeTypes(Writer &W, const Type &T, uint32_t ElemType,
                const ProbeMatrix &M, uint32_t Stride) {
  W.op(OpTypeVoid, {TVoid});
  W.op(OpTypeFunction, {TMain, TVoid});
  W.op(OpTypeBool, {TBool});
  W.op(OpTypeInt, {TU32, 32, 0});
  if (T.Kind == Type::BFloat)
    W.op(OpTypeFloat, {TElem, 16, 0}); // BFloat16KHR
  else if (T.isFloat())
    W.op(OpTypeFloat, {TElem, T.Bits});
  else if (ElemType != TU32)
    W.op(OpTypeInt, {TElem, T.Bits, T.Kind == Type::Signed});
  if (T.isFloat() && T.Bits != 32)
    W.op(OpTypeFloat, {TF32, 32});
  W.op(OpTypeRuntimeArray, {TInArray, ElemType});
  W.op(OpTypeRuntimeArray, {TOutArray, TU32});
  W.op(OpTypeStruct, {TIn, TInArray});
  W.op(OpTypeStruct, {TOut, TOutArray});
  W.op(OpTypePointer, {PIn, StorageClassPhysicalStorageBuffer, TIn});
  W.op(OpTypePointer, {POut, StorageClassPhysicalStorageBuffer, TOut});
  W.op(OpTypeStruct, {TArgs, PIn, POut});
  W.op(OpTypePointer, {PArgs, StorageClassPushConstant, TArgs});
  W.op(OpTypePointer, {PInArray, StorageClassPushConstant, PIn});
  W.op(OpTypePointer, {POutArray, StorageClassPushConstant, POut});
  W.op(OpTypePointer, {PElemIn, StorageClassPhysicalStorageBuffer, ElemType});
  W.op(OpTypePointer, {POutU32, StorageClassPhysicalStorageBuffer, TU32});
  W.op(OpTypePointer, {PInput, StorageClassInput, TU32});
  W.op(OpTypePointer, {PFnU32, StorageClassFunction, TU32});
  auto Constant = [&](uint32_t Id, uint32_t Value) {
    W.op(OpConstant, {TU32, Id, Value});
  };
  Constant(CUse, M.Use == "a" ? 0 : M.Use == "b" ? 1 : 2);
  Constant(CScope, ScopeSubgroup);
  Constant(CRows, M.Rows);
  Constant(CCols, M.Cols);
  Constant(CStride, Stride);
  Constant(CZero, 0);
  Constant(COne, 1);
  W.op(OpTypeCooperativeMatrixKHR,
       {TMatrix, ElemType, CScope, CRows, CCols, CUse});
  W.op(OpTypePointer, {PMatrix, StorageClassFunction, TMatrix});
  W.op(OpTypePointer, {PElemFn, StorageClassFunction, ElemType});
  W.op(OpVariable, {PArgs, Args, StorageClassPushConstant});
  W.op(OpVariable, {PInput, Lane, StorageClassInput});
}

// Writes the function up to the loop, with the matrix's load and length.
void writeLoad(Writer &W) {
  W.op(OpFunction, {TVoid, Main, 0, TMain});
  W.op(OpLabel, {Entry});
  W.op(OpVariable, {PMatrix, Matrix, StorageClassFunction});
  W.op(OpVariable, {PFnU32, LoopCounter, StorageClassFunction});
  W.op(OpAccessChain, {PInArray, InAddr, Args, CZero});
  W.op(OpLoad, {PIn, InPtr, InAddr});
  W.op(OpAccessChain, {PElemIn, I0, InPtr, CZero, CZero});
  W.op(OpCooperativeMatrixLoadKHR,
       {TMatrix, Loaded, I0, CZero /*RowMajor*/, CCols,
        MemoryAccessAlignedMask | MemoryAccessNonPrivatePointerMask, 16});
  W.op(OpStore, {Matrix, Loaded});
  W.op(OpAccessChain, {POutArray, OutAddr, Args, COne});
  W.op(OpLoad, {POut, OutPtr, OutAddr});
  W.op(OpCooperativeMatrixLengthKHR, {TU32, Length, TMatrix});
  W.op(OpAccessChain, {POutU32, LengthPtr, OutPtr, CZero, CZero});
  W.op(OpStore, {LengthPtr, Length, MemoryAccessAlignedMask, 4});
  W.op(OpLoad, {TU32, LaneValue, Lane});
  W.op(OpIMul, {TU32, I2, LaneValue, CStride});
  W.op(OpIAdd, {TU32, LaneBase, I2, COne});
}

// Writes the loop over a lane's elements, and the function's end.
void writeLoop(Writer &W, const Type &T, uint32_t ElemType) {
  W.op(OpStore, {LoopCounter, CZero});
  W.op(OpBranch, {Header});
  W.op(OpLabel, {Header});
  W.op(OpLoopMerge, {Merge, Continue, 0});
  W.op(OpBranch, {Test});
  W.op(OpLabel, {Test});
  W.op(OpLoad, {TU32, I1, LoopCounter});
  W.op(OpULessThan, {TBool, InRange, I1, Length});
  W.op(OpULessThan, {TBool, InRoom, I1, CStride});
  W.op(OpLogicalAnd, {TBool, Go, InRange, InRoom});
  W.op(OpBranchConditional, {Go, Body, Merge});
  W.op(OpLabel, {Body});
  W.op(OpAccessChain, {PElemFn, ElemPtr, Matrix, I1});
  W.op(OpLoad, {ElemType, Elem, ElemPtr});
  uint32_t Result = Elem;
  if (T.isFloat()) {
    if (T.Bits != 32)
      W.op(OpFConvert, {TF32, Wide, Elem});
    W.op(OpConvertFToU, {TU32, Value, T.Bits != 32 ? Wide : Elem});
    Result = Value;
  } else if (ElemType != TU32) {
    // i32 needs only another type, as the values are small and not negative.
    if (T.Bits == 32)
      W.op(OpBitcast, {TU32, Value, Elem});
    else
      W.op(OpUConvert, {TU32, Value, Elem});
    Result = Value;
  }
  W.op(OpIAdd, {TU32, At, LaneBase, I1});
  W.op(OpAccessChain, {POutU32, Word, OutPtr, CZero, At});
  W.op(OpStore, {Word, Result, MemoryAccessAlignedMask, 4});
  W.op(OpBranch, {Continue});
  W.op(OpLabel, {Continue});
  W.op(OpIAdd, {TU32, I3, I1, COne});
  W.op(OpStore, {LoopCounter, I3});
  W.op(OpBranch, {Header});
  W.op(OpLabel, {Merge});
  W.op(OpReturn, {});
  W.op(OpFunctionEnd, {});
}

} // namespace

bool canProbe(const std::string &DType) { return find(DType) != nullptr; }

std::vector<uint32_t> probeModule(const ProbeMatrix &M, uint32_t Lanes,
                                  uint32_t Stride) {
  const Type &T = *find(M.DType);
  uint32_t ElemType = T.Kind == Type::Unsigned && T.Bits == 32 ? TU32 : TElem;
  Writer W;
  W.Words = {MagicNumber, 0x00010600, 0, Bound, 0};
  writeHead(W, T, Lanes);
  writeTypes(W, T, ElemType, M, Stride);
  writeLoad(W);
  writeLoop(W, T, ElemType);
  return W.Words;
}

} // namespace greta::rt::vulkan
