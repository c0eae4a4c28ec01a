// Rendezvous.cpp: see Rendezvous.h. Whoever reaches the port can write to it,
// so every size here is checked (UCX reads its own addresses), and a stranger's
// connection is closed and keeps nobody waiting.
#include "comm/Rendezvous.h"
#include "Error.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <optional>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace greta::rt::comm {
namespace {

constexpr uint64_t helloMagic =
    0x33746e65'72657467; // changes with the messages
constexpr size_t mostWordBytes = size_t(64) << 10;
constexpr size_t mostStrangers = 256;
// Rank 0 welcomes a rank at once, though it may wait long for the others.
constexpr std::chrono::milliseconds welcomeTime(2000);
// A rank that rank 0 has welcomed waits so long for another one, as rank 0 has
// ended, unless it has closed the connection of a stranger too many.
constexpr std::chrono::milliseconds secondWelcome(2000);
using Clock = Group::Clock;

struct Hello { // a rank's word follows
  uint64_t Magic;
  Group::Id Name;
  uint32_t Rank, Size, WordBytes;
  uint32_t Declines; // 1: the word is the reason why the rank does not come
};
struct Answer { // the words of all, or why there is no meeting, follow
  enum : uint32_t { Words, Refused, Welcome, Declined };
  uint64_t Magic, Staging;
  uint32_t What, TextBytes;
};

std::string problem() { return strerror(errno); }

bool isLoopback(const addrinfo *A) {
  if (A->ai_family != AF_INET)
    return false;
  auto *At = reinterpret_cast<const sockaddr_in *>(A->ai_addr);
  return ntohl(At->sin_addr.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
}

struct Resolved {
  explicit Resolved(const std::string &Address, bool Listens) {
    size_t Colon = Address.rfind(':');
    std::string Host = Address.substr(0, Colon), Port;
    if (Colon != std::string::npos)
      Port = Address.substr(Colon + 1);
    if (Host.size() >= 2 && Host.front() == '[' && Host.back() == ']')
      Host = Host.substr(1, Host.size() - 2);
    if (Host.empty() || Port.empty() || Port.size() > 5 ||
        Port.find_first_not_of("0123456789") != std::string::npos ||
        std::stoul(Port) - 1 >= 65535)
      fail(GRETA_ERROR_INVALID_ARGUMENT, "'", printable(Address),
           "' is no address: it is host:port of rank 0");
    addrinfo Hints{};
    Hints.ai_socktype = SOCK_STREAM;
    Hints.ai_flags = AI_NUMERICSERV | (Listens ? AI_PASSIVE : 0);
    if (int Code = getaddrinfo(Host.c_str(), Port.c_str(), &Hints, &First))
      fail(GRETA_ERROR_NOT_FOUND, "the host of '", printable(Address),
           "' was not found: ", gai_strerror(Code));
    // A host's own name is often a loopback address (127.0.1.1 on Debian),
    // where no other host comes.
    in6_addr Literal;
    bool IsName = Host != "localhost" &&
                  inet_pton(AF_INET, Host.c_str(), &Literal) != 1 &&
                  inet_pton(AF_INET6, Host.c_str(), &Literal) != 1;
    if (!Listens || !IsName || !isLoopback(First))
      return;
    freeaddrinfo(std::exchange(First, nullptr));
    if (int Code = getaddrinfo(nullptr, Port.c_str(), &Hints, &First))
      fail(GRETA_ERROR_NOT_FOUND,
           "no address to listen at: ", gai_strerror(Code));
  }
  ~Resolved() { freeaddrinfo(First); }
  Resolved(const Resolved &) = delete;
  addrinfo *First = nullptr;
};

// A host that loses its power falls silent, so the kernel probes it.
void keepAlive(int Fd) {
  auto Set = [&](int Level, int Name, int Value) {
    (void)setsockopt(Fd, Level, Name, &Value, sizeof(Value));
  };
  Set(SOL_SOCKET, SO_KEEPALIVE, 1);
  Set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
  Set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  Set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  Set(IPPROTO_TCP, TCP_NODELAY, 1);
}

// Rank 0 can listen beside remaining connections of its port if all sockets
// allow it, also those of ranks that the kernel gave this port.
Descriptor socketOf(const addrinfo &A) {
  Descriptor S([&] {
    return socket(A.ai_family, A.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                  A.ai_protocol);
  });
  int On = 1;
  if (S)
    (void)setsockopt(S.get(), SOL_SOCKET, SO_REUSEADDR, &On, sizeof(On));
  return S;
}

class Deadline {
public:
  explicit Deadline(std::chrono::milliseconds Time)
      : End(Clock::now() + Time) {}
  int left() const {
    return static_cast<int>(std::max<int64_t>(
        0, std::chrono::duration_cast<std::chrono::milliseconds>(End -
                                                                 Clock::now())
               .count()));
  }
  bool isOver() const { return Clock::now() >= End; }

private:
  Clock::time_point End;
};

// Moves all bytes; returns why not.
std::string move(const Descriptor &S, char *Data, size_t Bytes, bool Sends,
                 const Deadline &D) {
  for (size_t Done = 0; Done < Bytes;) {
    pollfd P{S.get(), static_cast<short>(Sends ? POLLOUT : POLLIN), 0};
    if (poll(&P, 1, D.left()) <= 0) {
      if (D.isOver())
        return "it did not answer in time";
      continue;
    }
    ssize_t N = Sends ? send(S.get(), Data + Done, Bytes - Done,
                             MSG_NOSIGNAL | MSG_DONTWAIT)
                      : recv(S.get(), Data + Done, Bytes - Done, MSG_DONTWAIT);
    if (N > 0)
      Done += static_cast<size_t>(N);
    else if (N == 0)
      return "the connection has ended";
    else if (errno != EAGAIN && errno != EINTR)
      return problem();
  }
  return "";
}

std::string sendAll(const Descriptor &S, std::string Text, const Deadline &D) {
  return move(S, Text.data(), Text.size(), true, D);
}

// A reason, as one line. A program or the network brought it.
std::string lineOf(const std::string &Reason) {
  return printable(Reason, Group::wordBytes);
}

template <typename T> std::string bytesOf(const T &Value) {
  return std::string(reinterpret_cast<const char *>(&Value), sizeof(Value));
}

// Rank 0's side. A connection is a stranger's until its hello and word are
// there, and a byte that follows rank 0's welcome: a rank that was not welcomed
// in time has come again.
class Listener {
public:
  Listener(const std::string &Address, const Group::Id &Name, uint32_t Size,
           const Deadline &D)
      : Name(Name), Size(Size), D(D), Sockets(Size), Words(Size) {
    Resolved Where(Address, /*Listens=*/true);
    std::string Why;
    for (addrinfo *A = Where.First; A && !Listening; A = A->ai_next) {
      Descriptor S = socketOf(*A);
      if (S && !bind(S.get(), A->ai_addr, A->ai_addrlen) &&
          !listen(S.get(), SOMAXCONN))
        Listening = std::move(S);
      else
        Why = problem();
    }
    if (!Listening)
      fail(GRETA_ERROR_INVALID_ARGUMENT, "rank 0 cannot listen at ",
           printable(Address), ": ", Why);
  }

  Met run(const std::string &Word, uint64_t Staging) {
    Words[0] = Word;
    while (Came < Size) {
      takeTurn();
      if (!WhyNone.empty())
        tellWhyNone();
      // The others have no use for the word of a rank that has given up.
      for (Descriptor &S : Sockets)
        if (S && hasEnded(S)) {
          S.close();
          --Came;
        }
    }
    std::string All;
    for (const std::string &W : Words)
      All += bytesOf(static_cast<uint32_t>(W.size())) + W;
    Answer A{helloMagic, Staging, Answer::Words,
             static_cast<uint32_t>(All.size())};
    for (uint32_t R = 1; R < Size; ++R)
      if (std::string Why = sendAll(Sockets[R], bytesOf(A) + All, D);
          !Why.empty())
        fail(GRETA_ERROR_PEER_LOST, "rank ", R, " is gone: ", Why);
    return {std::move(Words), std::move(Sockets), Staging};
  }

  // Tells each that comes why there is no meeting; who has ended meanwhile
  // needs no reason.
  void decline(const std::string &Reason) {
    std::vector<bool> Knows(Size);
    for (uint32_t Left = Size - 1;;) {
      for (uint32_t R = 1; R < Size; ++R)
        if (Sockets[R] && !Knows[R]) {
          (void)sayWhyNone(Sockets[R], Answer::Declined, Reason);
          Knows[R] = true;
          --Left;
        }
      if (!Left)
        return;
      takeTurn();
    }
  }

private:
  struct Stranger {
    Descriptor At;
    std::string Said;
    bool IsWelcome = false;
  };

  // Hears who has something to say, and takes who comes.
  void takeTurn() {
    std::vector<pollfd> Polled = {{Listening.get(), POLLIN, 0}};
    for (const Stranger &S : Strangers)
      Polled.push_back({S.At.get(), POLLIN, 0});
    int Found = poll(Polled.data(), Polled.size(), D.left());
    if (D.isOver())
      failForTime();
    if (Found <= 0)
      return;
    for (size_t I = Strangers.size(); I-- > 0;)
      if (Polled[I + 1].revents && !hear(Strangers[I]))
        Strangers.erase(Strangers.begin() + static_cast<ptrdiff_t>(I));
    if (Polled[0].revents)
      accept();
  }

  [[noreturn]] void tellWhyNone() {
    std::string Why = WhyNone;
    try {
      decline(Why);
    } catch (const Error &) { // one has not come
    }
    fail(GRETA_ERROR_PEER_LOST, Why);
  }

  [[noreturn]] void failForTime() {
    uint32_t R = 1;
    while (Sockets[R])
      ++R;
    fail(GRETA_ERROR_PEER_LOST, "rank 0 has waited for rank ", R, ": ", Came,
         " of ", Size, " ranks came in time");
  }

  void accept() {
    Descriptor S([&] {
      return accept4(Listening.get(), nullptr, nullptr,
                     SOCK_CLOEXEC | SOCK_NONBLOCK);
    });
    if (!S)
      return;
    keepAlive(S.get());
    if (Strangers.size() == mostStrangers)
      Strangers.erase(Strangers.begin());
    Strangers.push_back({std::move(S), "", false});
  }

  // Returns whether the process at the other end is gone; it may come again.
  static bool hasEnded(const Descriptor &S) {
    char C;
    ssize_t N = recv(S.get(), &C, 1, MSG_PEEK | MSG_DONTWAIT);
    return N == 0 || (N < 0 && errno != EAGAIN && errno != EINTR);
  }

  static std::string say(const Descriptor &S, const std::string &Text) {
    return sendAll(S, Text, Deadline(std::chrono::milliseconds(1000)));
  }

  static std::string sayWhyNone(const Descriptor &S, uint32_t What,
                                const std::string &Why) {
    Answer A{helloMagic, 0, What, static_cast<uint32_t>(Why.size())};
    return say(S, bytesOf(A) + Why);
  }

  // Reads from a stranger; returns whether it stays one.
  bool hear(Stranger &S) {
    char Buffer[4096];
    ssize_t N = recv(S.At.get(), Buffer, sizeof(Buffer), 0);
    if (N <= 0)
      return N < 0 && (errno == EAGAIN || errno == EINTR);
    S.Said.append(Buffer, static_cast<size_t>(N));
    if (S.Said.size() < sizeof(Hello))
      return true;
    Hello H;
    memcpy(&H, S.Said.data(), sizeof(H));
    const size_t Bytes = sizeof(H) + H.WordBytes;
    if (H.Magic != helloMagic || H.Name != Name ||
        H.WordBytes > mostWordBytes || S.Said.size() > Bytes + S.IsWelcome)
      return false;
    if (S.Said.size() < Bytes)
      return true;
    std::string Refusal;
    if (H.Size != Size)
      Refusal = concat("rank ", H.Rank, " is one of ", H.Size,
                       ", rank 0 one of ", Size);
    else if (!H.Rank || H.Rank >= Size ||
             (Sockets[H.Rank] && !hasEnded(Sockets[H.Rank])))
      Refusal = concat("rank ", H.Rank, " has joined already");
    if (!Refusal.empty()) {
      (void)sayWhyNone(S.At, Answer::Refused, Refusal);
      return false;
    }
    if (!S.IsWelcome) {
      S.IsWelcome = true;
      return say(S.At, bytesOf(Answer{helloMagic, 0, Answer::Welcome, 0}))
          .empty();
    }
    if (S.Said.size() == Bytes)
      return true;
    Words[H.Rank] = S.Said.substr(sizeof(H), H.WordBytes);
    if (H.Declines)
      WhyNone = concat("rank ", H.Rank, ": ", lineOf(Words[H.Rank]));
    Came += !Sockets[H.Rank];
    Sockets[H.Rank] = std::move(S.At);
    return false;
  }

  const Group::Id Name;
  const uint32_t Size;
  Deadline D;
  Descriptor Listening;
  std::vector<Stranger> Strangers;
  std::vector<Descriptor> Sockets;
  std::vector<std::string> Words;
  uint32_t Came = 1;   // who has a socket, and rank 0
  std::string WhyNone; // a rank does not come
};

// Returns whether TCP connected a socket with itself: it does if nobody listens
// at a port from which the kernel serves clients, and it took just that one.
bool isOwn(const Descriptor &S) {
  sockaddr_storage Here{}, There{};
  socklen_t HereBytes = sizeof(Here), ThereBytes = sizeof(There);
  return !getsockname(S.get(), reinterpret_cast<sockaddr *>(&Here),
                      &HereBytes) &&
         !getpeername(S.get(), reinterpret_cast<sockaddr *>(&There),
                      &ThereBytes) &&
         HereBytes == ThereBytes && !memcmp(&Here, &There, HereBytes);
}

Descriptor connectOnce(const Resolved &Where, const Deadline &D,
                       std::string &Why) {
  for (addrinfo *A = Where.First; A; A = A->ai_next) {
    Descriptor S = socketOf(*A);
    if (!S) {
      Why = problem();
      continue;
    }
    int Code = connect(S.get(), A->ai_addr, A->ai_addrlen) ? errno : 0;
    if (Code == EINPROGRESS) {
      pollfd P{S.get(), POLLOUT, 0};
      socklen_t Length = sizeof(Code);
      if (poll(&P, 1, std::min(D.left(), 5000)) <= 0)
        Code = ETIMEDOUT;
      else if (getsockopt(S.get(), SOL_SOCKET, SO_ERROR, &Code, &Length))
        Code = errno;
    }
    if (!Code && isOwn(S))
      Code = ECONNREFUSED;
    if (!Code) {
      keepAlive(S.get());
      return S;
    }
    Why = strerror(Code);
  }
  return Descriptor();
}

Met join(const std::string &Address, const Hello &H, const std::string &Word,
         const Deadline &D) {
  Resolved Where(Address, /*Listens=*/false);
  std::string Why = "no time";
  std::optional<Deadline> Left; // since rank 0 was there
  auto Fail = [&] {
    fail(GRETA_ERROR_PEER_LOST, "rank ", H.Rank, " of ", H.Size,
         " has waited for rank 0 at ", printable(Address), ": ", Why);
  };
  while (true) {
    // Rank 0 may listen later, and another communicator or a stranger may have
    // the port.
    Descriptor S = connectOnce(Where, D, Why);
    Answer A{};
    auto Receive = [&](void *To, size_t Bytes, const Deadline &Until) {
      Why = move(S, static_cast<char *>(To), Bytes, false, Until);
      return Why.empty();
    };
    auto Hear = [&](const Deadline &Until) {
      if (!Receive(&A, sizeof(A), Until))
        return false;
      if (A.Magic != helloMagic ||
          A.TextBytes > Group::maxRanks * (mostWordBytes + 4))
        fail(GRETA_ERROR_INVALID_ARGUMENT, "what listens at ",
             printable(Address), " is no rank 0 of this version");
      return true;
    };
    // Rank 0 has a rank's word when it answers to that.
    auto HearMore = [&] {
      Left.reset();
      if ((Why = sendAll(S, "!", D)).empty() && Hear(D))
        return true;
      Left.emplace(secondWelcome);
      return false;
    };
    Deadline Soon(std::min(welcomeTime, std::chrono::milliseconds(D.left())));
    if (S && (Why = sendAll(S, bytesOf(H) + Word, Soon)).empty() &&
        Hear(Soon) && (A.What != Answer::Welcome || HearMore())) {
      std::string Text(A.TextBytes, 0);
      if (!Receive(Text.data(), Text.size(), D))
        Fail();
      if (A.What == Answer::Refused)
        fail(GRETA_ERROR_INVALID_ARGUMENT, printable(Text));
      if (A.What == Answer::Declined) {
        if (H.Declines)
          return {}; // rank 0 tells all ranks
        fail(GRETA_ERROR_PEER_LOST, lineOf(Text));
      }
      Met Made;
      Made.Staging = A.Staging;
      for (size_t At = 0; Made.Words.size() < H.Size;) {
        uint32_t Bytes = 0;
        if (Text.size() - At >= sizeof(Bytes))
          memcpy(&Bytes, &Text[At], sizeof(Bytes));
        At += sizeof(Bytes);
        if (At > Text.size() || Bytes > Text.size() - At)
          fail(GRETA_ERROR_INVALID_ARGUMENT, "what rank 0 says ends early");
        Made.Words.push_back(Text.substr(At, Bytes));
        At += Bytes;
      }
      Made.Sockets.resize(H.Size);
      Made.Sockets[0] = std::move(S);
      return Made;
    }
    bool HasEnded = Left && Left->isOver();
    if (HasEnded)
      Why = "it has ended before all ranks had come";
    if (HasEnded || D.isOver())
      Fail();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

} // namespace

Met rendezvous(const std::string &Address, const Group::Id &Name, uint32_t Rank,
               uint32_t Size, std::chrono::milliseconds Timeout,
               const std::string &Word, uint64_t Staging) {
  Deadline D(Timeout);
  if (Word.size() > mostWordBytes)
    fail(GRETA_ERROR_INTERNAL, "a rank's address has ", Word.size(), " bytes");
  if (Rank == 0)
    return Listener(Address, Name, Size, D).run(Word, Staging);
  Hello H{helloMagic, Name, Rank, Size, static_cast<uint32_t>(Word.size()), 0};
  return join(Address, H, Word, D);
}

void decline(const std::string &Address, const Group::Id &Name, uint32_t Rank,
             uint32_t Size, std::chrono::milliseconds Timeout,
             const std::string &Reason) {
  Deadline D(Timeout);
  const std::string Why = lineOf(Reason);
  if (Rank == 0)
    return Listener(Address, Name, Size, D).decline(concat("rank 0: ", Why));
  Hello H{helloMagic, Name, Rank, Size, static_cast<uint32_t>(Why.size()), 1};
  (void)join(Address, H, Why, D);
}

} // namespace greta::rt::comm
