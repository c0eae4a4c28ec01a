// FilesTest.cpp: writing files while signals arrive.
#include "Files.h"

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

} // namespace
