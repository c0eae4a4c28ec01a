//===- IsaAtomicTest.cpp - atomics of LDS, global, flat and buffer memory -===//
//
// Every operation in every memory that has it on the chip, with and without
// the old value, some lanes off, several lanes at one address: as if one lane
// ran after the other.
//
//===----------------------------------------------------------------------===//
#include "EveryChip.h"
#include "MatrixBench.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cmath>
#include <cstring>

using namespace greta::sim::test;
namespace slot = greta::sim::slot;

namespace {

using u32 = uint32_t;
using u64 = uint64_t;
using i32 = int32_t;
using i64 = int64_t;

template <class To, class From> To as(From x) {
  To r;
  std::memcpy(&r, &x, sizeof(r));
  return r;
}
float F(u64 x) { return as<float>(u32(x)); }
double D(u64 x) { return as<double>(x); }
u64 B(float x) { return as<u32>(x); }
u64 B(double x) { return as<u64>(x); }
/// The bf16 nearest to a sum of two, ties to even.
u64 bf16Sum(u32 a, u32 b) {
  double sum = double(F(u64(a & 0xffff) << 16)) + F(u64(b & 0xffff) << 16);
  if (sum == 0)
    return std::signbit(sum) ? 0x8000 : 0;
  u64 best = 0;
  double distance = INFINITY;
  for (u32 c = 0; c < 0x10000; ++c) {
    double d = std::fabs(double(F(u64(c) << 16)) - sum);
    if (d < distance || (d == distance && !(c & 1)))
      best = c, distance = d;
  }
  return best;
}
u64 halfSum(u32 a, u32 b) {
  return as<uint16_t>(
      _Float16(double(as<_Float16>(uint16_t(a))) + as<_Float16>(uint16_t(b))));
}

enum Data { Integers, Floats, Doubles, Halves, Bfloats };
struct Row {
  /// After the prefix, up to gfx10 and of later chips. LDS: without "rtn".
  const char *early, *late;
  unsigned bytes;
  /// x is the first datum in the instruction's text, y the second.
  u64 (*apply)(u64 old, u64 x, u64 y);
  Data data = Integers;
  unsigned count = 1; ///< data operands
};
#define OP(e)                                                                  \
  [](u64 old, u64 x, u64 y) -> u64 {                                           \
    (void)old, (void)x, (void)y;                                               \
    return e;                                                                  \
  }
// One expression of T old, x for both widths.
#define INT(early, late, suffix, S, e)                                         \
  {early, late "_" suffix "32", 4,                                             \
   [](u64 o, u64 p, u64 q) -> u64 {                                            \
     S##32 old = S##32(o), x = S##32(p);                                       \
     (void)old, (void)x, (void)q;                                              \
     return u32(e);                                                            \
   }},                                                                         \
  {                                                                            \
    early "_x2", late "_" suffix "64", 8, [](u64 o, u64 p, u64 q) -> u64 {     \
      S##64 old = S##64(o), x = S##64(p);                                      \
      (void)old, (void)x, (void)q;                                             \
      return u64(e);                                                           \
    }                                                                          \
  }
#define INTEGERS                                                               \
  INT("add", "add", "u", u, old + x), INT("sub", "sub", "u", u, old - x),      \
      INT("smin", "min", "i", i, std::min(old, x)),                            \
      INT("umin", "min", "u", u, std::min(old, x)),                            \
      INT("smax", "max", "i", i, std::max(old, x)),                            \
      INT("umax", "max", "u", u, std::max(old, x)),                            \
      INT("and", "and", "b", u, old &x), INT("or", "or", "b", u, old | x),     \
      INT("xor", "xor", "b", u, old ^ x),                                      \
      INT("inc", "inc", "u", u, old >= x ? 0 : old + 1),                       \
      INT("dec", "dec", "u", u, old == 0 || old > x ? x : old - 1)
#define FLOATS                                                                 \
  {"add_f32", "add_f32", 4, OP(B(F(old) + F(x))), Floats},                     \
      {"add_f64", "add_f64", 8, OP(B(D(old) + D(x))), Doubles},                \
      {"min_f32", "min_f32", 4, OP(B(std::min(F(old), F(x)))), Floats},        \
      {"max_f32", "max_f32", 4, OP(B(std::max(F(old), F(x)))), Floats},        \
      {"min_f64", "min_f64", 8, OP(B(std::min(D(old), D(x)))), Doubles},       \
      {"max_f64", "max_f64", 8, OP(B(std::max(D(old), D(x)))), Doubles},       \
      {"", "min_num_f32", 4, OP(B(std::min(F(old), F(x)))), Floats},           \
      {"", "max_num_f32", 4, OP(B(std::max(F(old), F(x)))), Floats},           \
      {"", "min_num_f64", 8, OP(B(std::min(D(old), D(x)))), Doubles},          \
      {"", "max_num_f64", 8, OP(B(std::max(D(old), D(x)))), Doubles},          \
      {"pk_add_f16", "pk_add_f16", 4,                                          \
       OP(halfSum(u32(old), u32(x)) | halfSum(u32(old) >> 16, u32(x) >> 16)    \
                                          << 16),                              \
       Halves},                                                                \
      {"pk_add_bf16", "pk_add_bf16", 4,                                        \
       OP(bf16Sum(u32(old), u32(x)) | bf16Sum(u32(old) >> 16, u32(x) >> 16)    \
                                          << 16),                              \
       Bfloats},                                                               \
      {"", "sub_clamp_u32", 4, OP(old < x ? 0 : old - x)}, {                   \
    "", "cond_sub_u32", 4, OP(old < x ? old : old - x)                         \
  }

const Row memoryRows[] = {
    INTEGERS,
    FLOATS,
    INT("swap", "swap", "b", u, x),
    {"cmpswap", "cmpswap_b32", 4, OP(old == y ? x : old), Integers, 2},
    {"cmpswap_x2", "cmpswap_b64", 8, OP(old == y ? x : old), Integers, 2},
    {"", "cmpswap_f32", 4, OP(F(old) == F(y) ? x : old), Floats, 2},
    {"csub", "csub_u32", 4, OP(old < x ? 0 : old - x)},
    {"fcmpswap", "", 4, OP(F(old) == F(y) ? x : old), Floats, 2},
    {"fcmpswap_x2", "", 8, OP(D(old) == D(y) ? x : old), Doubles, 2},
    {"fmin", "", 4, OP(B(std::min(F(old), F(x)))), Floats},
    {"fmin_x2", "", 8, OP(B(std::min(D(old), D(x)))), Doubles},
    {"fmax", "", 4, OP(B(std::max(F(old), F(x)))), Floats},
    {"fmax_x2", "", 8, OP(B(std::max(D(old), D(x)))), Doubles},
};
const Row ldsRows[] = {
    INTEGERS,
    FLOATS,
    INT("rsub", "rsub", "u", u, x - old),
    {"mskor_b32", "mskor_b32", 4, OP((old & ~x) | y), Integers, 2},
    {"mskor_b64", "mskor_b64", 8, OP((old & ~x) | y), Integers, 2},
    {"wrxchg_b32", "storexchg_b32", 4, OP(x)},
    {"wrxchg_b64", "storexchg_b64", 8, OP(x)},
    {"wrap_b32", "wrap_b32", 4, OP(old >= x ? old - x : u32(old + y)), Integers,
     2},
    // Up to gfx10 the comparison comes first, later the new value.
    {"cmpst_b32", "", 4, OP(old == x ? y : old), Integers, 2},
    {"cmpst_b64", "", 8, OP(old == x ? y : old), Integers, 2},
    {"cmpst_f32", "", 4, OP(F(old) == F(x) ? y : old), Floats, 2},
    {"cmpst_f64", "", 8, OP(D(old) == D(x) ? y : old), Doubles, 2},
    {"", "cmpstore_b32", 4, OP(old == y ? x : old), Integers, 2},
    {"", "cmpstore_b64", 8, OP(old == y ? x : old), Integers, 2},
    {"", "cmpstore_f32", 4, OP(F(old) == F(y) ? x : old), Floats, 2},
    {"", "cmpstore_f64", 8, OP(D(old) == D(y) ? x : old), Doubles, 2},
};

/// Small numbers, so that comparisons are equal now and then and sums exact.
u64 draw(std::mt19937 &random, Data data, unsigned bytes) {
  int n = int(random() % 12) - 4;
  switch (data) {
  case Floats:
    return B(float(n) * .5f);
  case Doubles:
    return B(double(n) * .5);
  case Halves:
    return u64(as<uint16_t>(_Float16(n * .25))) |
           u64(as<uint16_t>(_Float16(n + 1e-3))) << 16;
  case Bfloats:
    return (B(float(n) * .25f) >> 16) | ((B(float(n) + 100.f) >> 16) << 16);
  default:
    u64 x = random() % 4 ? u64(n) : u64(random()) << 32 | random();
    return bytes == 4 ? u32(x) : x;
  }
}

enum Space { Global, GlobalScalar, Flat, FlatLds, Buffer, Lds };
const char *prefixOf(Space s) {
  return s == Lds                    ? "ds_"
         : s == Buffer               ? "buffer_atomic_"
         : s == Flat || s == FlatLds ? "flat_atomic_"
                                     : "global_atomic_";
}

class Atomics : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    chip = GetParam();
    gfx9 = chip.rfind("gfx9", 0) == 0;
    gfx10 = chip.rfind("gfx10", 0) == 0;
    names = mnemonics(chip.c_str());
  }
  bool has(const std::string &name) const {
    return std::binary_search(names.begin(), names.end(), name);
  }
  std::string line(Space s, const Row &r, bool returns, std::string &name) {
    std::string op = gfx9 || gfx10 ? r.early : r.late;
    if (op.empty())
      return "";
    unsigned words = r.bytes / 4;
    if (s == Lds) {
      // The names of LDS have the type on early chips as well.
      if (op.find('_') == std::string::npos ||
          op.find("_x2") != std::string::npos)
        op = r.late;
      if (returns)
        op.insert(op.rfind('_'), "_rtn");
    }
    name = prefixOf(s) + op;
    std::string data = registers(4, words), second = registers(6, words);
    if (s == Lds)
      return name + (returns ? " " + registers(8, words) + "," : "") + " v1, " +
             data + (r.count == 2 ? ", " + second : "") + " offset:16";
    data = registers(4, words * r.count);
    std::string back = !returns                      ? ""
                       : chip.rfind("gfx12", 0) == 0 ? " th:TH_ATOMIC_RETURN"
                       : chip == "gfx942" || chip == "gfx950" ? " sc0"
                                                              : " glc";
    if (s == Buffer)
      return name + " " + data + ", v1, s[8:11], " +
             (chip.rfind("gfx12", 0) == 0 ? "null" : "0") + " offen offset:16" +
             back;
    std::string result = returns ? " " + registers(8, words) + "," : "";
    return name + result +
           (s == GlobalScalar ? " v1, " + data + ", s[4:5] offset:16"
            : s == Global     ? " v[2:3], " + data + ", off offset:16"
                              : " v[2:3], " + data + " offset:16") +
           back;
  }
  void check(Space s, const Row &r, bool returns, Bench &b, unsigned k);

  std::string chip;
  bool gfx9, gfx10;
  std::vector<std::string> names;
  uint8_t *memory = nullptr;
  unsigned ran = 0;
};

void Atomics::check(Space s, const Row &r, bool returns, Bench &b, unsigned k) {
  constexpr unsigned places = 11; // shared by the lanes
  std::mt19937 random(k + 1);
  bool lds = s == Lds || s == FlatLds;
  uint8_t *base = lds ? b.group.lds.data() : memory;
  std::vector<u64> old(places), x(b.lanes), y(b.lanes);
  unsigned stride = 16, start = 48 + 16; // byte of place 0 and the offset
  for (unsigned p = 0; p < places; ++p) {
    old[p] = draw(random, r.data, r.bytes);
    std::memcpy(base + start + p * stride, &old[p], r.bytes);
  }
  b.fill(k);
  b.wave.setExec(0xffffffffffff7f31ull);
  u64 flat = s == FlatLds ? greta::sim::SharedAperture : u64(uintptr_t(memory));
  unsigned words = r.bytes / 4;
  unsigned yRow = 4 + (s == Lds ? 2 : words);
  for (unsigned l = 0; l < b.lanes; ++l) {
    unsigned at = 48 + l % places * stride;
    x[l] = draw(random, r.data, r.bytes);
    y[l] = draw(random, r.data, r.bytes);
    b.row(1)[l] = at;
    b.row(2)[l] = u32(flat + at);
    b.row(3)[l] = u32((flat + at) >> 32);
    for (unsigned w = 0; w < words; ++w) {
      b.row(4 + w)[l] = u32(x[l] >> (32 * w));
      if (r.count == 2)
        b.row(yRow + w)[l] = u32(y[l] >> (32 * w));
    }
  }
  b.wave.s[4] = u32(flat);
  b.wave.s[5] = u32(flat >> 32);
  b.wave.s[8] = u32(flat);
  b.wave.s[9] = u32(flat >> 32);
  b.wave.s[10] = 4096;
  b.wave.s[11] = gfx9 ? 0 : 3u << 28; // raw
  unsigned result = s == Buffer ? 4 : 8;
  std::vector<u64> before(b.lanes);
  auto at = [&](unsigned l) {
    u64 v = b.row(result)[l];
    return words == 2 ? v | u64(b.row(result + 1)[l]) << 32 : v;
  };
  for (unsigned l = 0; l < b.lanes; ++l)
    before[l] = at(l);
  b.run(k);
  for (unsigned l = 0; l < b.lanes; ++l) {
    bool on = b.wave.exec >> l & 1;
    u64 want = on && returns ? old[l % places] : before[l];
    ASSERT_EQ(at(l), want) << "lane " << l;
    if (on)
      old[l % places] = r.apply(old[l % places], x[l], y[l]);
  }
  for (unsigned p = 0; p < places; ++p) {
    u64 now = 0;
    std::memcpy(&now, base + start + p * stride, r.bytes);
    ASSERT_EQ(now, old[p]) << "place " << p;
  }
  ++ran;
}

TEST_P(Atomics, EveryOperation) {
  struct Case {
    Space space;
    const Row *row;
    bool returns;
  };
  std::vector<Case> cases;
  std::vector<std::string> lines;
  for (Space s : {Global, GlobalScalar, Flat, FlatLds, Buffer, Lds})
    for (const Row &r : s == Lds ? llvm::ArrayRef<Row>(ldsRows)
                                 : llvm::ArrayRef<Row>(memoryRows))
      for (bool returns : {false, true}) {
        std::string name, text = line(s, r, returns, name);
        if (text.empty() || !has(name))
          continue;
        // This one always returns.
        if (name.find("csub") != std::string::npos && !returns)
          continue;
        cases.push_back({s, &r, returns});
        lines.push_back(text);
      }
  std::vector<std::string> good = assembling(chip.c_str(), !gfx9, lines);
  for (size_t k = 0; k < lines.size(); ++k)
    if (k >= good.size() || good[k] != lines[k])
      FAIL() << lines[k] << " does not assemble";
  Bench b(chip.c_str(), !gfx9, lines);
  b.setLds(4096);
  memory = b.allocate(4096);
  for (unsigned k = 0; k < lines.size(); ++k) {
    SCOPED_TRACE(lines[k]);
    check(cases[k].space, *cases[k].row, cases[k].returns, b, k);
    if (HasFatalFailure())
      return;
  }
  EXPECT_GT(ran, 200u);
}

INSTANTIATE_TEST_SUITE_P(Chips, Atomics, testing::ValuesIn(everyChip()),
                         [](const auto &info) { return info.param; });

} // namespace
