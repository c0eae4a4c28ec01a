// FilesTest.cpp: writing files while signals arrive, and the cache while others
// write to it.
#include "Files.h"
#include "TestPackage.h"

#include <atomic>
#include <csignal>
#include <gtest/gtest.h>
#include <pthread.h>
#include <thread>
#include <unistd.h>

using namespace greta::rt;

namespace {

std::atomic<int> Signals{0};

// A pipe that nobody reads stops the writer, which is then interrupted.
TEST(Files, WritesGoOnAfterSignals) {
  struct sigaction Count{}, Old;
  Count.sa_handler = [](int) { ++Signals; }; // without SA_RESTART
  ASSERT_EQ(sigaction(SIGUSR1, &Count, &Old), 0);
  int Ends[2];
  ASSERT_EQ(pipe(Ends), 0);
  std::vector<uint8_t> Sent(1u << 20), Got;
  for (size_t I = 0; I < Sent.size(); ++I)
    Sent[I] = static_cast<uint8_t>(I * 7 / 3);
  std::atomic<bool> Good{false}, Ended{false};
  std::thread Writer([&] {
    Good = writeAll(Ends[1], Sent.data(), Sent.size());
    Ended = true;
    close(Ends[1]);
  });
  for (int I = 1; I <= 5 && !Ended; ++I) {
    pthread_kill(Writer.native_handle(), SIGUSR1);
    while (Signals < I && !Ended)
      std::this_thread::yield();
  }
  uint8_t Part[4096];
  for (ssize_t N; (N = read(Ends[0], Part, sizeof(Part))) > 0;)
    Got.insert(Got.end(), Part, Part + N);
  Writer.join();
  close(Ends[0]);
  sigaction(SIGUSR1, &Old, nullptr);
  EXPECT_TRUE(Good);
  EXPECT_TRUE(Got == Sent);
}

TEST(Files, FailedWritesAreReported) {
  EXPECT_FALSE(writeAll(-1, "x", 1));
  EXPECT_TRUE(writeAll(-1, "x", 0));
}

// Many write and read one entry of the cache, as processes that compile for one
// driver do: whoever reads it gets all of what one of them wrote.
TEST(Files, CacheEntriesAreWholeAmongWriters) {
  std::string Folder = greta_test::temporaryFolder();
  const char *Old = getenv("XDG_CACHE_HOME");
  std::string Before = Old ? Old : "";
  setenv("XDG_CACHE_HOME", Folder.c_str(), 1);
  auto Work = [](uint8_t Own) {
    size_t Read = 0;
    for (unsigned I = 0; I < 50; ++I) {
      writeCache("shared", std::vector<uint8_t>(200000 + Own * 1000 + I, Own));
      std::vector<uint8_t> Bytes;
      if (!readCache("shared", Bytes))
        return false; // it was there before
      size_t Size = 200000 + Bytes[0] * 1000u;
      Read += Bytes == std::vector<uint8_t>(Bytes.size(), Bytes[0]) &&
              Bytes.size() >= Size && Bytes.size() < Size + 50;
    }
    return Read == 50;
  };
  std::vector<std::thread> Threads;
  std::atomic<int> Whole{0};
  for (uint8_t Own = 1; Own <= 8; ++Own)
    Threads.emplace_back([&, Own] { Whole += Work(Own); });
  for (std::thread &T : Threads)
    T.join();
  EXPECT_EQ(Whole, 8);
  if (Old)
    setenv("XDG_CACHE_HOME", Before.c_str(), 1);
  else
    unsetenv("XDG_CACHE_HOME");
}

} // namespace
