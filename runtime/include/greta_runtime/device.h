/* greta_runtime/device.h: devices, what they tell, and their memory.
 * A part of greta_runtime.h, which programs include. */
#ifndef GRETA_RUNTIME_API_DEVICE_H
#define GRETA_RUNTIME_API_DEVICE_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Devices. `spec`: "hip[:N]", "vulkan[:N]", "hip:UUID", "vulkan:UUID" (32
 * hexadecimal digits, as the list says them), "sim:<gfx>", "host"; NULL or ""
 * takes the first that exists of hip, vulkan, host. The list is a JSON array of
 * {spec, name, available, reason, ...}, also of devices that cannot be used.
 * Opening a device again shares it: objects of either handle may be mixed. */
GRETA_API greta_status greta_device_list(char **json);
GRETA_API greta_status greta_device_open(const char *spec,
                                         greta_device **device);
/* A variant for the host is native code, which runs with all rights of the
 * process as soon as it is loaded (SECURITY.md). It is loaded only on a device
 * that was opened as "host", not on one taken by default, or with
 * GRETA_LOAD_NATIVE_CODE. After this call no function of the process loads one,
 * and GRETA_NO_NATIVE=1 in the environment does the same. */
GRETA_API void greta_refuse_native_code(void);
/* Returns an error when the validation layer complained
 * (GRETA_VULKAN_VALIDATE=1); the device is closed either way. */
GRETA_API greta_status greta_device_close(greta_device *device);
GRETA_API greta_status greta_device_info(greta_device *device, char **json);

/* Runs the small functions that lie beside the library on the device, every
 * variant of them that tells something about it, and compares with the host.
 * JSON: {"ran": variants, "denied": {what: why}}. The first load of a function
 * does this by itself and keeps the answer (docs/guide/runtime.md, "Health");
 * this call always runs them. */
GRETA_API greta_status greta_device_check(greta_device *device, char **json);

/* The device's memory, in bytes. Buffers are parts of larger blocks if the
 * driver does not do that itself; the next buffer may take a part as soon as
 * the work that uses it has ended. Numbers that the backend does not know are
 * 0. */
typedef struct greta_memory {
  size_t struct_size;
  uint64_t in_use;       /* bytes of buffers and temporaries, as asked for */
  uint64_t peak;         /* the most that was in use */
  uint64_t reserved;     /* bytes that the driver gave */
  uint64_t largest_free; /* the largest buffer without a driver call */
  uint64_t total;        /* bytes that the device has */
  uint64_t free;         /* bytes that any process could still get */
} greta_memory;
GRETA_API greta_status greta_device_memory(greta_device *device,
                                           greta_memory *memory);
/* Gives reserved memory that is not in use back to the driver. */
GRETA_API greta_status greta_device_trim(greta_device *device);

#ifdef __cplusplus
}
#endif
#endif
