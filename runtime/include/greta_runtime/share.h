/* greta_runtime/share.h: memory and objects of others.
 * A part of greta_runtime.h, which programs include. */
#ifndef GRETA_RUNTIME_API_SHARE_H
#define GRETA_RUNTIME_API_SHARE_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* DLPack, without a copy: another library's tensor becomes a buffer, and a
 * buffer a tensor; `DLManagedTensor` is dlpack.h's. Imports take row-major
 * tensors of the host (with the pages around them, if a driver wants whole
 * ones), of the device by HIP's pointers, and by VkBuffers on an application's
 * device; the tensor begins at `offset` of the buffer, which deletes it when
 * the last work that uses it is done. If the import fails the tensor stays the
 * caller's. Memory that the host reaches is exported as such, else as HIP's
 * pointer or the VkBuffer; the tensor keeps the memory until its deleter is
 * called; `dtype` is a package's, or u8, u16, u32, u64, i1. Neither call waits
 * for work: the caller orders both libraries' work. */
struct DLManagedTensor;
GRETA_API greta_status
greta_buffer_import_dlpack(greta_device *device, struct DLManagedTensor *tensor,
                           greta_buffer **buffer, size_t *offset);
GRETA_API greta_status greta_buffer_export_dlpack(
    const greta_buffer *buffer, size_t offset, const char *dtype,
    const int64_t *shape, uint32_t rank, struct DLManagedTensor **tensor);

/* Memory that programs, libraries or devices share through a file descriptor.
 * Export is for memory that greta_buffer_create_shared made. GRETA_FD_OPAQUE is
 * memory of one physical device and one driver, opened as often as one likes,
 * in Vulkan or CUDA: to another device the descriptor means other memory and no
 * driver says so, so import compares the UUIDs. GRETA_FD_DMA_BUF is for all
 * devices that know it, and nothing is compared. Export fills `memory`, with a
 * new descriptor; import takes the caller's, also when it fails, unless the
 * struct itself cannot be read. A struct may be sent to another process as it
 * is, and the descriptor by the system's means. */
typedef uint32_t greta_fd_kind;
enum { GRETA_FD_OPAQUE = 1, GRETA_FD_DMA_BUF = 2 };
typedef struct greta_shared_memory {
  size_t struct_size;
  uint64_t bytes; /* the whole buffer's */
  /* As VkPhysicalDeviceIDProperties and cudaDeviceProp have them. An exporter
   * that does not know its driver's, as CUDA, leaves driver_uuid zero; then it
   * is not compared. */
  uint8_t device_uuid[16];
  uint8_t driver_uuid[16];
  greta_fd_kind kind;
  int32_t fd;
} greta_shared_memory;
GRETA_API greta_status greta_buffer_create_shared(greta_device *device,
                                                  greta_fd_kind kind,
                                                  size_t bytes,
                                                  greta_buffer **buffer);
GRETA_API greta_status greta_buffer_export_fd(const greta_buffer *buffer,
                                              greta_shared_memory *memory);
GRETA_API greta_status greta_buffer_import_fd(greta_device *device,
                                              const greta_shared_memory *memory,
                                              greta_buffer **buffer);

/* An application's own objects. The runtime does not close them; they outlive
 * the handle and its work. */
typedef struct greta_vulkan_device {
  size_t struct_size;
  void *get_instance_proc_addr; /* PFN_vkGetInstanceProcAddr */
  void *instance;               /* VkInstance, of Vulkan 1.3 */
  void *physical_device;        /* VkPhysicalDevice */
  void *device;                 /* VkDevice */
  uint32_t queue_family;
  uint32_t queue; /* nobody else submits to it */
  /* Names, as in Vulkan, of what it was created with; at least
   * bufferDeviceAddress, timelineSemaphore and synchronization2. */
  const char *const *features;
  size_t feature_count;
  const char *const *extensions;
  size_t extension_count;
} greta_vulkan_device;
GRETA_API greta_status greta_device_adopt_vulkan(const greta_vulkan_device *own,
                                                 greta_device **device);
/* A VkBuffer of the application's device, with the usages storage buffer,
 * transfer source and destination, and shader device address. */
GRETA_API greta_status greta_buffer_adopt_vulkan(greta_device *device,
                                                 uint64_t vk_buffer,
                                                 size_t bytes,
                                                 greta_buffer **buffer);
/* A hipStream_t of the application, and memory that hipMalloc gave it. */
GRETA_API greta_status greta_stream_adopt_hip(greta_device *device,
                                              void *hip_stream,
                                              greta_stream **stream);
GRETA_API greta_status greta_buffer_adopt_hip(greta_device *device,
                                              void *pointer, size_t bytes,
                                              greta_buffer **buffer);

#ifdef __cplusplus
}
#endif
#endif
