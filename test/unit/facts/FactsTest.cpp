//===- FactsTest.cpp - claims of the facts analysis against numbers -------===//

#include "greta/Tile/Facts.h"
#include "Evaluate.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Verifier.h"
#include "gtest/gtest.h"
#include <random>

using namespace mlir;
using namespace greta;
using namespace greta::tile;

namespace {

/// A kernel of random integer arithmetic on scalars and blocks.
class RandomProgram {
public:
  explicit RandomProgram(unsigned seed, MLIRContext *context)
      : random(seed), module(ModuleOp::create(UnknownLoc::get(context))),
        b(UnknownLoc::get(context), context) {
    b.setInsertionPointToStart(module->getBody());
    Type i32 = b.getI32Type(), pointer = PtrType::get(b.getF16Type());
    kernel = FuncOp::create(
        b, "k", b.getFunctionType({pointer, i32, i32, i32}, {}), 32, 32);
    promise(0, 16);
    promise(1, 8);
    promise(2, 96);
    b.setInsertionPointToStart(&kernel.getBody().front());
    auto end = tile::ReturnOp::create(b);
    b.setInsertionPoint(end);
    values.assign(kernel.getArguments().begin(), kernel.getArguments().end());
    values.push_back(ProgramIdOp::create(b, 0));
    for (Type type : {Type(i32), Type(block({64})), Type(block({8, 1})),
                      Type(block({1, 16})), Type(block({8, 16}))})
      addLeaves(type);
    addWrapping();
    for (int i = 0; i < 20; ++i)
      addOp();
    addLoop();
    for (int i = 0; i < 10; ++i)
      addOp();
  }

  FuncOp getKernel() { return kernel; }
  ModuleOp getModule() { return *module; }
  unsigned below(unsigned end) { return random() % end; }

private:
  RankedTensorType block(ArrayRef<int64_t> shape, unsigned bits = 32) {
    return RankedTensorType::get(shape, b.getIntegerType(bits));
  }
  void promise(unsigned argument, int64_t multiple) {
    kernel.setArgAttr(argument, divisibilityName,
                      b.getI64IntegerAttr(multiple));
  }
  int64_t number() {
    static constexpr int64_t some[] = {
        0,  1,   2, 3,  4,    8,  16, 32, 48, 64,        7,
        -1, -16, 5, 12, 1024, 31, 63, 96, -8, INT32_MIN, INT32_MAX};
    return some[below(std::size(some))];
  }
  /// Uses for which numbers up to some limit matter: a divisor, a shift.
  Value constantBetween(Type type, int64_t first, int64_t last) {
    int64_t some = number();
    while (some < first || some > last)
      some = number();
    return constant(type, some);
  }
  Value constant(Type type) { return constant(type, number()); }
  Value constant(Type type, int64_t number) {
    Type element = getElementTypeOrSelf(type);
    auto attr = b.getIntegerAttr(
        element, llvm::SignExtend64(number, element.getIntOrFloatBitWidth()));
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      return arith::ConstantOp::create(b, DenseElementsAttr::get(tensor, attr));
    return arith::ConstantOp::create(b, attr);
  }
  void addLeaves(Type type) {
    for (int i = 0; i < 3; ++i)
      values.push_back(constant(type));
    auto tensor = dyn_cast<RankedTensorType>(type);
    for (unsigned dim = 0; tensor && dim < tensor.getRank(); ++dim)
      values.push_back(IotaOp::create(b, tensor, dim));
  }
  /// One of the values of a type; of any with that element type, if null.
  Value pick(Type type) {
    SmallVector<Value> fitting;
    for (Value value : values)
      if (value.getType() == type)
        fitting.push_back(value);
    return fitting.empty() ? Value() : fitting[below(fitting.size())];
  }
  Type integersLike(Value value, unsigned bits) {
    auto tensor = dyn_cast<RankedTensorType>(value.getType());
    Type element = b.getIntegerType(bits);
    return tensor ? Type(tensor.clone(element)) : element;
  }

  /// Runs over the ends of their width: what counts on there does not when it
  /// is widened, and a bound does not have it on one side.
  void addWrapping() {
    RankedTensorType type = block({512});
    Value iota = IotaOp::create(b, type, 0);
    Value high = arith::AddIOp::create(b, iota, constant(type, INT32_MAX - 3));
    Value top = arith::AddIOp::create(b, iota, constant(type, -3));
    arith::ExtSIOp::create(b, integersLike(high, 64), high);
    arith::ExtUIOp::create(b, integersLike(top, 64), top);
    Value bytes = arith::TruncIOp::create(b, block({512}, 8), iota);
    arith::ExtSIOp::create(b, type, bytes);
    arith::CmpIOp::create(b, arith::CmpIPredicate::slt, bytes,
                          constant(bytes.getType(), 0));
  }

  void addOp() {
    Value x = values[below(values.size())];
    Type type = x.getType();
    if (isa<PtrType>(getElementTypeOrSelf(type)))
      return addPointer(x);
    if (below(4) == 0)
      return addMove(x);
    unsigned bits = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
    Value y = below(3) ? pick(type) : constant(type);
    Value added;
    switch (below(20)) {
    case 0:
    case 1:
      added = arith::AddIOp::create(b, x, y);
      break;
    case 2:
      added = arith::SubIOp::create(b, x, y);
      break;
    case 3:
    case 4:
      added = arith::MulIOp::create(b, x, y);
      break;
    case 5:
      added = arith::DivSIOp::create(b, x, constantBetween(type, 1, 96));
      break;
    case 6:
      added = arith::DivUIOp::create(b, x, constantBetween(type, 1, 96));
      break;
    case 7:
      added = arith::RemSIOp::create(b, x, constantBetween(type, 1, 96));
      break;
    case 8:
      added = arith::RemUIOp::create(b, x, constantBetween(type, 1, 96));
      break;
    case 9:
      added = arith::ShLIOp::create(b, x, constantBetween(type, 0, bits - 1));
      break;
    case 10:
      added = arith::ShRUIOp::create(b, x, constantBetween(type, 0, bits - 1));
      break;
    case 11:
      added = arith::ShRSIOp::create(b, x, constantBetween(type, 0, bits - 1));
      break;
    case 12:
      added = arith::AndIOp::create(b, x, y);
      break;
    case 13:
      added = arith::OrIOp::create(b, x, y);
      break;
    case 14:
      added = arith::XOrIOp::create(b, x, y);
      break;
    case 15:
      added = below(2) ? arith::MinSIOp::create(b, x, y).getResult()
                       : arith::MaxUIOp::create(b, x, y).getResult();
      break;
    case 16:
    case 17: {
      auto predicate = arith::CmpIPredicate(below(10));
      Value condition = arith::CmpIOp::create(b, predicate, x, y);
      values.push_back(condition);
      added = arith::SelectOp::create(b, condition, x, pick(type));
      break;
    }
    case 18:
      if (bits >= 64)
        return;
      added =
          below(2)
              ? arith::ExtSIOp::create(b, integersLike(x, 64), x).getResult()
              : arith::ExtUIOp::create(b, integersLike(x, 64), x).getResult();
      break;
    default:
      if (bits < 16)
        return;
      added =
          arith::TruncIOp::create(b, integersLike(x, bits > 32 ? 32 : 8), x);
    }
    values.push_back(added);
  }

  /// Pointers that are moved by scalars or blocks, and addresses.
  void addPointer(Value x) {
    if (below(4) == 0) {
      values.push_back(PtrToIntOp::create(b, x));
      return;
    }
    // Offsets of 32 bits do not overflow, which these may.
    bool isBlock = isa<RankedTensorType>(x.getType()) || below(2);
    Value offset = pick(isBlock ? Type(block({8, 16})) : b.getI32Type());
    values.push_back(PtrAddOp::create(
        b, x, arith::ExtSIOp::create(b, integersLike(offset, 64), offset)));
  }

  /// Splats, broadcasts and reshapes between the shapes of the leaves.
  void addMove(Value x) {
    auto tensor = dyn_cast<RankedTensorType>(x.getType());
    unsigned bits = getElementTypeOrSelf(x.getType()).getIntOrFloatBitWidth();
    if (!tensor) {
      values.push_back(SplatOp::create(b, block({8, 16}, bits), x));
      return;
    }
    auto reshape = [&](ArrayRef<int64_t> shape) {
      values.push_back(ReshapeOp::create(b, block(shape, bits), x));
    };
    switch (tensor.getNumElements()) {
    case 8:
    case 16:
      values.push_back(BroadcastOp::create(b, block({8, 16}, bits), x));
      break;
    case 64: {
      SmallVector<int64_t> shapes[] = {{64}, {4, 16}, {2, 1, 32}, {16, 4}};
      reshape(shapes[below(4)]);
      break;
    }
    case 128: {
      SmallVector<int64_t> shapes[] = {
          {8, 16}, {128}, {8, 4, 4}, {2, 4, 1, 16}};
      reshape(shapes[below(4)]);
    }
    }
  }

  void addLoop() {
    auto number = [&](int64_t n) {
      return arith::ConstantIntOp::create(b, n, 32).getResult();
    };
    Value init = pick(below(2) ? Type(b.getI32Type()) : Type(block({8, 16})));
    int64_t first = this->number() % 64, step = 1 + below(64);
    auto loop = scf::ForOp::create(b, number(first), number(first + 3 * step),
                                   number(step), ValueRange{init});
    size_t outside = values.size();
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      values.push_back(loop.getInductionVar());
      values.push_back(loop.getRegionIterArg(0));
      for (int i = 0; i < 8; ++i)
        addOp();
      // Rather what was computed last.
      Value yielded;
      for (Value value : values)
        if (value.getType() == init.getType())
          yielded = value;
      scf::YieldOp::create(b, yielded);
    }
    values.resize(outside);
    values.push_back(loop.getResult(0));
  }

  std::mt19937 random;
  OwningOpRef<ModuleOp> module;
  ImplicitLocOpBuilder b;
  FuncOp kernel;
  SmallVector<Value> values;
};

/// The claims about a value that its numbers contradict; empty: none.
std::string contradiction(const Facts &facts, Value value,
                          const Numbers &numbers) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape = tensor ? SmallVector<int64_t>(tensor.getShape())
                                      : SmallVector<int64_t>{1};
  Type element = getElementTypeOrSelf(value.getType());
  unsigned bits = element.isInteger() ? element.getIntOrFloatBitWidth() : 64;
  ValueFacts claimed = facts.of(value);
  if (auto range = facts.rangeOf(value))
    for (int64_t number : numbers)
      if (number < range->first || number > range->second)
        return "range";
  int64_t stride = numbers.size();
  for (auto [dim, extent] : llvm::enumerate(shape)) {
    const DimFacts &along = claimed[dim];
    stride /= extent;
    if (extent % along.contiguity || extent % along.constancy)
      return "groups do not divide the extent";
    for (size_t i = 0; i < numbers.size(); ++i) {
      int64_t at = i / stride % extent;
      auto ahead = [&](int64_t group) {
        return (at + 1) % group ? numbers[i + stride]
                                : std::optional<int64_t>();
      };
      auto next = ahead(along.contiguity);
      if (next && llvm::SignExtend64(*next - numbers[i], bits) !=
                      llvm::SignExtend64(1, bits))
        return "contiguity";
      if (auto same = ahead(along.constancy); same && *same != numbers[i])
        return "constancy";
      if (at % along.contiguity == 0 && numbers[i] % along.divisibility)
        return "divisibility";
    }
  }
  return "";
}

TEST(Facts, HoldInRandomPrograms) {
  MLIRContext context;
  context.loadDialect<GretaTileDialect, arith::ArithDialect, scf::SCFDialect>();
  // How often something was known that is not always true.
  int64_t contiguous = 0, constant = 0, divisible = 0, evaluated = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    RandomProgram program(seed, &context);
    ASSERT_TRUE(succeeded(verify(program.getModule())));
    FuncOp kernel = program.getKernel();
    Facts facts(kernel);
    for (int turn = 0; turn < 4; ++turn) {
      Evaluator evaluator;
      evaluator.programId = program.below(turn ? 1 << 20 : 4);
      bool ended = false;
      evaluator.visit = [&](Value value, const Numbers &numbers) {
        std::string wrong = contradiction(facts, value, numbers);
        if (wrong.empty() || ended)
          return;
        ended = true;
        std::string text;
        llvm::raw_string_ostream os(text);
        facts.of(value).print(os);
        os << "\n" << value << "\nin\n" << kernel;
        ADD_FAILURE() << "seed " << seed << ": " << wrong << " of " << text;
      };
      int64_t some = int32_t(program.below(1u << 31)) - (1 << 30);
      if (turn < 2)
        some %= 64;
      int64_t multiples[] = {8, 8, 96, 1};
      for (auto [argument, multiple] :
           llvm::zip(kernel.getArguments(), multiples))
        evaluator.set(argument, {(some++ % (INT32_MAX / multiple)) * multiple});
      evaluated += evaluator.run(kernel.getBody().front());
      ASSERT_FALSE(ended);
    }
    kernel.walk([&](Operation *op) {
      for (Value value : op->getResults())
        for (const DimFacts &dim : facts.of(value).getDims()) {
          contiguous += dim.contiguity > 1;
          constant += dim.constancy > 1 && dim.constancy != 16;
          divisible += dim.divisibility > 1 && dim.divisibility < 64;
        }
    });
  }
  // The programs are not of ops that nobody knows anything of, nor without
  // meaning.
  EXPECT_GT(contiguous, 1000);
  EXPECT_GT(constant, 1000);
  EXPECT_GT(divisible, 1000);
  EXPECT_GT(evaluated, 400);
}

} // namespace
