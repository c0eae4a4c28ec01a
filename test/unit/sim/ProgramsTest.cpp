//===- ProgramsTest.cpp - what CheckPrograms says of several programs -----===//
//
// Lines and arguments of accesses are test/python/test_check.py's: these code
// objects have no line tables.
//
//===----------------------------------------------------------------------===//
#include "Assembly.h"

using namespace greta::sim;
using namespace greta::sim::test;

namespace {

class Programs : public testing::TestWithParam<const char *> {
protected:
  /// The report of a launch of programs of one wave; `o` is an argument of
  /// `count` elements in an allocation that has as many on both sides.
  std::string run(const std::string &body, uint32_t programs, size_t count = 64,
                  bool isWritten = true, bool isResident = false) {
    Bench b(GetParam(), "kernel void k(global int *o) {\n"
                        "  uint i = __builtin_amdgcn_workitem_id_x();\n"
                        "  uint p = __builtin_amdgcn_workgroup_id_x();\n" +
                            body + "}");
    size_t bytes = 3 * count * sizeof(int);
    void *memory = b.device->allocate(bytes, /*isFresh=*/true);
    if (isWritten) {
      std::memset(memory, 0, bytes);
      b.device->wrote(memory, bytes);
    }
    int *o = static_cast<int *>(memory) + count;
    ArgumentExtent extent{reinterpret_cast<uint64_t>(o), count * sizeof(int),
                          sizeof(int), "o"};
    b.config.extents = extent;
    b.config.resident = isResident;
    b.config.instructionBudget = 100000;
    return b.arg(o).launch({programs, 1, 1}, {32, 1, 1},
                           CheckAll | CheckPrograms);
  }
  void expectReport(const std::string &report, const char *part) {
    EXPECT_TRUE(contains(report, part)) << report;
  }
};

TEST_P(Programs, ViewsHaveBounds) {
  expectReport(run("o[i + 33] = i;", 1),
               "out-of-bounds write of element 64 of 'o', 4 bytes beyond its "
               "end: 'o' has 256 bytes (64 elements)");
  EXPECT_EQ(run("o[i + 32] = i;", 1), "");
  expectReport(run("o[(int)i - 1] = i;", 1),
               "out-of-bounds write of element -1 of 'o', 4 bytes before its "
               "begin");
}

TEST_P(Programs, DifferentValuesRace) {
  std::string report = run("if (i == 5) o[5] = p;", 2);
  expectReport(report, "race: program (1, 0, 0) writes element 5 of 'o', and "
                       "program (0, 0, 0) wrote another value at ");
  expectReport(report, "no atomic orders the two");
  EXPECT_EQ(run("o[i] = 7;", 4), "");
  EXPECT_EQ(run("if (i < 16) o[16 * p + i] = p;", 4), "");
}

TEST_P(Programs, BytesOfAWordAreApart) {
  EXPECT_EQ(run("if (i == 0) ((global char *)o)[p] = p + 1;", 4), "");
  expectReport(run("if (i == 0) ((global char *)o)[p / 2] = p + 1;", 4),
               "race: program (1, 0, 0) writes element 0 of 'o'");
}

TEST_P(Programs, ReadsRaceWithWrites) {
  expectReport(run("o[32 * p + i] = 1; o[i] = o[32 + i];", 2),
               "race: program (1, 0, 0) writes element 32 of 'o', and program "
               "(0, 0, 0) reads it at ");
  expectReport(run("if (p == 0) o[i] = 1; else o[32 + i] = o[i];", 2),
               "race: program (1, 0, 0) reads element 0 of 'o', and program "
               "(0, 0, 0) wrote it at ");
}

// The scope is __HIP_MEMORY_SCOPE_AGENT.
TEST_P(Programs, AtomicsOrder) {
  EXPECT_EQ(run("__hip_atomic_fetch_add(o, 1, __ATOMIC_RELAXED, 4);", 4), "");
  // Each program takes what the one before published.
  EXPECT_EQ(run("if (i == 0) {\n"
                "  __hip_atomic_fetch_add(o, 1, __ATOMIC_ACQ_REL, 4);\n"
                "  int before = __hip_atomic_fetch_add(o, 0, 5, 4);\n"
                "  o[1] += before;\n"
                "  __hip_atomic_fetch_add(o, 1, __ATOMIC_ACQ_REL, 4);\n"
                "}",
                4),
            "");
  expectReport(run("if (i == 0 && p == 0)\n"
                   "  __hip_atomic_fetch_add(o, 1, __ATOMIC_RELAXED, 4);\n"
                   "if (i == 0 && p == 1) o[0] = 5;",
                   2),
               "changes it with an atomic at ");
}

// The last program reads what the first one writes, and the other way round:
// they run in turns.
TEST_P(Programs, ResidentProgramsWaitForEachOther) {
  auto meet = [](int order, const char *until) {
    std::string fence = order ? "__builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "
                                "\"agent\");"
                              : "";
    return fence +
           "if (i == 0) { __hip_atomic_fetch_add(o, 1, __ATOMIC_RELAXED, 4);"
           " while (__hip_atomic_fetch_or(o, 0, __ATOMIC_RELAXED, 4) < " +
           until + "); } __builtin_amdgcn_wave_barrier();" + fence;
  };
  std::string body = "if (i == 0) o[1 + p] = p;" + meet(1, "4") +
                     "if (i == 0) o[8 + p] = o[1 + (p + 1) % 4];" +
                     meet(1, "8") +
                     "if (i == 0) o[1 + p] = o[8 + (p + 3) % 4];";
  EXPECT_EQ(run(body, 4, 64, true, /*isResident=*/true), "");
  // One after another they wait for ever.
  expectReport(run(body, 4), "the wave used up its instruction budget");
  // Without the first meeting a program reads what another may not have
  // written yet.
  body = "if (i == 0) { o[1 + p] = p; o[8 + p] = o[1 + (p + 3) % 4]; }" +
         meet(1, "4");
  expectReport(run(body, 4, 64, true, true),
               "race: program (2, 0, 0) reads element 2 of 'o', and program "
               "(1, 0, 0) wrote it at ");
}

TEST_P(Programs, NoMoreThanRunAtATime) {
  expectReport(run("o[i] = 7;", 1 << 20, 64, true, true),
               "1048576 workgroups that wait for each other; ");
}

TEST_P(Programs, UnwrittenMemory) {
  std::string report = run("o[32 + i] = o[i] + 1;", 1, 64, false);
  expectReport(report, "uninitialised memory: element 0 of 'o', which nobody "
                       "wrote, is read at ");
  expectReport(report, " is stored (v");
  expectReport(run("if (o[i] == 3) o[32 + i] = 1;", 1, 64, false), " decides ");
  expectReport(run("if (o[0] == 3) o[32 + i] = 1;", 1, 64, false),
               " decides a branch");
  // Lanes that a defined condition leaves out decide nothing.
  EXPECT_EQ(run("o[i] = 1; if (i < 8 && o[i + 8 * (i >= 8)] == 1) o[40] = 1;",
                1, 64, false),
            "");
}

INSTANTIATE_TEST_SUITE_P(Chips, Programs,
                         testing::Values("gfx90a", "gfx942", "gfx950",
                                         "gfx1030", "gfx1100", "gfx1201"),
                         [](const auto &info) {
                           return std::string(info.param);
                         });

} // namespace
