// PeerTest.cpp: devices by UUID, and copies between devices and streams.
#include "TestPackage.h"
#include "greta_runtime.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

using namespace greta_test;

namespace {

constexpr size_t pieceWords = 3 << 20; // two pieces

std::vector<std::unique_ptr<greta::Runtime>> devices() {
  std::vector<std::unique_ptr<greta::Runtime>> All;
  for (const char *Spec : {"host", "vulkan", "sim:gfx942", "hip"}) {
    try {
      All.push_back(std::make_unique<greta::Runtime>(Spec));
    } catch (const greta::Error &) {
    }
  }
  return All;
}

TEST(Peer, CopiesBetweenAnyTwoDevices) {
  std::vector<uint32_t> Data(pieceWords), Got(pieceWords);
  for (size_t I = 0; I < pieceWords; ++I)
    Data[I] = static_cast<uint32_t>(I * 2654435761u);
  auto All = devices();
  ASSERT_GE(All.size(), 2u);
  for (const auto &From : All)
    for (const auto &To : All) {
      greta::Stream Out = From->stream(), In = To->stream();
      greta::Buffer A = From->allocate(pieceWords * 4),
                    B = To->allocate(pieceWords * 4);
      Out.write(A, Data.data(), pieceWords * 4);
      In.copyPeer(B, Out, A, pieceWords * 4);
      Out.fill(A, pieceWords * 4, 0); // behind the copy
      In.read(B, Got.data(), pieceWords * 4);
      EXPECT_EQ(Got, Data) << From->info() << To->info();
    }
}

// The fake's devices copy by themselves where they say that they can and a test
// of it is right, else through the host. A process finds that out once.
TEST(Peer, HipDevicesCopyFromEachOther) {
  void *Library = dlopen(GRETA_TEST_FAKE_HIP, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(Library, nullptr) << dlerror();
  auto Peers = reinterpret_cast<int (*)(int)>(dlsym(Library, "fake_hip_peers"));
  auto Faults = reinterpret_cast<int (*)()>(dlsym(Library, "fake_hip_faults"));
  int Before = Faults();
  enum { None, Right, Wrong }; // FakeHip.cpp
  std::vector<uint32_t> Data(pieceWords), Got(pieceWords);
  for (size_t I = 0; I < pieceWords; ++I)
    Data[I] = static_cast<uint32_t>(I * 2654435761u);
  for (int How : {None, Wrong, Right}) {
    Peers(How);
    greta::Runtime From("hip:0"), To("hip:1");
    greta::Stream Out = From.stream(), In = To.stream();
    auto Copy = [&](size_t Bytes) {
      greta::Buffer A = From.allocate(pieceWords * 4),
                    B = To.allocate(pieceWords * 4);
      Out.write(A, Data.data(), pieceWords * 4);
      In.copyPeer(B, Out, A, Bytes);
      Out.fill(A, pieceWords * 4, 0); // behind the copy
      In.read(B, Got.data(), Bytes);
      return std::equal(Got.begin(), Got.begin() + Bytes / 4, Data.begin());
    };
    // The test is one copy, and each of these one.
    EXPECT_TRUE(Copy(pieceWords * 4)) << How;
    EXPECT_TRUE(Copy(4)) << How;
    EXPECT_EQ(Peers(How), How == None ? 0 : How == Wrong ? 1 : 3);
    From.close();
    To.close();
  }
  Peers(Right);
  EXPECT_EQ(Faults(), Before);
  dlclose(Library);
}

TEST(Peer, RefusesWhatIsNoCopyBetweenStreams) {
  greta::Runtime Host("host");
  greta::Stream A = Host.stream(), B = Host.stream();
  greta::Buffer Buffer = Host.allocate(64);
  auto Refusal = [&](greta::Stream &To, greta::Stream &From, size_t Bytes) {
    try {
      To.copyPeer(Buffer, From, Buffer, Bytes);
    } catch (const greta::Error &E) {
      return std::string(E.what());
    }
    return std::string();
  };
  EXPECT_NE(Refusal(A, A, 4).find("takes two"), std::string::npos);
  EXPECT_NE(Refusal(A, B, 65).find("leaves the buffer"), std::string::npos);
  A.capture([&] {
    EXPECT_NE(Refusal(A, B, 4).find("a graph cannot record a copy between"),
              std::string::npos);
  });
}

class Uuids : public testing::TestWithParam<std::string> {};

TEST_P(Uuids, OpenDevices) {
  std::string Kind = GetParam(), Uuid;
  for (const nlohmann::json &D :
       nlohmann::json::parse(greta::Runtime::devices()))
    if (D.value("spec", "") == Kind + ":0" && D.value("available", false))
      Uuid = D["uuid"];
  if (Uuid.empty())
    GTEST_SKIP() << "no device of " << Kind;
  EXPECT_EQ(Uuid.size(), 32u);
  greta::Runtime R(Kind + ":" + Uuid);
  EXPECT_EQ(nlohmann::json::parse(R.info())["spec"], Kind + ":0");
  try {
    greta::Runtime None(Kind + ":0123456789abcdef0123456789abcdef");
    FAIL();
  } catch (const greta::Error &E) {
    EXPECT_EQ(E.status(), GRETA_ERROR_NOT_FOUND);
    EXPECT_NE(std::string(E.what()).find("has the UUID 0123"),
              std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Uuids, testing::Values("vulkan", "hip"),
                         [](const auto &I) { return I.param; });

} // namespace
