// CallTest.cpp: what the first engine of several tells the others, as bytes
// that a false rank 0 may have made up.
#include "engine/Call.h"

#include <functional>
#include <gtest/gtest.h>
#include <random>

using namespace greta::llm;

namespace {

// Two places, four pages, and a vocabulary whose mask has three words.
const CallLimits limits = {
    2, 4, 64, 70, /*chunk=*/20, /*parts=*/2, /*rows=*/1, /*isAtRest=*/true};

Call good(Call::Kind kind) {
  Call call;
  call.kind = kind;
  call.place = 1;
  call.left = 5;
  call.said = 1;
  call.sequence = {{3, 0}, 8, 0, 0};
  call.tokens = {0, 69, 7};
  if (kind == Call::EvaluateOne)
    call.tokens = {69};
  call.mask = {1, 2, 3};
  call.sampling.biases = {{69, 1.0f}};
  Checked one;
  one.sequence = {{1}, 14, 0, 0};
  one.tokens.assign(16, 5);
  one.count = 2;
  one.said = 15;
  one.sampling.isMasked = true;
  one.masks = {{1, 2, 3}, {4, 5, 6}};
  call.checked = {one};
  if (kind == Call::Append || kind == Call::StepAndAppend) {
    one.sequence.length = 0;
    call.checked = {one, one};
    call.checked[0].tokens = {0, 69, 7};
    call.checked[0].sequence = {{3, 0}, 8, 0, 0};
  }
  if (kind == Call::Begin)
    call.part = 1;
  return call;
}

std::string complaint(const std::function<void()> &of) {
  try {
    of();
  } catch (const std::exception &problem) {
    return problem.what();
  }
  return "";
}

std::string complaint(const std::string &bytes) {
  return complaint([&] { checkCall(callOf(bytes), limits); });
}

TEST(Call, IsTakenAsItWasTold) {
  for (int kind = 0; kind <= Call::Last; ++kind) {
    std::string bytes = bytesOf(good(static_cast<Call::Kind>(kind)));
    EXPECT_EQ(complaint(bytes), "") << kind;
    EXPECT_EQ(bytesOf(callOf(bytes)), bytes) << kind;
  }
}

TEST(Call, IsRefusedWhereItIsCutOrTooLong) {
  std::string bytes = bytesOf(good(Call::Check));
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(complaint(bytes.substr(0, size)), "a call of rank 0 ends early")
        << size;
  EXPECT_EQ(complaint(bytes + "x"), "a call of rank 0 has 1 bytes too many");
  bytes[0] = Call::Last + 1;
  EXPECT_EQ(complaint(bytes), "a call of rank 0 has the kind 14");
}

TEST(Call, IsRefusedWhereAFieldIsOutOfRange) {
  using Change = void (*)(Call &);
  constexpr int64_t most = INT64_MAX;
  const struct {
    Call::Kind kind;
    Change change;
    std::string says;
  } cases[] = {
      {Call::MakePlaces, [](Call &c) { c.place = 0; }, "places of 0"},
      {Call::MakePlaces, [](Call &c) { c.place = most; }, "places of 9"},
      {Call::Append, [](Call &c) { c.checked[0].tokens[1] = 70; }, "token 70"},
      {Call::Append, [](Call &c) { c.checked[0].tokens[1] = -1; }, "token -1"},
      {Call::Append, [](Call &c) { c.checked[0].sequence.pages[1] = 4; },
       "page 4"},
      {Call::Append, [](Call &c) { c.checked[0].sequence.pages[1] = -1; },
       "page -1"},
      {Call::Append, [](Call &c) { c.checked[0].sequence.pages.assign(5, 0); },
       "pages of 5"},
      {Call::Append, [](Call &c) { c.checked[0].sequence.length = -1; },
       "length of -1"},
      {Call::Append, [](Call &c) { c.checked[0].sequence.length = most; },
       "length of 9"},
      {Call::Append, [](Call &c) { c.checked[0].sequence.length = 30; },
       "tokens of 3"},
      {Call::Append, [](Call &c) { c.checked.clear(); }, "parts of 0"},
      {Call::Append, [](Call &c) { c.checked.resize(17); }, "parts of 17"},
      {Call::Append, [](Call &c) { c.checked[1].tokens.clear(); },
       "tokens of 0"},
      {Call::Append, [](Call &c) { c.checked[0].tokens.assign(5, 1); },
       "tokens of several parts: 21"},
      {Call::StepAndAppend, [](Call &c) { c.checked[0].tokens.assign(4, 1); },
       "tokens of several parts: 20"},
      {Call::Begin, [](Call &c) { c.part = 2; }, "part 2"},
      {Call::Begin, [](Call &c) { c.part = -1; }, "part -1"},
      {Call::EvaluateOne, [](Call &c) { c.tokens.clear(); }, "tokens of 0"},
      {Call::EvaluateOne, [](Call &c) { c.tokens = {1, 2}; }, "tokens of 2"},
      {Call::EvaluateOne, [](Call &c) { c.tokens = {70}; }, "token 70"},
      {Call::EvaluateOne, [](Call &c) { c.sequence.length = 32; },
       "tokens of 1"},
      {Call::WriteTable, [](Call &c) { c.place = 2; }, "place 2"},
      {Call::WriteTable, [](Call &c) { c.sequence.pages[0] = 4; }, "page 4"},
      {Call::SetMask, [](Call &c) { c.place = -1; }, "place -1"},
      {Call::SetMask, [](Call &c) { c.mask.pop_back(); }, "size of 2"},
      {Call::Move, [](Call &c) { c.place = 2; }, "place 2"},
      {Call::Move, [](Call &c) { c.to = -1; }, "place -1"},
      {Call::Begin, [](Call &c) { c.place = 2; }, "place 2"},
      {Call::Begin, [](Call &c) { c.tokens.clear(); }, "tokens of 0"},
      {Call::Begin, [](Call &c) { c.tokens.assign(33, 1); }, "tokens of 33"},
      {Call::Begin, [](Call &c) { c.tokens[0] = 70; }, "token 70"},
      {Call::Begin, [](Call &c) { c.said = 4; }, "generated tokens of 4"},
      {Call::Begin, [](Call &c) { c.said = -1; }, "generated tokens of -1"},
      {Call::Begin, [](Call &c) { c.left = 63; }, "wanted tokens of 63"},
      {Call::Begin, [](Call &c) { c.left = 0; }, "wanted tokens of 0"},
      {Call::Begin, [](Call &c) { c.sampling.temperature = NAN; },
       "an option of sampling, which is no finite number"},
      {Call::Begin, [](Call &c) { c.sampling.repeatPenalty = 0; },
       "an option of sampling, which is no finite number"},
      {Call::Begin, [](Call &c) { c.sampling.biases = {{1, INFINITY}}; },
       "a bias, which is no finite number"},
      {Call::Begin, [](Call &c) { c.sampling.biases[0].first = 70; },
       "token 70"},
      {Call::Begin, [](Call &c) { c.sampling.biases.resize(513); },
       "biases of 513"},
      {Call::Begin, [](Call &c) { c.sampling.topK = -1; }, "top_k of -1"},
      {Call::Begin, [](Call &c) { c.sampling.repeatWindow = 257; },
       "window of 257"},
      {Call::Check, [](Call &c) { c.checked.clear(); }, "places of 0"},
      {Call::Check, [](Call &c) { c.checked.resize(2, c.checked[0]); },
       "places of 4"},
      {Call::Check, [](Call &c) { c.checked[0].count = 0; }, "tokens of 0"},
      {Call::Check, [](Call &c) { c.checked[0].count = 17; }, "tokens of 17"},
      {Call::Check, [](Call &c) { c.checked[0].count = SIZE_MAX; },
       "checked tokens of 9"},
      {Call::Check, [](Call &c) { c.checked[0].said = 16; },
       "generated tokens of 16"},
      {Call::Check, [](Call &c) { c.checked[0].tokens.push_back(1); },
       "tokens of 17"},
      {Call::Check, [](Call &c) { c.checked[0].tokens[3] = 70; }, "token 70"},
      {Call::Check, [](Call &c) { c.checked[0].sequence.pages[0] = 4; },
       "page 4"},
      {Call::Check, [](Call &c) { c.checked[0].masks.pop_back(); },
       "masks of 1"},
      {Call::Check, [](Call &c) { c.checked[0].masks[1].clear(); },
       "size of 0"},
      {Call::End, [](Call &c) { c.place = 2; }, "place 2"},
  };
  for (const auto &one : cases) {
    Call call = good(one.kind);
    one.change(call);
    std::string says = complaint(bytesOf(call));
    EXPECT_EQ(says.rfind("a call of rank 0 has ", 0), 0u) << one.says;
    EXPECT_NE(says.find(one.says), std::string::npos) << says;
  }
  CallLimits fresh = limits;
  fresh.parts = 0;
  fresh.isAtRest = false;
  EXPECT_EQ(complaint([&] { checkCall(good(Call::Begin), fresh); }),
            "a call of rank 0 begins behind no prompt");
  EXPECT_EQ(complaint([&] { checkCall(good(Call::Check), fresh); }),
            "a call of rank 0 checks tokens while places generate");
}

// Words of a call are changed at random; a sanitizer looks on.
TEST(Call, HasOneErrorWhateverItsBytesAre) {
  std::mt19937 random(1);
  size_t refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes =
        bytesOf(good(static_cast<Call::Kind>(random() % Call::Nothing)));
    for (uint32_t count = random() % 3 + 1; count; --count)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    std::string says = complaint(bytes);
    EXPECT_TRUE(says.empty() || says.rfind("a call of rank 0 ", 0) == 0)
        << says;
    refused += !says.empty();
  }
  EXPECT_GT(refused, 5000u);
}

} // namespace
