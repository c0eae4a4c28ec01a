// Program.cpp: see Program.h.
#include "engine/Program.h"

#include <cstdio>

namespace greta::llm {

std::string Block::typeWith(const std::string &other) const {
  if (shape.empty())
    return other;
  std::string text = "tensor<";
  for (int64_t extent : shape)
    text += std::to_string(extent) + "x";
  return text + other + ">";
}

Block Program::make(const std::string &element, std::vector<int64_t> shape) {
  return {this, "%" + std::to_string(count++), std::move(shape), element};
}

Block Program::emit(Block result, const std::string &line) {
  text += result.name + " = " + line + "\n";
  return result;
}

Block Program::argument(const std::string &argumentName,
                        const std::string &element, bool isPointer) {
  Block block{this,
              "%" + argumentName,
              {},
              isPointer ? "!greta_tile.ptr<" + element + ">" : element};
  arguments.push_back(block.name + ": " + block.element);
  return block;
}

Block Program::number(double value, const Block &like) {
  char digits[64];
  if (like.isFloat())
    snprintf(digits, sizeof(digits), "%.17e", value);
  else
    snprintf(digits, sizeof(digits), "%.0f", value);
  std::string element = like.isPointer() ? "i32" : like.element;
  Block scalar = make(element, {});
  emit(scalar, std::string("arith.constant ") + digits + " : " + element);
  return like.isPointer() ? scalar : splat(scalar, like.shape);
}

Block Program::integer(int64_t value, const std::string &element) {
  return emit(make(element, {}),
              "arith.constant " + std::to_string(value) + " : " + element);
}

Block Program::programId(int axis) {
  return emit(make("i32", {}), "greta_tile.program_id " + std::to_string(axis));
}

Block Program::iota(int axis, std::vector<int64_t> shape) {
  Block block = make("i32", std::move(shape));
  return emit(block,
              "greta_tile.iota " + std::to_string(axis) + " : " + block.type());
}

static std::string pointee(const Block &pointer) {
  size_t begin = pointer.element.find('<') + 1;
  return pointer.element.substr(begin, pointer.element.size() - begin - 1);
}

Block Program::load(const Block &pointer) {
  Block block = make(pointee(pointer), pointer.shape);
  return emit(block, "greta_tile.load_scattered " + pointer.name + " : " +
                         pointer.type() + " -> " + block.type());
}

Block Program::load(const Block &pointer, const Block &mask, double otherwise) {
  Block block = make(pointee(pointer), pointer.shape);
  Block other = number(otherwise, block);
  return emit(block, "greta_tile.load_scattered " + pointer.name + " mask " +
                         mask.name + " other " + other.name + " : " +
                         pointer.type() + " -> " + block.type());
}

void Program::store(const Block &value, const Block &pointer) {
  text += "greta_tile.store_scattered " + value.name + ", " + pointer.name +
          " : " + value.type() + " -> " + pointer.type() + "\n";
}

void Program::store(const Block &value, const Block &pointer,
                    const Block &mask) {
  text += "greta_tile.store_scattered " + value.name + ", " + pointer.name +
          " mask " + mask.name + " : " + value.type() + " -> " +
          pointer.type() + "\n";
}

void Program::exchange(const Block &value, const Block &pointer,
                       const Block &mask) {
  emit(make(value.element, value.shape),
       "greta_tile.atomic_rmw xchg relaxed workgroup " + pointer.name + ", " +
           value.name + " mask " + mask.name + " : " + pointer.type() + " -> " +
           value.type());
}

Block Program::castPointer(const Block &pointer, const std::string &element) {
  Block block = make("!greta_tile.ptr<" + element + ">", pointer.shape);
  return emit(block, "greta_tile.ptr_cast " + pointer.name + " : " +
                         pointer.type() + " -> " + block.type());
}

Block Program::advance(const Block &pointer, const Block &offset) {
  const std::vector<int64_t> &shape =
      pointer.shape.empty() ? offset.shape : pointer.shape;
  Block by = pointer.shape.empty() ? offset : likeOther(offset, pointer);
  return emit(make(pointer.element, shape),
              "greta_tile.ptr_add " + pointer.name + ", " + by.name + " : " +
                  pointer.type() + ", " + by.type());
}

Block Program::splat(const Block &scalar, const std::vector<int64_t> &shape) {
  if (shape == scalar.shape)
    return scalar;
  Block block = make(scalar.element, shape);
  return emit(block, "greta_tile.splat " + scalar.name + " : " + block.type());
}

Block Program::likeOther(const Block &value, const Block &other) {
  return value.shape.empty() ? splat(value, other.shape) : value;
}

Block Program::elementwise(const std::string &op, std::vector<Block> operands) {
  std::string names;
  const std::vector<int64_t> &shape = operands.front().shape.empty()
                                          ? operands.back().shape
                                          : operands.front().shape;
  Block block = make(operands.front().element, shape);
  for (Block &operand : operands)
    names += (names.empty() ? "" : ", ") + likeOther(operand, block).name;
  return emit(block, op + " " + names + " : " + block.type());
}

Block Program::convert(const std::string &op, const Block &value,
                       const std::string &element) {
  return emit(make(element, value.shape), op + " " + value.name + " : " +
                                              value.type() + " to " +
                                              value.typeWith(element));
}

Block Program::compare(const char *ofIntegers, const char *ofFloats, Block a,
                       Block b) {
  a = likeOther(a, b);
  b = likeOther(b, a);
  std::string op = a.isFloat() ? std::string("arith.cmpf ") + ofFloats
                               : std::string("arith.cmpi ") + ofIntegers;
  return emit(make("i1", a.shape),
              op + ", " + a.name + ", " + b.name + " : " + a.type());
}

Block Program::select(const Block &condition, Block a, Block b) {
  a = likeOther(a, condition);
  b = likeOther(b, condition);
  return emit(make(a.element, a.shape),
              "arith.select " + condition.name + ", " + a.name + ", " + b.name +
                  " : " + (a.shape.empty() ? "" : condition.type() + ", ") +
                  a.type());
}

Block Program::reshape(const Block &value, std::vector<int64_t> shape) {
  Block block = make(value.element, std::move(shape));
  return emit(block, "greta_tile.reshape " + value.name + " : " + value.type() +
                         " -> " + block.type());
}

Block Program::broadcast(const Block &value, std::vector<int64_t> shape) {
  Block block = make(value.element, std::move(shape));
  return emit(block, "greta_tile.broadcast " + value.name + " : " +
                         value.type() + " -> " + block.type());
}

static std::vector<int64_t> without(std::vector<int64_t> shape, int axis) {
  shape.erase(shape.begin() + axis);
  return shape;
}

Block Program::reduce(const std::string &op, const Block &value, int axis) {
  Block block = make(value.element, without(value.shape, axis));
  return emit(block, "greta_tile.reduce {" + op + "} " + value.name + " axis " +
                         std::to_string(axis) + " : " + value.type() + " -> " +
                         block.type());
}

Block Program::scan(const std::string &op, const Block &value, int axis) {
  return emit(make(value.element, value.shape),
              "greta_tile.scan {" + op + "} " + value.name + " axis " +
                  std::to_string(axis) + " : " + value.type());
}

std::pair<Block, Block> Program::argmax(const Block &value, const Block &index,
                                        int axis) {
  Block most = make(value.element, without(value.shape, axis));
  Block place = make(index.element, most.shape);
  std::string v = value.element, i = index.element;
  text += most.name + ", " + place.name + " = greta_tile.reduce " + value.name +
          ", " + index.name + " axis " + std::to_string(axis) + " : " +
          value.type() + ", " + index.type() + " -> (" + most.type() + ", " +
          place.type() + ") {\n^bb0(%a: " + v + ", %ia: " + i + ", %b: " + v +
          ", %ib: " + i + R"():
  %greater = arith.cmpf ogt, %a, %b : )" +
          v + R"(
  %equal = arith.cmpf oeq, %a, %b : )" +
          v + R"(
  %before = arith.cmpi slt, %ia, %ib : )" +
          i + R"(
  %tie = arith.andi %equal, %before : i1
  %first = arith.ori %greater, %tie : i1
  %most = arith.select %first, %a, %b : )" +
          v + R"(
  %place = arith.select %first, %ia, %ib : )" +
          i + R"(
  greta_tile.yield %most, %place : )" +
          v + ", " + i + "\n}\n";
  return {most, place};
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

void Program::when(const Block &condition, const std::function<void()> &body) {
  text += "scf.if " + condition.name + " {\n";
  body();
  text += "}\n";
}

Block Program::choose(const Block &condition, const std::function<Block()> &yes,
                      const std::function<Block()> &no) {
  // The branches come first: they say of what type the result is.
  std::string before = std::move(text);
  auto branch = [&](const std::function<Block()> &body, Block &result) {
    text.clear();
    result = body();
    return text + "scf.yield " + result.name + " : " + result.type() + "\n";
  };
  Block a, b;
  std::string first = branch(yes, a), second = branch(no, b);
  text = std::move(before);
  return emit(make(a.element, a.shape), "scf.if " + condition.name + " -> (" +
                                            a.type() + ") {\n" + first +
                                            "} else {\n" + second + "}");
}

Program::Blocks
Program::loop(const Block &from, const Block &to, int64_t step,
              const Blocks &initial,
              const std::function<Blocks(Block, Blocks)> &body) {
  Block by = integer(step), i = make("i32", {});
  std::string carried, types, results, yielded;
  Blocks inside, outside;
  for (const Block &value : initial) {
    const char *comma = carried.empty() ? "" : ", ";
    inside.push_back(make(value.element, value.shape));
    outside.push_back(make(value.element, value.shape));
    carried += comma + inside.back().name + " = " + value.name;
    results += comma + outside.back().name;
    types += comma + value.type();
  }
  text += results + " = scf.for " + i.name + " = " + from.name + " to " +
          to.name + " step " + by.name + " iter_args(" + carried + ") -> (" +
          types + ") : i32 {\n";
  for (const Block &value : body(i, inside))
    yielded += (yielded.empty() ? "" : ", ") + value.name;
  text += "scf.yield " + yielded + " : " + types + "\n}\n";
  return outside;
}

Block Program::repeat(
    const Block &initial,
    const std::function<std::pair<Block, Block>(Block)> &body) {
  Block before = make(initial.element, initial.shape),
        after = make(initial.element, initial.shape),
        result = make(initial.element, initial.shape);
  std::string type = initial.type();
  text += result.name + " = scf.while (" + before.name + " = " + initial.name +
          ") : (" + type + ") -> " + type + " {\n";
  auto [goesOn, next] = body(before);
  text += "scf.condition(" + goesOn.name + ") " + next.name + " : " + type +
          "\n} do {\n^bb0(" + after.name + ": " + type + "):\nscf.yield " +
          after.name + " : " + type + "\n}\n";
  return result;
}

std::string Program::finish() const {
  std::string list;
  for (const std::string &argument : arguments)
    list += (list.empty() ? "" : ", ") + argument;
  return "greta_tile.func @" + name + "(" + list +
         ") attributes {waves = " + std::to_string(waves) + " : i32} {\n" +
         text + "greta_tile.return\n}\n";
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

static Block arithmetic(const char *ofIntegers, const char *ofFloats,
                        const Block &a, const Block &b) {
  return a.program->elementwise(
      std::string("arith.") + (a.isFloat() ? ofFloats : ofIntegers), {a, b});
}

Block operator+(const Block &a, const Block &b) {
  return a.isPointer() ? a.program->advance(a, b)
                       : arithmetic("addi", "addf", a, b);
}
Block operator-(const Block &a, const Block &b) {
  return arithmetic("subi", "subf", a, b);
}
Block operator*(const Block &a, const Block &b) {
  return arithmetic("muli", "mulf", a, b);
}
Block operator^(const Block &a, const Block &b) {
  return a.program->elementwise("arith.xori", {a, b});
}
Block operator&(const Block &a, const Block &b) {
  return a.program->elementwise("arith.andi", {a, b});
}
Block operator|(const Block &a, const Block &b) {
  return a.program->elementwise("arith.ori", {a, b});
}
Block operator>>(const Block &a, const Block &b) {
  return a.program->elementwise("arith.shrui", {a, b});
}
Block operator<(const Block &a, const Block &b) {
  return a.program->compare("slt", "olt", a, b);
}
Block operator<=(const Block &a, const Block &b) {
  return a.program->compare("sle", "ole", a, b);
}
Block operator>(const Block &a, const Block &b) {
  return a.program->compare("sgt", "ogt", a, b);
}
Block operator>=(const Block &a, const Block &b) {
  return a.program->compare("sge", "oge", a, b);
}
Block operator==(const Block &a, const Block &b) {
  return a.program->compare("eq", "oeq", a, b);
}

} // namespace greta::llm
