//===- HsacoStats.cpp - what a code object says about a kernel ------------===//
//
// The metadata is a MessagePack document in an ELF note (owner "AMDGPU", type
// NT_AMDGPU_METADATA): {"amdhsa.kernels": [{".name": ..., ".vgpr_count":
// ...}]}.
//
//===----------------------------------------------------------------------===//

#include "greta/AMDGPU/Hsaco.h"
#include "greta/Sim/MainLoop.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/BinaryFormat/MsgPackDocument.h"
#include "llvm/Object/ELF.h"

using namespace llvm;
using namespace greta;

static Error broken(const Twine &what) {
  return createStringError(inconvertibleErrorCode(), "code object " + what);
}

/// Returns the bytes of the metadata note.
static Expected<StringRef> findMetadata(StringRef object) {
  Expected<object::ELFFile<object::ELF64LE>> file =
      object::ELFFile<object::ELF64LE>::create(object);
  if (!file)
    return file.takeError();
  auto segments = file->program_headers();
  if (!segments)
    return segments.takeError();
  for (const auto &segment : *segments) {
    if (segment.p_type != ELF::PT_NOTE)
      continue;
    Error error = Error::success();
    for (const auto &note : file->notes(segment, error))
      if (note.getName() == "AMDGPU" &&
          note.getType() == ELF::NT_AMDGPU_METADATA) {
        consumeError(std::move(error));
        return toStringRef(note.getDesc(/*Align=*/4));
      }
    if (error)
      return std::move(error);
  }
  return broken("has no AMDGPU metadata");
}

/// Returns the resources, by their names in the manifest, each of which alone
/// allows no more waves than all together. "waves" stands for the chip's own
/// limit.
static std::string limitOf(const TargetRow &row, const KernelStats &stats,
                           unsigned blockSize) {
  auto occupancy = [&](bool vgprs, bool sgprs, bool lds) {
    return getOccupancy(row, vgprs ? stats.vgprs : 0, vgprs ? stats.agprs : 0,
                        sgprs ? stats.sgprs : 0, lds ? stats.ldsBytes : 0,
                        blockSize);
  };
  if (occupancy(false, false, false) <= stats.occupancy)
    return "waves";
  std::string limit;
  auto add = [&](StringRef name, unsigned alone) {
    if (alone <= stats.occupancy)
      limit += (limit.empty() ? "" : ", ") + name.str();
  };
  add("vgprs", occupancy(true, false, false));
  add("sgprs", occupancy(false, true, false));
  add("lds_bytes", occupancy(false, false, true));
  return limit;
}

Expected<std::optional<LoopStats>> greta::readHsacoLoop(StringRef object,
                                                        StringRef name,
                                                        unsigned waves,
                                                        unsigned occupancy) {
  Expected<std::optional<sim::MainLoop>> loop =
      sim::findMainLoop(arrayRefFromStringRef(object), name, waves, occupancy);
  if (!loop)
    return loop.takeError();
  if (!*loop)
    return std::nullopt;
  return LoopStats{(*loop)->instructions, (*loop)->matrix,
                   (*loop)->matrixShare};
}

Expected<KernelStats> greta::readHsacoStats(StringRef object, StringRef name,
                                            const TargetRow &row) {
  Expected<StringRef> metadata = findMetadata(object);
  if (!metadata)
    return metadata.takeError();
  msgpack::Document document;
  if (!document.readFromBlob(*metadata, /*Multi=*/false) ||
      !document.getRoot().isMap())
    return broken("has unreadable metadata");
  msgpack::DocNode kernels = document.getRoot().getMap()["amdhsa.kernels"];
  if (!kernels.isArray())
    return broken("lists no kernels");
  for (msgpack::DocNode &node : kernels.getArray()) {
    if (!node.isMap() || node.getMap()[".name"].toString() != name)
      continue;
    msgpack::MapDocNode kernel = node.getMap();
    auto field = [&](StringRef key) -> int64_t {
      msgpack::DocNode value = kernel[key];
      return value.getKind() == msgpack::Type::UInt  ? value.getUInt()
             : value.getKind() == msgpack::Type::Int ? value.getInt()
                                                     : 0;
    };
    KernelStats stats;
    stats.agprs = field(".agpr_count");
    stats.vgprs = field(".vgpr_count");
    // In a unified file the count is of both, AGPRs after a multiple of 4.
    if (row.unifiedVgprs)
      stats.vgprs -= stats.agprs;
    stats.sgprs = field(".sgpr_count");
    stats.ldsBytes = field(".group_segment_fixed_size");
    stats.scratchBytes = field(".private_segment_fixed_size");
    stats.vgprSpills = field(".vgpr_spill_count");
    stats.sgprSpills = field(".sgpr_spill_count");
    unsigned blockSize = field(".max_flat_workgroup_size");
    stats.occupancy = getOccupancy(row, stats.vgprs, stats.agprs, stats.sgprs,
                                   stats.ldsBytes, blockSize);
    stats.occupancyLimit = limitOf(row, stats, blockSize);
    return stats;
  }
  return broken("has no kernel '" + name + "'");
}
