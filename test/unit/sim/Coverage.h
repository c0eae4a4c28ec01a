//===- Coverage.h - which instructions the tests have run -------*- C++ -*-===//
//
// The bench tells every instruction it executes for a test. At the end of a
// whole run each row of the simulator's tables must have been among them.
// Running is not yet checking: `greta-sim-isa-test --sabotage` leaves one
// instruction out after the other, and the test that ran it has to fail.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TEST_SIM_COVERAGE_H
#define GRETA_TEST_SIM_COVERAGE_H

#include "Isa/Inst.h"

namespace greta::sim::test {

/// Notes that the current test runs an instruction. False when the bench has to
/// leave it out.
bool mayRun(const Inst &i);

} // namespace greta::sim::test

#endif
