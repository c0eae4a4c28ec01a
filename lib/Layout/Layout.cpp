//===- Layout.cpp - the map from holder to index and its queries ----------===//
#include "greta/Layout/Layout.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace greta;
using llvm::ArrayRef;

// More than any device has; they keep all sizes inside 32-bit numbers.
static constexpr unsigned maxRegisterBits = 20, maxLaneBits = 10,
                          maxWaveBits = 10;

Layout::Layout(Bases reg, Bases lane, Bases wave, ArrayRef<int32_t> rep)
    : reg_(std::move(reg)), lane_(std::move(lane)), wave_(std::move(wave)),
      rep_(rep) {
  Index used(rank(), 0);
  for (const Bases *bases : {&reg_, &lane_, &wave_})
    for (const Basis &basis : *bases)
      for (unsigned dim = 0; dim < std::min<size_t>(rank(), basis.size());
           ++dim)
        used[dim] |= std::max(basis[dim], 0);
  for (int64_t bits : used)
    tile_.push_back(int64_t(llvm::bit_floor(uint64_t(bits))) * 2);
  for (int64_t &extent : tile_)
    extent = std::max<int64_t>(extent, 1);
}

Layout Layout::fromFlat(ArrayRef<int32_t> reg, ArrayRef<int32_t> lane,
                        ArrayRef<int32_t> wave, ArrayRef<int32_t> rep) {
  // Without dimensions there are no bases; verify() says so.
  size_t rank = std::max<size_t>(rep.size(), 1);
  auto split = [&](ArrayRef<int32_t> flat) {
    Bases bases;
    for (; !flat.empty(); flat = flat.drop_front(std::min(rank, flat.size()))) {
      ArrayRef<int32_t> basis = flat.take_front(rank);
      bases.emplace_back(basis.begin(), basis.end());
    }
    return bases;
  };
  return Layout(split(reg), split(lane), split(wave), rep);
}

llvm::SmallVector<int32_t> Layout::flatten(const Bases &bases) {
  llvm::SmallVector<int32_t> flat;
  for (const Basis &basis : bases)
    llvm::append_range(flat, basis);
  return flat;
}

static unsigned log2Of(int64_t extent) {
  return llvm::Log2_64(uint64_t(extent));
}

/// The tile's index bits in one word, dimension 0 lowest.
static uint64_t packIndex(ArrayRef<int64_t> tile, ArrayRef<int64_t> index) {
  uint64_t packed = 0;
  unsigned shift = 0;
  for (auto [extent, value] : llvm::zip_equal(tile, index)) {
    packed |= uint64_t(value) << shift;
    shift += log2Of(extent);
  }
  return packed;
}

uint64_t Layout::pack(ArrayRef<int32_t> basis) const {
  return packIndex(tile_, Index(basis.begin(), basis.end()));
}

std::optional<std::string> Layout::verify() const {
  if (rep_.empty())
    return "a layout needs at least one dimension";
  struct Group {
    const char *name;
    const Bases &bases;
    unsigned limit;
  };
  for (const Group &group :
       {Group{"reg", reg_, maxRegisterBits}, Group{"lane", lane_, maxLaneBits},
        Group{"wave", wave_, maxWaveBits}}) {
    if (group.bases.size() > group.limit)
      return std::string(group.name) + " has " +
             std::to_string(group.bases.size()) + " bases, the limit is " +
             std::to_string(group.limit);
    for (const Basis &basis : group.bases) {
      if (basis.size() != rank())
        return std::string("a basis of ") + group.name + " has " +
               std::to_string(basis.size()) + " entries, but rep has " +
               std::to_string(rank());
      for (int32_t entry : basis)
        if (entry < 0)
          return std::string("a basis of ") + group.name +
                 " has the negative entry " + std::to_string(entry);
    }
  }
  int64_t registers = tileRegisters();
  for (int32_t count : rep_) {
    if (count < 1)
      return "a repetition is " + std::to_string(count) +
             ", it must be at least 1";
    registers *= count;
    if (registers > int64_t(1) << maxRegisterBits)
      return "more than " + std::to_string(1u << maxRegisterBits) +
             " registers a lane";
  }
  unsigned bits = 0;
  for (int64_t extent : tile_)
    bits += log2Of(extent);
  unsigned inputBits = reg_.size() + lane_.size() + wave_.size();
  // Fewer input bits than index bits cannot cover; this also keeps packed
  // indices inside a word before any is made.
  bool covers = bits <= inputBits;
  if (covers) {
    BitSpan span;
    for (const Bases *bases : {&reg_, &lane_, &wave_})
      for (const Basis &basis : *bases)
        span.add(pack(basis));
    covers = span.rank() == bits;
  }
  if (!covers) {
    std::string text = "the bases do not cover the tile ";
    for (unsigned dim = 0; dim != rank(); ++dim)
      text += (dim ? "x" : "") + std::to_string(tile_[dim]);
    return text;
  }
  for (unsigned dim = 0; dim != rank(); ++dim)
    if (tile_[dim] * rep_[dim] > INT32_MAX)
      return "dimension " + std::to_string(dim) + " has 2^31 elements or more";
  return std::nullopt;
}

Index Layout::shape() const {
  Index shape;
  for (unsigned dim = 0; dim != rank(); ++dim)
    shape.push_back(tile_[dim] * rep_[dim]);
  return shape;
}

unsigned Layout::numRepetitions() const {
  unsigned count = 1;
  for (int32_t factor : rep_)
    count *= factor;
  return count;
}

int64_t Layout::numElements() const {
  int64_t count = 1;
  for (int64_t extent : shape())
    count *= extent;
  return count;
}

static void addBases(const Bases &bases, unsigned number, Index &index) {
  for (unsigned bit = 0, e = bases.size(); bit != e; ++bit)
    if (number >> bit & 1)
      for (unsigned dim = 0; dim != index.size(); ++dim)
        index[dim] ^= bases[bit][dim];
}

Index Layout::registerTileIndex(unsigned reg) const {
  Index index(rank(), 0);
  addBases(reg_, reg % tileRegisters(), index);
  return index;
}

Index Layout::registerBase(unsigned reg) const {
  Index base(rank(), 0);
  unsigned repetition = reg / tileRegisters();
  for (unsigned dim = rank(); dim-- != 0;) {
    base[dim] = int64_t(repetition % rep_[dim]) * tile_[dim];
    repetition /= rep_[dim];
  }
  return base;
}

Index Layout::index(unsigned reg, unsigned lane, unsigned wave) const {
  Index index = registerTileIndex(reg);
  addBases(lane_, lane, index);
  addBases(wave_, wave, index);
  Index base = registerBase(reg);
  for (unsigned dim = 0; dim != rank(); ++dim)
    index[dim] += base[dim];
  return index;
}

llvm::SmallVector<ThreadBit, 8> Layout::threadBits() const {
  llvm::SmallVector<ThreadBit, 8> bits;
  for (bool isWave : {false, true})
    for (auto [bit, basis] : llvm::enumerate(isWave ? wave_ : lane_))
      if (llvm::any_of(basis, [](int32_t entry) { return entry != 0; }))
        bits.push_back({isWave, unsigned(bit), basis});
  return bits;
}

bool Layout::registersAdd(unsigned dim) const {
  int32_t registers = 0, threads = 0;
  for (const Basis &basis : reg_)
    registers |= basis[dim];
  for (const Bases *bases : {&lane_, &wave_})
    for (const Basis &basis : *bases)
      threads |= basis[dim];
  return (registers & threads) == 0;
}

bool Layout::registersAdd() const {
  return llvm::all_of(llvm::seq(rank()),
                      [&](unsigned dim) { return registersAdd(dim); });
}

LinearMap Layout::tileMap() const {
  llvm::SmallVector<uint64_t, 16> images;
  for (const Bases *bases : {&reg_, &lane_, &wave_})
    for (const Basis &basis : *bases)
      images.push_back(pack(basis));
  return LinearMap(images);
}

LinearMap Layout::inverse() const {
  unsigned bits = 0;
  for (int64_t extent : tile_)
    bits += log2Of(extent);
  // verify() has established that the bases cover the tile.
  return *tileMap().rightInverse(bits);
}

Holder Layout::owner(ArrayRef<int64_t> index) const {
  Index inTile;
  unsigned repetition = 0;
  for (unsigned dim = 0; dim != rank(); ++dim) {
    inTile.push_back(index[dim] % tile_[dim]);
    repetition = repetition * rep_[dim] + unsigned(index[dim] / tile_[dim]);
  }
  uint64_t packed = inverse()(packIndex(tile_, inTile));
  Holder holder;
  holder.reg =
      unsigned(packed) % tileRegisters() + repetition * tileRegisters();
  packed >>= reg_.size();
  holder.lane = unsigned(packed) % numLanes();
  holder.wave = unsigned(packed >> lane_.size());
  return holder;
}

unsigned Layout::contiguity(unsigned dim) const {
  // The register bits that count up along the dimension.
  unsigned bits = 0;
  while (bits != reg_.size()) {
    Basis wanted(rank(), 0);
    wanted[dim] = 1 << bits;
    if (reg_[bits] != wanted)
      break;
    ++bits;
  }
  // No other bit may disturb the count.
  int32_t others = 0;
  for (unsigned bit = bits; bit < reg_.size(); ++bit)
    others |= reg_[bit][dim];
  for (const Bases *bases : {&lane_, &wave_})
    for (const Basis &basis : *bases)
      others |= basis[dim];
  unsigned count = 1u << bits;
  if (others)
    count = std::min(count, 1u << llvm::countr_zero(unsigned(others)));
  // When the tile's registers are one run, repetitions continue it.
  bool fastest = llvm::all_of(ArrayRef<int32_t>(rep_).drop_front(dim + 1),
                              [](int32_t factor) { return factor == 1; });
  if (fastest && count == tileRegisters() && int64_t(count) == tile_[dim])
    count <<= llvm::countr_zero(unsigned(rep_[dim]));
  return count;
}

/// Free bits of registers, lanes and waves in one mask, registers lowest: those
/// whose basis lies in the span of the bits before.
static uint64_t freeBits(const LinearMap &map) {
  BitSpan span;
  uint64_t mask = 0;
  for (unsigned bit = 0; bit != map.numInputBits(); ++bit)
    if (!span.add(map.image(bit)))
      mask |= uint64_t(1) << bit;
  return mask;
}

uint32_t Layout::freeRegisterBits() const {
  return freeBits(tileMap()) & (tileRegisters() - 1);
}

uint32_t Layout::freeLaneBits() const {
  return freeBits(tileMap()) >> reg_.size() & (numLanes() - 1);
}

uint32_t Layout::freeWaveBits() const {
  return freeBits(tileMap()) >> (reg_.size() + lane_.size());
}

llvm::FailureOr<Layout::BitsAlong> Layout::bitsAlong(unsigned dim,
                                                     std::string &error) const {
  BitsAlong along;
  for (const ThreadBit &bit : threadBits()) {
    if (bit.basis[dim] == 0)
      continue;
    for (unsigned other = 0; other != rank(); ++other)
      if (other != dim && bit.basis[other] != 0) {
        error = std::string(bit.isWave ? "wave" : "lane") + " bit " +
                std::to_string(bit.bit) + " moves along dimensions " +
                std::to_string(dim) + " and " + std::to_string(other) +
                " at once; convert the layout before reducing along " +
                std::to_string(dim);
        return llvm::failure();
      }
    (bit.isWave ? along.waves : along.lanes) |= 1u << bit.bit;
  }
  // Registers that the reduction combines move along `dim` only, maybe as sums
  // of several bits; together with the thread bits they must be independent.
  BitSpan kept, span;
  uint64_t clear = ~packIndex(tile_, [&] {
    Index bits(rank(), 0);
    bits[dim] = tile_[dim] - 1;
    return bits;
  }());
  bool twice = false;
  LinearMap map = tileMap();
  for (unsigned bit = 0; bit != reg_.size(); ++bit) {
    uint64_t image = map.image(bit);
    std::optional<uint64_t> same = kept.solve(image & clear);
    kept.add(image & clear);
    if (same)
      span.add(image ^ map(*same));
  }
  for (const ThreadBit &bit : threadBits())
    if (bit.basis[dim] != 0)
      twice |= !span.add(pack(bit.basis));
  if (twice || span.rank() != log2Of(tile_[dim])) {
    error = "a reduction along dimension " + std::to_string(dim) +
            " would meet elements twice or miss some, because registers and "
            "threads share them; convert the layout before";
    return llvm::failure();
  }
  return along;
}

llvm::FailureOr<llvm::SmallVector<Layout::BitHolder>>
Layout::bitHolders(unsigned dim, std::string &error) const {
  llvm::SmallVector<std::optional<BitHolder>> found(log2Of(tile_[dim]));
  auto add = [&](const Bases &bases, decltype(BitHolder::group) group) {
    for (auto [bit, basis] : llvm::enumerate(bases)) {
      if (basis[dim] == 0)
        continue;
      bool isOne = llvm::count(basis, 0) + 1 == rank() &&
                   llvm::isPowerOf2_32(basis[dim]);
      if (!isOne || found[log2Of(basis[dim])])
        return false;
      found[log2Of(basis[dim])] = BitHolder{group, unsigned(bit)};
    }
    return true;
  };
  if (!add(reg_, BitHolder::Register) || !add(lane_, BitHolder::Lane) ||
      !add(wave_, BitHolder::Wave)) {
    error = "registers, lanes and waves share bits of dimension " +
            std::to_string(dim) + "; convert the layout before";
    return llvm::failure();
  }
  // The bases span the tile, so every bit has its holder.
  llvm::SmallVector<BitHolder> holders;
  for (std::optional<BitHolder> &holder : found)
    holders.push_back(*holder);
  return holders;
}

bool Layout::sameMap(const Layout &other) const {
  if (rank() != other.rank() || shape() != other.shape() ||
      numRegisters() != other.numRegisters() || lane_ != other.lane_ ||
      wave_ != other.wave_)
    return false;
  for (unsigned reg = 0, e = numRegisters(); reg != e; ++reg)
    if (registerIndex(reg) != other.registerIndex(reg))
      return false;
  return true;
}

llvm::hash_code greta::hash_value(const Layout &layout) {
  llvm::hash_code code =
      llvm::hash_combine(layout.reg_.size(), layout.lane_.size(),
                         llvm::hash_combine_range(layout.rep_));
  for (const Bases *bases : {&layout.reg_, &layout.lane_, &layout.wave_})
    for (const Basis &basis : *bases)
      code = llvm::hash_combine(code, llvm::hash_combine_range(basis));
  return code;
}
