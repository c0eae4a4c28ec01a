//===- Checks.cpp - what a checked launch watches -------------------------===//
#include "Checks.h"
using namespace greta::sim;
struct Checker::State {};
Checker::Checker(Workgroup &, unsigned) {}
Checker::~Checker() = default;
void Checker::reset() {}
void Checker::defineVector(Wave &, unsigned) {}
void Checker::defineScalar(Wave &, unsigned, unsigned) {}
void Checker::before(Wave &, const Inst &) {}
void Checker::after(Wave &, const Inst &) {}
void Checker::lds(Wave &, const Inst &, unsigned, uint32_t, unsigned, Access) {}
void Checker::global(Wave &, const Inst &, unsigned, uint64_t, unsigned,
                     Access) {}
void Checker::scalarAccess(Wave &, const Inst &, uint64_t, unsigned) {}
void Checker::loaded(Wave &, unsigned, unsigned, bool) {}
void Checker::signal(Wave &) {}
void Checker::wait(Wave &) {}
void Checker::ended(Wave &, const Inst &) {}
