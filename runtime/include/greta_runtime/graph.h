/* greta_runtime/graph.h: recorded launches, and automatic ones.
 * A part of greta_runtime.h, which programs include. */
#ifndef GRETA_RUNTIME_API_GRAPH_H
#define GRETA_RUNTIME_API_GRAPH_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif
#endif
