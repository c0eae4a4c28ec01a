//===- LinearAddress.cpp - blocks of pointers as sums ---------------------===//

#include "GretaTile/LinearAddress.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace greta::tile;

using Terms = SmallVector<LinearTerm, 4>;

/// Sums of more terms are not taken apart.
static constexpr size_t mostTerms = 32;

static bool isBlock(Value value) {
  return isa<RankedTensorType>(value.getType());
}

static bool hasBlock(ArrayRef<LinearTerm> terms) {
  return llvm::any_of(terms, [](const LinearTerm &t) { return bool(t.block); });
}

static bool isUniform(ArrayRef<LinearTerm> terms) {
  return llvm::all_of(terms, [](const LinearTerm &t) { return t.isUniform(); });
}

/// The value whose elements, in other places, those of `value` are; null: it is
/// no such op's.
static Value getRearranged(Value value) {
  Operation *op = value.getDefiningOp();
  return isa_and_nonnull<BroadcastOp, ReshapeOp, ConvertLayoutOp>(op)
             ? op->getOperand(0)
             : Value();
}

/// The terms of a rearranged value's source in its own dimensions. Fails where
/// a term is of the source's elements.
static LogicalResult rearrange(Value value, Terms &terms) {
  Operation *op = value.getDefiningOp();
  if (hasBlock(terms))
    return failure();
  if (isa<ConvertLayoutOp>(op))
    return success();
  auto from = cast<RankedTensorType>(op->getOperand(0).getType());
  SmallVector<int64_t> dims =
      operandDims(op->getOpOperand(0), cast<OpResult>(value));
  // Along an extent of 1 the index is 0.
  llvm::erase_if(terms, [&](const LinearTerm &term) {
    return term.dim >= 0 && from.getDimSize(term.dim) == 1;
  });
  for (LinearTerm &term : terms) {
    if (term.isUniform())
      continue;
    auto place = llvm::find(dims, term.dim);
    if (place == dims.end())
      return failure();
    term.dim = place - dims.begin();
  }
  return success();
}

namespace {
/// Takes values apart, each once.
class TermFinder {
public:
  /// `extends` says whether values that have more bits than what they were made
  /// from are taken apart.
  explicit TermFinder(bool extends = true) : extends(extends) {}
  Terms termsOf(Value value);
  LinearAddress addressOf(Value pointers);
  std::optional<MaskBounds> boundsOf(Value mask);

private:
  std::optional<Terms> linearOffset(Value value);
  std::optional<MaskBound> getBound(arith::CmpIOp compare);
  std::optional<MaskBound> boundOf(Value indices, Value bound,
                                   MaskBound::Kind kind);

  bool extends;
  llvm::DenseMap<Value, Terms> known;
  llvm::DenseMap<Value, std::optional<MaskBounds>> knownBounds;
};
} // namespace

LinearTerm greta::tile::getScalarTerm(Value scalar) {
  APInt constant;
  if (matchPattern(scalar, m_ConstantInt(&constant)))
    return {constant.getSExtValue(), {}, -1, {}, scalar};
  // Its constant factor says what the value is a multiple of.
  auto multiply = scalar.getDefiningOp<arith::MulIOp>();
  if (multiply && matchPattern(multiply.getRhs(), m_ConstantInt(&constant)))
    return {constant.getSExtValue(), {multiply.getLhs()}, -1, {}, scalar};
  return {1, {scalar}, -1, {}, scalar};
}

/// x times y, where one of them is uniform.
static std::optional<Terms> product(Terms x, Terms y) {
  if (!isUniform(y))
    std::swap(x, y);
  if (!isUniform(y) || hasBlock(x) || x.size() * y.size() > 8)
    return std::nullopt;
  Terms result;
  for (const LinearTerm &a : x)
    for (const LinearTerm &b : y) {
      LinearTerm &term = result.emplace_back(a);
      term.constant *= b.constant;
      llvm::append_range(term.factors, b.factors);
      term.scalar = {};
    }
  return result;
}

/// Terms along one dimension, or of one block, become one.
static void add(Terms &terms, const LinearTerm &term) {
  auto same = llvm::find_if(terms, [&](const LinearTerm &other) {
    return !other.isUniform() && other.dim == term.dim &&
           other.block == term.block && other.factors == term.factors &&
           other.isWide == term.isWide;
  });
  if (same == terms.end())
    terms.push_back(term);
  else
    same->constant = uint64_t(same->constant) + uint64_t(term.constant);
}

/// The terms of an op's result from those of its operands; none if it is not
/// linear.
std::optional<Terms> TermFinder::linearOffset(Value value) {
  APInt constant;
  Operation *op = value.getDefiningOp();
  if (!isBlock(value))
    return Terms{getScalarTerm(value)};
  if (matchPattern(value, m_ConstantInt(&constant)))
    return Terms{{constant.getSExtValue(), {}, -1, {}, {}}};
  if (auto iota = dyn_cast_or_null<IotaOp>(op))
    return Terms{{1, {}, iota.getDim(), {}, {}}};
  if (auto splat = dyn_cast_or_null<SplatOp>(op))
    return linearOffset(splat.getValue());
  if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op)) {
    Terms terms = termsOf(op->getOperand(0));
    for (LinearTerm &term : termsOf(op->getOperand(1))) {
      if (isa<arith::SubIOp>(op)) {
        term.constant = -term.constant;
        term.scalar = {};
      }
      add(terms, term);
    }
    if (terms.size() > mostTerms)
      return std::nullopt;
    return terms;
  }
  if (isa_and_nonnull<arith::MulIOp>(op)) {
    auto terms =
        product(termsOf(op->getOperand(0)), termsOf(op->getOperand(1)));
    if (terms && getElementTypeOrSelf(value).isInteger(64))
      for (LinearTerm &term : *terms)
        term.isWide = true;
    return terms;
  }
  if (auto extend = dyn_cast_or_null<arith::ExtSIOp>(op); extend && extends) {
    Terms terms = termsOf(extend.getIn());
    if (!extend.getIn().getType().isInteger(1) && !hasBlock(terms))
      return terms;
  }
  if (Value source = getRearranged(value)) {
    Terms terms = termsOf(source);
    if (succeeded(rearrange(value, terms)))
      return terms;
  }
  return std::nullopt;
}

Terms TermFinder::termsOf(Value value) {
  if (auto found = known.find(value); found != known.end())
    return found->second;
  std::optional<Terms> terms = linearOffset(value);
  return known[value] =
             terms ? std::move(*terms) : Terms{{1, {}, -1, value, {}}};
}

LinearAddress TermFinder::addressOf(Value pointers) {
  LinearAddress result{pointers, {}};
  if (!isBlock(pointers))
    return result;
  if (auto add = pointers.getDefiningOp<PtrAddOp>()) {
    result = addressOf(add.getBase());
    llvm::append_range(result.terms, termsOf(add.getOffset()));
  } else if (auto splat = pointers.getDefiningOp<SplatOp>()) {
    result.base = splat.getValue();
  } else if (Value source = getRearranged(pointers)) {
    LinearAddress address = addressOf(source);
    if (address.hasUniformBase() &&
        succeeded(rearrange(pointers, address.terms)))
      return address;
  }
  return result;
}

bool greta::tile::reachesLittle(Value &pointer, SmallVectorImpl<Value> &steps) {
  BlockArgument argument = argumentOf(pointer);
  if (!hasPointerRange(argument) || argument.getType() != pointer.getType())
    return false;
  for (Value at = pointer; at != argument;) {
    auto add = at.getDefiningOp<PtrAddOp>();
    if (!add)
      return false;
    steps.push_back(add.getOffset());
    at = add.getBase();
  }
  pointer = argument;
  return true;
}

LinearAddress greta::tile::getLinearAddress(Value pointers) {
  return TermFinder().addressOf(pointers);
}

Terms greta::tile::getLinearTerms(Value integers) {
  return TermFinder(/*extends=*/false).termsOf(integers);
}

/// The one scalar that terms are; none where they are something else.
static std::optional<Value> scalarOf(ArrayRef<LinearTerm> terms) {
  if (terms.empty())
    return Value();
  if (terms.size() > 1 || !terms.front().scalar)
    return std::nullopt;
  return terms.front().scalar;
}

std::optional<Value> MaskBound::scalarOffset() const {
  return scalarOf(offset);
}

std::optional<Value> MaskBound::scalarBound() const { return scalarOf(bound); }

bool MaskBounds::areUpper() const {
  return conditions.empty() && llvm::all_of(bounds, [](const MaskBound &bound) {
           return bound.kind == MaskBound::Kind::Below &&
                  bound.scalarOffset() && bound.scalarBound().value_or(Value());
         });
}

/// The bound that a comparison of `indices`, one index and scalars, gives. A
/// lower bound says that the difference is no negative number.
std::optional<MaskBound> TermFinder::boundOf(Value indices, Value bound,
                                             MaskBound::Kind kind) {
  Terms terms = termsOf(indices), limit = termsOf(bound);
  auto index = llvm::find_if(
      terms, [](const LinearTerm &term) { return term.dim >= 0; });
  if (index == terms.end() || index->constant != 1 || !index->factors.empty())
    return std::nullopt;
  unsigned dim = index->dim;
  terms.erase(index);
  if (!isUniform(terms) || !isUniform(limit))
    return std::nullopt;
  if (kind == MaskBound::Kind::Nonnegative) {
    for (LinearTerm &term : limit) {
      term.constant = -term.constant;
      term.scalar = {};
    }
    llvm::append_range(terms, limit);
    limit.clear();
    llvm::erase_if(terms,
                   [](const LinearTerm &term) { return !term.constant; });
  }
  return MaskBound{
      dim, {terms.begin(), terms.end()}, {limit.begin(), limit.end()}, kind};
}

std::optional<MaskBound> TermFinder::getBound(arith::CmpIOp compare) {
  using Predicate = arith::CmpIPredicate;
  using Kind = MaskBound::Kind;
  Value x = compare.getLhs(), y = compare.getRhs();
  switch (compare.getPredicate()) {
  case Predicate::slt:
    return boundOf(x, y, Kind::Below);
  case Predicate::sgt:
    return boundOf(y, x, Kind::Below);
  case Predicate::sge:
    return boundOf(x, y, Kind::Nonnegative);
  case Predicate::sle:
    return boundOf(y, x, Kind::Nonnegative);
  case Predicate::ult:
    return boundOf(x, y, Kind::Unsigned);
  case Predicate::ugt:
    return boundOf(y, x, Kind::Unsigned);
  default:
    return std::nullopt;
  }
}

static std::optional<MaskBounds> rearrange(Value mask,
                                           std::optional<MaskBounds> bounds) {
  Operation *op = mask.getDefiningOp();
  if (!bounds || isa<ConvertLayoutOp>(op))
    return bounds;
  SmallVector<int64_t> dims =
      operandDims(op->getOpOperand(0), cast<OpResult>(mask));
  for (MaskBound &bound : bounds->bounds) {
    auto place = llvm::find(dims, bound.dim);
    if (place == dims.end())
      return std::nullopt;
    bound.dim = place - dims.begin();
  }
  return bounds;
}

std::optional<MaskBounds> TermFinder::boundsOf(Value mask) {
  if (auto found = knownBounds.find(mask); found != knownBounds.end())
    return found->second;
  Operation *op = mask.getDefiningOp();
  std::optional<MaskBounds> bounds;
  if (auto compare = dyn_cast_or_null<arith::CmpIOp>(op)) {
    if (std::optional<MaskBound> bound = getBound(compare))
      bounds = MaskBounds{{*bound}, {}};
  } else if (auto splat = dyn_cast_or_null<SplatOp>(op)) {
    bounds = MaskBounds{{}, {splat.getValue()}};
  } else if (isa_and_nonnull<arith::AndIOp>(op)) {
    bounds = boundsOf(op->getOperand(0));
    auto others = bounds ? boundsOf(op->getOperand(1)) : std::nullopt;
    if (!others || bounds->bounds.size() + others->bounds.size() +
                           bounds->conditions.size() +
                           others->conditions.size() >
                       mostTerms) {
      bounds = std::nullopt;
    } else {
      llvm::append_range(bounds->bounds, others->bounds);
      llvm::append_range(bounds->conditions, others->conditions);
    }
  } else if (Value source = getRearranged(mask)) {
    bounds = rearrange(mask, boundsOf(source));
  }
  return knownBounds[mask] = bounds;
}

std::optional<MaskBounds> greta::tile::getMaskBounds(Value mask) {
  return TermFinder().boundsOf(mask);
}
