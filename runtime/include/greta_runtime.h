/* greta_runtime.h: the C API of GRETA's runtime.
 *
 * Loads packages (docs/internals/package.md), picks the variant a device can
 * run, and launches it. Handles are opaque. Every function that can fail
 * returns a greta_status; greta_last_error() then has one sentence that says
 * what was wrong. No C++ exception leaves the library.
 *
 * Threads. Every handle may be used from any thread. Which uses may happen at
 * once:
 *   device, package, function, buffer: all. They do not change, so weights and
 *     functions are shared; what a buffer holds is for the streams that work on
 *     it, which events put in order.
 *   stream: one thread at a time; also for the graph that it records.
 *   event: one thread records it, and when that call has returned, any number
 *     wait for it or measure with it, until it is recorded again.
 *   graph: one thread at a time. Its launches share its temporaries: they must
 *     not overlap, in one stream or in several.
 *   communicator: one thread at a time, but greta_comm_abort, greta_comm_fail
 *     and greta_comm_info at any.
 * A handle is destroyed when no other thread uses it any more. A thread that
 * waits for the device keeps no other from working.
 *
 * Work is asynchronous: a stream runs its operations in order, and an operation
 * sees what the ones before it in the same stream wrote. Buffers, functions and
 * graphs may be destroyed as soon as the calls that use them returned; the
 * runtime keeps what unfinished work needs. A device is closed when all that
 * was made from it is destroyed.
 *
 * ABI. A program that was linked with libgreta_runtime.so.0 runs with every
 * later libgreta_runtime.so.0:
 *   - no function, constant or status goes away or means something else; what a
 *     status names may become more precise, so programs take one that they do
 *     not know as a failure;
 *   - structs that begin with struct_size may grow at their end. The caller
 *     writes sizeof(the struct) there, and zeros what it does not use. The
 *     library reads and writes no more than that; bytes that it does not know
 *     and that are not zero are GRETA_ERROR_UNSUPPORTED;
 *   - other structs, and what the handles' functions take, stay as they are;
 *   - JSON gains keys, and messages change.
 * A break of this is libgreta_runtime.so.1. The version below is the header's,
 * greta_version() the library's.
 */
#ifndef GRETA_RUNTIME_H
#define GRETA_RUNTIME_H

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

/* Buffers in device memory. Reads and writes go through staging memory, or are
 * made in place if that is the host's memory (an integrated GPU). A write
 * copies `data` before it returns, a read waits for the stream. */
GRETA_API greta_status greta_buffer_create(greta_device *device, size_t bytes,
                                           greta_buffer **buffer);
GRETA_API void greta_buffer_destroy(greta_buffer *buffer);
GRETA_API size_t greta_buffer_size(const greta_buffer *buffer);
GRETA_API uint64_t greta_buffer_address(const greta_buffer *buffer);
GRETA_API greta_status greta_buffer_write(greta_stream *stream,
                                          greta_buffer *buffer, size_t offset,
                                          const void *data, size_t bytes);
GRETA_API greta_status greta_buffer_read(greta_stream *stream,
                                         const greta_buffer *buffer,
                                         size_t offset, void *data,
                                         size_t bytes);
GRETA_API greta_status greta_buffer_copy(greta_stream *stream, greta_buffer *to,
                                         size_t to_offset,
                                         const greta_buffer *from,
                                         size_t from_offset, size_t bytes);
/* Copies between any two devices, or streams of one. It begins when the queued
 * work of both streams is done, and both go on behind it. Devices of HIP that
 * reach each other copy by themselves; between others the bytes pass through
 * the host, which waits for them. */
GRETA_API greta_status greta_buffer_copy_peer(greta_stream *to_stream,
                                              greta_buffer *to,
                                              size_t to_offset,
                                              greta_stream *from_stream,
                                              const greta_buffer *from,
                                              size_t from_offset, size_t bytes);
/* Fills with a repeated 32-bit word; offset and bytes are multiples of 4. */
GRETA_API greta_status greta_buffer_fill(greta_stream *stream,
                                         greta_buffer *buffer, size_t offset,
                                         size_t bytes, uint32_t word);

/* Memory that the host reaches, too, through greta_buffer_pointer: the device's
 * if a driver has such memory, else the host's that the device reads; on an
 * integrated GPU memory that the host caches. Work sees what the host wrote
 * before the call that queued it; the host sees what work wrote once somebody
 * waited for it. */
GRETA_API greta_status greta_buffer_create_mapped(greta_device *device,
                                                  size_t bytes,
                                                  greta_buffer **buffer);
/* Returns NULL if the host does not reach it. */
GRETA_API void *greta_buffer_pointer(const greta_buffer *buffer);
/* Makes a buffer of the caller's memory, without a copy. The memory stays the
 * caller's and outlives the buffer's work. Vulkan wants whole pages (of 4096
 * bytes almost everywhere; the message says of how many). */
GRETA_API greta_status greta_buffer_import_pointer(greta_device *device,
                                                   void *pointer, size_t bytes,
                                                   greta_buffer **buffer);

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

/* Streams. Work starts at the latest at synchronize, read, a waited event or
 * flush. */
GRETA_API greta_status greta_stream_create(greta_device *device,
                                           greta_stream **stream);
GRETA_API void greta_stream_destroy(greta_stream *stream);
GRETA_API greta_status greta_stream_flush(greta_stream *stream);
/* Starts nothing before the next flush, wait or read (or earlier, if it is
 * much) and then all together: a graph and the copy behind it are one
 * submission to the driver. If a driver starts operations by itself, as HIP
 * does, it changes nothing. */
GRETA_API greta_status greta_stream_hold(greta_stream *stream);
GRETA_API greta_status greta_stream_synchronize(greta_stream *stream);
/* Starts what is queued; `done` says whether all of it is done. It waits only
 * for collectives that the host carries out. */
GRETA_API greta_status greta_stream_query(greta_stream *stream, int *done);
/* Calls function(data) in a thread of the runtime when all work queued before
 * is done; work that is queued later waits until it has returned. It is called
 * once, also if that work failed, and uses neither the stream nor anything that
 * waits for a device. On Vulkan streams share the device's few queues, so while
 * the function runs, work of other streams that was queued later may wait, too:
 * let it be short, and hand long work to a thread of your own. */
GRETA_API greta_status greta_stream_call_host(greta_stream *stream,
                                              void (*function)(void *data),
                                              void *data);
/* While on, every kernel is timed on the GPU; greta_stream_times waits and
 * returns the times since it was last called. With `times` NULL it only stores
 * the count. It has to be off while a graph is captured. */
GRETA_API greta_status greta_stream_set_profiling(greta_stream *stream, int on);
GRETA_API greta_status greta_stream_times(greta_stream *stream,
                                          greta_kernel_time *times,
                                          size_t *count);

/* Events are points in a stream with a GPU timestamp. */
GRETA_API greta_status greta_event_create(greta_device *device,
                                          greta_event **event);
GRETA_API void greta_event_destroy(greta_event *event);
GRETA_API greta_status greta_event_record(greta_event *event,
                                          greta_stream *stream);
GRETA_API greta_status greta_event_synchronize(greta_event *event);
/* Waits `microseconds` at most, with 0 not at all; `happened` says whether the
 * event has. For a read without a wait, copy to a mapped buffer and record an
 * event behind it. */
GRETA_API greta_status greta_event_wait(greta_event *event,
                                        uint64_t microseconds, int *happened);
GRETA_API greta_status greta_stream_wait_event(greta_stream *stream,
                                               greta_event *event);
/* Waits for both events. */
GRETA_API greta_status greta_event_elapsed(greta_event *start, greta_event *end,
                                           double *microseconds);

/* Packages. Opening checks the schema and the hash of every member. */
GRETA_API greta_status greta_package_open(const char *path,
                                          greta_package **package);
GRETA_API greta_status greta_package_from_memory(const void *data, size_t bytes,
                                                 greta_package **package);
/* Opens the package of common functions that lies beside the library
 * (docs/guide/runtime.md, "From CUDA's libraries"). */
GRETA_API greta_status greta_package_open_shipped(greta_package **package);
GRETA_API void greta_package_destroy(greta_package *package);
GRETA_API size_t greta_package_function_count(const greta_package *package);
GRETA_API const char *greta_package_function_name(const greta_package *package,
                                                  size_t index);
/* Returns the function of this name, or else the first whose name goes on with
 * '_' behind it and whose arguments may have these shapes (their buffers may be
 * NULL here). It is valid while the package is. */
GRETA_API greta_status greta_package_find(const greta_package *package,
                                          const char *name,
                                          const greta_tensor *arguments,
                                          size_t argument_count,
                                          const char **function);
/* Returns the manifest's text, which is valid while the package is. */
GRETA_API const char *greta_package_manifest(const greta_package *package);

/* Functions. A function loads the variant that runs on this device: `variant`
 * NULL lets the runtime choose (docs/internals/package.md); a name forces that
 * one, and it is an error when the device cannot run it. */
enum {
  GRETA_LOAD_CAPTURE_STATISTICS = 1, /* ask the driver for its statistics */
  GRETA_LOAD_NATIVE_CODE = 2,        /* variants for the host are allowed */
  /* No kernels are loaded with the function, neither the variant's own nor its
   * ranges': a launch loads those that it needs, takes as long as the driver
   * compiles them, and may fail as a load does. Launch once before a capture.
   */
  GRETA_LOAD_LAZILY = 4
};
GRETA_API greta_status greta_function_load(greta_device *device,
                                           const greta_package *package,
                                           const char *name,
                                           const char *variant, uint32_t flags,
                                           greta_function **function);
GRETA_API void greta_function_destroy(greta_function *function);
GRETA_API const char *greta_function_variant(const greta_function *function);
GRETA_API size_t greta_function_argument_count(const greta_function *function);
GRETA_API size_t greta_function_result_count(const greta_function *function);
GRETA_API greta_status greta_function_argument(const greta_function *function,
                                               size_t index,
                                               greta_tensor_info *info);
GRETA_API greta_status greta_function_result(const greta_function *function,
                                             size_t index,
                                             greta_tensor_info *info);
/* Computes a result's shape and size for these arguments (their buffers may be
 * NULL). `shape` has room for the rank that greta_function_result reports. */
GRETA_API greta_status greta_function_result_shape(
    const greta_function *function, const greta_tensor *arguments,
    size_t argument_count, size_t index, int64_t *shape, size_t *bytes);
/* A function of greta.all_reduce sums over the ranks of a communicator of its
 * device; a launch without one is GRETA_ERROR_INVALID_ARGUMENT. All ranks
 * launch it in the same order among their other collectives, with the same
 * shapes. The function keeps the communicator until it gets another, or NULL,
 * which it may get only while nobody launches it. Other functions take one and
 * do without. */
GRETA_API greta_status greta_function_set_comm(greta_function *function,
                                               greta_comm *comm);
/* Returns whether it sums over ranks. */
GRETA_API int greta_function_sums(const greta_function *function);
/* Queues the function's kernels. A result's shape may be NULL; if given, it
 * must be the one computed. A result that is tied to an argument is the
 * argument's memory, which changes in place, or memory of its own, which gets a
 * copy of the argument first. Any other result has memory of its own: one that
 * shares bytes with an argument or another result is refused. If kernels print
 * the call waits for them and writes to standard output. An assertion that
 * fails is GRETA_ERROR_ASSERTION,
 * with its message and the program's ids, of the next call that waits for the
 * launch: greta_stream_synchronize, a query that says it is done, a read, or a
 * wait for an event that was recorded behind it; once, and of a launch that
 * waits itself, because it prints or the stream has many such kernels. The
 * kernel runs to its end. A stream that is destroyed before is waited for, and
 * a warning tells it. With GRETA_LAUNCH_BLOCKING=1 in the environment each
 * launch waits. */
GRETA_API greta_status greta_function_launch(const greta_function *function,
                                             greta_stream *stream,
                                             const greta_tensor *arguments,
                                             size_t argument_count,
                                             const greta_tensor *results,
                                             size_t result_count);
/* Returns JSON with the driver's report of each kernel's compilation (needs
 * GRETA_LOAD_CAPTURE_STATISTICS). */
GRETA_API greta_status greta_function_statistics(greta_function *function,
                                                 char **json);
/* Returns JSON that says of each variant whether this device can run it, and if
 * not, why. */
GRETA_API greta_status greta_function_variants(greta_device *device,
                                               const greta_package *package,
                                               const char *name, char **json);

/* Graphs: between begin and end, launches, copies and fills of the stream, and
 * launches of other graphs, are recorded instead of run. A graph that another
 * one launches is a part of it, and lives as long. The arguments of a
 * graph's operations are fixed when they are recorded, scalars too; what
 * changes from launch to launch lies in buffers. */
GRETA_API greta_status greta_graph_begin(greta_stream *stream);
GRETA_API greta_status greta_graph_end(greta_stream *stream,
                                       greta_graph **graph);
GRETA_API greta_status greta_graph_launch(greta_graph *graph,
                                          greta_stream *stream);
GRETA_API void greta_graph_destroy(greta_graph *graph);
/* Automatic graphs: if launches, copies and fills of the stream between two
 * points at which the host waits, writes, flushes or uses an event are the same
 * twice, they are recorded, and from the third time on replayed as one graph:
 * same functions, memory, shapes and scalars. The calls of such a sequence are
 * held back until its last one. The newest few sequences keep their memory
 * until this is turned off or the stream is destroyed. */
GRETA_API greta_status greta_stream_set_auto_graph(greta_stream *stream,
                                                   int on);
/* Returns how many calls ran as parts of such graphs. */
GRETA_API uint64_t greta_stream_replayed(const greta_stream *stream);

/* Communicators: collectives of ranks, which are threads or processes with a
 * device each (two ranks may have the same). All ranks make one with the same
 * id, path or address and size, each with its own rank, and call the same
 * collectives in the same order. Ranks of one host find each other by an id,
 * which one of them makes and gives to the others, or by the path of a file
 * that rank 0 writes and removes. Ranks of several hosts do by the address at
 * which rank 0 listens, and, if all give it, by an id, which keeps others out.
 *
 * A collective is an operation of its stream: it begins when what was queued
 * before it is done, and what is queued behind it comes later. If the device
 * does not order them (docs/guide/runtime.md) the first call that queues such a
 * thing, or waits, waits for the collective. So a thread that has several ranks
 * queues a collective for all of them before it does anything else with their
 * streams. Graphs record them: what a kernel does (GRETA_COMM_KERNEL) is a part
 * of the graph, at others it is cut, and a launch queues its parts and them in
 * turn. A graph keeps the communicators; every rank launches it as often. A
 * failure is told by the call that waits as above, or by whoever waits for the
 * stream or an event behind it.
 *
 * When a rank's process ends, or it does not come within the time-out, the
 * collective is GRETA_ERROR_PEER_LOST on every rank, and so is every later
 * call; what the collective was to write has any value. The ranks then make a
 * new communicator. */
typedef struct greta_comm_id {
  uint8_t bytes[16];
} greta_comm_id;
typedef uint32_t greta_comm_ways;
enum {
  GRETA_COMM_NCCL = 1, /* NCCL on Vulkan's devices of NVIDIA, RCCL on HIP's */
  GRETA_COMM_HOST = 2, /* through the host's memory, any devices */
  /* all_reduce of up to 64 KB, in whole words of 4 bytes, by a kernel of the
   * stream, beside one of the above: Vulkan's devices */
  GRETA_COMM_KERNEL = 4
};
typedef struct greta_comm_options {
  size_t struct_size;
  const greta_comm_id *id; /* or a path, or an address */
  const char *path;
  uint32_t rank;
  uint32_t size;
  /* A rank waits at most so long for another; 0: 120,000. */
  uint64_t timeout_milliseconds;
  /* Bytes of a step, at most 1 GiB; 0: 4 MB, less if the system gives less. All
   * ranks share 4 * (size + 1) times that of the host's memory, and half as
   * much for each rank between pairs; with NCCL it is given back. */
  uint64_t staging_bytes;
  greta_comm_ways ways; /* ways that may be taken; 0: all */
  /* host:port of rank 0, which listens there until all have come. Ranks on one
   * host may use it, too, to be as if they were on several. UCX carries their
   * messages (libucp.so.0, or $GRETA_UCX_LIBRARY), unencrypted and open to
   * whoever can reach them: the network has to be a trusted one. */
  const char *address;
} greta_comm_options;
GRETA_API greta_status greta_comm_unique_id(greta_comm_id *id);
/* Waits for all ranks. It takes the first way in the order of greta_comm_ways
 * that every rank has and whose result is right in a test on all of them. */
GRETA_API greta_status greta_comm_create(greta_device *device,
                                         const greta_comm_options *options,
                                         greta_comm **comm);
/* Says in place of greta_comm_create that this rank does not come, and why: the
 * others' greta_comm_create is GRETA_ERROR_PEER_LOST, and its message has the
 * reason. Waits until rank 0 has heard it, and as rank 0 until all others have,
 * at most timeout_milliseconds. greta_comm_create of rank 0 waits for the
 * others in the same way before it fails with another rank's reason. */
GRETA_API greta_status greta_comm_decline(const greta_comm_options *options,
                                          const char *reason);
/* Collectives that were queued still end. In a process that was forked from
 * the rank's, where all other calls are GRETA_ERROR_PEER_LOST, it does nothing
 * to the rank's communicator. */
GRETA_API void greta_comm_destroy(greta_comm *comm);
/* Returns JSON: rank, size, the way that is taken, and why others are not. */
GRETA_API greta_status greta_comm_info(greta_comm *comm, char **json);
/* Ends it on all ranks: collectives under way and every later call are
 * GRETA_ERROR_PEER_LOST. */
GRETA_API greta_status greta_comm_abort(greta_comm *comm);
/* The same, and what all ranks are told has the reason: its first few hundred
 * bytes, with a question mark for each that is not printable ASCII. */
GRETA_API greta_status greta_comm_fail(greta_comm *comm, const char *reason);

/* `to` and `from` may be the same place in all_reduce and broadcast; the
 * smaller one may be this rank's part of the larger in all_gather and
 * reduce_scatter. Otherwise they do not overlap. NCCL takes Vulkan's buffers as
 * they are if greta_buffer_create_shared made them with GRETA_FD_OPAQUE, else
 * by way of a copy.
 *
 * Reductions of `count` elements of `dtype`: f16, bf16, f32, f64, i8, u8, i32
 * or i64. Through the host's memory they are made in the order of the ranks,
 * f16 and bf16 in f32 and rounded once, and so depend on nothing else; sums and
 * products of integers wrap, and an average of integers is their sum, divided
 * towards zero. A maximum or minimum with a NaN may be one. The kernel makes
 * sums and maxima of f16, bf16, f32 and i32. */
typedef uint32_t greta_comm_reduction;
enum {
  GRETA_COMM_SUM = 0,
  GRETA_COMM_MAX = 1,
  GRETA_COMM_MIN = 2,
  GRETA_COMM_PRODUCT = 3,
  GRETA_COMM_AVERAGE = 4
};
GRETA_API greta_status greta_comm_all_reduce(
    greta_comm *comm, greta_stream *stream, greta_buffer *to, size_t to_offset,
    const greta_buffer *from, size_t from_offset, size_t count,
    const char *dtype, greta_comm_reduction reduction);
/* Gives each rank `count` elements: rank r those from r * count on. */
GRETA_API greta_status greta_comm_reduce_scatter(
    greta_comm *comm, greta_stream *stream, greta_buffer *to, size_t to_offset,
    const greta_buffer *from, size_t from_offset, size_t count,
    const char *dtype, greta_comm_reduction reduction);
/* Each rank gives `bytes`; what rank r gave begins at r * bytes. */
GRETA_API greta_status greta_comm_all_gather(greta_comm *comm,
                                             greta_stream *stream,
                                             greta_buffer *to, size_t to_offset,
                                             const greta_buffer *from,
                                             size_t from_offset, size_t bytes);
/* Gives all ranks the root's `from`, which may be NULL on the others. */
GRETA_API greta_status greta_comm_broadcast(
    greta_comm *comm, greta_stream *stream, greta_buffer *to, size_t to_offset,
    const greta_buffer *from, size_t from_offset, size_t bytes, uint32_t root);
/* Each rank gives `bytes` to each: those for rank r begin at r * bytes, and
 * those from rank r come to r * bytes. `to` does not overlap `from`. */
GRETA_API greta_status greta_comm_all_to_all(greta_comm *comm,
                                             greta_stream *stream,
                                             greta_buffer *to, size_t to_offset,
                                             const greta_buffer *from,
                                             size_t from_offset, size_t bytes);
/* Transfers between two ranks. A send may end only when its peer receives, so
 * ranks that send to each other do it in one greta_comm_exchange, whose
 * transfers go on together; those with one peer and in one direction keep their
 * order. */
typedef struct greta_comm_transfer {
  greta_buffer *buffer;
  size_t offset;
  size_t bytes;
  uint32_t peer;
  uint32_t receives; /* 0: it is sent */
} greta_comm_transfer;
GRETA_API greta_status greta_comm_send(greta_comm *comm, greta_stream *stream,
                                       const greta_buffer *from, size_t offset,
                                       size_t bytes, uint32_t peer);
GRETA_API greta_status greta_comm_receive(greta_comm *comm,
                                          greta_stream *stream,
                                          greta_buffer *to, size_t offset,
                                          size_t bytes, uint32_t peer);
GRETA_API greta_status greta_comm_exchange(greta_comm *comm,
                                           greta_stream *stream,
                                           const greta_comm_transfer *transfers,
                                           size_t count);

#ifdef __cplusplus
}
#endif
#endif
