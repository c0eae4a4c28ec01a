//===- Target.cpp - looking rows up ---------------------------------------===//

#include "greta/Target/Target.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <vector>

using namespace llvm;
using namespace greta;

static constexpr StringRef hostAliases[] = {"cpu"};

static const TargetRow hostRow = {
    /*name=*/"host", Backend::Host, hostAliases,
    /*waveSize=*/1,
    /*maxWorkgroupSize=*/1,
    /*ldsBytes=*/0,
    /*ldsBytesPerUnit=*/0,
    /*vgprs=*/{},
    /*agprs=*/{},
    /*unifiedVgprs=*/false,
    /*sgprs=*/{},
    /*computeUnits=*/1,
    /*simdsPerUnit=*/1,
    /*maxWavesPerSimd=*/1,
    /*xcds=*/1,
    /*clockMHz=*/0,
    /*bandwidthGBs=*/0,
    /*directToLdsBytes=*/{}, Fp8Kind::None,
    /*matrix=*/{},
    /*features=*/{},
    /*capabilities=*/{},
    /*source=*/
    "docs/internals/package.md, host: one kernel that covers the function"};

StringRef greta::getBackendName(Backend backend) {
  switch (backend) {
  case Backend::Hip:
    return "hip";
  case Backend::Vulkan:
    return "vulkan";
  case Backend::Host:
    return "host";
  }
  llvm_unreachable("a backend without a name");
}

bool TargetRow::hasFeature(StringRef feature) const {
  return is_contained(features, feature);
}

ArrayRef<TargetRow> greta::getTargets() {
  static const std::vector<TargetRow> rows = [] {
    std::vector<TargetRow> all = detail::amdgpuRows().vec();
    append_range(all, detail::vulkanRows());
    all.push_back(hostRow);
    return all;
  }();
  return rows;
}

static Error wrongTarget(const Twine &what) {
  std::string message;
  raw_string_ostream os(message);
  os << what << "; targets are ";
  for (const TargetRow &row : getTargets())
    os << row.name << ", ";
  os << "vulkan (all of its families)";
  return createStringError(inconvertibleErrorCode(), message);
}

Expected<const TargetRow *> greta::lookupTarget(StringRef name) {
  for (const TargetRow &row : getTargets()) {
    if (row.name.equals_insensitive(name))
      return &row;
    for (StringRef alias : row.aliases)
      if (alias.equals_insensitive(name))
        return &row;
  }
  return wrongTarget("unknown target '" + name + "'");
}

Expected<SmallVector<const TargetRow *>> greta::parseTargets(StringRef list) {
  SmallVector<const TargetRow *> targets;
  auto add = [&](const TargetRow *row) {
    if (!is_contained(targets, row))
      targets.push_back(row);
  };
  if (list.trim().empty())
    return wrongTarget("no target is given");
  SmallVector<StringRef> names;
  list.split(names, ',');
  for (StringRef name : names) {
    name = name.trim();
    if (name.equals_insensitive("vulkan")) {
      for (const TargetRow &row : getTargets())
        if (row.isVulkan())
          add(&row);
      continue;
    }
    Expected<const TargetRow *> row = lookupTarget(name);
    if (!row)
      return row.takeError();
    add(*row);
  }
  return targets;
}

unsigned greta::getOccupancy(const TargetRow &row, unsigned vgprs,
                             unsigned agprs, unsigned sgprs, unsigned ldsBytes,
                             unsigned blockSize) {
  if (blockSize == 0 || blockSize > row.maxWorkgroupSize ||
      ldsBytes > row.ldsBytes)
    return 0;
  unsigned waves = row.maxWavesPerSimd;
  auto limit = [&](const RegisterFile &file, unsigned used) {
    if (file.perWave && used > file.perWave)
      waves = 0;
    if (file.perSimd && used)
      waves =
          std::min<unsigned>(waves, file.perSimd / alignTo(used, file.granule));
  };
  if (row.unifiedVgprs) {
    // AGPRs follow the VGPRs in one file, from a multiple of 4.
    RegisterFile both = row.vgprs;
    both.perWave += row.agprs.perWave;
    limit(both, agprs ? alignTo(vgprs, 4) + agprs : vgprs);
  } else {
    limit(row.vgprs, vgprs);
  }
  limit(row.sgprs, sgprs);
  // Whole workgroups live on a unit.
  unsigned wavesPerGroup = divideCeil(blockSize, row.waveSize);
  unsigned groups = waves * row.simdsPerUnit / wavesPerGroup;
  if (ldsBytes)
    groups = std::min(groups, row.ldsBytesPerUnit / ldsBytes);
  if (groups == 0)
    return 0;
  return std::min(
      waves, unsigned(divideCeil(groups * wavesPerGroup, row.simdsPerUnit)));
}
