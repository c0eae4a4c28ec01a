// UcxApi.h: what the runtime uses of UCX's API (UCP 1.10 and later), declared
// here so that it builds without UCX's headers. Names, values and the order of
// members are theirs; members behind the last that is used are room only.
#ifndef GRETA_RUNTIME_COMM_UCX_API_H
#define GRETA_RUNTIME_COMM_UCX_API_H

#include <cstddef>
#include <cstdint>

namespace greta::rt::comm {

enum ucs_status_t : int8_t {
  UCS_OK = 0,
  UCS_INPROGRESS = 1,
  UCS_ERR_BUSY = -15
};
using ucp_context_h = struct UcpContext *;
using ucp_worker_h = struct UcpWorker *;
using ucp_ep_h = struct UcpEndpoint *;
using ucp_address_t = struct UcpAddress;
using ucp_tag_t = uint64_t;

struct ucp_params_t {
  enum : uint64_t { FEATURES = 1 };                 // field_mask
  enum : uint64_t { FEATURE_TAG = 1, WAKEUP = 16 }; // features
  uint64_t field_mask, features;
  uint64_t rest[16];
};
struct ucp_worker_params_t {
  enum : uint64_t { THREAD_MODE = 1 };
  enum : int { SERIALIZED = 1 };
  uint64_t field_mask;
  int thread_mode;
  uint64_t rest[32];
};
struct ucp_ep_params_t {
  enum : uint64_t {
    REMOTE_ADDRESS = 1,
    ERR_HANDLING_MODE = 2,
    ERR_HANDLER = 4
  };
  enum : int { PEER = 1 };
  uint64_t field_mask;
  const ucp_address_t *address;
  int err_mode;
  struct {
    void (*cb)(void *arg, ucp_ep_h ep, ucs_status_t status);
    void *arg;
  } err_handler;
  uint64_t rest[16];
};
struct ucp_request_param_t {
  enum : uint32_t { FIELD_FLAGS = 16, NO_IMM_CMPL = 1 << 16 }; // op_attr_mask
  enum : uint32_t { CLOSE_FORCE = 1 };                         // flags
  uint32_t op_attr_mask, flags;
  uint64_t rest[16];
};
struct ucp_tag_recv_info_t {
  ucp_tag_t sender_tag;
  size_t length;
};

// Functions that begin something return null if it is done, a request that the
// caller frees, or a negative status as a pointer.
inline bool isError(const void *Request) {
  return reinterpret_cast<uintptr_t>(Request) >=
         static_cast<uintptr_t>(static_cast<intptr_t>(-100));
}

#define GRETA_UCX_FUNCTIONS(X)                                                 \
  X(void, ucp_cleanup, ucp_context_h)                                          \
  X(void *, ucp_ep_close_nbx, ucp_ep_h, const ucp_request_param_t *)           \
  X(ucs_status_t, ucp_ep_create, ucp_worker_h, const ucp_ep_params_t *,        \
    ucp_ep_h *)                                                                \
  X(const char *, ucp_get_version_string)                                      \
  X(ucs_status_t, ucp_init_version, unsigned, unsigned, const ucp_params_t *,  \
    const void *, ucp_context_h *)                                             \
  X(void, ucp_request_cancel, ucp_worker_h, void *)                            \
  X(ucs_status_t, ucp_request_check_status, void *)                            \
  X(void, ucp_request_free, void *)                                            \
  X(void *, ucp_tag_recv_nbx, ucp_worker_h, void *, size_t, ucp_tag_t,         \
    ucp_tag_t, const ucp_request_param_t *)                                    \
  X(ucs_status_t, ucp_tag_recv_request_test, void *, ucp_tag_recv_info_t *)    \
  X(void *, ucp_tag_send_nbx, ucp_ep_h, const void *, size_t, ucp_tag_t,       \
    const ucp_request_param_t *)                                               \
  X(ucs_status_t, ucp_worker_arm, ucp_worker_h)                                \
  X(ucs_status_t, ucp_worker_create, ucp_context_h,                            \
    const ucp_worker_params_t *, ucp_worker_h *)                               \
  X(void, ucp_worker_destroy, ucp_worker_h)                                    \
  X(ucs_status_t, ucp_worker_get_address, ucp_worker_h, ucp_address_t **,      \
    size_t *)                                                                  \
  X(ucs_status_t, ucp_worker_get_efd, ucp_worker_h, int *)                     \
  X(unsigned, ucp_worker_progress, ucp_worker_h)                               \
  X(void, ucp_worker_release_address, ucp_worker_h, ucp_address_t *)           \
  X(ucs_status_t, ucp_worker_signal, ucp_worker_h)

} // namespace greta::rt::comm
#endif
