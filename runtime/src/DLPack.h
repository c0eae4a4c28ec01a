// DLPack.h: DLPack's structures (github.com/dmlc/dlpack, dlpack.h of version
// 0.8), by the names and the layout that libraries agree on.
#ifndef GRETA_RUNTIME_DLPACK_H
#define GRETA_RUNTIME_DLPACK_H

#include <cstdint>

enum DLDeviceType : int32_t {
  kDLCPU = 1,
  kDLCUDAHost = 3,
  kDLVulkan = 7,
  kDLROCM = 10,
  kDLROCMHost = 11
};

struct DLDevice {
  DLDeviceType device_type;
  int32_t device_id;
};

struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DLTensor {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides; // in elements; null: row-major
  uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void *manager_ctx;
  void (*deleter)(DLManagedTensor *self);
};

#endif
