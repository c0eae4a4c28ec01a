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
 * A break of this is libgreta_runtime.so.1. GRETA_RUNTIME_VERSION is the
 * header's version, greta_version() the library's.
 *
 * The API lies in parts by subject. Their order is that of runtime/abi.txt.
 */
#ifndef GRETA_RUNTIME_H
#define GRETA_RUNTIME_H

/* clang-format off */
#include "greta_runtime/base.h"
#include "greta_runtime/device.h"
#include "greta_runtime/buffer.h"
#include "greta_runtime/share.h"
#include "greta_runtime/stream.h"
#include "greta_runtime/function.h"
#include "greta_runtime/graph.h"
#include "greta_runtime/comm.h"
/* clang-format on */

#endif
