// ModuleChecker.h: the state of one check of a SPIR-V module (ModuleCheck.h).
#ifndef GRETA_RUNTIME_VULKAN_MODULECHECKER_H
#define GRETA_RUNTIME_VULKAN_MODULECHECKER_H

#include "Error.h"
#include "ModuleCheck.h"
#include "ModuleFlow.h"
#include "ModuleGrammar.h"

#include <set>

namespace greta::rt::vulkan {

class ModuleChecker {
public:
  ModuleChecker(const std::vector<uint32_t> &Words, const KernelDecl &K,
                const Requirements &Requires)
      : Words(Words), K(K), Requires(Requires) {}
  void run();

private:
  // Ids are known by the instruction that defined them.
  struct Definition {
    size_t At;     // its first word
    uint32_t Type; // 0: it is no value
    size_t Block;  // block in the function; noBlock outside
  };
  static constexpr size_t noBlock = SIZE_MAX;
  struct TypeFacts {
    uint64_t Size = 0;  // bytes; 0: it has no size of its own
    unsigned Depth = 1; // nesting
    bool Laid = true;   // offsets and strides are complete
    bool Open = false;  // ends in a runtime array
  };

  // Decorations precede the ids that they decorate.
  struct Decorations {
    std::map<uint32_t, uint32_t> Offsets; // by member
    std::set<uint32_t> Readonly;          // members
    uint32_t Stride = 0, BuiltIn = 0;
    bool HasBuiltIn = false, IsBlock = false, NoContraction = false;
  };

  template <typename... Parts> [[noreturn]] void bad(const Parts &...P) const {
    fail(GRETA_ERROR_BAD_PACKAGE, "'", K.File, "': word ", At, ": ",
         Row ? Row->Name : "SPIR-V", ": ", P...);
  }
  void need(bool Holds, const char *What) const {
    if (!Holds)
      bad(What);
  }

  // ModuleCheck.cpp: the order of things, ids and operands.
  void instruction();
  void operands();
  void operand(char Kind);
  uint32_t next();
  uint32_t nextId();
  std::string nextString();
  void memoryOperands();
  void useValue(uint32_t Id);
  void section();
  void outsideFunction();
  void insideFunction();
  void needs(const char *Name, const std::vector<std::string> &Named) const;
  void entryPoint();
  void executionMode();
  void decorate();
  void checkDecorations();
  void terminate(std::initializer_list<uint32_t> Targets);
  void endFunction();
  void finish();
  void finishPushConstants(uint32_t Struct);

  // ModuleTypes.cpp: types, constants and variables.
  const Definition &defined(uint32_t Id) const;
  uint32_t code(uint32_t Id) const { // the opcode that defined an id
    return Words[defined(Id).At] & 0xffff;
  }
  uint32_t count(uint32_t Id) const { return Words[defined(Id).At] >> 16; }
  // Returns operand `I` of a type, behind the result id.
  uint32_t parameter(uint32_t Type, unsigned I) const {
    return Words[defined(Type).At + 2 + I];
  }
  bool isType(uint32_t Id) const;
  bool isConstant(uint32_t Id) const;
  uint32_t typeOf(uint32_t Value) const { return defined(Value).Type; }
  uint32_t component(uint32_t Type) const;
  uint32_t width(uint32_t Type) const;
  uint32_t lanes(uint32_t Type) const; // 0 for a cooperative matrix
  bool isInt(uint32_t Type) const;
  bool isFloat(uint32_t Type) const; // not bfloat16, which has no arithmetic
  bool isAnyFloat(uint32_t Type) const;
  bool isBool(uint32_t Type) const;
  bool isScalarInt(uint32_t Type) const;
  bool isPointer(uint32_t Type) const;
  // Returns whether a pointer has no address: only the variable, and access
  // chains from it, are such values.
  bool isLogicalPointer(uint32_t Type) const;
  bool sameShape(uint32_t A, uint32_t B) const;
  // Returns the value of a 32-bit integer constant.
  uint32_t constant(uint32_t Id) const;
  void needCapability(uint32_t Capability, const char *What) const;
  void checkIntType() const;
  void checkFloatType() const;
  /// Adds the facts of `Type` to `F`, the facts of a type that holds it.
  const TypeFacts &holds(TypeFacts &F, uint32_t Type) const;
  TypeFacts checkStructType(const Decorations &D) const;
  TypeFacts checkPointerType() const;
  TypeFacts checkMatrixType() const;
  void checkTypeInstruction();
  void checkMatrixSize() const;
  void checkConstant();
  void checkValueSize() const;
  void checkParts() const;
  void checkVariable();

  // ModuleRules.cpp: checks of a function's instructions.
  bool checkTypes() const;
  void checkRule();
  void checkArithmetic(uint32_t T) const;
  void checkMemory();
  void checkAtomic();
  void checkScope(uint32_t Scope) const;
  void checkComposite();
  void checkConversion();
  void checkMatrix();
  void checkSemantics(uint32_t Semantics) const;
  void checkOther();
  uint32_t step(uint32_t Type, bool IsKnown, uint32_t Index) const;
  uint32_t extracted(uint32_t Type, size_t FirstIndex) const;

  const std::vector<uint32_t> &Words;
  const KernelDecl &K;
  const Requirements &Requires;

  std::unordered_map<uint32_t, Definition> Ids;
  std::unordered_map<uint32_t, TypeFacts> Types;
  std::set<uint32_t> Capabilities;
  uint32_t Bound = 0;
  Section Now = Section::Capability;

  // The current instruction.
  size_t At = 0, End = 0, Cursor = 0;
  uint32_t Op = 0, Type = 0, Result = 0;
  const Instruction *Row = nullptr;
  std::vector<uint32_t> Operands; // behind type and result; no strings
  std::string Text;               // the string operand
  bool Aligned = false;           // from its memory operands

  std::unordered_map<uint32_t, Decorations> Decorated;
  std::set<uint32_t> ReadonlyPointers; // to members that are NonWritable
  std::vector<uint32_t> Named;         // ids that have names

  uint32_t Entry = 0;
  std::vector<uint32_t> Interface;
  std::set<uint32_t> Globals; // variables
  bool Sized = false, HasModel = false, HasFunction = false;
  uint32_t PushConstants = 0; // the variable's id
  uint64_t SharedBytes = 0, FunctionBytes = 0;

  // The function at hand.
  ControlFlow Flow;
  bool InFunction = false, InBlock = false, Merging = false;
  bool AtStart = false; // no op but phis in the block yet
  struct Use {
    size_t At, Block;
    uint32_t Id;
  };
  std::vector<Use> Uses;
  std::vector<std::pair<size_t, size_t>> Phis; // place, block
};

} // namespace greta::rt::vulkan
#endif
