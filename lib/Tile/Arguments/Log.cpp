//===- Log.cpp - prints and assertions as stores to the log ---------------===//
//
// In: a kernel that prints or asserts, and the pointer to its log. Out: the
// same with blocks and scalars stored there, in words of 32 bits:
//
//   word 0        how many words behind this one have been asked for
//   from word 1   of each print, and each assertion that fails:
//                 site, ids of the program along x, y and z, then
//                   of a print      each value's elements in order, those of 64
//                                   bits as two words, the low one first
//                   of an assertion the index of the first element that is
//                                   false, row-major
//
// A record that does not fit is not written, nor is any after it. The runtime
// reads the log when somebody waits for the launch (runtime/src/Log.cpp).
//
//===----------------------------------------------------------------------===//

#include "Log.h"
#include "../Layouts/BlockLayout.h"
#include "greta/Tile/Elementwise.h"
#include "greta/Tile/Workgroup.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

bool tile::hasLog(FuncOp kernel) { return hasOp<PrintOp, AssertOp>(kernel); }

int64_t tile::logWordsOf(FuncOp kernel) {
  return hasOp<PrintOp>(kernel) ? 1 << 18 : 1 << 12;
}

/// The file's name and the line; empty where the location has none.
static std::string placeOf(Location loc) {
  std::string place;
  loc->walk([&](Location part) {
    auto line = dyn_cast<FileLineColLoc>(part);
    if (!line)
      return WalkResult::advance();
    place = (llvm::sys::path::filename(line.getFilename().getValue()) + ":" +
             Twine(line.getLine()))
                .str();
    return WalkResult::interrupt();
  });
  return place;
}

namespace {

class LogExpander : Arithmetic {
public:
  LogExpander(Value log, int64_t logWords, ImplicitLocOpBuilder &b)
      : Arithmetic{b}, log(log), logWords(logWords) {}
  LogicalResult expand(PrintOp op);
  void expand(AssertOp op);
  ArrayAttr takeSites() { return b.getArrayAttr(sites); }

private:
  static constexpr int64_t headerWords = 4;

  Value constant(Type type, int64_t value) {
    return constantOf(b, type, value);
  }
  Value at(Value pointer, int64_t words) {
    return words ? PtrAddOp::create(b, pointer.getType(), pointer, i32(words))
                 : pointer;
  }
  void addSite(StringRef kind, StringRef text, ArrayRef<NamedAttribute> more);
  void record(int64_t words, llvm::function_ref<void(Value)> store);
  Value asNumber(Value value, bool isHex, bool isUnsigned, std::string &dtype);
  void storeNumber(Value number, Value pointer);

  Value log;
  int64_t logWords;
  SmallVector<Attribute> sites;
};

} // namespace

/// A number has no dimensions.
static ArrayRef<int64_t> dimensionsOf(Value value) {
  auto block = dyn_cast<RankedTensorType>(value.getType());
  return block ? block.getShape() : ArrayRef<int64_t>();
}

static int64_t wordsOf(Value number) {
  auto block = dyn_cast<RankedTensorType>(number.getType());
  int64_t bits = getElementTypeOrSelf(number).getIntOrFloatBitWidth();
  return (block ? block.getNumElements() : 1) * (bits / 32);
}

void LogExpander::addSite(StringRef kind, StringRef text,
                          ArrayRef<NamedAttribute> more) {
  NamedAttrList site(more);
  site.set("kind", b.getStringAttr(kind));
  site.set("text", b.getStringAttr(text));
  sites.push_back(site.getDictionary(b.getContext()));
}

/// Takes a record of the last site, if there are so many words left.
void LogExpander::record(int64_t words, llvm::function_ref<void(Value)> store) {
  int64_t whole = headerWords + words;
  Value taken = AtomicRmwOp::create(b, b.getI32Type(), AtomicKind::Add,
                                    MemoryOrder::Relaxed, MemoryScope::Device,
                                    log, i32(whole), /*mask=*/Value());
  Value fits = compare(Predicate::ule, taken, i32(logWords - 1 - whole));
  emitIf(b, fits, [&] {
    Value first = at(PtrAddOp::create(b, log.getType(), log, taken), 1);
    StoreScatteredOp::create(b, i32(sites.size() - 1), first, Value());
    for (int32_t axis : {0, 1, 2})
      StoreScatteredOp::create(b, ProgramIdOp::create(b, axis),
                               at(first, axis + 1), Value());
    store(at(first, headerWords));
  });
}

/// An integer of 32 or 64 bits that the log holds, and what it is one of.
Value LogExpander::asNumber(Value value, bool isHex, bool isUnsigned,
                            std::string &dtype) {
  Type element = getElementTypeOrSelf(value.getType());
  auto as = [&](Type type) { return withElementType(value.getType(), type); };
  if (isa<PtrType>(element)) {
    value = PtrToIntOp::create(b, as(b.getI64Type()), value);
    isUnsigned = true;
  } else if (isa<FloatType>(element)) {
    if (!isHex && element.getIntOrFloatBitWidth() < 32)
      value = arith::ExtFOp::create(b, as(b.getF32Type()), value);
    unsigned bits = getElementTypeOrSelf(value).getIntOrFloatBitWidth();
    value = arith::BitcastOp::create(b, as(b.getIntegerType(bits)), value);
    if (!isHex)
      dtype = bits == 64 ? "f64" : "f32";
  }
  unsigned bits = getElementTypeOrSelf(value).getIntOrFloatBitWidth();
  // An i1 is 0 or 1.
  bool isSigned = !isHex && !isUnsigned && bits != 1;
  if (dtype.empty())
    dtype = (isSigned ? "i" : "u") +
            std::to_string(isSigned ? std::max(bits, 32u) : std::max(bits, 8u));
  if (bits >= 32)
    return value;
  if (isSigned)
    return arith::ExtSIOp::create(b, as(b.getI32Type()), value);
  return arith::ExtUIOp::create(b, as(b.getI32Type()), value);
}

void LogExpander::storeNumber(Value number, Value pointer) {
  auto as = [&](Type type) { return withElementType(number.getType(), type); };
  int64_t parts = getElementTypeOrSelf(number).getIntOrFloatBitWidth() / 32;
  for (int64_t part = 0; part < parts; ++part) {
    Value word = number;
    if (part)
      word = shr(word, constant(word.getType(), 32));
    if (parts > 1)
      word = arith::TruncIOp::create(b, as(b.getI32Type()), word);
    Value place = at(pointer, part);
    if (!isBlock(word)) {
      StoreScatteredOp::create(b, word, place, Value());
      continue;
    }
    ArrayRef<int64_t> shape = dimensionsOf(word);
    SmallVector<int64_t> strides = computeStrides(shape);
    for (int64_t &stride : strides)
      stride *= parts;
    StoreOp::create(b, word, place, SmallVector<Value>(shape.size(), i32(0)),
                    ValueRange(), ValueRange(), strides, ArrayRef<int64_t>(),
                    DenseI64ArrayAttr());
  }
}

LogicalResult LogExpander::expand(PrintOp op) {
  b.setLoc(op.getLoc());
  b.setInsertionPoint(op);
  auto unsignedValues = op.getUnsignedValues().value_or(ArrayRef<int64_t>());
  SmallVector<Value> numbers;
  SmallVector<Attribute> values;
  int64_t words = 0;
  for (auto [i, value] : llvm::enumerate(op.getValues())) {
    std::string dtype;
    numbers.push_back(asNumber(value, op.getHex(),
                               llvm::is_contained(unsignedValues, int64_t(i)),
                               dtype));
    words += wordsOf(numbers.back());
    values.push_back(b.getDictionaryAttr(
        {b.getNamedAttr("dtype", b.getStringAttr(dtype)),
         b.getNamedAttr("shape", b.getI64ArrayAttr(dimensionsOf(value)))}));
  }
  if (headerWords + words >= logWords)
    return op.emitOpError("prints ")
           << words << " words at once; a launch prints up to "
           << logWords - 1 - headerWords << ": print a part";
  addSite("print", op.getPrefix(),
          {b.getNamedAttr("hex", b.getBoolAttr(op.getHex())),
           b.getNamedAttr("values", b.getArrayAttr(values))});
  record(words, [&](Value pointer) {
    for (Value number : numbers) {
      storeNumber(number, pointer);
      pointer = at(pointer, wordsOf(number));
    }
  });
  op.erase();
  return success();
}

void LogExpander::expand(AssertOp op) {
  b.setLoc(op.getLoc());
  b.setInsertionPoint(op);
  Value condition = op.getCondition(), index = i32(0), fails;
  addSite(
      "assert", op.getMessage(),
      {b.getNamedAttr("where", b.getStringAttr(placeOf(op.getLoc()))),
       b.getNamedAttr("shape", b.getI64ArrayAttr(dimensionsOf(condition)))});
  if (isBlock(condition)) {
    // The smallest index of an element that is false.
    constexpr int64_t none = INT32_MAX;
    auto type = cast<RankedTensorType>(condition.getType());
    type = RankedTensorType::get(type.getShape(), b.getI32Type());
    Value place = constant(type, 0);
    int64_t stride = 1;
    for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
      Value along = IotaOp::create(b, type, dim);
      along = mul(along, constant(type, stride));
      place = add(place, along);
      stride *= type.getDimSize(dim);
    }
    index = select(condition, constant(type, none), place);
    while (isBlock(index))
      index = ReduceOp::create(
                  b, index, 0,
                  [](OpBuilder &b, Location loc, ValueRange x, ValueRange y) {
                    return SmallVector<Value>{
                        arith::MinSIOp::create(b, loc, x[0], y[0])};
                  })
                  .getResult(0);
    fails = differ(index, i32(none));
  } else {
    fails = flip(condition, arith::ConstantIntOp::create(b, 1, 1));
  }
  emitIf(b, fails, [&] {
    record(1, [&](Value pointer) { storeNumber(index, pointer); });
  });
  op.erase();
}

LogicalResult tile::expandLog(FuncOp kernel, Value log) {
  ImplicitLocOpBuilder b(kernel.getLoc(), kernel.getContext());
  LogExpander expander(log, logWordsOf(kernel), b);
  SmallVector<Operation *> ops;
  kernel.walk([&](Operation *op) {
    if (isa<PrintOp, AssertOp>(op))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    if (auto print = dyn_cast<PrintOp>(op)) {
      if (failed(expander.expand(print)))
        return failure();
    } else {
      expander.expand(cast<AssertOp>(op));
    }
  }
  kernel->setAttr(logName, expander.takeSites());
  return success();
}
