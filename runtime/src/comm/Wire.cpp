// Wire.cpp: see Wire.h.
#include "comm/Wire.h"
#include "Libraries.h"
#include "Process.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>

namespace greta::rt::comm {

struct Ucx {
#define X(Result, Name, ...) Result (*Name)(__VA_ARGS__) = nullptr;
  GRETA_UCX_FUNCTIONS(X)
#undef X

  Ucx() {
    void *Handle = openLibrary("GRETA_UCX_LIBRARY", {"libucp.so.0"});
#define X(Result, Name, ...) bindFunction(Name, Handle, #Name, "UCX's library");
    GRETA_UCX_FUNCTIONS(X)
#undef X
    // UCX takes over the process's signals and logs as errors what is reported
    // here. These functions are of a library that it loads.
    using Disable = void (*)(int);
    if (auto Signal = reinterpret_cast<Disable>(
            dlsym(Handle, "ucs_debug_disable_signal")))
      for (int Number : {SIGILL, SIGSEGV, SIGBUS, SIGFPE})
        Signal(Number);
    using Option = ucs_status_t (*)(const char *, const char *);
    auto Set =
        reinterpret_cast<Option>(dlsym(Handle, "ucs_global_opts_set_value"));
    if (Set && !environment("UCX_LOG_LEVEL"))
      Set("LOG_LEVEL", "fatal");
  }
  static void check(ucs_status_t Status, const char *Name) {
    if (Status != UCS_OK)
      fail(GRETA_ERROR_DEVICE, Name, " (UCX): error ", int(Status));
  }
  // Returns whether a call's work is over, and frees the request.
  bool isDone(void *&Request) const {
    if (Request && !isError(Request)) {
      if (ucp_request_check_status(Request) == UCS_INPROGRESS)
        return false;
      ucp_request_free(Request);
    }
    Request = nullptr;
    return true;
  }
};

namespace {

constexpr std::chrono::milliseconds grace(200), leaving(2000),
    leavingAtMost(60000);
constexpr size_t mostTextBytes = Group::wordBytes;
// Tags have the sender, and whether it is a head or the body behind it.
ucp_tag_t tagOf(uint32_t Rank, bool Body) {
  return ucp_tag_t(Rank) << 1 | Body;
}

std::shared_ptr<Ucx> library() {
  static std::mutex Lock;
  static std::shared_ptr<Ucx> Loaded;
  std::lock_guard<std::mutex> Guard(Lock);
  if (!Loaded)
    try {
      Loaded = std::make_shared<Ucx>();
    } catch (const Error &E) {
      fail(E.code(),
           "ranks on several hosts need UCX (libucp.so.0): ", E.what());
    }
  return Loaded;
}

} // namespace

Wire::Wire(const std::string &Address, const Group::Id &Name, uint32_t Rank,
           uint32_t Size, std::chrono::milliseconds Timeout, uint64_t &Staging)
    : Rank(Rank), Size(Size), Peers(Size) {
  try {
    std::string Word;
    try {
      Word = open();
    } catch (const Error &E) {
      try {
        decline(Address, Name, Rank, Size, Timeout, E.what());
      } catch (const Error &) { // the others have not come
      }
      throw;
    }
    All = rendezvous(Address, Name, Rank, Size, Timeout, Word, Staging);
    Staging = All.Staging;
    for (uint32_t R = 0; R < Size; ++R) {
      if (R == Rank)
        continue;
      ucp_ep_params_t E{};
      E.field_mask = ucp_ep_params_t::REMOTE_ADDRESS |
                     ucp_ep_params_t::ERR_HANDLING_MODE |
                     ucp_ep_params_t::ERR_HANDLER;
      E.address = reinterpret_cast<const ucp_address_t *>(All.Words[R].data());
      E.err_mode = ucp_ep_params_t::PEER;
      E.err_handler.cb = onError;
      E.err_handler.arg = &Peers[R];
      Ucx::check(U->ucp_ep_create(Worker, &E, &Peers[R].End), "ucp_ep_create");
    }
  } catch (...) {
    destroy();
    throw;
  }
}

// Makes the worker, and returns its address.
std::string Wire::open() {
  U = comm::library();
  ucp_params_t P{};
  P.field_mask = ucp_params_t::FEATURES;
  P.features = ucp_params_t::FEATURE_TAG | ucp_params_t::WAKEUP;
  Ucx::check(U->ucp_init_version(1, 10, &P, nullptr, &Context), "ucp_init");
  ucp_worker_params_t W{};
  W.field_mask = ucp_worker_params_t::THREAD_MODE;
  W.thread_mode = ucp_worker_params_t::SERIALIZED;
  Ucx::check(U->ucp_worker_create(Context, &W, &Worker), "ucp_worker_create");
  Ucx::check(U->ucp_worker_get_efd(Worker, &WorkerFd), "ucp_worker_get_efd");
  ucp_address_t *Own = nullptr;
  size_t Bytes = 0;
  Ucx::check(U->ucp_worker_get_address(Worker, &Own, &Bytes),
             "ucp_worker_get_address");
  std::string Word(reinterpret_cast<char *>(Own), Bytes);
  U->ucp_worker_release_address(Worker, Own);
  return Word;
}

Wire::~Wire() {
  if (Thread.joinable()) {
    for (uint32_t R = 0; R < Size; ++R)
      send(R, What::Leaves, 0, 0);
    Closing = true;
    U->ucp_worker_signal(Worker);
    Thread.join();
  }
  destroy();
}

void Wire::destroy() {
  std::vector<void *> Left;
  for (Peer &P : Peers) {
    if (P.Request && !isError(P.Request)) {
      U->ucp_request_cancel(Worker, P.Request);
      Left.push_back(P.Request);
    }
    ucp_request_param_t Force{};
    Force.op_attr_mask = ucp_request_param_t::FIELD_FLAGS;
    Force.flags = ucp_request_param_t::CLOSE_FORCE;
    if (P.End)
      Left.push_back(U->ucp_ep_close_nbx(P.End, &Force));
  }
  for (Message &M : Under)
    Left.insert(Left.end(), std::begin(M.Requests), std::end(M.Requests));
  auto Begin = Group::Clock::now();
  while (!Left.empty() && Group::Clock::now() - Begin < leaving) {
    U->ucp_worker_progress(Worker);
    if (U->isDone(Left.back()))
      Left.pop_back();
  }
  if (Worker)
    U->ucp_worker_destroy(Worker);
  if (Context)
    U->ucp_cleanup(Context);
}

std::string Wire::library() const {
  return concat("UCX ", U->ucp_get_version_string());
}

void Wire::start(Owner &Its) {
  For = &Its;
  Thread = std::thread([this] { run(); });
}

void Wire::send(uint32_t To, What Kind, uint64_t At, uint64_t Value,
                const char *Bytes) {
  push(To, {{Kind, 0, At, Value}, {}, Bytes, {}});
}

void Wire::sendText(uint32_t To, What Kind, uint64_t At, std::string Text) {
  uint64_t Bytes = Text.size();
  push(To, {{Kind, 0, At, Bytes}, std::move(Text), nullptr, {}});
}

void Wire::push(uint32_t To, Message M) {
  if (To == Rank || Closing)
    return;
  {
    std::lock_guard<std::mutex> Guard(Lock);
    Box.emplace_back(To, std::move(M));
    IsFull = true;
  }
  if (Sleeps)
    U->ucp_worker_signal(Worker);
}

void Wire::onError(void *Of, ucp_ep_h, ucs_status_t) {
  Peer &P = *static_cast<Peer *>(Of);
  if (!P.Lost)
    P.Lost = Group::Clock::now();
}

void Wire::run() {
  for (uint32_t R = 0; R < Size; ++R)
    if (R != Rank)
      expect(R, nullptr, 0);
  std::optional<Group::Clock::time_point> Began, Since; // times of leaving
  auto Looked = Group::Clock::now(), Moved = Looked;
  for (Patience P;;) {
    bool Any = post();
    while (U->ucp_worker_progress(Worker))
      Any = true;
    Any |= sweep();
    for (uint32_t R = 0; R < Size; ++R)
      while (R != Rank && receive(R))
        Any = true;
    auto Now = Group::Clock::now();
    if (Now - Looked > std::chrono::milliseconds(5)) {
      Looked = Now;
      watch();
    }
    if (Closing) {
      if (!Began)
        Began = Now;
      if (!Since || Any) // bytes still move
        Since = Now;
      if (isQuiet() || Now - *Since > leaving || Now - *Began > leavingAtMost)
        return;
    }
    if (Any) {
      Moved = Now;
      P.reset();
    } else if (Now - Moved < std::chrono::milliseconds(1)) {
      P.wait();
    } else {
      sleep();
    }
  }
}

// Returns whether nobody here has anything to say or to hear any more.
bool Wire::isQuiet() const {
  if (IsFull || !Under.empty())
    return false;
  for (uint32_t R = 0; R < Size; ++R)
    if (R != Rank && !Peers[R].IsGone && !Peers[R].HasHeard)
      return false;
  return true;
}

void Wire::sleep() {
  Sleeps = true;
  if (!IsFull && U->ucp_worker_arm(Worker) == UCS_OK) {
    std::vector<pollfd> Polled = {{WorkerFd, POLLIN, 0}};
    for (const Descriptor &S : All.Sockets)
      if (S)
        Polled.push_back({S.get(), POLLIN, 0});
    // Connections of lost ranks end after a while.
    poll(Polled.data(), Polled.size(), 50);
  }
  Sleeps = false;
}

bool Wire::post() {
  if (!IsFull)
    return false;
  decltype(Box) Taken;
  {
    std::lock_guard<std::mutex> Guard(Lock);
    Taken.swap(Box);
    IsFull = false;
  }
  ucp_request_param_t Usual{};
  for (auto &[To, M] : Taken) {
    Peer &P = Peers[To];
    if (P.Lost)
      continue;
    Under.push_back(std::move(M));
    Message &Sent = Under.back();
    const char *Bytes = Sent.Bytes ? Sent.Bytes : Sent.Own.data();
    Sent.Requests[0] = U->ucp_tag_send_nbx(P.End, &Sent.H, sizeof(Head),
                                           tagOf(Rank, false), &Usual);
    if (Sent.Bytes || !Sent.Own.empty())
      Sent.Requests[1] = U->ucp_tag_send_nbx(P.End, Bytes, Sent.H.Value,
                                             tagOf(Rank, true), &Usual);
    for (void *R : Sent.Requests)
      if (isError(R))
        lose(To);
  }
  return true;
}

// Forgets sent messages; a deque keeps the others where they are.
bool Wire::sweep() {
  bool Any = false;
  while (!Under.empty()) {
    bool IsDone = U->isDone(Under.front().Requests[0]);
    IsDone = U->isDone(Under.front().Requests[1]) && IsDone;
    if (!IsDone)
      break;
    Under.pop_front();
    Any = true;
  }
  return Any;
}

// Expects bytes of a rank: a head, if `To` is null.
void Wire::expect(uint32_t R, void *To, size_t Bytes) {
  Peer &P = Peers[R];
  P.InBody = To != nullptr;
  ucp_request_param_t Usual{};
  Usual.op_attr_mask = ucp_request_param_t::NO_IMM_CMPL;
  P.Request =
      U->ucp_tag_recv_nbx(Worker, To ? To : &P.H, To ? Bytes : sizeof(Head),
                          tagOf(R, P.InBody), ~ucp_tag_t(0), &Usual);
  if (isError(P.Request)) {
    P.Request = nullptr;
    lose(R);
  }
}

// Returns whether one more message, or the head of one, has come.
bool Wire::receive(uint32_t R) {
  Peer &P = Peers[R];
  ucp_tag_recv_info_t Info{};
  if (!P.Request)
    return false;
  ucs_status_t Status = U->ucp_tag_recv_request_test(P.Request, &Info);
  if (Status == UCS_INPROGRESS)
    return false;
  U->ucp_request_free(P.Request);
  P.Request = nullptr;
  if (Status != UCS_OK || Info.length != (P.InBody ? P.H.Value : sizeof(Head)))
    return hasFailed(R, "sent what is no message");
  return accept(R);
}

bool Wire::accept(uint32_t R) {
  Peer &P = Peers[R];
  switch (P.H.Kind) {
  case What::Word:
    if (!For->set(R, P.H.At, P.H.Value))
      return hasFailed(R, "set what is no word of its own");
    break;
  case What::Text:
  case What::Data:
    if (P.InBody)
      break;
    if (char *To = For->place(R, P.H.Kind, P.H.At, P.H.Value)) {
      expect(R, To, P.H.Value);
      return true;
    }
    return hasFailed(R, "wrote beyond its own memory");
  case What::End:
    if (P.InBody) {
      For->ended(P.Text);
      break;
    }
    if (!P.H.Value || P.H.Value > mostTextBytes)
      return hasFailed(R, "sent what is no reason");
    P.Text.resize(P.H.Value);
    expect(R, P.Text.data(), P.Text.size());
    return true;
  case What::Leaves: {
    // The lock is taken also while this rank leaves.
    std::lock_guard<std::mutex> Guard(Lock);
    Box.emplace_back(R, Message{{What::Heard, 0, 0, 0}, {}, nullptr, {}});
    IsFull = true;
    break;
  }
  case What::Heard:
    P.HasHeard = true;
    break;
  default:
    return hasFailed(R, "sent what is no message");
  }
  expect(R, nullptr, 0);
  return true;
}

bool Wire::hasFailed(uint32_t R, const std::string &Why) {
  if (!Peers[R].Lost && !Closing)
    For->ended(concat("rank ", R, " ", Why));
  lose(R);
  return false;
}

void Wire::lose(uint32_t R) { onError(&Peers[R], nullptr, UCS_OK); }

// Looks for connections that have ended. Rank 0 sends the others a byte with
// the number of each rank that is gone.
void Wire::watch() {
  for (uint32_t R = 0; R < Size && !All.Sockets.empty(); ++R) {
    Descriptor &S = All.Sockets[R];
    uint8_t Said = 0;
    ssize_t N = S ? recv(S.get(), &Said, 1, MSG_DONTWAIT) : -1;
    if (!S || (N < 0 && (errno == EAGAIN || errno == EINTR)))
      continue;
    if (N == 1 && Rank && Said < Size && Said != Rank) {
      lose(Said);
      continue;
    }
    S.close();
    lose(R);
  }
  for (uint32_t R = 0; R < Size; ++R) {
    Peer &P = Peers[R];
    if (!P.Lost || P.IsGone || Group::Clock::now() - *P.Lost < grace)
      continue;
    P.IsGone = true;
    auto Name = static_cast<uint8_t>(R);
    for (Descriptor &S : All.Sockets)
      if (S && Rank == 0)
        (void)::send(S.get(), &Name, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
}

} // namespace greta::rt::comm
