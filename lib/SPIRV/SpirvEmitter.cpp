//===- SpirvEmitter.cpp - one kernel to a SPIR-V binary -------------------===//
//
// The module is serialized as it is: no optimizer of SPIR-V runs over it, the
// drivers have their own and spirv-opt is known to break what comes here. For
// targets with number extrema FMin and FMax become NMin and NMax, which MLIR
// does not have.
//
//===----------------------------------------------------------------------===//

#include "greta/SPIRV/SpirvEmitter.h"
#include "GretaTile/GretaTile.h"
#include "greta/SPIRV/TileToSPIRV.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVDialect.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Target/SPIRV/Serialization.h"
#include <spirv/unified1/GLSL.std.450.h>

using namespace mlir;
using namespace greta;

using CapabilityName = std::pair<spirv::Capability, const char *>;

/// The members of VkPhysicalDevice*Features that allow capabilities; others
/// Vulkan 1.2 always has. RoundingModeRTE stands for the property that allows
/// it for f16, which is how it is used.
static constexpr CapabilityName features[] = {
    {spirv::Capability::PhysicalStorageBufferAddresses, "bufferDeviceAddress"},
    {spirv::Capability::Int64, "shaderInt64"},
    {spirv::Capability::Float64, "shaderFloat64"},
    {spirv::Capability::Int16, "shaderInt16"},
    {spirv::Capability::Int8, "shaderInt8"},
    {spirv::Capability::Float16, "shaderFloat16"},
    {spirv::Capability::RoundingModeRTE, "shaderRoundingModeRTEFloat16"},
    {spirv::Capability::StorageBuffer16BitAccess, "storageBuffer16BitAccess"},
    {spirv::Capability::StorageBuffer8BitAccess, "storageBuffer8BitAccess"},
    {spirv::Capability::VulkanMemoryModel, "vulkanMemoryModel"},
    {spirv::Capability::CooperativeMatrixKHR, "cooperativeMatrix"},
    {spirv::Capability::Int64Atomics, "shaderBufferInt64Atomics"},
    {spirv::Capability::AtomicFloat32AddEXT, "shaderBufferFloat32AtomicAdd"},
    {spirv::Capability::BFloat16TypeKHR, "shaderBFloat16Type"},
    {spirv::Capability::BFloat16CooperativeMatrixKHR,
     "shaderBFloat16CooperativeMatrix"}};

static constexpr CapabilityName subgroupOps[] = {
    {spirv::Capability::GroupNonUniform, "basic"},
    {spirv::Capability::GroupNonUniformShuffle, "shuffle"}};

static int64_t sharedBytesOf(spirv::ModuleOp module) {
  int64_t bytes = 0;
  for (auto variable : module.getOps<spirv::GlobalVariableOp>()) {
    auto pointer = cast<spirv::PointerType>(variable.getType());
    if (pointer.getStorageClass() == spirv::StorageClass::Workgroup)
      bytes +=
          *cast<spirv::SPIRVType>(pointer.getPointeeType()).getSizeInBytes();
  }
  return bytes;
}

/// Returns the layout that a row has for a matrix type; null: it has none.
static const FragmentLayout *findLayout(const TargetRow &row,
                                        tile::FragmentType fragment) {
  StringRef dtype = getDtypeName(fragment.getElementType());
  for (const MatrixInstruction &inst : row.matrix) {
    if (inst.isSwapped)
      continue;
    bool isA = fragment.getUse() == tile::FragmentUse::A;
    bool isB = fragment.getUse() == tile::FragmentUse::B;
    const FragmentLayout &layout = isA   ? inst.aLayout
                                   : isB ? inst.bLayout
                                         : inst.accLayout;
    if ((isA   ? inst.a
         : isB ? inst.b
               : inst.acc) == dtype &&
        fragment.getRows() == (isB ? inst.k : inst.m) &&
        fragment.getColumns() == (isA ? inst.k : inst.n) && layout.isKnown())
      return &layout;
  }
  return nullptr;
}

static bool operator==(const CoopMatrixShape &x, const CoopMatrixShape &y) {
  return std::tie(x.m, x.n, x.k, x.a, x.b, x.c, x.result) ==
         std::tie(y.m, y.n, y.k, y.a, y.b, y.c, y.result);
}

/// Both come from the same row of the target table, so the types say all.
static bool operator==(const CoopMatrixLayout &x, const CoopMatrixLayout &y) {
  return std::tie(x.use, x.dtype, x.rows, x.columns) ==
         std::tie(y.use, y.dtype, y.rows, y.columns);
}

template <typename List, typename T>
static void addNew(List &into, const T &one) {
  if (llvm::none_of(into, [&](const T &have) { return have == one; }))
    into.push_back(one);
}

/// Notes every shape of matrices that the kernel multiplies, and every matrix
/// type whose elements it reads or writes one by one. If such a type has no
/// known layout, this is an error.
static LogicalResult readMatrices(tile::FuncOp kernel, const TargetRow &row,
                                  Requirements &needs) {
  auto dtype = [](tile::FragmentType fragment) {
    return getDtypeName(fragment.getElementType()).str();
  };
  WalkResult walk = kernel.walk([&](Operation *op) -> WalkResult {
    tile::FragmentType named;
    if (auto product = dyn_cast<tile::MmaOp>(op)) {
      auto a = cast<tile::FragmentType>(product.getA().getType());
      auto b = cast<tile::FragmentType>(product.getB().getType());
      auto acc = cast<tile::FragmentType>(product.getAcc().getType());
      addNew(needs.coopmat, CoopMatrixShape{unsigned(acc.getRows()),
                                            unsigned(acc.getColumns()),
                                            unsigned(a.getColumns()), dtype(a),
                                            dtype(b), dtype(acc), dtype(acc)});
    } else if (auto elements = dyn_cast<tile::FragmentElementsOp>(op)) {
      named = elements.getValue().getType();
    } else if (auto elements = dyn_cast<tile::FragmentFromElementsOp>(op)) {
      named = elements.getResult().getType();
    }
    if (!named)
      return WalkResult::advance();
    const FragmentLayout *layout = findLayout(row, named);
    if (!layout)
      return op->emitOpError("names elements of ")
             << named << ", whose layout is not known for " << row.name
             << "; go through shared memory";
    addNew(needs.layouts,
           CoopMatrixLayout{stringifyFragmentUse(named.getUse()).str(),
                            dtype(named), unsigned(named.getRows()),
                            unsigned(named.getColumns()), *layout});
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

/// Replaces GLSL's FMin and FMax, whose result for NaN is not defined, by NMin
/// and NMax. Their result is the other operand, as in hardware and in
/// arith.maxnumf.
static void chooseNumbers(llvm::MutableArrayRef<uint32_t> words) {
  constexpr unsigned header = 5, number = 4; // of the instruction in its set
  for (size_t at = header; at < words.size(); at += words[at] >> 16) {
    if ((words[at] & 0xffff) != uint32_t(spirv::Opcode::OpExtInst))
      continue;
    uint32_t &instruction = words[at + number];
    if (instruction == GLSLstd450FMin)
      instruction = GLSLstd450NMin;
    else if (instruction == GLSLstd450FMax)
      instruction = GLSLstd450NMax;
  }
}

FailureOr<SpirvObject>
greta::emitSpirv(tile::FuncOp kernel, const TargetRow &row, Artifact artifact) {
  // Outside of a pass nobody has loaded what the conversion builds.
  kernel->getContext()->loadDialect<spirv::SPIRVDialect>();
  FailureOr<OwningOpRef<spirv::ModuleOp>> module =
      convertTileToSPIRV(kernel, row.driver);
  if (failed(module) || failed(verify(**module)))
    return failure();
  SpirvObject result;
  Requirements &requirements = result.requirements;
  auto addNames = [](auto &names, ArrayRef<CapabilityName> table,
                     spirv::Capability capability) {
    for (auto [known, name] : table)
      if (known == capability)
        names.push_back(name);
  };
  for (spirv::Capability capability :
       (*module)->getVceTriple()->getCapabilities()) {
    addNames(requirements.features, features, capability);
    addNames(requirements.subgroupOps, subgroupOps, capability);
  }
  if (failed(readMatrices(kernel, row, requirements)))
    return failure();
  if (!requirements.subgroupOps.empty() ||
      llvm::is_contained(requirements.features, "cooperativeMatrix"))
    requirements.subgroupSize = kernel.getNumLanes();
  requirements.sharedBytes = sharedBytesOf(**module);

  if (artifact == Artifact::Assembly) {
    llvm::raw_string_ostream stream(result.object);
    (*module)->print(stream);
    stream << '\n';
    return result;
  }
  SmallVector<uint32_t, 0> words;
  if (failed(spirv::serialize(**module, words)))
    return kernel.emitOpError("was translated, but not serialized, to SPIR-V");
  if (row.driver.hasNumberExtrema)
    chooseNumbers(words);
  result.object.assign(reinterpret_cast<const char *>(words.data()),
                       words.size() * sizeof(uint32_t));
  return result;
}

void greta::addRequirements(Requirements &all, const Requirements &more) {
  auto unite = [](auto &into, const auto &from) {
    for (const auto &one : from)
      addNew(into, one);
  };
  unite(all.features, more.features);
  unite(all.subgroupOps, more.subgroupOps);
  unite(all.coopmat, more.coopmat);
  unite(all.layouts, more.layouts);
  all.subgroupSize = std::max(all.subgroupSize, more.subgroupSize);
  all.sharedBytes = std::max(all.sharedBytes, more.sharedBytes);
}
