// CommNetworkTest.cpp: ranks that find each other by an address, and what comes
// from a network: strangers, and ranks that say what no rank says.
#include "CommTest.h"
#include "Error.h"
#include "comm/Wire.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <dlfcn.h>
#include <sys/wait.h>

using namespace greta_test;
using namespace greta::rt::comm;

// So many sockets get the port that they connect to, as the kernel may choose
// where nobody listens.
static std::atomic<int> OwnPorts{0};

// The whole program's.
int connect(int Fd, const sockaddr *To, socklen_t Length) {
  static const auto Real =
      reinterpret_cast<decltype(&connect)>(dlsym(RTLD_NEXT, "connect"));
  if (OwnPorts > 0 && To->sa_family == AF_INET && OwnPorts-- > 0)
    EXPECT_EQ(bind(Fd, To, Length), 0) << strerror(errno);
  return Real(Fd, To, Length);
}

namespace {

Group::Place placeAt(const std::string &Address) {
  Group::Place At;
  At.Address = Address;
  return At;
}

TEST(CommNetwork, RefusesWhatIsNoAddress) {
  greta::Runtime R("host");
  greta_comm_id Id = greta::Comm::uniqueId();
  greta_comm_options O = options(0, 2, Id);
  O.timeout_milliseconds = 200;
  for (const char *Wrong :
       {"", "localhost", "localhost:", ":29500", "localhost:0",
        "localhost:65536", "localhost:1x", "[]:1"}) {
    O.address = Wrong;
    EXPECT_REFUSED("is no address", R.comm(O)) << Wrong;
  }
  O.address = "192.0.2.1:29500"; // of no host
  EXPECT_REFUSED("cannot listen at", R.comm(O));
  std::string Nobody = freeAddress();
  O.address = Nobody.c_str();
  EXPECT_NE(refusal([&] { R.comm(O); }, GRETA_ERROR_PEER_LOST)
                .find("waited for rank 1: 1 of 2 ranks"),
            std::string::npos);
  O.rank = 1;
  EXPECT_NE(refusal([&] { R.comm(O); }, GRETA_ERROR_PEER_LOST)
                .find("has waited for rank 0 at"),
            std::string::npos);
}

sockaddr_in socketAddress(const std::string &Address) {
  sockaddr_in At{};
  At.sin_family = AF_INET;
  At.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  At.sin_port = htons(
      static_cast<uint16_t>(std::stoi(Address.substr(Address.find(':') + 1))));
  return At;
}

Descriptor streamSocket() {
  return Descriptor(
      [] { return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); });
}

// A stranger's connection, as soon as somebody listens.
Descriptor connected(const std::string &Address) {
  Descriptor S = streamSocket();
  sockaddr_in To = socketAddress(Address);
  while (connect(S.get(), reinterpret_cast<sockaddr *>(&To), sizeof(To)))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return S;
}

// Why the rank does not meet the other one; "" if it does.
std::string pair(const std::string &Address, uint32_t Number,
                 uint64_t Milliseconds = enough) {
  try {
    Group(placeAt(Address), Number, 2, Milliseconds, 1);
  } catch (const greta::rt::Error &E) {
    return E.what();
  }
  return "";
}

// The second rank 1, one of another size, and one with another id.
TEST(CommNetwork, TheOthersGoOnWithoutWhoIsNone) {
  std::string Address = freeAddress();
  auto Join = [&](uint32_t Number, uint32_t Size, uint64_t Milliseconds,
                  uint8_t Name = 0) {
    Group::Place At = placeAt(Address);
    At.Name[3] = Name;
    std::string Why;
    try {
      Group G(At, Number, Size, Milliseconds, 1);
      EXPECT_EQ(G.meet(std::to_string(Number))[1], "1");
    } catch (const greta::rt::Error &E) {
      Why = E.what();
    }
    return Why;
  };
  std::vector<std::thread> Right;
  Right.emplace_back([&] { EXPECT_EQ(Join(0, 3, enough), ""); });
  Right.emplace_back([&] { EXPECT_EQ(Join(1, 3, enough), ""); });
  EXPECT_NE(Join(2, 4, enough).find("one of 4, rank 0 one of 3"),
            std::string::npos);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_NE(Join(1, 3, enough).find("rank 1 has joined already"),
            std::string::npos);
  EXPECT_NE(Join(2, 3, 200, 9).find("has waited for rank 0"),
            std::string::npos);
  Right.emplace_back([&] { EXPECT_EQ(Join(2, 3, enough), ""); });
  for (std::thread &T : Right)
    T.join();
}

// One says nothing, one says what is no hello, and one half of a hello.
TEST(CommNetwork, StrangersKeepNobodyWaiting) {
  std::string Address = freeAddress();
  std::vector<std::thread> Threads;
  Threads.emplace_back([&] { Group(placeAt(Address), 0, 2, enough, 1); });
  std::vector<Descriptor> Strangers;
  for (const std::string &Said :
       {std::string(), std::string(5000, 'x'), std::string("greten1"),
        std::string(40, '\xff')}) {
    Descriptor S = connected(Address);
    send(S.get(), Said.data(), Said.size(), MSG_NOSIGNAL);
    Strangers.push_back(std::move(S));
  }
  Threads.emplace_back([&] { Group(placeAt(Address), 1, 2, enough, 1); });
  for (std::thread &T : Threads)
    T.join();
}

// A rank that gave up before all had come joins when it comes again.
TEST(CommNetwork, ARankThatLeftComesAgain) {
  std::string Address = freeAddress();
  auto Join = [&](uint32_t Number, uint64_t Milliseconds) {
    std::string Why;
    try {
      Group(placeAt(Address), Number, 3, Milliseconds, 1);
    } catch (const greta::rt::Error &E) {
      Why = E.what();
    }
    return Why;
  };
  std::vector<std::thread> Threads;
  Threads.emplace_back([&] { EXPECT_EQ(Join(0, enough), ""); });
  EXPECT_NE(Join(1, 500).find("did not answer in time"), std::string::npos);
  for (uint32_t Number : {1, 2})
    Threads.emplace_back([&, Number] { EXPECT_EQ(Join(Number, enough), ""); });
  for (std::thread &T : Threads)
    T.join();
}

// Ranks hear from any of them that it does not come, and why.
TEST(CommNetwork, ARankDeclines) {
  for (uint32_t Declining : {0, 1}) {
    std::string Address = freeAddress();
    together(3, [&](uint32_t Number) {
      greta_comm_options O{};
      O.address = Address.c_str();
      O.rank = Number;
      O.size = 3;
      O.timeout_milliseconds = enough;
      if (Number == Declining)
        return greta::Comm::decline(O, "no\nmodel" + std::string(2000, '!'));
      greta::Runtime R("host");
      std::string Why = refusal([&] { R.comm(O); }, GRETA_ERROR_PEER_LOST);
      EXPECT_EQ(Why.find("rank " + std::to_string(Declining) + ": no?model!!!"),
                0u)
          << Why;
      EXPECT_LT(Why.size(), 1000u);
    });
  }
}

TEST(CommNetwork, WhatDeclinesNothing) {
  std::string Address = freeAddress();
  greta_comm_options O{};
  O.address = Address.c_str();
  O.size = 2;
  O.timeout_milliseconds = 50;
  for (O.rank = 0; O.rank < 2; ++O.rank) // nobody comes
    EXPECT_NE(
        refusal([&] { greta::Comm::decline(O, "x"); }, GRETA_ERROR_PEER_LOST)
            .find("has waited for rank"),
        std::string::npos);
  EXPECT_REFUSED("rank 2 of 2", greta::Comm::decline(O, "x"));
  O.rank = 0;
  O.struct_size = sizeof(O);
  EXPECT_EQ(greta_comm_decline(&O, nullptr), GRETA_ERROR_INVALID_ARGUMENT);
}

// Returns the error of a rank that joins after so many milliseconds, while
// another rank declines.
std::string whyNone(greta_comm_options O, int Milliseconds = 0) {
  std::this_thread::sleep_for(std::chrono::milliseconds(Milliseconds));
  greta::Runtime R("host");
  return refusal([&] { R.comm(O); }, GRETA_ERROR_PEER_LOST);
}

// However ranks meet, also the one that comes last hears why.
TEST(CommNetwork, WhoComesLateHearsWhyOneDeclined) {
  const std::string Path = "late-" + std::to_string(getpid());
  for (int Way : {0, 1, 2})
    for (uint32_t Declining : {0, 1}) {
      greta_comm_id Id = greta::Comm::uniqueId();
      const std::string Address = freeAddress();
      together(3, [&](uint32_t Number) {
        greta_comm_options O = options(Number, 3, Id);
        O.id = Way == 0 ? &Id : nullptr;
        O.path = Way == 1 ? Path.c_str() : nullptr;
        O.address = Way == 2 ? Address.c_str() : nullptr;
        if (Number == Declining)
          return greta::Comm::decline(O, "no\nmodel");
        EXPECT_EQ(whyNone(O, Number == 2 ? 300 : 0),
                  "rank " + std::to_string(Declining) + ": no?model");
      });
      EXPECT_NE(access(Path.c_str(), F_OK), 0);
    }
}

TEST(CommNetwork, WhoDeclinesWaitsNoLongerThanItsTime) {
  greta_comm_id Id = greta::Comm::uniqueId();
  greta_comm_options O = options(0, 2, Id);
  O.timeout_milliseconds = 50;
  greta::Comm::decline(O, "x"); // nobody comes
  O.rank = 1;
  EXPECT_NE(
      refusal([&] { greta::Comm::decline(O, "x"); }, GRETA_ERROR_PEER_LOST)
          .find("has waited 50 ms for rank 0"),
      std::string::npos);
}

// Rank 1 declines and rank 2 never comes: rank 0 keeps the reason for its
// time-out, and no longer.
TEST(CommNetwork, RankZeroKeepsAReasonNoLongerThanItsTime) {
  const std::string Path = "never-" + std::to_string(getpid());
  for (int Way : {0, 1, 2}) {
    greta_comm_id Id = greta::Comm::uniqueId();
    const std::string Address = freeAddress();
    const auto Begin = std::chrono::steady_clock::now();
    together(2, [&](uint32_t Number) {
      greta_comm_options O = options(Number, 3, Id);
      O.id = Way == 0 ? &Id : nullptr;
      O.path = Way == 1 ? Path.c_str() : nullptr;
      O.address = Way == 2 ? Address.c_str() : nullptr;
      if (Number == 1)
        return greta::Comm::decline(O, "no model");
      O.timeout_milliseconds = 300;
      EXPECT_EQ(whyNone(O), "rank 1: no model");
    });
    const auto Took = std::chrono::steady_clock::now() - Begin;
    EXPECT_GE(Took, std::chrono::milliseconds(300));
    EXPECT_LT(Took, std::chrono::milliseconds(enough / 2));
    EXPECT_NE(access(Path.c_str(), F_OK), 0);
  }
}

TEST(CommNetwork, RankZeroWaitsForNobodyWhereItsPathCannotBeWritten) {
  greta_comm_options O{};
  O.size = 2;
  O.path = "/no/such/folder/path";
  O.timeout_milliseconds = enough;
  const auto Begin = std::chrono::steady_clock::now();
  greta::Runtime R("host");
  EXPECT_EQ(refusal([&] { R.comm(O); }, GRETA_ERROR_NOT_FOUND),
            "cannot write /no/such/folder/path: No such file or directory");
  EXPECT_LT(std::chrono::steady_clock::now() - Begin,
            std::chrono::milliseconds(enough / 2));
}

// One rank 0 waits to tell why there is none; the next one's id stays.
TEST(CommNetwork, APathHasTheIdOfTheLastRankZero) {
  const std::string Path = "again-" + std::to_string(getpid());
  greta_comm_options O{};
  O.size = 2;
  O.path = Path.c_str();
  O.timeout_milliseconds = 1000;
  std::thread First([&] { greta::Comm::decline(O, "the first"); });
  while (access(Path.c_str(), F_OK))
    std::this_thread::yield();
  greta_comm_options Again = O;
  Again.timeout_milliseconds = enough;
  std::thread Second([&] { greta::Comm::decline(Again, "the second"); });
  First.join();
  Again.rank = 1;
  EXPECT_EQ(whyNone(Again), "rank 0: the second");
  Second.join();
  EXPECT_NE(access(Path.c_str(), F_OK), 0);
}

// A stranger listens where rank 0 will, takes a rank's connection, and never
// answers: the rank tries again.
TEST(CommNetwork, ARankLeavesAListenerThatIsNoRank) {
  std::string Address = freeAddress();
  sockaddr_in At = socketAddress(Address);
  Descriptor Stranger = streamSocket();
  int On = 1;
  setsockopt(Stranger.get(), SOL_SOCKET, SO_REUSEADDR, &On, sizeof(On));
  ASSERT_EQ(bind(Stranger.get(), reinterpret_cast<sockaddr *>(&At), sizeof(At)),
            0);
  ASSERT_EQ(listen(Stranger.get(), 1), 0);
  auto Begin = std::chrono::steady_clock::now();
  std::thread Other([&] { EXPECT_EQ(pair(Address, 1), ""); });
  int Taken = accept(Stranger.get(), nullptr, nullptr);
  Stranger.close();
  EXPECT_EQ(pair(Address, 0), "");
  Other.join();
  close(Taken);
  EXPECT_LT(std::chrono::steady_clock::now() - Begin, std::chrono::seconds(20));
}

// A rank that comes before rank 0 may connect to itself, which is nobody.
TEST(CommNetwork, ARankIsNotItsOwnRank0) {
  std::string Address = freeAddress();
  OwnPorts = 1;
  std::thread Other([&] { EXPECT_EQ(pair(Address, 1), ""); });
  while (OwnPorts > 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(pair(Address, 0), "");
  Other.join();
}

// A process that is forked while rank 0 waits for the others goes on without
// its connections and its port.
TEST(CommNetwork, AForkedProcessKeepsNoPort) {
  std::string Address = freeAddress();
  std::thread First([&] { EXPECT_EQ(pair(Address, 0), ""); });
  Descriptor Stranger = connected(Address);
  pid_t Child = fork();
  if (Child == 0) {
    pause();
    _exit(0);
  }
  EXPECT_EQ(pair(Address, 1), "");
  First.join();
  std::string Why = pair(Address, 0, 200);
  EXPECT_NE(Why.find("waited for rank 1"), std::string::npos) << Why;
  kill(Child, SIGKILL);
  waitpid(Child, nullptr, 0);
}

struct Deaf : Wire::Owner {
  bool set(uint32_t, uint64_t, uint64_t) override { return true; }
  char *place(uint32_t, Wire::What Kind, uint64_t, uint64_t Bytes) override {
    return Kind == Wire::What::Text && Bytes <= sizeof(Room) ? Room : nullptr;
  }
  void ended(const std::string &) override {}
  char Room[4096];
};

// A rank that writes or announces anything beyond its own memory ends the
// communicator, and nothing is written.
TEST(CommNetwork, WhatARankSaysIsChecked) {
  using What = Wire::What;
  const uint64_t Words = offsetof(Group::State, Words);
  struct {
    What Kind;
    uint64_t At, Value;
    const char *Says;
  } Cases[] = {
      {What::Word, Words, 1, "no word of its own"},
      {What::Word, 4, 1, "no word of its own"},
      {What::Word, UINT64_MAX - 7, 1, "no word of its own"},
      {What::Data, UINT64_MAX, 2, "beyond its own memory"},
      {What::Data, 0, 64, "beyond its own memory"}, // rank 0's
      {What::Data, 4 * (64 << 10), UINT64_MAX, "beyond its own memory"},
      {What::Data, 4 * (64 << 10), (4 * 64 << 10) + 1, "beyond its own memory"},
      {What::Data, 4 * (64 << 10), 0, "beyond its own memory"},
      {What::Text, Words - 8, 16, "beyond its own memory"},
      {What::Text, Words, 1025, "beyond its own memory"},
      {What::End, 0, UINT64_MAX, "no reason"},
      {static_cast<What>(77), 0, 0, "no message"},
  };
  for (auto &[Kind, At, Value, Says] : Cases) {
    std::string Address = freeAddress();
    Deaf Owner;
    std::thread Other([&, Kind = Kind, At = At, Value = Value] {
      uint64_t Staging = 0;
      Wire W(Address, {}, 1, 2, std::chrono::milliseconds(enough), Staging);
      W.start(Owner);
      W.send(0, Kind, At, Value);
    });
    std::string Why;
    try {
      Group G(placeAt(Address), 0, 2, enough, 1);
    } catch (const greta::rt::Error &E) {
      Why = E.what();
    }
    Other.join();
    EXPECT_NE(Why.find(Says), std::string::npos) << Why;
  }
}

// The reason for an end came by the network: what is no text is not printed.
TEST(CommNetwork, ReasonsArePrintable) {
  std::string Address = freeAddress();
  Deaf Owner;
  std::thread Other([&] {
    uint64_t Staging = 0;
    Wire W(Address, {}, 1, 2, std::chrono::milliseconds(enough), Staging);
    W.start(Owner);
    W.sendText(0, Wire::What::End, 0, "a\033[2J\xff\n");
  });
  EXPECT_NE(pair(Address, 0).find("the communicator has ended: a?[2J??"),
            std::string::npos);
  Other.join();
}

// All that a rank has sent arrives, however soon the rank leaves.
TEST(CommNetwork, LeavingLosesNothing) {
  for (uint32_t Turn = 0; Turn < 10; ++Turn)
    ranks("host@hosts", 2, [&](Rank &Own) {
      constexpr size_t bytes = 1 << 20;
      greta::Buffer A = Own.R.allocate(bytes);
      if (Own.Number == 0) {
        Own.S.fill(A, bytes, Turn + 1);
        Own.C.send(Own.S, A, bytes, 1);
        Own.S.synchronize();
        return;
      }
      Own.C.receive(Own.S, A, bytes, 0);
      std::vector<uint32_t> Got(bytes / 4);
      Own.S.read(A, Got.data(), bytes);
      EXPECT_EQ(Got, std::vector<uint32_t>(bytes / 4, Turn + 1));
    });
}

TEST(CommNetwork, IsSaidInTheInfo) {
  ranks("host@hosts", 2, [](Rank &Own) {
    EXPECT_NE(Own.C.info().find("\"between_hosts\": \"UCX 1."),
              std::string::npos)
        << Own.C.info();
    EXPECT_NE(Own.C.info().find("ranks share no memory of a host"),
              std::string::npos);
  });
}

} // namespace
