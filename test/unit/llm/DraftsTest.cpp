// DraftsTest.cpp: a text's own past says what follows, and a step's places are
// divided among those who guess.
#include "engine/Drafts.h"

#include <gtest/gtest.h>

using greta::llm::draftOf;
using greta::llm::partsOf;
using greta::llm::sharesOf;
using Tokens = std::vector<int32_t>;

TEST(Drafts, WhatFollowedBefore) {
  EXPECT_EQ(draftOf({}, 4), Tokens());
  EXPECT_EQ(draftOf({1}, 4), Tokens());
  EXPECT_EQ(draftOf({1, 2, 3, 4}, 4), Tokens());
  // One token says too little.
  EXPECT_EQ(draftOf({1, 2, 3, 1}, 4), Tokens());
  EXPECT_EQ(draftOf({1, 2, 3, 4, 1, 2}, 4), Tokens({3, 4, 1, 2}));
  EXPECT_EQ(draftOf({1, 2, 3, 4, 1, 2}, 1), Tokens({3}));
  EXPECT_EQ(draftOf({1, 2, 3, 4, 1, 2}, 0), Tokens());
  // The longest, and of equals the last.
  EXPECT_EQ(draftOf({9, 1, 2, 7, 5, 1, 2, 8, 9, 1, 2}, 2), Tokens({7, 5}));
  EXPECT_EQ(draftOf({1, 2, 7, 5, 1, 2, 8, 4, 1, 2}, 1), Tokens({8}));
  EXPECT_EQ(draftOf({6, 6, 6}, 3), Tokens({6}));
}

TEST(Drafts, EachHasItsOwnPast) {
  greta::llm::OwnPast past;
  Tokens first = {1, 2, 3, 1, 2}, second = {5, 6, 7};
  std::vector<Tokens> guesses =
      past.guess({{4, &first, 2}, {0, &second, 3}, {1, &first, 1}}, 64);
  EXPECT_EQ(guesses, (std::vector<Tokens>{{3, 1}, {}, {3}}));
}

TEST(Drafts, SharesOfRoom) {
  using Shares = std::vector<size_t>;
  EXPECT_EQ(sharesOf({}, 3), Shares());
  EXPECT_EQ(sharesOf({0, 0}, 3), Shares({0, 0}));
  EXPECT_EQ(sharesOf({2, 7, 1}, 0), Shares({0, 0, 0}));
  // All that is wanted, where there is room.
  EXPECT_EQ(sharesOf({2, 7, 1}, 10), Shares({2, 7, 1}));
  EXPECT_EQ(sharesOf({2, 7, 1}, 100), Shares({2, 7, 1}));
  // Else alike; what some do not want is for the others, the first ones first.
  EXPECT_EQ(sharesOf({3, 3, 3}, 5), Shares({2, 2, 1}));
  EXPECT_EQ(sharesOf({1, 7, 7}, 6), Shares({1, 3, 2}));
}

TEST(Drafts, PartsOfTexts) {
  using Parts = std::vector<size_t>;
  EXPECT_EQ(partsOf({}, 64), Parts());
  EXPECT_EQ(partsOf({0, 7, 300, 2}, 1000), Parts({0, 7, 300, 2}));
  // Texts that have guesses do not wait for texts that have none yet.
  EXPECT_EQ(partsOf({300, 2, 16, 100}, 64), Parts({0, 2, 16, 64}));
  EXPECT_EQ(partsOf({300, 2, 36}, 64), Parts({28, 2, 36}));
  EXPECT_EQ(partsOf({16, 32, 33}, 0), Parts({16, 32, 0}));
  EXPECT_EQ(partsOf({200, 200}, 300), Parts({200, 100}));
}
