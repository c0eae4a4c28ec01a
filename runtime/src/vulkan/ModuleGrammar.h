// ModuleGrammar.h: the instructions that a module may have, and the shape of
// their operands.
#ifndef GRETA_RUNTIME_VULKAN_MODULEGRAMMAR_H
#define GRETA_RUNTIME_VULKAN_MODULEGRAMMAR_H

#include "Spirv.h"

#include <string>

namespace greta::rt::vulkan {

// The sections of a module, in their order.
enum class Section : uint8_t {
  Capability,
  Extension,
  Import,
  MemoryModel,
  EntryPoint,
  ExecutionMode,
  Name,
  Annotation,
  Global, // types, constants, variables
  Function,
  Any // Global or Function
};

// The relation between the types of an instruction's operands.
enum class Rule : uint8_t {
  Own, // has a case of its own, or nothing to check
  FloatArith,
  IntArith,
  Shift,
  BoolArith,
  FloatCompare,
  IntCompare,
  FloatTest,
  FloatToInt,
  IntToFloat,
  IntToInt,
  FloatToFloat,
};

// Operands, a letter each:
//   T result type   R result id
//   t type          k constant       v value, defined before
//   i any id        n literal        s string
//   l label, may come later          m memory operands
//   P pairs of a value and a label, both may come later
// `?` behind a letter: may be absent; `*`: any number of it.
struct Instruction {
  uint16_t Op;
  const char *Name;
  Section Where;
  const char *Operands;
  Rule Types;
};

// Null for an opcode that is not allowed.
const Instruction *findInstruction(uint32_t Op);

// An instruction of GLSL.std.450: how many operands it has, all of the result's
// type, and whether they are floating-point. Null for one not allowed.
struct ExtendedInstruction {
  uint32_t Number;
  uint8_t Operands;
  bool Float;
};
const ExtendedInstruction *findExtended(uint32_t Number);

// The features that a capability needs of the device; both null if Vulkan 1.3
// always has it. Null for one not allowed.
struct CapabilityRow {
  uint32_t Number;
  const char *Feature, *SubgroupOp;
};
const CapabilityRow *findCapability(uint32_t Number);

// Whether an extension is allowed, and the feature that it comes with, if any.
bool findExtension(const std::string &Name, const char *&Feature);

// 1 for a built-in that is a 32-bit integer, 3 for a vector of three; 0 for one
// not allowed.
unsigned builtInLanes(uint32_t BuiltIn);

} // namespace greta::rt::vulkan
#endif
