/* greta_runtime/comm.h: communicators and their collectives.
 * A part of greta_runtime.h, which programs include. */
#ifndef GRETA_RUNTIME_API_COMM_H
#define GRETA_RUNTIME_API_COMM_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

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
