// FuzzTest.cpp: runs the fuzzer for a moment from good seeds, in the sanitizer
// build that has it.
#include "TestPackage.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

using namespace greta_test;

TEST(Fuzz, PackageReaderForAMoment) {
  std::string Corpus = temporaryFolder() + "/corpus";
  std::filesystem::create_directories(Corpus);
  Bytes Good = package();
  std::string Text = manifest().dump();
  std::ofstream(Corpus + "/package", std::ios::binary)
      .write(reinterpret_cast<const char *>(Good.data()),
             static_cast<std::streamsize>(Good.size()));
  std::ofstream(Corpus + "/manifest") << Text;
  std::string Command =
      std::string(GRETA_TEST_FUZZER) +
      " -seed=1 -max_total_time=20 -runs=100000 -max_len=65536 -verbosity=0 " +
      Corpus + " > " + temporaryFolder() + "/fuzz.log 2>&1";
  int Status = std::system(Command.c_str());
  std::ifstream Log(temporaryFolder() + "/fuzz.log");
  EXPECT_EQ(Status, 0) << std::string(std::istreambuf_iterator<char>(Log), {});
}
