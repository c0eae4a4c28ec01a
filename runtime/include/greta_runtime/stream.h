/* greta_runtime/stream.h: streams and events.
 * A part of greta_runtime.h, which programs include. */
#ifndef GRETA_RUNTIME_API_STREAM_H
#define GRETA_RUNTIME_API_STREAM_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif
#endif
