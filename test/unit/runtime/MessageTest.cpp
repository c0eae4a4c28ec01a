// MessageTest.cpp: who hears of what is no failure of a call.
#include "Process.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

using namespace greta::rt;

namespace {

TEST(Messages, GoToTheCallbackOrToStderr) {
  struct Heard {
    std::vector<std::pair<greta_log_level, std::string>> All;
  } H;
  auto Listen = [](greta_log_level Level, const char *Message, void *User) {
    static_cast<Heard *>(User)->All.emplace_back(Level, Message);
  };
  testing::internal::CaptureStderr();
  greta_set_log_callback(Listen, &H);
  report(GRETA_LOG_INFO, "looking");
  report(GRETA_LOG_WARNING, "found");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(H.All,
            (std::vector<std::pair<greta_log_level, std::string>>{
                {GRETA_LOG_INFO, "looking"}, {GRETA_LOG_WARNING, "found"}}));
  testing::internal::CaptureStderr();
  greta_set_log_callback(nullptr, nullptr);
  report(GRETA_LOG_INFO, "looking");
  report(GRETA_LOG_WARNING, "found");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "greta: found\n");
  EXPECT_EQ(H.All.size(), 2u);
}

TEST(Messages, VariablesAreOnOrNot) {
  for (auto [Value, On] : {std::pair("1", true), {"0", false}, {"", false}}) {
    setenv("GRETA_TEST_VARIABLE", Value, 1);
    EXPECT_EQ(isOn("GRETA_TEST_VARIABLE"), On) << Value;
  }
  unsetenv("GRETA_TEST_VARIABLE");
  EXPECT_FALSE(isOn("GRETA_TEST_VARIABLE"));
  EXPECT_EQ(environment("GRETA_TEST_VARIABLE"), nullptr);
}

} // namespace
