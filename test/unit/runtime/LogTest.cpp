// LogTest.cpp: what a launch's log says, and what of a log is not believed.
#include "Log.h"
#include "TestPackage.h"

#include <gtest/gtest.h>

using namespace greta::rt;
using namespace greta_test;
using nlohmann::json;

namespace {

const char *const Sites = R"([
  {"kind": "print", "text": " x = ", "hex": false,
   "values": [{"dtype": "f32", "shape": [1, 2]}, {"dtype": "i64", "shape": []}]},
  {"kind": "print", "text": " bits ", "hex": true,
   "values": [{"dtype": "u16", "shape": [11]}]},
  {"kind": "print", "text": " here\u001b[2J\u009b", "hex": false, "values": []},
  {"kind": "assert", "text": "x > 0", "where": "k.py:7", "shape": [4, 8]}])";

// The in-place function, whose hip variant has a log.
json manifestWithLog() {
  json M = manifest();
  json &V = M["functions"][3]["variants"][0];
  V["temps"] = {{{"dtype", "i32"}, {"shape", {64}}}};
  V["kernels"][0]["log"] = {{"temp", 0}, {"sites", json::parse(Sites)}};
  return M;
}

LogDecl log() {
  Bytes Data = package(manifestWithLog());
  return *readPackage(Data.data(), Data.size(), "t")
              ->Functions[3]
              .Variants[0]
              .Kernels[0]
              .Log;
}

TEST(Log, ShowsEveryValue) {
  std::string Lines;
  std::vector<uint32_t> Words = {0, 2,          0,          1, // site, program
                                 0, 0x3fc00000, 0xfffffffe, 0xffffffff};
  EXPECT_EQ(readLog(log(), Words, 8, Lines), "");
  EXPECT_EQ(Lines, "pid (2, 0, 1) idx (0, 0) x = (operand 0) 0\n"
                   "pid (2, 0, 1) idx (0, 1) x = (operand 0) 1.5\n"
                   "pid (2, 0, 1) idx () x = (operand 1) -2\n");
  Lines.clear();
  Words = {1, 0, 0, 0};
  for (uint32_t I = 0; I < 11; ++I)
    Words.push_back(I);
  EXPECT_EQ(readLog(log(), Words, 15, Lines), "");
  EXPECT_EQ(Lines.substr(0, Lines.find('\n')),
            "pid (0, 0, 0) idx ( 0) bits 0x0000");
  EXPECT_NE(Lines.find("idx (10) bits 0x000a\n"), std::string::npos);
}

TEST(Log, SaysWhichAssertionFailedFirst) {
  std::string Lines;
  EXPECT_EQ(readLog(log(), {3, 1, 2, 3, 13, 3, 0, 0, 0, 99}, 10, Lines),
            "device-side assert failed: x > 0 (k.py:7), pid (1, 2, 3) idx (1, "
            "5); and 1 "
            "more");
  // An index that no element has.
  EXPECT_EQ(
      readLog(log(), {3, 0, 0, 0, 99}, 5, Lines),
      "device-side assert failed: x > 0 (k.py:7), pid (0, 0, 0) idx (3, 7)");
  EXPECT_EQ(Lines, "");
}

TEST(Log, TextsMoveNoCursor) {
  std::string Lines;
  EXPECT_EQ(readLog(log(), {2, 0, 0, 0}, 4, Lines), "");
  EXPECT_EQ(Lines, "pid (0, 0, 0) idx () here?[2J??\n");
}

// A log that is full, and what only a package that lies leaves.
TEST(Log, SaysWhatIsLost) {
  std::string Lines;
  EXPECT_EQ(readLog(log(), {2, 0, 0, 0, 0, 0, 0}, 90, Lines), "");
  EXPECT_EQ(Lines, "pid (0, 0, 0) idx () here?[2J??\n"
                   "... 86 words of what was printed or failed are lost; the "
                   "log holds 63\n");
  for (std::vector<uint32_t> Words :
       std::vector<std::vector<uint32_t>>{{},
                                          {4, 0, 0, 0},
                                          {UINT32_MAX, 0, 0, 0},
                                          {0, 0, 0},
                                          {1, 0, 0, 0, 1}}) {
    Lines.clear();
    EXPECT_EQ(readLog(log(), Words, 5, Lines), "");
    EXPECT_EQ(Lines.find("... 5 words"), 0u) << Lines;
  }
}

// Each failure takes as much room, so that the count says how many there were.
TEST(Log, CountsFailuresThatAreMissing) {
  std::string Lines;
  LogDecl Asserts = log();
  Asserts.Sites = {Asserts.Sites[3]};
  EXPECT_EQ(readLog(Asserts, {0, 0, 0, 0, 9}, 50, Lines),
            "device-side assert failed: x > 0 (k.py:7), pid (0, 0, 0) idx (1, "
            "1); and 9 more");
  EXPECT_EQ(readLog(Asserts, {}, 50, Lines), "");
  EXPECT_EQ(Lines, "");
}

TEST(Log, RefusesEachBadValue) {
  const struct {
    const char *Where, *Value, *Says;
  } Cases[] = {
      {"/log/temp", "1", "there are 1 temps"},
      {"/log/sites", "[]", "sites: not a list of 1"},
      {"/log/sites/0/kind", "\"trace\"", "unknown value 'trace'"},
      {"/log/sites/0/hex", "1", "neither true nor false"},
      {"/log/sites/0/values/0/dtype", "\"f16\"", "unknown value 'f16'"},
      {"/log/sites/0/values/0/shape", "[4194304, 2]", "more than 4194304"},
      {"/log/sites/0/values/0/shape", "[0]", "shape[0]"},
      {"/log/sites/3/where", "7", "not a string"},
  };
  for (const auto &C : Cases) {
    json M = manifestWithLog();
    json &Kernel = M["functions"][3]["variants"][0]["kernels"][0];
    Kernel[json::json_pointer(C.Where)] = json::parse(C.Value);
    std::string Got = complaintOf(package(M));
    EXPECT_NE(Got.find(C.Says), std::string::npos) << C.Where << ": " << Got;
  }
  json M = manifestWithLog();
  json &Variant = M["functions"][3]["variants"][0];
  Variant["kernels"][0]["log"]["sites"][2]["text"] = std::string(4097, 'a');
  EXPECT_NE(complaintOf(package(M)).find("longer than 4096 bytes"),
            std::string::npos);
  for (const char *Temp : {R"({"dtype": "f32", "shape": [64]})",
                           R"({"dtype": "i32", "shape": [1]})",
                           R"({"dtype": "i32", "shape": ["n"]})",
                           R"({"dtype": "i32", "shape": [8, 8]})",
                           R"({"dtype": "i32", "shape": [4194305]})"}) {
    M = manifestWithLog();
    M["functions"][3]["variants"][0]["temps"] = {json::parse(Temp)};
    EXPECT_NE(complaintOf(package(M)).find("not of i32 with 2 to"),
              std::string::npos)
        << Temp;
  }
}

} // namespace
