/* greta_runtime/buffer.h: buffers of device memory, and mapped ones.
 * A part of greta_runtime.h, which programs include. */
#ifndef GRETA_RUNTIME_API_BUFFER_H
#define GRETA_RUNTIME_API_BUFFER_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif
#endif
