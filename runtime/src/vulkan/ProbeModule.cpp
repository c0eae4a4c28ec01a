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

#include <cstring>

namespace greta::rt::vulkan {
namespace {

enum Op : uint16_t {
  OpExtension = 10,
  OpMemoryModel = 14,
  OpEntryPoint = 15,
  OpExecutionMode = 16,
  OpCapability = 17,
  OpTypeVoid = 19,
  OpTypeBool = 20,
  OpTypeInt = 21,
  OpTypeFloat = 22,
  OpTypeRuntimeArray = 29,
  OpTypeStruct = 30,
  OpTypePointer = 32,
  OpTypeFunction = 33,
  OpConstant = 43,
  OpFunction = 54,
  OpFunctionEnd = 56,
  OpVariable = 59,
  OpLoad = 61,
  OpStore = 62,
  OpAccessChain = 65,
  OpDecorate = 71,
  OpMemberDecorate = 72,
  OpConvertFToU = 109,
  OpUConvert = 113,
  OpFConvert = 115,
  OpBitcast = 124,
  OpIAdd = 128,
  OpIMul = 132,
  OpULessThan = 176,
  OpLogicalAnd = 167,
  OpLoopMerge = 246,
  OpLabel = 248,
  OpBranch = 249,
  OpBranchConditional = 250,
  OpReturn = 253,
  OpTypeCooperativeMatrixKHR = 4456,
  OpCooperativeMatrixLoadKHR = 4457,
  OpCooperativeMatrixLengthKHR = 4460,
};

enum Capability : uint32_t {
  Shader = 1,
  Float16 = 9,
  Int8 = 39,
  GroupNonUniform = 61,
  StorageBuffer16BitAccess = 4433,
  StorageBuffer8BitAccess = 4448,
  BFloat16TypeKHR = 5116,
  BFloat16CooperativeMatrixKHR = 5118,
  VulkanMemoryModel = 5345,
  PhysicalStorageBufferAddresses = 5347,
  CooperativeMatrixKHR = 6022,
};

enum StorageClass : uint32_t {
  Input = 1,
  Function = 7,
  PushConstant = 9,
  PhysicalStorageBuffer = 5349
};
enum Decoration : uint32_t {
  Block = 2,
  ArrayStride = 6,
  BuiltIn = 11,
  Offset = 35
};

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
  void op(Op Code, std::initializer_list<uint32_t> Operands) {
    Words.push_back(static_cast<uint32_t>(Operands.size() + 1) << 16 | Code);
    Words.insert(Words.end(), Operands);
  }
  // An instruction whose operands are words, a string, and words again.
  void opText(Op Code, std::initializer_list<uint32_t> Before, const char *Text,
              std::initializer_list<uint32_t> After) {
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

} // namespace

bool canProbe(const std::string &DType) { return find(DType) != nullptr; }

std::vector<uint32_t> probeModule(const ProbeMatrix &M, uint32_t Lanes,
                                  uint32_t Stride) {
  const Type &T = *find(M.DType);
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
    Counter,
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
  Writer W;
  W.Words = {0x07230203, 0x00010600, 0, Bound, 0};
  for (uint32_t C : {Shader, GroupNonUniform, PhysicalStorageBufferAddresses,
                     VulkanMemoryModel, CooperativeMatrixKHR})
    W.op(OpCapability, {C});
  if (T.Kind == Type::BFloat) {
    W.op(OpCapability, {BFloat16TypeKHR});
    W.op(OpCapability, {BFloat16CooperativeMatrixKHR});
  } else if (T.isFloat() && T.Bits == 16) {
    W.op(OpCapability, {Float16});
  }
  if (T.Bits == 16)
    W.op(OpCapability, {StorageBuffer16BitAccess});
  if (T.Bits == 8) {
    W.op(OpCapability, {Int8});
    W.op(OpCapability, {StorageBuffer8BitAccess});
  }
  W.opText(OpExtension, {}, "SPV_KHR_cooperative_matrix", {});
  if (T.Kind == Type::BFloat)
    W.opText(OpExtension, {}, "SPV_KHR_bfloat16", {});
  W.op(OpMemoryModel, {5348, 3}); // PhysicalStorageBuffer64, Vulkan
  W.opText(OpEntryPoint, {5, Main}, "probe", {Args, Lane});
  W.op(OpExecutionMode, {Main, 17, Lanes, 1, 1});

  W.op(OpDecorate, {Lane, BuiltIn, 41}); // SubgroupLocalInvocationId
  W.op(OpDecorate, {TInArray, ArrayStride, T.Bits / 8});
  W.op(OpDecorate, {TOutArray, ArrayStride, 4});
  for (uint32_t S : {TIn, TOut, TArgs})
    W.op(OpDecorate, {S, Block});
  for (uint32_t S : {TIn, TOut, TArgs})
    W.op(OpMemberDecorate, {S, 0, Offset, 0});
  W.op(OpMemberDecorate, {TArgs, 1, Offset, 8});

  W.op(OpTypeVoid, {TVoid});
  W.op(OpTypeFunction, {TMain, TVoid});
  W.op(OpTypeBool, {TBool});
  W.op(OpTypeInt, {TU32, 32, 0});
  uint32_t ElemType = TElem;
  if (T.Kind == Type::BFloat)
    W.op(OpTypeFloat, {TElem, 16, 0}); // BFloat16KHR
  else if (T.isFloat())
    W.op(OpTypeFloat, {TElem, T.Bits});
  else if (T.Kind == Type::Unsigned && T.Bits == 32)
    ElemType = TU32;
  else
    W.op(OpTypeInt, {TElem, T.Bits, T.Kind == Type::Signed});
  if (T.isFloat() && T.Bits != 32)
    W.op(OpTypeFloat, {TF32, 32});
  W.op(OpTypeRuntimeArray, {TInArray, ElemType});
  W.op(OpTypeRuntimeArray, {TOutArray, TU32});
  W.op(OpTypeStruct, {TIn, TInArray});
  W.op(OpTypeStruct, {TOut, TOutArray});
  W.op(OpTypePointer, {PIn, PhysicalStorageBuffer, TIn});
  W.op(OpTypePointer, {POut, PhysicalStorageBuffer, TOut});
  W.op(OpTypeStruct, {TArgs, PIn, POut});
  W.op(OpTypePointer, {PArgs, PushConstant, TArgs});
  W.op(OpTypePointer, {PInArray, PushConstant, PIn});
  W.op(OpTypePointer, {POutArray, PushConstant, POut});
  W.op(OpTypePointer, {PElemIn, PhysicalStorageBuffer, ElemType});
  W.op(OpTypePointer, {POutU32, PhysicalStorageBuffer, TU32});
  W.op(OpTypePointer, {PInput, Input, TU32});
  W.op(OpTypePointer, {PFnU32, Function, TU32});
  auto Constant = [&](uint32_t Id, uint32_t Value) {
    W.op(OpConstant, {TU32, Id, Value});
  };
  Constant(CUse, M.Use == "a" ? 0 : M.Use == "b" ? 1 : 2);
  Constant(CScope, 3); // Subgroup
  Constant(CRows, M.Rows);
  Constant(CCols, M.Cols);
  Constant(CStride, Stride);
  Constant(CZero, 0);
  Constant(COne, 1);
  W.op(OpTypeCooperativeMatrixKHR,
       {TMatrix, ElemType, CScope, CRows, CCols, CUse});
  W.op(OpTypePointer, {PMatrix, Function, TMatrix});
  W.op(OpTypePointer, {PElemFn, Function, ElemType});
  W.op(OpVariable, {PArgs, Args, PushConstant});
  W.op(OpVariable, {PInput, Lane, Input});

  W.op(OpFunction, {TVoid, Main, 0, TMain});
  W.op(OpLabel, {Entry});
  W.op(OpVariable, {PMatrix, Matrix, Function});
  W.op(OpVariable, {PFnU32, Counter, Function});
  W.op(OpAccessChain, {PInArray, InAddr, Args, CZero});
  W.op(OpLoad, {PIn, InPtr, InAddr});
  W.op(OpAccessChain, {PElemIn, I0, InPtr, CZero, CZero});
  W.op(OpCooperativeMatrixLoadKHR,
       {TMatrix, Loaded, I0, CZero /*RowMajor*/, CCols,
        2 | 32 /*Aligned, NonPrivatePointer*/, 16});
  W.op(OpStore, {Matrix, Loaded});
  W.op(OpAccessChain, {POutArray, OutAddr, Args, COne});
  W.op(OpLoad, {POut, OutPtr, OutAddr});
  W.op(OpCooperativeMatrixLengthKHR, {TU32, Length, TMatrix});
  W.op(OpAccessChain, {POutU32, LengthPtr, OutPtr, CZero, CZero});
  W.op(OpStore, {LengthPtr, Length, 2, 4});
  W.op(OpLoad, {TU32, LaneValue, Lane});
  W.op(OpIMul, {TU32, I2, LaneValue, CStride});
  W.op(OpIAdd, {TU32, LaneBase, I2, COne});
  W.op(OpStore, {Counter, CZero});
  W.op(OpBranch, {Header});
  W.op(OpLabel, {Header});
  W.op(OpLoopMerge, {Merge, Continue, 0});
  W.op(OpBranch, {Test});
  W.op(OpLabel, {Test});
  W.op(OpLoad, {TU32, I1, Counter});
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
    // i32 needs only another type; the values are small and not negative.
    if (T.Bits == 32)
      W.op(OpBitcast, {TU32, Value, Elem});
    else
      W.op(OpUConvert, {TU32, Value, Elem});
    Result = Value;
  }
  W.op(OpIAdd, {TU32, At, LaneBase, I1});
  W.op(OpAccessChain, {POutU32, Word, OutPtr, CZero, At});
  W.op(OpStore, {Word, Result, 2, 4});
  W.op(OpBranch, {Continue});
  W.op(OpLabel, {Continue});
  W.op(OpIAdd, {TU32, I3, I1, COne});
  W.op(OpStore, {Counter, I3});
  W.op(OpBranch, {Header});
  W.op(OpLabel, {Merge});
  W.op(OpReturn, {});
  W.op(OpFunctionEnd, {});
  return W.Words;
}

} // namespace greta::rt::vulkan
