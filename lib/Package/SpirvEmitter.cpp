//===- SpirvEmitter.cpp - one kernel to a SPIR-V binary -------------------===//
//
// The module is serialized as it is: no optimizer of SPIR-V runs over it, the
// drivers have their own and spirv-opt is known to break what comes here.
//
//===----------------------------------------------------------------------===//

#include "SpirvEmitter.h"
#include "GretaTile/GretaTile.h"
#include "greta/Conversion/TileToSPIRV.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVDialect.h"
#include "mlir/Target/SPIRV/Serialization.h"

using namespace mlir;
using namespace greta;

/// The member of VkPhysicalDevice*Features that allows a capability, null
/// where Vulkan 1.2 always does. RoundingModeRTE stands for the property that
/// allows it for f16, which is how it is used.
static const char *featureOf(spirv::Capability capability) {
  switch (capability) {
  case spirv::Capability::PhysicalStorageBufferAddresses:
    return "bufferDeviceAddress";
  case spirv::Capability::Int64:
    return "shaderInt64";
  case spirv::Capability::Int16:
    return "shaderInt16";
  case spirv::Capability::Int8:
    return "shaderInt8";
  case spirv::Capability::Float16:
    return "shaderFloat16";
  case spirv::Capability::RoundingModeRTE:
    return "shaderRoundingModeRTEFloat16";
  case spirv::Capability::StorageBuffer16BitAccess:
    return "storageBuffer16BitAccess";
  case spirv::Capability::StorageBuffer8BitAccess:
    return "storageBuffer8BitAccess";
  default:
    return nullptr;
  }
}

static const char *subgroupOpOf(spirv::Capability capability) {
  switch (capability) {
  case spirv::Capability::GroupNonUniform:
    return "basic";
  case spirv::Capability::GroupNonUniformShuffle:
    return "shuffle";
  default:
    return nullptr;
  }
}

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

FailureOr<SpirvObject> greta::emitSpirv(tile::FuncOp kernel,
                                        Artifact artifact) {
  // Outside of a pass nobody has loaded what the conversion builds.
  kernel->getContext()->loadDialect<spirv::SPIRVDialect>();
  FailureOr<OwningOpRef<spirv::ModuleOp>> module = convertTileToSPIRV(kernel);
  if (failed(module))
    return failure();
  SpirvObject result;
  Requirements &requirements = result.requirements;
  for (spirv::Capability capability :
       (*module)->getVceTriple()->getCapabilities()) {
    if (const char *feature = featureOf(capability))
      requirements.features.push_back(feature);
    if (const char *op = subgroupOpOf(capability))
      requirements.subgroupOps.push_back(op);
  }
  if (!requirements.subgroupOps.empty())
    requirements.subgroupSize = kernel.getWaveSize();
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
  result.object.assign(reinterpret_cast<const char *>(words.data()),
                       words.size() * sizeof(uint32_t));
  return result;
}

void greta::addRequirements(Requirements &all, const Requirements &more) {
  auto unite = [](auto &into, const auto &from) {
    for (const std::string &name : from)
      if (!llvm::is_contained(into, name))
        into.push_back(name);
  };
  unite(all.features, more.features);
  unite(all.subgroupOps, more.subgroupOps);
  all.subgroupSize = std::max(all.subgroupSize, more.subgroupSize);
  all.sharedBytes = std::max(all.sharedBytes, more.sharedBytes);
}
