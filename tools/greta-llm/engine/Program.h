// Program.h: block programs as text of greta_tile. In: expressions over values
// (`a * b + 1`), as C++ evaluates them. Out: the ops that compute them, one
// after another, and regions for branches and loops. A number beside a value
// has the value's type, a scalar beside a block is the same everywhere.
#ifndef GRETA_LLM_PROGRAM_H
#define GRETA_LLM_PROGRAM_H

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace greta::llm {

class Program;

// A value of a program; `element` is i1, i32, f32 .. or a pointer's type.
struct Block {
  Program *program = nullptr;
  std::string name;
  std::vector<int64_t> shape; // empty: a scalar
  std::string element;

  std::string type() const { return typeWith(element); }
  std::string typeWith(const std::string &other) const;
  bool isFloat() const { return element[0] == 'f' || element[0] == 'b'; }
  bool isPointer() const { return element[0] == '!'; }
};

class Program {
public:
  // `waves` run one of them.
  Program(std::string name, int waves) : name(std::move(name)), waves(waves) {}

  Block argument(const std::string &argumentName, const std::string &element,
                 bool isPointer = true);
  Block number(double value, const Block &like);
  Block integer(int64_t value, const std::string &element = "i32");
  Block programId(int axis);
  // 0, 1, 2 .. along a dimension.
  Block iota(int axis, std::vector<int64_t> shape);

  // Loads through one pointer or a block of them; without a mask everywhere.
  Block load(const Block &pointer);
  Block load(const Block &pointer, const Block &mask, double otherwise);
  void store(const Block &value, const Block &pointer);
  void store(const Block &value, const Block &pointer, const Block &mask);

  // Stores i32 atomically.
  void exchange(const Block &value, const Block &pointer, const Block &mask);
  Block castPointer(const Block &pointer, const std::string &element);
  // A pointer, or each of a block, some elements further.
  Block advance(const Block &pointer, const Block &offset);

  // op %a, %b .. : type of the first
  Block elementwise(const std::string &op, std::vector<Block> operands);
  // op %a : type to the type with another element
  Block convert(const std::string &op, const Block &value,
                const std::string &element);
  Block compare(const char *ofIntegers, const char *ofFloats, Block a, Block b);
  Block select(const Block &condition, Block a, Block b);
  Block splat(const Block &scalar, const std::vector<int64_t> &shape);
  Block reshape(const Block &value, std::vector<int64_t> shape);
  // Repeats dimensions that are 1 to the shape's extents.
  Block broadcast(const Block &value, std::vector<int64_t> shape);
  Block reduce(const std::string &op, const Block &value, int axis);
  Block scan(const std::string &op, const Block &value, int axis);
  // The largest along an axis and its index, the least of equals.
  std::pair<Block, Block> argmax(const Block &value, const Block &index,
                                 int axis);
  void barrier() { text += "greta_tile.barrier\n"; }

  using Blocks = std::vector<Block>;
  void when(const Block &condition, const std::function<void()> &body);
  Block choose(const Block &condition, const std::function<Block()> &yes,
               const std::function<Block()> &no);
  Blocks loop(const Block &from, const Block &to, int64_t step,
              const Blocks &initial,
              const std::function<Blocks(Block, Blocks)> &body);
  // Iterations until `body` says false; what it gives last to the next
  // iteration is the result.
  Block repeat(const Block &initial,
               const std::function<std::pair<Block, Block>(Block)> &body);

  std::string finish() const;

private:
  Block make(const std::string &element, std::vector<int64_t> shape);
  Block emit(Block result, const std::string &line);
  Block likeOther(const Block &value, const Block &other);

  std::string name, text;
  std::vector<std::string> arguments;
  int waves, count = 0;
};

// Integers wrap around; a pointer moves by elements.
Block operator+(const Block &a, const Block &b);
Block operator-(const Block &a, const Block &b);
Block operator*(const Block &a, const Block &b);
Block operator^(const Block &a, const Block &b);
Block operator&(const Block &a, const Block &b);
Block operator|(const Block &a, const Block &b);
Block operator>>(const Block &a, const Block &b); // zeros from the left
Block operator<(const Block &a, const Block &b);  // of signed integers
Block operator<=(const Block &a, const Block &b);
Block operator>(const Block &a, const Block &b);
Block operator>=(const Block &a, const Block &b);
Block operator==(const Block &a, const Block &b);
#define GRETA_LLM_WITH_NUMBER(op)                                              \
  inline Block operator op(const Block &a, double b) {                         \
    return a op a.program->number(b, a);                                       \
  }
GRETA_LLM_WITH_NUMBER(+)
GRETA_LLM_WITH_NUMBER(-)
GRETA_LLM_WITH_NUMBER(*)
GRETA_LLM_WITH_NUMBER(^)
GRETA_LLM_WITH_NUMBER(&)
GRETA_LLM_WITH_NUMBER(|)
GRETA_LLM_WITH_NUMBER(>>)
GRETA_LLM_WITH_NUMBER(<)
GRETA_LLM_WITH_NUMBER(<=)
GRETA_LLM_WITH_NUMBER(>)
GRETA_LLM_WITH_NUMBER(>=)
GRETA_LLM_WITH_NUMBER(==)
#undef GRETA_LLM_WITH_NUMBER

} // namespace greta::llm
#endif
