// FunctionText.h: a function of the greta dialect as text. In: arguments and
// ops on values, one after another. Out: the function, whose values are
// numbered.
#ifndef GRETA_LLM_FUNCTION_TEXT_H
#define GRETA_LLM_FUNCTION_TEXT_H

#include "engine/Graph.h"

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace greta::llm {

constexpr int64_t any = -1; // a dynamic extent

struct Type {
  std::vector<int64_t> shape;
  std::string element;

  std::string text() const {
    std::string result = "tensor<";
    for (int64_t extent : shape)
      result += (extent == any ? "?" : std::to_string(extent)) + "x";
    return result + element + ">";
  }
};

struct Value {
  std::string name;
  Type type;
};

inline std::string joined(const std::vector<std::string> &parts,
                          const char *separator = ", ") {
  std::string result;
  for (const std::string &part : parts)
    result += (result.empty() ? "" : separator) + part;
  return result;
}

// A function under construction.
class Function {
public:
  Function(std::string name, int64_t tokens)
      : tokens(tokens), name(std::move(name)) {}

  Value argument(const std::string &argumentName, Type type) {
    Value value{"%" + argumentName, std::move(type)};
    arguments.push_back(value);
    return value;
  }

  // The attributes of products with transposed weights, which have `rows` rows
  // for each token. Kernels for parts of prompts of up to 32 and of up to 128
  // tokens stand beside those for long ones. A token's results do not depend on
  // how many others are in its launch, so a prompt may be cut anywhere.
  std::string ofPrompt(int64_t rows = 1) const {
    if (tokens != any)
      return "{transpose_b}";
    std::vector<std::string> ends;
    for (int64_t end : promptRanges)
      ends.push_back(std::to_string(end * rows));
    return "{transpose_b, greta.batch_invariant, greta.ranges = [" +
           joined(ends) + "]}";
  }

  // `op %a, %b attributes : types of a, b -> type`; operands that words name
  // are the last ones: `op %a, %b word(%c) ..`.
  using Named = std::pair<std::string, std::vector<Value>>;
  Value op(const std::string &op, std::vector<Value> operands, Type type,
           const std::string &attributes = "",
           const std::vector<Named> &named = {}) {
    std::string text = op + " " + namesOf(operands);
    for (const auto &[word, values] : named) {
      if (!values.empty())
        text += " " + word + "(" + namesOf(values) + ")";
      operands.insert(operands.end(), values.begin(), values.end());
    }
    return line(text + (attributes.empty() ? "" : " " + attributes) + " : " +
                    typesOf(operands) + " -> " + type.text(),
                type);
  }

  // The same of two results.
  std::pair<Value, Value> op2(const std::string &op,
                              const std::vector<Value> &operands,
                              const Type &first, const Type &second) {
    std::string name = "%" + std::to_string(numbered++);
    body += "  " + name + ":2 = " + op + " " + namesOf(operands) + " : " +
            typesOf(operands) + " -> " + first.text() + ", " + second.text() +
            "\n";
    return {{name + "#0", first}, {name + "#1", second}};
  }

  // A number everywhere.
  Value constant(double value, const Type &type) {
    Value scalar = number(value, type.element);
    std::string sizes = type.shape.front() == any ? "[" + count() + "]" : "";
    return line("tensor.splat " + scalar.name + sizes + " : " + type.text(),
                type);
  }

  Value scaled(const Value &value, double factor) {
    if (factor == 1)
      return value;
    return elementwise("arith.mulf", {value, constant(factor, value.type)});
  }

  // Elementwise: one type says it all.
  Value elementwise(const std::string &op, const std::vector<Value> &operands) {
    return line(op + " " + namesOf(operands) + " : " +
                    operands.front().type.text(),
                operands.front().type);
  }

  Value convert(const Value &value, const std::string &element) {
    if (value.type.element == element)
      return value;
    Type type{value.type.shape, element};
    return line(
        std::string(element == "f32" ? "arith.extf " : "arith.truncf ") +
            value.name + " : " + value.type.text() + " to " + type.text(),
        type);
  }

  // `groups` as tensor.expand_shape has them; its first dimension are tokens.
  Value expand(const Value &value, std::vector<int64_t> shape,
               const std::string &groups) {
    std::vector<std::string> sizes;
    for (int64_t extent : shape)
      sizes.push_back(extent == any ? count() : std::to_string(extent));
    Type type{std::move(shape), value.type.element};
    return line("tensor.expand_shape " + value.name + " " + groups +
                    " output_shape [" + joined(sizes) +
                    "] : " + value.type.text() + " into " + type.text(),
                type);
  }

  Value collapse(const Value &value, std::vector<int64_t> shape,
                 const std::string &groups) {
    Type type{std::move(shape), value.type.element};
    return line("tensor.collapse_shape " + value.name + " " + groups + " : " +
                    value.type.text() + " into " + type.text(),
                type);
  }

  // The first columns of the last dimension of three.
  Value firstColumns(const Value &value, int64_t columns) {
    Type type = value.type;
    type.shape[2] = columns;
    std::vector<std::string> sizes;
    for (int64_t extent : type.shape)
      sizes.push_back(extent == any ? rowsOf(value) : std::to_string(extent));
    return line("tensor.extract_slice " + value.name + "[0, 0, 0] [" +
                    joined(sizes) + "] [1, 1, 1] : " + value.type.text() +
                    " to " + type.text(),
                type);
  }

  // Three dimensions, the first two of which change places.
  Value swapped(const Value &value) { return transposed(value, {1, 0, 2}); }

  // The tokens of sequences of one length, [tokens, heads, size], are divided
  // by sequence. `lengths` has a number for each of these.
  Value bySequence(const Value &rows, const Value &lengths) {
    if (sequences.empty()) {
      sequences = {"%sequences", "%of_sequence"};
      std::string tokensOfAll = count();
      body += "  %sequences = tensor.dim " + lengths.name +
              ", %c0 : " + lengths.type.text() +
              "\n  %of_sequence = arith.divui " + tokensOfAll +
              ", %sequences : index\n";
    }
    const std::vector<int64_t> &shape = rows.type.shape;
    Type type{{any, any, shape[1], shape[2]}, rows.type.element};
    return line("tensor.expand_shape " + rows.name +
                    " [[0, 1], [2], [3]] output_shape [" + joined(sequences) +
                    ", " + std::to_string(shape[1]) + ", " +
                    std::to_string(shape[2]) + "] : " + rows.type.text() +
                    " into " + type.text(),
                type);
  }

  // Dimension i is dimension order[i] of the value; one of them is dynamic, or
  // none, or the two first ones of tokens by sequence.
  Value transposed(const Value &value, const std::vector<size_t> &order) {
    Type type{{}, value.type.element};
    std::vector<std::string> names, extents;
    const std::vector<int64_t> &shape = value.type.shape;
    bool areTwo = shape.size() > 1 && shape[0] == any && shape[1] == any;
    for (size_t from : order) {
      type.shape.push_back(shape[from]);
      if (type.shape.back() == any)
        extents.push_back(areTwo ? sequences[from] : count());
      names.push_back(std::to_string(from));
    }
    Value empty =
        line("tensor.empty(" + joined(extents) + ") : " + type.text(), type);
    return line("linalg.transpose ins(" + value.name + " : " +
                    value.type.text() + ") outs(" + empty.name + " : " +
                    type.text() + ") permutation = [" + joined(names) + "]",
                type);
  }

  // A vector for every token, or, along 1, each token's number for its row.
  Value repeat(const Value &vector, const Type &type, int along = 0) {
    Value empty =
        line("tensor.empty(" + (tokens == any ? count() : std::string()) +
                 ") : " + type.text(),
             type);
    return line("linalg.broadcast ins(" + vector.name + " : " +
                    vector.type.text() + ") outs(" + empty.name + " : " +
                    type.text() + ") dimensions = [" + std::to_string(along) +
                    "]",
                type);
  }

  std::string finish(const std::vector<Value> &results) const {
    std::vector<std::string> declared;
    for (const Value &argument : arguments)
      declared.push_back(argument.name + ": " + argument.type.text());
    return "func.func @" + name + "(" + joined(declared) + ")\n    -> (" +
           typesOf(results) + ") {\n" + body + "  return " + namesOf(results) +
           " : " + typesOf(results) + "\n}\n";
  }

  const int64_t tokens;

private:
  static std::string namesOf(const std::vector<Value> &values) {
    std::vector<std::string> names;
    for (const Value &value : values)
      names.push_back(value.name);
    return joined(names);
  }
  static std::string typesOf(const std::vector<Value> &values) {
    std::vector<std::string> types;
    for (const Value &value : values)
      types.push_back(value.type.text());
    return joined(types);
  }
  Value line(const std::string &text, const Type &type) {
    std::string result = "%" + std::to_string(numbered++);
    body += "  " + result + " = " + text + "\n";
    return {result, type};
  }
  Value number(double value, const std::string &element) {
    char text[80];
    snprintf(text, sizeof(text), "arith.constant %.9e : %s", value,
             element.c_str());
    return line(text, {{}, element});
  }
  // The number of tokens, of the first argument, as an index.
  std::string count() {
    if (counted.empty()) {
      counted = "%tokens_of_x";
      body += "  %c0 = arith.constant 0 : index\n  " + counted +
              " = tensor.dim " + arguments.front().name +
              ", %c0 : " + arguments.front().type.text() + "\n";
    }
    return counted;
  }

  // The extent of a value's first dimension. A slice of all of it says so; that
  // x has as many is known at a launch only.
  std::string rowsOf(const Value &value) {
    (void)count();
    return line("tensor.dim " + value.name + ", %c0 : " + value.type.text(),
                {{}, "index"})
        .name;
  }

  std::string name, body, counted;
  std::vector<std::string> sequences; // how many, and the tokens of each
  std::vector<Value> arguments;
  int numbered = 0;
};

} // namespace greta::llm
#endif
