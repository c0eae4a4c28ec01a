//===- Info.cpp - what drivers ask about the card -------------------------===//
//
// DRM_IOCTL_VERSION, DRM_IOCTL_GET_CAP and the queries of DRM_AMDGPU_INFO.
//
//===----------------------------------------------------------------------===//
#include "Radeon.h"
#include <amdgpu_drm.h>
#include <cerrno>
#include <cstddef>
#include <cstring>

using namespace greta::radeon;

// Newer than Debian 12's header.
static constexpr uint32_t InfoMaxIbs = 0x22, InfoGpuvmFault = 0x23;
static constexpr uint32_t GbAddressConfig = 0x263e;
// The kernel keeps the top of the addresses to itself. libdrm 2.4.134 takes the
// half below the highest bit in which the announced ends differ: nothing, if
// the last one is a power of two behind the first.
static constexpr uint64_t ReservedTop = 2 << 20;

namespace {
/// The fields that drm_amdgpu_info_device got behind tcc_disabled_mask.
struct DeviceTail {
  uint64_t minEngineKHz, minMemoryKHz;
  uint32_t tcpKiB, sqcPerWgp, sqcDataKiB, sqcInstKiB, gl1KiB, gl2KiB;
  uint64_t mallBytes;
  uint32_t backendsHigh, shadowBytes, shadowAlignment, csaBytes, csaAlignment;
};
struct DeviceInfo {
  uint8_t bytes[1024] = {};
  size_t size = 0;
};
struct IpInfo {
  uint32_t major, minor;
  uint64_t capabilities;
  uint32_t startAlignment, sizeAlignment, rings, version;
};
} // namespace

static DeviceInfo deviceInfo(Connection &c) {
  const Chip &chip = c.machine.chip();
  drm_amdgpu_info_device d = {};
  d.device_id = chip.deviceId;
  d.external_rev = chip.externalRevision;
  d.pci_rev = chip.pciRevision;
  d.family = chip.family;
  d.num_shader_engines = chip.engines;
  d.num_shader_arrays_per_engine = chip.arraysPerEngine;
  d.gpu_counter_freq = CounterKHz;
  d.max_engine_clock = uint64_t(chip.clockMHz) * 1000;
  d.max_memory_clock = uint64_t(chip.memoryMHz) * 1000;
  d.cu_active_number = chip.units;
  // Units in pairs from array to array, until all of them have a place. Engines
  // from the fifth on have theirs behind those of the first four.
  unsigned left = chip.units;
  for (unsigned pair = 0; pair < chip.unitsPerArray / 2u; ++pair)
    for (unsigned e = 0; e < chip.engines; ++e)
      for (unsigned a = 0; a < chip.arraysPerEngine && left; ++a, left -= 2)
        d.cu_bitmap[e % 4][e / 4 * 2 + a] |= 3u << (2 * pair);
  d.enabled_rb_pipes_mask = uint32_t((uint64_t(1) << chip.renderBackends) - 1);
  d.num_rb_pipes = chip.renderBackends;
  d.num_hw_gfx_contexts = 8;
  d.ids_flags = chip.isApu ? AMDGPU_IDS_FLAGS_FUSION : 0;
  // The low addresses belong to the program: drivers use the high ones.
  d.virtual_address_offset = 0x200000;
  d.virtual_address_max = 0x100000000;
  d.virtual_address_alignment = 65536; // buffers lie apart: accesses between
                                       // them are seen
  d.high_va_offset = c.space.begin();
  d.high_va_max = c.space.end() - ReservedTop;
  d.pte_fragment_size = 2 << 20;
  d.gart_page_size = PageBytes;
  d.vram_type = chip.memoryType;
  d.vram_bit_width = chip.memoryBits;
  d.gc_double_offchip_lds_buf = 1;
  d.wave_front_size = 32;
  d.num_shader_visible_vgprs = 1024;
  d.num_cu_per_sh = chip.unitsPerArray;
  d.num_tcc_blocks = chip.l2Slices;
  d.gs_vgt_table_depth = 32;
  d.gs_prim_buffer_depth = 1792;
  d.max_gs_waves_per_vgt = 32;
  DeviceTail tail = {};
  tail.minEngineKHz = 500000;
  tail.minMemoryKHz = 96000;
  tail.tcpKiB = 32;
  tail.sqcPerWgp = 1;
  tail.sqcDataKiB = 16;
  tail.sqcInstKiB = 32;
  tail.gl1KiB = 256;
  tail.gl2KiB = chip.l2KiB;
  tail.mallBytes = uint64_t(chip.l3MiB) << 20;
  DeviceInfo out;
  size_t known = offsetof(drm_amdgpu_info_device, tcc_disabled_mask) + 8;
  std::memcpy(out.bytes, &d, known);
  std::memcpy(out.bytes + known, &tail, sizeof(tail));
  out.size = known + sizeof(tail);
  return out;
}

static drm_amdgpu_memory_info memoryInfo(Machine &m) {
  drm_amdgpu_memory_info info = {};
  auto heap = [](drm_amdgpu_heap_info &h, uint64_t bytes, uint64_t used) {
    h.total_heap_size = h.usable_heap_size = bytes;
    h.heap_usage = used;
    h.max_allocation = bytes * 3 / 4;
  };
  heap(info.vram, m.chip().vramBytes, m.usedVram);
  heap(info.cpu_accessible_vram, m.chip().vramBytes, m.usedVram);
  heap(info.gtt, m.gttBytes(), m.usedGtt);
  return info;
}

static unsigned ringsOf(uint32_t engine) {
  return engine == AMDGPU_HW_IP_GFX       ? 1
         : engine == AMDGPU_HW_IP_COMPUTE ? 4
                                          : 0;
}

static int controlQuery(Connection &c, const drm_amdgpu_info &info) {
  Machine &m = c.machine;
  auto give = [&](const void *data, size_t bytes) {
    std::memcpy(reinterpret_cast<void *>(info.return_pointer), data,
                std::min<size_t>(bytes, info.return_size));
    return 0;
  };
  auto give32 = [&](uint32_t x) { return give(&x, 4); };
  auto give64 = [&](uint64_t x) { return give(&x, 8); };
  switch (info.query) {
  case AMDGPU_INFO_ACCEL_WORKING:
    return give32(1);
  case AMDGPU_INFO_DEV_INFO: {
    DeviceInfo d = deviceInfo(c);
    return give(d.bytes, d.size);
  }
  case AMDGPU_INFO_HW_IP_INFO: {
    uint32_t ip = m.chip().ip;
    uint32_t rings = (1u << ringsOf(info.query_hw_ip.type)) - 1;
    IpInfo i = {ip >> 16, ip >> 8 & 0xff, 0, 32, 32, rings, ip};
    if (!rings)
      i = {};
    return give(&i, sizeof(i));
  }
  case AMDGPU_INFO_HW_IP_COUNT:
    return give32(ringsOf(info.query_hw_ip.type) != 0);
  case AMDGPU_INFO_FW_VERSION: {
    drm_amdgpu_info_firmware firmware = {};
    firmware.ver = 1500;
    firmware.feature = 32;
    return give(&firmware, sizeof(firmware));
  }
  case AMDGPU_INFO_READ_MMR_REG: {
    std::vector<uint32_t> values(info.read_mmr_reg.count);
    uint32_t first = info.read_mmr_reg.dword_offset;
    if (first <= GbAddressConfig && GbAddressConfig < first + values.size())
      values[GbAddressConfig - first] = m.chip().addressConfig;
    return give(values.data(), values.size() * 4);
  }
  case AMDGPU_INFO_MEMORY: {
    drm_amdgpu_memory_info memory = memoryInfo(m);
    return give(&memory, sizeof(memory));
  }
  case AMDGPU_INFO_VRAM_GTT: {
    drm_amdgpu_info_vram_gtt sizes = {};
    sizes.vram_size = sizes.vram_cpu_accessible_size = m.chip().vramBytes;
    sizes.gtt_size = m.gttBytes();
    return give(&sizes, sizeof(sizes));
  }
  case AMDGPU_INFO_VRAM_USAGE:
  case AMDGPU_INFO_VIS_VRAM_USAGE:
    return give64(m.usedVram);
  case AMDGPU_INFO_GTT_USAGE:
    return give64(m.usedGtt);
  case AMDGPU_INFO_TIMESTAMP:
    return give64(m.clock());
  case AMDGPU_INFO_NUM_BYTES_MOVED:
  case AMDGPU_INFO_NUM_EVICTIONS:
  case AMDGPU_INFO_NUM_VRAM_CPU_PAGE_FAULTS:
    return give64(0);
  case AMDGPU_INFO_VRAM_LOST_COUNTER:
    return give32(0);
  case AMDGPU_INFO_SENSOR:
    switch (info.sensor_info.type) {
    case AMDGPU_INFO_SENSOR_GFX_SCLK:
    case AMDGPU_INFO_SENSOR_STABLE_PSTATE_GFX_SCLK:
      return give32(m.chip().clockMHz);
    case AMDGPU_INFO_SENSOR_GFX_MCLK:
    case AMDGPU_INFO_SENSOR_STABLE_PSTATE_GFX_MCLK:
      return give32(m.chip().memoryMHz);
    }
    return EOPNOTSUPP;
  case AMDGPU_INFO_VIDEO_CAPS:
  case AMDGPU_INFO_GDS_CONFIG:
  case InfoGpuvmFault: {
    uint8_t none[1024] = {};
    return give(none, sizeof(none));
  }
  case InfoMaxIbs: {
    uint32_t most[16];
    for (uint32_t &x : most)
      x = 192;
    return give(most, sizeof(most));
  }
  }
  if (m.isTraced())
    say("query " + llvm::Twine(info.query) + " of DRM_AMDGPU_INFO is unknown");
  return EINVAL;
}

static int giveVersion(drm_version &v) {
  auto text = [](char *to, __kernel_size_t &room, const char *from) {
    if (to)
      std::memcpy(to, from, std::min<size_t>(room, std::strlen(from)));
    room = std::strlen(from);
  };
  v.version_major = 3;
  v.version_minor = DriverMinor;
  v.version_patchlevel = 0;
  text(v.name, v.name_len, "amdgpu");
  text(v.date, v.date_len, "20150101");
  text(v.desc, v.desc_len, "GRETA's virtual Radeon");
  return 0;
}

static int giveCapability(drm_get_cap &cap) {
  switch (cap.capability) {
  case DRM_CAP_SYNCOBJ:
  case DRM_CAP_SYNCOBJ_TIMELINE:
  case DRM_CAP_TIMESTAMP_MONOTONIC:
    cap.value = 1;
    return 0;
  case DRM_CAP_PRIME:
    cap.value = DRM_PRIME_CAP_IMPORT | DRM_PRIME_CAP_EXPORT;
    return 0;
  }
  cap.value = 0;
  return 0;
}

int greta::radeon::controlInfo(Connection &c, unsigned number, void *argument) {
  switch (number) {
  case _IOC_NR(DRM_IOCTL_VERSION):
    return giveVersion(*static_cast<drm_version *>(argument));
  case _IOC_NR(DRM_IOCTL_GET_CAP):
    return giveCapability(*static_cast<drm_get_cap *>(argument));
  case _IOC_NR(DRM_IOCTL_SET_CLIENT_CAP):
    return 0;
  case _IOC_NR(DRM_IOCTL_SET_MASTER): // there is no display to be master of
  case _IOC_NR(DRM_IOCTL_AUTH_MAGIC):
    return EACCES;
  case _IOC_NR(DRM_IOCTL_DROP_MASTER):
    return 0;
  case _IOC_NR(DRM_IOCTL_GET_CLIENT):
    static_cast<drm_client *>(argument)->auth = 1;
    return 0;
  case DRM_COMMAND_BASE + DRM_AMDGPU_INFO:
    return controlQuery(c, *static_cast<drm_amdgpu_info *>(argument));
  }
  return -ENOTTY;
}
