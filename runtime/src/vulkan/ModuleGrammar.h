// ModuleGrammar.h: the instructions that a module may have, and the shape of
// their operands.
#ifndef GRETA_RUNTIME_VULKAN_MODULEGRAMMAR_H
#define GRETA_RUNTIME_VULKAN_MODULEGRAMMAR_H

#include "Spirv.h"

#include <string>

namespace greta::rt::vulkan {

// These are in the order of a module's sections.
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
  Any // global or in a function
};

// Relates the types of an instruction's operands.
enum class Rule : uint8_t {
  Own, // has a case of its own, or needs no check
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

// Each operand has a letter:
//   T result type   R result id
//   t type          k constant       v value, defined before
//   i any id        n literal        s string
//   l label, may come later          m memory operands
//   P pairs of a value and a label, both may come later
// An operand with `?` may be absent; one with `*` may come any number of times.
struct Instruction {
  uint16_t Op;
  const char *Name;
  Section Where;
  const char *Operands;
  Rule Types;
};

// Returns null for an opcode that is not allowed.
const Instruction *findInstruction(uint32_t Op);

// An instruction of GLSL.std.450: how many operands it has, all of the result's
// type, and whether they are floats. Not allowed ones are null.
struct ExtendedInstruction {
  uint32_t Number;
  uint8_t Operands;
  bool Float;
};
const ExtendedInstruction *findExtended(uint32_t Number);

// Says which features of the device a capability needs; both are null if Vulkan
// 1.3 always has it. Null for one not allowed.
struct CapabilityRow {
  uint32_t Number;
  const char *Feature, *SubgroupOp;
};
const CapabilityRow *findCapability(uint32_t Number);

// Returns whether an extension is allowed; sets its feature, or null.
bool findExtension(const std::string &Name, const char *&Feature);

// Returns 1 for a built-in that is a 32-bit integer, 3 for a vector of three; 0
// for one not allowed.
unsigned builtInLanes(uint32_t BuiltIn);

} // namespace greta::rt::vulkan
#endif
