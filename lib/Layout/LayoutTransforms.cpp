//===- LayoutTransforms.cpp - making layouts, and layouts from layouts ----===//
#include "greta/Layout/Layout.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace greta;
using llvm::ArrayRef;

/// A basis with one entry that is not zero.
static Basis unitBasis(unsigned rank, unsigned dim, int64_t entry) {
  Basis basis(rank, 0);
  basis[dim] = int32_t(entry);
  return basis;
}

llvm::FailureOr<Layout>
Layout::blocked(ArrayRef<int64_t> shape, ArrayRef<int64_t> perThread,
                ArrayRef<int64_t> lanesPerDim, ArrayRef<int64_t> wavesPerDim,
                ArrayRef<unsigned> order, std::string &error) {
  unsigned rank = shape.size();
  if (perThread.size() != rank || lanesPerDim.size() != rank ||
      wavesPerDim.size() != rank || order.size() != rank) {
    error = "a blocked layout needs one count and one place in the order for "
            "each dimension of the shape";
    return llvm::failure();
  }
  llvm::SmallVector<bool> seen(rank, false);
  for (unsigned dim : order) {
    if (dim >= rank || seen[dim]) {
      error = "the order is no permutation of the dimensions";
      return llvm::failure();
    }
    seen[dim] = true;
  }
  Index tile;
  Basis rep;
  for (unsigned dim = 0; dim != rank; ++dim) {
    int64_t cover = 1;
    for (int64_t count : {perThread[dim], lanesPerDim[dim], wavesPerDim[dim]}) {
      if (count < 1 || count > 1 << 20 || !llvm::isPowerOf2_64(count)) {
        error = "a blocked layout has the count " + std::to_string(count) +
                " in dimension " + std::to_string(dim) +
                ", it must be a power of two";
        return llvm::failure();
      }
      cover *= count;
    }
    int64_t size = shape[dim];
    if (size < 1 || size > INT32_MAX || (size > cover && size % cover != 0)) {
      error = "dimension " + std::to_string(dim) + " of size " +
              std::to_string(size) + " is no multiple of the " +
              std::to_string(cover) + " elements that the threads cover";
      return llvm::failure();
    }
    // The lowest set bit of the size is the largest power of two in it.
    tile.push_back(std::min(cover, size & -size));
    rep.push_back(int32_t(size / tile[dim]));
  }

  // How far each dimension is filled; beyond the tile only copies are left,
  // which registers do not need.
  Index filled(rank, 1);
  Bases bases[3];
  ArrayRef<int64_t> counts[3] = {perThread, lanesPerDim, wavesPerDim};
  for (unsigned group : {0, 1, 2})
    for (unsigned dim : order)
      for (int64_t count = counts[group][dim]; count != 1; count /= 2) {
        if (filled[dim] < tile[dim])
          bases[group].push_back(unitBasis(rank, dim, filled[dim]));
        else if (group != 0)
          bases[group].push_back(Basis(rank, 0));
        filled[dim] *= 2;
      }
  Layout layout(bases[0], bases[1], bases[2], rep);
  if (std::optional<std::string> problem = layout.verify()) {
    error = *problem;
    return llvm::failure();
  }
  return layout;
}

/// The row-major number of the repetition at the given coordinates.
static unsigned number(ArrayRef<int32_t> rep, ArrayRef<int64_t> coordinates) {
  unsigned result = 0;
  for (auto [factor, coordinate] : llvm::zip_equal(rep, coordinates))
    result = result * factor + unsigned(coordinate);
  return result;
}

Layout Layout::coarsen(unsigned dim, int64_t factor) const {
  auto divided = [&](Bases bases, bool dropZero) {
    Bases kept;
    for (Basis basis : bases) {
      bool wasZero = llvm::all_of(basis, [](int64_t x) { return x == 0; });
      basis[dim] /= factor;
      bool isZero = llvm::all_of(basis, [](int64_t x) { return x == 0; });
      if (!dropZero || wasZero || !isZero)
        kept.push_back(basis);
    }
    return kept;
  };
  return Layout(divided(reg_, true), divided(lane_, false),
                divided(wave_, false), rep_);
}

Layout Layout::registersAlong(unsigned dim) const {
  Bases reg = reg_;
  // Zeros last.
  auto place = [&](const Basis &basis) { return uint32_t(basis[dim]) - 1; };
  llvm::stable_sort(
      reg, [&](const Basis &x, const Basis &y) { return place(x) < place(y); });
  return Layout(reg, lane_, wave_, rep_);
}

Layout Layout::collapse(unsigned dim,
                        llvm::SmallVectorImpl<unsigned> *registerMap) const {
  auto flatten = [&](Bases bases) {
    for (Basis &basis : bases)
      basis[dim] = 0;
    return bases;
  };
  Bases flat = flatten(reg_), kept;
  BitSpan span;
  llvm::SmallVector<unsigned> keptBits;
  for (auto [bit, basis] : llvm::enumerate(flat))
    if (span.add(pack(basis))) {
      kept.push_back(basis);
      keptBits.push_back(bit);
    }
  Basis rep = rep_;
  rep[dim] = 1;
  Layout result(kept, flatten(lane_), flatten(wave_), rep);
  if (!registerMap)
    return result;

  // The new tile register of each old one, in terms of the kept bits.
  llvm::SmallVector<uint64_t> images;
  for (const Basis &basis : flat) {
    uint64_t old = *span.solve(pack(basis)), image = 0;
    for (auto [place, bit] : llvm::enumerate(keptBits))
      image |= (old >> bit & 1) << place;
    images.push_back(image);
  }
  LinearMap tileMap(images);
  registerMap->clear();
  for (unsigned reg = 0, e = numRegisters(); reg != e; ++reg) {
    Index base = registerBase(reg);
    for (unsigned d = 0; d != rank(); ++d)
      base[d] = d == dim ? 0 : base[d] / tile_[d];
    registerMap->push_back(number(rep, base) * result.tileRegisters() +
                           unsigned(tileMap(reg % tileRegisters())));
  }
  return result;
}

Layout Layout::withTile(ArrayRef<int64_t> tile,
                        llvm::SmallVectorImpl<unsigned> *registerMap) const {
  Bases reg = reg_;
  Basis rep = rep_;
  // The last dimension first, as repetitions count.
  for (unsigned dim = rank(); dim-- != 0;) {
    for (int64_t extent = tile_[dim]; extent != tile[dim]; extent *= 2)
      reg.push_back(unitBasis(rank(), dim, extent));
    rep[dim] = int32_t(rep_[dim] * tile_[dim] / tile[dim]);
  }
  Layout result(reg, lane_, wave_, rep);
  if (!registerMap)
    return result;
  registerMap->clear();
  for (unsigned r = 0, e = result.numRegisters(); r != e; ++r) {
    Index start = result.registerIndex(r);
    for (unsigned dim = 0; dim != rank(); ++dim)
      start[dim] /= tile_[dim];
    registerMap->push_back(number(rep_, start) * tileRegisters() +
                           r % tileRegisters());
  }
  return result;
}

Layout Layout::permuteDims(ArrayRef<unsigned> order,
                           llvm::SmallVectorImpl<unsigned> *registerMap) const {
  auto permute = [&](const Basis &basis) {
    Basis result;
    for (unsigned dim : order)
      result.push_back(basis[dim]);
    return result;
  };
  auto permuteAll = [&](const Bases &bases) {
    return Bases(llvm::map_range(bases, permute));
  };
  Layout result(permuteAll(reg_), permuteAll(lane_), permuteAll(wave_),
                permute(rep_));
  if (!registerMap)
    return result;
  registerMap->clear();
  for (unsigned r = 0, e = result.numRegisters(); r != e; ++r) {
    Index base = result.registerBase(r), repetition(rank(), 0);
    for (auto [place, dim] : llvm::enumerate(order))
      repetition[dim] = base[place] / tile_[dim];
    registerMap->push_back(number(rep_, repetition) * tileRegisters() +
                           r % tileRegisters());
  }
  return result;
}

/// The same registers under another shape, or none where a dimension would get
/// bits of a tile above a repetition.
static std::optional<Layout> reshapeDigits(const Layout &layout,
                                           ArrayRef<int64_t> shape) {
  // An index in row-major order is a number of mixed radix: per dimension the
  // repetition, then the tile's bits. The new dimensions take these digits,
  // the last dimension first; repetitions keep their order and so their number.
  unsigned rank = layout.rank();
  Basis left(layout.rep()), rep(shape.size(), 1);
  llvm::SmallVector<llvm::SmallVector<std::pair<unsigned, int32_t>>> moved(
      rank); // per old dimension and bit: the new dimension and its entry
  llvm::SmallVector<unsigned> bits; // of each old dimension, not taken yet
  for (unsigned dim = 0; dim != rank; ++dim) {
    bits.push_back(llvm::Log2_64(layout.tile()[dim]));
    moved[dim].resize(bits[dim]);
  }
  unsigned old = rank; // digits of the dimension before are taken next
  for (unsigned dim = shape.size(); dim-- != 0;) {
    int64_t wanted = shape[dim];
    for (int32_t entry = 1; wanted != 1;) {
      while (old && !bits[old - 1] && left[old - 1] == 1)
        --old;
      if (!old)
        return std::nullopt;
      if (unsigned &bit = bits[old - 1]) {
        if (wanted % 2 || rep[dim] != 1)
          return std::nullopt;
        // The lowest bit that is left.
        unsigned place = moved[old - 1].size() - bit--;
        moved[old - 1][place] = {dim, entry};
        entry *= 2;
        wanted /= 2;
        continue;
      }
      int32_t &count = left[old - 1];
      int64_t take = std::min<int64_t>(count, wanted);
      if (count % take || wanted % take)
        return std::nullopt;
      rep[dim] *= int32_t(take);
      count /= int32_t(take);
      wanted /= take;
    }
  }
  auto move = [&](const Bases &bases) {
    Bases results;
    for (const Basis &basis : bases) {
      Basis &result = results.emplace_back(shape.size(), 0);
      for (unsigned dim = 0; dim != rank; ++dim)
        for (auto [bit, place] : llvm::enumerate(moved[dim]))
          if (basis[dim] >> bit & 1)
            result[place.first] |= place.second;
    }
    return results;
  };
  return Layout(move(layout.reg()), move(layout.lane()), move(layout.wave()),
                rep);
}

std::optional<Layout>
Layout::reshape(ArrayRef<int64_t> shape,
                llvm::SmallVectorImpl<unsigned> *registerMap) const {
  if (std::optional<Layout> result = reshapeDigits(*this, shape)) {
    if (registerMap) {
      registerMap->resize(numRegisters());
      std::iota(registerMap->begin(), registerMap->end(), 0u);
    }
    return result;
  }
  // Repetitions by powers of two may as well be bits of the tile.
  Index tile = tile_;
  for (auto [extent, count] : llvm::zip_equal(tile, rep_))
    extent *= count & -count;
  return reshapeDigits(withTile(tile, registerMap), shape);
}

Layout Layout::join() const {
  Basis pair(rank() + 1, 0);
  pair.back() = 1;
  Index shape = this->shape();
  shape.push_back(1);
  return product(Layout({pair}, {}, {}, Basis(rank() + 1, 1)), *reshape(shape));
}

Layout Layout::product(const Layout &inner, const Layout &outer) {
  auto append = [&](Bases bases, const Bases &more) {
    for (Basis basis : more) {
      for (auto [entry, extent] : llvm::zip_equal(basis, inner.tile_))
        entry *= int32_t(extent);
      bases.push_back(basis);
    }
    return bases;
  };
  return Layout(append(inner.reg_, outer.reg_),
                append(inner.lane_, outer.lane_),
                append(inner.wave_, outer.wave_), outer.rep_);
}

std::optional<Layout> Layout::quotient(const Layout &inner) const {
  if (inner.rank() != rank() || inner.numRepetitions() != 1)
    return std::nullopt;
  Bases results[3];
  const Bases *mine[3] = {&reg_, &lane_, &wave_};
  const Bases *its[3] = {&inner.reg_, &inner.lane_, &inner.wave_};
  for (unsigned group : {0, 1, 2}) {
    size_t low = its[group]->size();
    if (low > mine[group]->size() ||
        !std::equal(its[group]->begin(), its[group]->end(),
                    mine[group]->begin()))
      return std::nullopt;
    for (Basis basis : ArrayRef<Basis>(*mine[group]).drop_front(low)) {
      for (auto [entry, extent] : llvm::zip_equal(basis, inner.tile_)) {
        if (entry % extent != 0)
          return std::nullopt;
        entry /= int32_t(extent);
      }
      results[group].push_back(basis);
    }
  }
  return Layout(results[0], results[1], results[2], rep_);
}
