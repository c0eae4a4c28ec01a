/* greta_runtime/function.h: packages, their functions, and launches.
 * A part of greta_runtime.h, which programs include. */
#ifndef GRETA_RUNTIME_API_FUNCTION_H
#define GRETA_RUNTIME_API_FUNCTION_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

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
 * fails is GRETA_ERROR_ASSERTION, with its message and the program's ids, of
 * the next call that waits for the launch: greta_stream_synchronize, a query
 * that says it is done, a read, or a wait for an event that was recorded behind
 * it; once, and of a launch that waits itself, because it prints or the stream
 * has many such kernels. The kernel runs to its end. A stream that is destroyed
 * before is waited for, and a warning tells it. With GRETA_LAUNCH_BLOCKING=1 in
 * the environment each launch waits. */
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

#ifdef __cplusplus
}
#endif
#endif
