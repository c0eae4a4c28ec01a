//===- DecodingGuardTest.cpp - a fault of LLVM's ends nothing -------------===//
#include "Code/DecodingGuard.h"
#include "Code/Program.h"
#include "gtest/gtest.h"
#include <sys/mman.h>

using namespace greta::sim;

namespace {

TEST(DecodingGuard, FaultsEndNothing) {
  void *page =
      mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto write = [&] { *static_cast<volatile char *>(page) = 1; };
  for (int time = 0; time < 3; ++time) {
    DecodingGuard guard;
    EXPECT_FALSE(DecodingGuard::survives(write));
    EXPECT_TRUE(DecodingGuard::survives([] {}));
  }
  EXPECT_DEATH(write(), "") << "without a guard it is as ever";
  munmap(page, 4096);
}

} // namespace
