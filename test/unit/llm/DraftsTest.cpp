// DraftsTest.cpp: a text's own past says what follows.
#include "engine/Drafts.h"

#include <gtest/gtest.h>

using greta::llm::draftOf;
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
