// FuzzTest.cpp: every fuzzer of this build on its committed corpus, once as it
// is (what was found before stays mended) and once as seeds of a short run.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

namespace {

struct Fuzzer {
  const char *Name, *Program, *Corpus, *Runs;
};
const Fuzzer fuzzers[] = {GRETA_FUZZERS};

class Fuzz : public testing::TestWithParam<Fuzzer> {
protected:
  void SetUp() override {
    Folder =
        (std::filesystem::temp_directory_path() / "greta-fuzz-XXXXXX").string();
    ASSERT_TRUE(mkdtemp(Folder.data()));
  }
  void TearDown() override { std::filesystem::remove_all(Folder); }
  // New inputs go to a folder of their own, never to the source tree.
  void run(const std::string &Options) {
    std::string Log = Folder + "/log", New = Folder + "/new";
    std::filesystem::create_directory(New);
    std::string Command = std::string(GetParam().Program) + " " + Options +
                          " -artifact_prefix=" + Folder + "/ " + New + " " +
                          GetParam().Corpus + " > " + Log + " 2>&1";
    int Status = std::system(Command.c_str());
    std::ifstream In(Log);
    EXPECT_EQ(Status, 0) << Command << "\n"
                         << std::string(std::istreambuf_iterator<char>(In), {});
  }
  std::string Folder;
};

INSTANTIATE_TEST_SUITE_P(All, Fuzz, testing::ValuesIn(fuzzers),
                         [](const auto &Info) { return Info.param.Name; });

TEST_P(Fuzz, CorpusIsHandled) {
  ASSERT_FALSE(std::filesystem::is_empty(GetParam().Corpus));
  run("-runs=0 -verbosity=0");
}

TEST_P(Fuzz, ShortRun) {
  run(std::string("-seed=1 -max_total_time=10 -verbosity=0 -runs=") +
      GetParam().Runs);
}

} // namespace
