/* greta_runtime/base.h: the version, statuses, handles, tensors and messages.
 * A part of greta_runtime.h, which programs include. */
#ifndef GRETA_RUNTIME_API_BASE_H
#define GRETA_RUNTIME_API_BASE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define GRETA_API __attribute__((visibility("default")))
#else
#define GRETA_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define GRETA_RUNTIME_VERSION_MAJOR 0
#define GRETA_RUNTIME_VERSION_MINOR 1
#define GRETA_RUNTIME_VERSION_PATCH 0
/* The preprocessor can compare versions made by this. */
#define GRETA_RUNTIME_MAKE_VERSION(major, minor, patch)                        \
  ((major) * 1000000 + (minor) * 1000 + (patch))
#define GRETA_RUNTIME_VERSION                                                  \
  GRETA_RUNTIME_MAKE_VERSION(GRETA_RUNTIME_VERSION_MAJOR,                      \
                             GRETA_RUNTIME_VERSION_MINOR,                      \
                             GRETA_RUNTIME_VERSION_PATCH)

typedef enum greta_status {
  GRETA_OK = 0,
  GRETA_ERROR_INVALID_ARGUMENT = 1, /* wrong shape, null handle, out of range */
  GRETA_ERROR_NOT_FOUND = 2,   /* no such file, function, variant or device */
  GRETA_ERROR_UNSUPPORTED = 3, /* the device cannot run it */
  GRETA_ERROR_BAD_PACKAGE = 4, /* truncated, tampered or of another schema */
  GRETA_ERROR_OUT_OF_MEMORY = 5,
  GRETA_ERROR_DEVICE = 6, /* the driver reported a failure */
  GRETA_ERROR_INTERNAL = 7,
  GRETA_ERROR_ASSERTION = 8, /* a launched program's */
  /* The device is lost and every call says so: destroy all that was made from
   * it and open it again, which may come first. Memory of the host that the
   * device gave (mapped buffers) may be gone when it is opened. */
  GRETA_ERROR_DEVICE_LOST = 9,
  /* A rank of a communicator is gone, or did not come in time. */
  GRETA_ERROR_PEER_LOST = 10
} greta_status;

typedef struct greta_device greta_device;
typedef struct greta_buffer greta_buffer;
typedef struct greta_stream greta_stream;
typedef struct greta_event greta_event;
typedef struct greta_graph greta_graph;
typedef struct greta_comm greta_comm;
typedef struct greta_package greta_package;
typedef struct greta_function greta_function;

/* A row-major, contiguous tensor inside a buffer: `offset` is in bytes and a
 * multiple of 16, unless the manifest says otherwise
 * (docs/internals/package.md). For a scalar argument `value` points to its C
 * value (i1 is a byte, f16 and bf16 are their bits), which the call copies, and
 * all else is 0. */
typedef struct greta_tensor {
  greta_buffer *buffer;
  size_t offset;
  const int64_t *shape;
  uint32_t rank;
  const void *value;
} greta_tensor;

/* A function's declaration of one argument or result; -1 in `shape` is a
 * dynamic dim. It is valid while the function is. */
typedef struct greta_tensor_info {
  size_t struct_size;
  const char *name;
  const char *dtype;  /* f32 f16 bf16 f64 i8 i16 i32 i64 f8e4m3fn f8e4m3fnuz
                         f8e5m2 f8e5m2fnuz i4; a scalar i1 i8 i16 i32 i64 f16
                         bf16 f32 f64 */
  const char *access; /* read, write or readwrite */
  uint32_t rank;
  const int64_t *shape;
  int32_t is_scalar; /* an argument without a buffer */
  int32_t tied;      /* the argument that a result begins as, or -1 */
} greta_tensor_info;

/* GPU time of one kernel of a profiled stream. `kernel` is valid until the
 * function that owns it is destroyed, and at least until the stream's times are
 * asked for again or it is destroyed. */
typedef struct greta_kernel_time {
  const char *kernel;
  double microseconds;
} greta_kernel_time;

GRETA_API const char *greta_version(void); /* "0.1.0" */
/* Returns the last failure's message on this thread; "" if there was none. */
GRETA_API const char *greta_last_error(void);
GRETA_API const char *greta_status_name(greta_status status);
/* Frees a string that the API returned through a char **. */
GRETA_API void greta_string_free(char *string);

/* Reports that are no failure of a call: a device is checked, or computes wrong
 * and is used without something. `callback` gets them instead of stderr, which
 * otherwise gets the warnings, or all of them if it is a terminal; NULL
 * restores that. The callback runs on the thread of the call that reports, one
 * at a time, uses nothing of this library, and is called no more once it was
 * replaced. Kernels' prints go to standard output. */
typedef uint32_t greta_log_level;
enum { GRETA_LOG_INFO = 1, GRETA_LOG_WARNING = 2 };
typedef void (*greta_log_callback)(greta_log_level level, const char *message,
                                   void *user);
GRETA_API void greta_set_log_callback(greta_log_callback callback, void *user);

#ifdef __cplusplus
}
#endif
#endif
