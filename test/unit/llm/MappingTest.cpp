// MappingTest.cpp: files that end early, are no files, or hold JSON without
// end.
#include "model/Mapping.h"
#include "model/Json.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

using namespace greta::llm;

namespace {

std::string refusal(const std::string &text, JsonLimits limits = {}) {
  try {
    parseJson(text, "it", limits);
  } catch (const std::runtime_error &problem) {
    return problem.what();
  }
  return "";
}

// A message may have a file's names in it, and these any bytes.
TEST(Mapping, MessagesAreText) {
  const std::pair<const char *, const char *> cases[] = {
      {"a\n\033[2J\x7f", "a??[2J?"},
      {"\xc3\xa4 \xe2\x96\x81 \xf0\x9f\x98\x80",
       "\xc3\xa4 \xe2\x96\x81 \xf0\x9f\x98\x80"},
      {"\x9b\xc2\x9b \xff \xc0\xaf", "??? ? ??"},    // a command, no lead, '/'
      {"\xed\xa0\x80 \xf4\x90\x80\x80", "??? ????"}, // no characters
      {"\xe2\x96", "??"}};                           // cut
  for (const auto &[said, want] : cases)
    try {
      fail(said);
    } catch (const std::runtime_error &problem) {
      EXPECT_STREQ(problem.what(), want);
    }
  try {
    fail(std::string(3999, 'a') + "\xc3\xa4" + std::string(5000, 'b'));
  } catch (const std::runtime_error &problem) {
    EXPECT_EQ(std::string(problem.what()).substr(3990), "aaaaaaaaa\xc3\xa4..");
  }
}

TEST(Json, DepthAndValuesAreBounded) {
  std::string open(64, '['), close(64, ']');
  EXPECT_EQ(refusal(open + close), "");
  EXPECT_EQ(refusal("[" + open + close + "]"),
            "it: the JSON is nested more than 64 deep");
  EXPECT_EQ(refusal(std::string(1u << 20, '{')),
            "it: the JSON is nested more than 64 deep");
  EXPECT_EQ(refusal("[1,2,3]", {64, 3}), "");
  EXPECT_EQ(refusal("[1,2,3,4]", {64, 3}),
            "it: the JSON has more than 3 values");
}

TEST(Json, NamesAreThereOnce) {
  const std::string twice = "it: an object of the JSON has a name twice";
  EXPECT_EQ(refusal(R"({"a": 1, "a": 1})"), twice);
  EXPECT_EQ(refusal(R"({"a": 1, "\u0061": 2})"), twice);
  EXPECT_EQ(refusal(R"([0, {"b": [{"a": {}, "c": "a", "a": {"d": 1}}]}])"),
            twice);
  EXPECT_EQ(refusal(R"({"a": {"a": [{"a": ":"}, {"a:a": "\":"}]}})"), "");
  EXPECT_EQ(mostNames(R"([{"a": 1, "b": {"c:c": ["d", "e", "f"]}}, ":"])"), 2u);
}

TEST(Json, BracketsInTextsAreTexts) {
  EXPECT_EQ(refusal("[\"" + std::string(100, '[') + "\\\"[\", 1]"), "");
  EXPECT_EQ(refusal("[\"" + std::string(100, '[')), "it: is no JSON");
  EXPECT_EQ(refusal("]]]]" + std::string(60, '[')), "it: is no JSON");
}

TEST(Fail, SaysOneLine) {
  try {
    fail("a\nb\x1b[2J\x7f");
  } catch (const std::runtime_error &problem) {
    EXPECT_STREQ(problem.what(), "a?b?[2J?");
  }
}

TEST(MappingDeathTest, AFileThatIsCutEndsTheProcessWithALine) {
  std::string path = testing::TempDir() + "greta-cut";
  std::ofstream(path) << std::string(1u << 16, 'x');
  auto cut = [&] {
    Mapping mapping(path);
    std::filesystem::resize_file(path, 4096);
    volatile uint8_t last = mapping.data()[mapping.size() - 1];
    (void)last;
  };
  EXPECT_EXIT(cut(), testing::ExitedWithCode(1),
              "greta-llm: error: a model file was cut while it was read");
  std::filesystem::remove(path);
}

} // namespace
