// ModuleTest.cpp: which SPIR-V modules reach a driver. The fixture passes; each
// row changes one word of it, or leaves one instruction out, and is refused
// with what is wrong.
#include "Error.h"
#include "TestPackage.h"
#include "vulkan/Denormals.h"
#include "vulkan/ModuleCheck.h"
#include "vulkan/ModuleFlow.h"
#include "vulkan/Spirv.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace greta::rt;
using namespace greta::rt::vulkan;
using namespace greta_test;
using namespace spv;

namespace {

using Words = std::vector<uint32_t>;

Words words(const Bytes &Data) {
  Words W(Data.size() / 4);
  memcpy(W.data(), Data.data(), Data.size());
  return W;
}

// The word of the nth instruction with this opcode.
size_t find(const Words &W, uint32_t Op, int Nth) {
  for (size_t I = 5; I < W.size(); I += W[I] >> 16)
    if ((W[I] & 0xffff) == Op && Nth-- == 0)
      return I;
  throw std::runtime_error("no such instruction");
}

struct Kernel {
  KernelDecl K;
  Requirements Requires;
};

Kernel scale() {
  Kernel S;
  S.K.File = "objects/scale.spv";
  S.K.Entry = "scale";
  S.K.Block = {64, 1, 1};
  S.K.Args.resize(3);
  S.K.Args[2].Which = KernelArg::I32;
  S.Requires.Features = {"bufferDeviceAddress"};
  return S;
}

// The error of the check; "" when the module may pass.
std::string complaint(const Words &W, const Kernel &S = scale()) {
  Bytes Data(W.size() * 4);
  if (!W.empty())
    memcpy(Data.data(), W.data(), Data.size());
  try {
    checkModule(Data, S.K, S.Requires);
    return "";
  } catch (const Error &E) {
    EXPECT_EQ(E.code(), GRETA_ERROR_BAD_PACKAGE) << E.what();
    EXPECT_EQ(std::string(E.what()).find('\n'), std::string::npos);
    return E.what();
  }
}

void expectSays(const std::string &Got, const char *Says, const char *Where) {
  EXPECT_NE(Got.find(Says), std::string::npos)
      << Where << ": wanted '" << Says << "', got '" << Got << "'";
}

// The widths for which a module asks that denormals are kept.
std::vector<uint32_t> keptWidths(const Words &W) {
  std::vector<uint32_t> Widths;
  bool Has = false;
  for (size_t I = 5; I < W.size(); I += W[I] >> 16) {
    Has |=
        (W[I] & 0xffff) == OpCapability && W[I + 1] == CapabilityDenormPreserve;
    if ((W[I] & 0xffff) == OpExecutionMode &&
        W[I + 2] == ExecutionModeDenormPreserve)
      Widths.push_back(W[I + 3]);
  }
  EXPECT_EQ(Has, !Widths.empty());
  return Widths;
}

TEST(Module, KeepsDenormalsWhereTheDeviceDoes) {
  using Independence = VkShaderFloatControlsIndependence;
  using Widths = std::vector<uint32_t>;
  Words Original = words(fixture("scale.spv"));
  auto Kept = [&](Independence I, bool Has16, bool Has32, bool Has64) {
    VkPhysicalDeviceVulkan12Properties Device{};
    Device.denormBehaviorIndependence = I;
    Device.shaderDenormPreserveFloat16 = Has16;
    Device.shaderDenormPreserveFloat32 = Has32;
    Device.shaderDenormPreserveFloat64 = Has64;
    Words W = keepDenormals(Original, Device);
    Widths Result = keptWidths(W);
    EXPECT_EQ(W.size(),
              Original.size() + 4 * Result.size() + 2 * !Result.empty());
    std::sort(Result.begin(), Result.end());
    return Result;
  };
  auto All = VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL;
  auto Only32 = VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_32_BIT_ONLY;
  auto None = VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE;
  EXPECT_EQ(Kept(All, true, true, true), (Widths{16, 32, 64}));
  EXPECT_EQ(Kept(All, false, true, false), (Widths{32}));
  EXPECT_EQ(Kept(All, false, false, false), (Widths{}));
  EXPECT_EQ(Kept(Only32, true, true, false), (Widths{32}));
  EXPECT_EQ(Kept(Only32, true, false, true), (Widths{16, 64}));
  EXPECT_EQ(Kept(None, true, true, true), (Widths{16, 32, 64}));
  EXPECT_EQ(Kept(None, true, true, false), (Widths{}));
  VkPhysicalDeviceVulkan12Properties Nan{};
  Nan.shaderSignedZeroInfNanPreserveFloat64 = true;
  Words WithNan = keepDenormals(Original, Nan);
  size_t Mode = find(WithNan, OpExecutionMode, 0);
  EXPECT_EQ(WithNan[Mode + 2], uint32_t(ExecutionModeSignedZeroInfNanPreserve));
  EXPECT_EQ(WithNan[Mode + 3], 64u);
  EXPECT_EQ(WithNan[6], uint32_t(CapabilitySignedZeroInfNanPreserve));
  // Without the mode in its version a module stays what it is.
  Words Old = Original;
  Old[1] = 0x10300;
  VkPhysicalDeviceVulkan12Properties Device{};
  Device.shaderDenormPreserveFloat32 = true;
  EXPECT_EQ(keepDenormals(Old, Device), Old);
}

TEST(Module, TakesTheFixtures) {
  EXPECT_EQ(complaint(words(fixture("scale.spv"))), "");
  Kernel Subgroup = scale();
  Subgroup.K.Entry = "subgroup";
  Subgroup.Requires.SubgroupOps = {"basic"};
  EXPECT_EQ(complaint(words(fixture("subgroup.spv")), Subgroup), "");
  Words Without = words(fixture("subgroup.spv"));
  Without[find(Without, OpCapability, 2) + 1] = CapabilityShader;
  expectSays(complaint(Without, Subgroup), "a subgroup's built-in without", "");
}

TEST(Module, WritesNothingThatIsOnlyRead) {
  // The pointee of both buffers is the first structure, the arguments' the
  // second.
  Words Good = words(fixture("scale.spv"));
  auto With = [&](int Nth, uint32_t Member) {
    Words W = Good;
    size_t At = find(W, OpMemberDecorate, Nth);
    W.insert(W.begin() + long(At), {4u << 16 | OpMemberDecorate, W[At + 1],
                                    Member, DecorationNonWritable});
    return complaint(W);
  };
  EXPECT_EQ(With(1, 2), "");
  expectSays(With(1, 3), "NonWritable of no member", "");
  expectSays(With(0, 0), "to what is only read", "");
}

// In round one this one ended the process (of llvmpipe's compiler).
TEST(Module, OfSixtyFourBytes) {
  Words W = {MagicNumber, 0x10500, 0, 8, 0};
  auto Add = [&](uint32_t Op, std::initializer_list<uint32_t> Operands) {
    W.push_back(uint32_t(Operands.size() + 1) << 16 | Op);
    W.insert(W.end(), Operands);
  };
  Add(OpEntryPoint, {ExecutionModelGLCompute, 1, 0x6c616373, 0x65});
  Add(OpExecutionMode, {1, ExecutionModeLocalSize, 64, 1, 1});
  ASSERT_EQ(W.size() * 4, 64u);
  expectSays(complaint(W), "the entry point's function is not there", "");
}

TEST(Module, RefusesEachChangedWord) {
  const uint32_t None = UINT32_MAX; // leaves the instruction out
  // A word of the fixture: word `At` of the nth instruction of an opcode.
  const struct {
    uint32_t Op;
    int Nth;
    uint32_t At, Value;
    const char *Says;
  } Cases[] = {
      {OpCapability, 0, 0, 0 << 16 | OpCapability, "an instruction of 0 words"},
      {OpFunctionEnd, 0, 0, 9 << 16 | OpFunctionEnd, "9 words, 1 are left"},
      {OpReturn, 0, 0, 1 << 16 | OpKill, "opcode 252"},
      {OpReturn, 0, 0, 1 << 16 | OpUnreachable, "opcode 255"},
      {OpCapability, 0, 1, CapabilityKernel, "capability 6"},
      {OpCapability, 0, 1, CapabilityInt64, "needs shaderInt64"},
      {OpCapability, 1, None, 0, "without capability 5347"},
      {OpMemoryModel, 0, None, 0, "without a memory model"},
      {OpMemoryModel, 0, 2, MemoryModelOpenCL, "a memory model other than"},
      {OpEntryPoint, 0, None, 0, "of what is no entry point"},
      {OpEntryPoint, 0, 1, ExecutionModelFragment, "other than GLCompute"},
      {OpEntryPoint, 0, 3, 0x21212121, "no compute entry point 'scale'"},
      {OpEntryPoint, 0, 4, 0x21212165, "entry point 'scale', but 'scale!!!"},
      {OpEntryPoint, 0, 5, 1, "the interface"},
      {OpExecutionMode, 0, None, 0, "has no LocalSize"},
      {OpExecutionMode, 0, 3, 32, "LocalSize is 32x1x1"},
      {OpExecutionMode, 0, 2, ExecutionModeLocalSizeId, "execution mode 38"},
      {OpDecorate, 0, None, 0, "an input that is not built in"},
      {OpDecorate, 0, 3, BuiltInFragCoord, "a built-in"},
      {OpDecorate, 0, 3, BuiltInLocalInvocationIndex,
       "not its built-in's type"},
      {OpDecorate, 0, 1, 4000, "id 4000, the bound is 42"},
      {OpDecorate, 1, None, 0, "without offsets or strides"},
      {OpDecorate, 1, 3, 2, "without offsets or strides"},
      {OpMemberDecorate, 0, 2, 7, "an offset of member 7"},
      {OpMemberDecorate, 2, 4, 4, "without offsets or strides"},
      {OpMemberDecorate, 3, 4, 24, "push constant 2"},
      {OpTypeInt, 0, 2, 33, "a width other than"},
      {OpTypeInt, 0, 2, 64, "without capability 11"},
      {OpTypeFloat, 0, 2, 24, "a width other than"},
      {OpTypeFloat, 0, 2, 64, "64 bits without capability"},
      {OpTypeVector, 0, 3, 16, "not 2 to 4 components"},
      {OpTypeVector, 0, 2, 41, "not defined before its use"},
      {OpTypePointer, 0, 2, StorageClassImage, "a storage class"},
      {OpConstant, 0, 2, 0, "id 0, the bound"},
      {OpConstant, 0, 2, UINT32_MAX, "the bound"},
      {OpConstant, 1, 2, 1, "defined twice"},
      {OpVariable, 0, 3, StorageClassWorkgroup, "storage class"},
      {OpVariable, 1, None, 0, "not defined before its use"},
      {OpFunction, 0, 3, 16, "unknown function control"},
      {OpFunctionEnd, 0, None, 0, "function is not there"},
      {OpLabel, 0, None, 0, "stands outside of a block"},
      {OpAccessChain, 0, 4, 41, "not defined before its use"},
      {OpLoad, 2, 0, 6 << 16 | OpLoad, "unknown memory operands"},
      {OpLoad, 2, 0, 3 << 16 | OpLoad, "fewer words than operands"},
      {OpFMul, 0, 0, 6 << 16 | OpFMul, "more words than operands"},
      {OpLoad, 4, None, 0, "not defined before its use"},
      {OpSelectionMerge, 0, None, 0, "two successors and no merge block"},
      {OpBranchConditional, 0, None, 0, "a block inside a block"},
      {OpBranch, 0, None, 0, "a block inside a block"},
      {OpReturn, 0, None, 0, "a block without an end"},
  };
  Words Good = words(fixture("scale.spv"));
  for (const auto &C : Cases) {
    Words W = Good;
    size_t At = find(W, C.Op, C.Nth);
    if (C.At == None)
      W.erase(W.begin() + long(At), W.begin() + long(At + (W[At] >> 16)));
    else
      W[At + C.At] = C.Value;
    std::string Where = "opcode " + std::to_string(C.Op) + " word " +
                        std::to_string(C.At) + " = " + std::to_string(C.Value);
    expectSays(complaint(W), C.Says, Where.c_str());
  }
}

// Ids of the right kind in the wrong place: (instruction, operand) of the
// fixture takes the id that another instruction defines.
TEST(Module, RefusesWrongTypes) {
  const struct {
    uint32_t Op;
    int Nth;
    uint32_t At, FromOp;
    int FromNth;
    uint32_t FromAt;
    const char *Says;
  } Cases[] = {
      {OpFMul, 0, 3, OpConstant, 0, 2, "an operand of another type"},
      {OpFMul, 0, 1, OpTypeInt, 0, 1, "the result is no number with a point"},
      {OpFMul, 0, 1, OpConstant, 0, 2, "the result's type is none"},
      {OpFMul, 0, 3, OpTypeFloat, 0, 1, "is not a value"},
      {OpULessThan, 0, 1, OpTypeFloat, 0, 1, "not two integers to a bool"},
      {OpLoad, 0, 1, OpTypeFloat, 0, 1, "the result is of another type"},
      {OpLoad, 0, 3, OpConstant, 0, 2, "through what is no pointer"},
      {OpStore, 0, 1, OpAccessChain, 0, 2, "of another type, or to what is"},
      {OpStore, 0, 2, OpConstant, 0, 2, "of another type, or to what is"},
      {OpAccessChain, 1, 4, OpConstant, 3, 2, "an index that is no integer"},
      {OpAccessChain, 0, 4, OpLabel, 0, 1, "is not a value"},
      {OpBranchConditional, 0, 1, OpConstant, 0, 2, "a condition that is no"},
      {OpBranchConditional, 0, 2, OpTypeInt, 0, 1, "is not of this function"},
      {OpBranch, 0, 1, OpLabel, 0, 1, "a branch to the entry block"},
      {OpBranch, 0, 1, OpLabel, 1, 1, "a backward branch"},
      {OpSelectionMerge, 0, 1, OpLabel, 0, 1, "does not dominate its merge"},
      {OpFunction, 0, 4, OpTypeInt, 0, 1, "not of type void()"},
      {OpFunction, 0, 1, OpTypeInt, 0, 1, "not of type void()"},
      {OpTypeFunction, 0, 2, OpTypeFunction, 0, 1,
       "not defined before its use"},
      {OpTypeStruct, 0, 2, OpTypeVoid, 0, 1, "of a type without a size"},
      {OpFAdd, 0, 3, OpStore, 0, 2, "not defined before its use"},
      {OpTypePointer, 6, 3, OpTypePointer, 4, 1, "that are no addresses"},
  };
  Words Good = words(fixture("scale.spv"));
  for (const auto &C : Cases) {
    Words W = Good;
    W[find(W, C.Op, C.Nth) + C.At] =
        Good[find(Good, C.FromOp, C.FromNth) + C.FromAt];
    std::string Where =
        "opcode " + std::to_string(C.Op) + " word " + std::to_string(C.At);
    expectSays(complaint(W), C.Says, Where.c_str());
  }
}

// Push constants may be moved to memory (ArgumentBuffer.h), so pointers to them
// come from the variable alone.
TEST(Module, RefusesPointersThatAreNoAddresses) {
  for (uint32_t Op : {OpUndef, OpConstantNull}) {
    Words W = words(fixture("scale.spv"));
    uint32_t New = W[3]++;
    for (int Nth : {4, 6}) { // to push constants, to an input
      Words Made = W;
      uint32_t Type = W[find(W, OpTypePointer, Nth) + 1];
      uint32_t Value[] = {3 << 16 | Op, Type, New};
      Made.insert(Made.begin() + long(find(W, OpFunction, 0)), Value,
                  Value + 3);
      expectSays(complaint(Made), "a pointer that is no address", "");
    }
    uint32_t Physical[] = {3 << 16 | Op, W[find(W, OpTypePointer, 1) + 1], New};
    W.insert(W.begin() + long(find(W, OpFunction, 0)), Physical, Physical + 3);
    EXPECT_EQ(complaint(W), "");
  }
}

TEST(Module, RefusesEveryTruncation) {
  Words Good = words(fixture("scale.spv"));
  for (size_t N = 0; N < Good.size(); ++N)
    EXPECT_NE(complaint(Words(Good.begin(), Good.begin() + long(N))), "") << N;
  Bytes Odd = fixture("scale.spv");
  Odd.pop_back();
  Kernel S = scale();
  EXPECT_THROW(checkModule(Odd, S.K, S.Requires), Error);
}

TEST(Module, IsTheManifests) {
  Words Good = words(fixture("scale.spv"));
  Kernel S = scale();
  S.K.Args.pop_back();
  expectSays(complaint(Good, S), "3 push constants, the manifest has 2", "");
  S = scale();
  S.K.Args[2].Which = KernelArg::Arg;
  expectSays(complaint(Good, S), "push constant 2 is not the manifest's", "");
  S = scale();
  S.Requires.Features.clear();
  expectSays(complaint(Good, S), "needs bufferDeviceAddress", "");
  // Shared memory that the manifest does not know of.
  Words Shared = Good;
  uint32_t Bound = Shared[3];
  Shared[3] += 2;
  uint32_t F32 = Shared[find(Shared, OpTypeFloat, 0) + 1];
  Words More = {4 << 16 | OpTypePointer,
                Bound,
                StorageClassWorkgroup,
                F32,
                4 << 16 | OpVariable,
                Bound,
                Bound + 1,
                StorageClassWorkgroup};
  Shared.insert(Shared.begin() + long(find(Shared, OpFunction, 0)),
                More.begin(), More.end());
  size_t Entry = find(Shared, OpEntryPoint, 0);
  Shared.insert(Shared.begin() + long(Entry + (Shared[Entry] >> 16)),
                Bound + 1);
  Shared[Entry] += 1 << 16;
  expectSays(complaint(Shared), "4 bytes of shared memory, the manifest", "");
  Kernel Large = scale();
  Large.K.LdsBytes = 4;
  EXPECT_EQ(complaint(Shared, Large), "");
}

// llvmpipe's compiler takes values apart, element by element: one of 64 MiB
// ended the process, private memory of 1 MiB a lane took more than 20 s.
TEST(Module, RefusesLargeValues) {
  auto With = [](uint32_t Elements, bool Private) {
    Words W = words(fixture("scale.spv"));
    uint32_t U32 = W[find(W, OpTypeInt, 0) + 1],
             F32 = W[find(W, OpTypeFloat, 0) + 1], Count = W[3];
    W[3] += 4;
    Words Types = {4 << 16 | OpConstant,
                   U32,
                   Count,
                   Elements,
                   4 << 16 | OpTypeArray,
                   Count + 1,
                   F32,
                   Count,
                   4 << 16 | OpTypePointer,
                   Count + 2,
                   StorageClassFunction,
                   Count + 1};
    Words Null = {3 << 16 | OpConstantNull, Count + 1, Count + 3};
    Words Variable = {4 << 16 | OpVariable, Count + 2, Count + 3,
                      StorageClassFunction};
    Words &Own = Private ? Variable : Null;
    size_t Label = find(W, OpLabel, 0);
    if (Private)
      W.insert(W.begin() + long(Label) + 2, Own.begin(), Own.end());
    else
      Types.insert(Types.end(), Own.begin(), Own.end());
    W.insert(W.begin() + long(find(W, OpFunction, 0)), Types.begin(),
             Types.end());
    return complaint(W);
  };
  EXPECT_EQ(With(64, false), "");
  expectSays(With(65, false), "a value that is too large", "OpConstantNull");
  expectSays(With(1 << 24, false), "a value that is too large", "");
  EXPECT_EQ(With(1 << 14, true), "");
  expectSays(With((1 << 14) + 1, true), "too many variables", "OpVariable");
}

// Control flow by labels: entry first, {label, merge, continue, targets}.
TEST(Module, WantsStructuredControlFlow) {
  using Blocks = std::vector<ControlFlow::Block>;
  const struct {
    Blocks Given;
    const char *Says; // "" for none
  } Cases[] = {
      {{{1, 0, 0, {}}}, ""},
      {{{1, 4, 0, {2, 3}}, {2, 0, 0, {4}}, {3, 0, 0, {4}}, {4, 0, 0, {}}}, ""},
      {{{1, 0, 0, {2}}, {2, 4, 3, {3, 4}}, {3, 0, 0, {2}}, {4, 0, 0, {}}}, ""},
      {{{1, 0, 0, {2}}, {2, 3, 2, {2, 3}}, {3, 0, 0, {}}}, ""},
      // A break and a continue from a selection inside a loop.
      {{{1, 0, 0, {2}},
        {2, 6, 5, {3}},
        {3, 4, 0, {6, 4}},
        {4, 0, 0, {5}},
        {5, 0, 0, {2}},
        {6, 0, 0, {}}},
       ""},
      {{}, "without blocks"},
      {{{1, 0, 0, {9}}}, "block 9 is not of this function"},
      {{{1, 0, 0, {}}, {2, 0, 0, {}}}, "block 2 cannot be reached"},
      {{{1, 0, 0, {2}}, {2, 0, 0, {2}}}, "a backward branch"},
      {{{1, 4, 0, {2, 3}}, {2, 0, 0, {3}}, {3, 0, 0, {2, 4}}, {4, 0, 0, {}}},
       "a backward branch"},
      {{{6, 0, 0, {5, 4}},
        {5, 0, 0, {1}},
        {4, 0, 0, {2, 3}},
        {1, 0, 0, {2}},
        {2, 0, 0, {1, 3}},
        {3, 0, 0, {2}}},
       "two entries"},
      {{{1, 0, 0, {3}}, {2, 0, 0, {}}, {3, 0, 0, {2}}}, "stands before"},
      {{{1, 0, 0, {2}}, {2, 4, 3, {3, 4}}, {3, 0, 0, {4}}, {4, 0, 0, {}}},
       "0 backward branches"},
      {{{1, 4, 0, {2}}, {2, 4, 0, {4, 3}}, {3, 0, 0, {4}}, {4, 0, 0, {}}},
       "merge block of two headers"},
      {{{1, 2, 0, {2, 3}}, {2, 0, 0, {3}}, {3, 0, 0, {}}}, "past its header"},
      // Out of the inner selection past its merge block.
      {{{1, 5, 0, {2, 5}},
        {2, 4, 0, {3, 4}},
        {3, 0, 0, {5}},
        {4, 0, 0, {5}},
        {5, 0, 0, {}}},
       "past its merge block"},
  };
  for (const auto &C : Cases) {
    ControlFlow Flow;
    Flow.Blocks = C.Given;
    std::string Got = Flow.analyze();
    if (*C.Says)
      EXPECT_NE(Got.find(C.Says), std::string::npos) << C.Says << ": " << Got;
    else
      EXPECT_EQ(Got, "");
  }
}

} // namespace
