//===- Coverage.cpp - see the header --------------------------------------===//
#include "Coverage.h"
#include "Code/Program.h"
#include "Isa/Lane.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace greta::sim;
using testing::UnitTest;

namespace {

struct Record {
  /// The tests that ran each instruction.
  std::map<const OpInfo *, std::set<const testing::TestInfo *>> tests;
  const OpInfo *sabotaged = nullptr;
};
Record &record() {
  static Record r;
  return r;
}

/// Instructions whose only effect is on time, whichever unit they go to.
bool doesNothing(const OpInfo &o) {
  return o.fn == findOp("s_nop")->fn || o.fn == findOp("ds_nop")->fn ||
         o.fn == findOp("s_prefetch_data")->fn;
}

class Coverage : public testing::Environment {
  void TearDown() override {
    const UnitTest &all = *UnitTest::GetInstance();
    if (record().sabotaged || all.test_to_run_count() < all.total_test_count())
      return;
    std::string missing;
    for (const OpInfo *o : allOps())
      if (!record().tests.count(o))
        missing += std::string(" ") + o->name;
    EXPECT_EQ(missing, "") << "instructions that no test runs";
  }
};

/// Runs everything once, and then the tests of each instruction, the quickest
/// first, without it until one notices.
int sabotage() {
  testing::TestEventListeners &l = UnitTest::GetInstance()->listeners();
  delete l.Release(l.default_result_printer());
  if (RUN_ALL_TESTS())
    return std::puts("the tests fail as they are"), 1;
  std::map<const testing::TestInfo *, int64_t> milliseconds;
  auto tests = record().tests;
  for (const auto &[o, all] : tests)
    for (const testing::TestInfo *t : all)
      milliseconds[t] = t->result()->elapsed_time();
  unsigned noticed = 0, unnoticed = 0;
  for (const OpInfo *o : allOps()) {
    if (doesNothing(*o))
      continue;
    std::vector<const testing::TestInfo *> order(tests[o].begin(),
                                                 tests[o].end());
    std::sort(order.begin(), order.end(), [&](const auto *a, const auto *b) {
      return milliseconds[a] < milliseconds[b];
    });
    record().sabotaged = o;
    bool seen = std::any_of(order.begin(), order.end(), [](const auto *t) {
      GTEST_FLAG_SET(filter,
                     std::string(t->test_suite_name()) + "." + t->name());
      return RUN_ALL_TESTS() != 0;
    });
    if (!seen)
      std::printf("%s: left out, and every test passes\n", o->name);
    ++(seen ? noticed : unnoticed);
  }
  std::printf("%u instructions left out, %u noticed\n", noticed + unnoticed,
              noticed);
  return unnoticed != 0;
}

} // namespace

bool test::mayRun(const Inst &i) {
  auto note = [](const Inst &part) {
    record().tests[part.op].insert(
        UnitTest::GetInstance()->current_test_info());
    return part.op != record().sabotaged;
  };
  if (i.fn != runVopd)
    return note(i);
  bool first = note(*i.inner), second = note(*i.inner->inner);
  return first && second;
}

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::AddGlobalTestEnvironment(new Coverage);
  return argc > 1 && std::string(argv[1]) == "--sabotage" ? sabotage()
                                                          : RUN_ALL_TESTS();
}
