//===- DistributedGroup.cpp - the life of a group of ranks ----------------===//
//
// In: c10d's store, by which the ranks of a group find each other. Out: the
// group's communicator and its watch (Distributed.h), and their ends.
//
//===----------------------------------------------------------------------===//

#include "Distributed.h"

#include <ATen/Functions.h>
#include <algorithm>
#include <cstring>
#include <fstream>
#include <ifaddrs.h>
#include <iterator>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <torch/csrc/utils/pybind.h>
#include <unistd.h>

using namespace greta;
using namespace greta::torch_device;
namespace torch_device = greta::torch_device;

namespace {

/// Returns a name that ranks of one host have in common.
std::string hostName() {
  std::string name(256, '\0'), boot;
  gethostname(name.data(), name.size() - 1);
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  return std::string(name.c_str()) + " " + boot;
}

bool isLoopback(const sockaddr *of) {
  if (of->sa_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in *>(of)->sin_addr.s_addr) >>
               24 ==
           127;
  return of->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(
             &reinterpret_cast<const sockaddr_in6 *>(of)->sin6_addr);
}

/// Finds an address at which other hosts reach this one, with a free port: the
/// address from which it would write to the host of the store.
std::string ownAddress() {
  const char *master = secure_getenv("MASTER_ADDR");
  TORCH_CHECK(master, "the ranks are on several hosts, and MASTER_ADDR does "
                      "not say where these meet");
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_DGRAM;
  int code = getaddrinfo(master, "9", &hints, &found);
  TORCH_CHECK(!code, "MASTER_ADDR ", master, ": ", gai_strerror(code));
  sockaddr_storage own = {};
  auto *address = reinterpret_cast<sockaddr *>(&own);
  socklen_t length = sizeof(own);
  int to = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  int port = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool ok = !::connect(to, found->ai_addr, found->ai_addrlen) &&
            !getsockname(to, address, &length);
  // On its own host the store's host may have a loopback address.
  ifaddrs *all = nullptr;
  if (ok && isLoopback(address) && !getifaddrs(&all)) {
    for (ifaddrs *one = all; one; one = one->ifa_next)
      if (one->ifa_addr && one->ifa_addr->sa_family == found->ai_family &&
          (one->ifa_flags & IFF_UP) && !isLoopback(one->ifa_addr)) {
        std::memcpy(&own, one->ifa_addr, length);
        break;
      }
    freeifaddrs(all);
  }
  ok = ok && !isLoopback(address);
  reinterpret_cast<sockaddr_in *>(&own)->sin_port = 0; // also IPv6's place
  ok = ok && !bind(port, address, length) &&
       !getsockname(port, address, &length);
  char host[NI_MAXHOST] = "", service[NI_MAXSERV] = "";
  ok = ok && !getnameinfo(address, length, host, sizeof(host), service,
                          sizeof(service), NI_NUMERICHOST | NI_NUMERICSERV);
  freeaddrinfo(found);
  close(to);
  close(port);
  TORCH_CHECK(ok, "this host has no address to reach MASTER_ADDR ", master);
  return "[" + std::string(host) + "]:" + service;
}

/// Begins what a rank says in place of its host's name, when it has no device.
/// No name begins so.
constexpr char noDevice = '!';

/// Returns a prefix of keys, as a store may outlive its groups: it counts the
/// groups that this rank has made in it, which all ranks count alike.
std::string prefixOf(c10d::Store &store, int rank) {
  int64_t count = store.add("greta/groups/" + std::to_string(rank), 1);
  return "greta/" + std::to_string(count) + "/";
}

} // namespace

Collectives::Collectives(c10::intrusive_ptr<c10d::Store> store, int rank,
                         int size, Milliseconds timeout)
    : c10d::Backend(rank, size), store(std::move(store)),
      prefix(prefixOf(*this->store, rank)), timeout(timeout) {}

std::unique_lock<std::mutex> Collectives::locked() {
  TORCH_CHECK_WITH(DistBackendError, process == getpid(),
                   "greta: this group of ranks is of the process that this one "
                   "was forked from");
  return std::unique_lock<std::mutex>(lock);
}

void Collectives::setTimeout(Milliseconds to) {
  std::unique_lock<std::mutex> guard = locked();
  TORCH_CHECK(!comm || to == timeout, "the communicator has a time-out of ",
              timeout.count(), " ms since the first collective");
  timeout = to;
}

uint64_t Collectives::getSequenceNumberForGroup() {
  std::unique_lock<std::mutex> guard = locked();
  return issued;
}

void Collectives::eagerConnectSingleDevice(at::Device device) {
  TORCH_CHECK(device.type() == deviceType, "the backend greta is of rdna, not ",
              device);
  std::unique_lock<std::mutex> guard = locked();
  connect(device.has_index() ? device.index() : currentDevice());
}

void Collectives::abort() {
  std::unique_lock<std::mutex> guard = locked();
  if (comm)
    comm->abort();
}

// Ends collectives under way first. Callbacks of their futures may take
// Python's lock, which the caller holds when the last reference goes.
void Collectives::shutdown() {
  if (process != getpid()) {
    // A forked process has neither threads to wait for nor the device, and the
    // first process owns a store's server, or file.
    comm.release();
    new std::shared_ptr<Watch>(std::move(watch));
    (void)store.release();
    return;
  }
  std::unique_ptr<py::gil_scoped_release> released;
  if (Py_IsInitialized() && PyGILState_Check())
    released = std::make_unique<py::gil_scoped_release>();
  std::unique_ptr<Comm> lastComm;
  std::shared_ptr<Watch> lastWatch;
  {
    std::unique_lock<std::mutex> guard = locked();
    isShut = true;
    lastComm.swap(comm);
    lastWatch.swap(watch);
  }
  if (lastWatch)
    lastWatch->close();
}

/// A rank without its device says so, and all fail with the reason.
bool Collectives::areOnOneHost(c10::DeviceIndex index) {
  auto key = [&](int rank) { return prefix + "host/" + std::to_string(rank); };
  auto say = [&](const std::string &text) {
    store->set(key(rank_), std::vector<uint8_t>(text.begin(), text.end()));
  };
  try {
    (void)device(index);
  } catch (const c10::Error &error) {
    say(noDevice + std::string(error.what_without_backtrace()));
    throw;
  } catch (const std::exception &error) {
    say(noDevice + std::string(error.what()));
    throw;
  }
  const std::string own = hostName();
  say(own);
  bool areAll = true;
  for (int rank = 0; rank < size_; ++rank) {
    std::vector<uint8_t> bytes = store->get(key(rank));
    std::string other(bytes.begin(), bytes.end());
    TORCH_CHECK_WITH(DistBackendError, other[0] != noDevice, "greta: rank ",
                     rank, " has no device: ", other.substr(1));
    areAll &= other == own;
  }
  return areAll;
}

void Collectives::connect(c10::DeviceIndex index) {
  if (comm) {
    TORCH_CHECK(watch->index == index, "rank ", rank_,
                " of the group has its communicator on rdna:",
                int(watch->index), ", the tensors are on rdna:", int(index));
    return;
  }
  TORCH_CHECK_WITH(DistBackendError, !isShut,
                   "greta: this group of ranks was destroyed");
  std::string address;
  if (!areOnOneHost(index)) {
    const std::string key = prefix + "address";
    if (rank_ == 0) {
      try {
        address = ownAddress();
      } catch (...) {
        store->set(key, std::vector<uint8_t>()); // ends the wait of the others
        throw;
      }
      store->set(key, std::vector<uint8_t>(address.begin(), address.end()));
    } else {
      std::vector<uint8_t> its = store->get(key);
      address.assign(its.begin(), its.end());
      TORCH_CHECK_WITH(
          DistBackendError, !address.empty(),
          "greta: rank 0 found no address for ranks of other hosts");
    }
  }
  greta_comm_id id = {};
  const std::string key = prefix + "id";
  if (rank_ == 0) {
    id = Comm::uniqueId();
    store->set(key,
               std::vector<uint8_t>(std::begin(id.bytes), std::end(id.bytes)));
  } else {
    std::vector<uint8_t> made = store->get(key);
    TORCH_CHECK(made.size() == sizeof(id.bytes),
                "the store's communicator has another form");
    std::copy(made.begin(), made.end(), id.bytes);
  }
  greta_comm_options options = {};
  options.id = &id;
  options.address = address.empty() ? nullptr : address.c_str();
  options.rank = uint32_t(rank_);
  options.size = uint32_t(size_);
  options.timeout_milliseconds =
      uint64_t(std::max<int64_t>(timeout.count(), 1));
  std::unique_ptr<Comm> ready;
  try {
    ready = std::make_unique<Comm>(device(index).runtime().comm(options));
  } catch (const Error &error) {
    C10_THROW_ERROR(DistBackendError, c10::str("greta: ", error.what()));
  }
  watch = Watch::start(index);
  comm = std::move(ready);
}

static std::mutex madeLock;
static std::vector<c10::weak_intrusive_ptr<c10d::Backend>> &made() {
  static auto &all = *new std::vector<c10::weak_intrusive_ptr<c10d::Backend>>;
  return all;
}

void torch_device::endCollectives() {
  py::gil_scoped_release released;
  std::vector<c10::weak_intrusive_ptr<c10d::Backend>> all;
  {
    std::lock_guard<std::mutex> guard(madeLock);
    all.swap(made());
  }
  for (auto &one : all)
    if (auto backend = one.lock())
      backend->shutdown();
}

PyObject *torch_device::makeCollectives(PyObject *store, int rank, int size,
                                        double seconds) {
  auto of = py::handle(store).cast<c10::intrusive_ptr<c10d::Store>>();
  auto timeout = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::duration<double>(seconds));
  c10::intrusive_ptr<c10d::Backend> backend =
      c10::make_intrusive<Collectives>(std::move(of), rank, size, timeout);
  std::vector<c10::weak_intrusive_ptr<c10d::Backend>> gone; // end unlocked
  {
    std::lock_guard<std::mutex> guard(madeLock);
    auto first = std::partition(made().begin(), made().end(),
                                [](const auto &one) { return !one.expired(); });
    std::move(first, made().end(), std::back_inserter(gone));
    made().erase(first, made().end());
    made().emplace_back(backend);
  }
  return py::cast(std::move(backend)).release().ptr();
}
