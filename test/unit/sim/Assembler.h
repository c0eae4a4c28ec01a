//===- Assembler.h - LLVM's assembler in the test's process -----*- C++ -*-===//
#ifndef GRETA_TEST_SIM_ASSEMBLER_H
#define GRETA_TEST_SIM_ASSEMBLER_H

#include <cstdint>
#include <string>
#include <vector>

namespace greta::sim::test {

/// Machine code of assembly text. Fails the test when it does not assemble.
std::vector<uint8_t> assemble(const char *chip, bool wave32,
                              const std::string &source);

/// Returns the lines that assemble.
std::vector<std::string> assembling(const char *chip, bool wave32,
                                    const std::vector<std::string> &lines);

/// The mnemonics, encoding suffixes removed, that the assembler has for a chip:
/// all names of LLVM's instruction table but those it answers with "not
/// supported on this GPU" or "invalid instruction".
std::vector<std::string> mnemonics(const char *chip);

} // namespace greta::sim::test

#endif
