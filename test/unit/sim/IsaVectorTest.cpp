//===- IsaVectorTest.cpp - vector instructions in all their forms ---------===//
//
// Every row of the two tables on every chip that has it: operands from VGPRs,
// SGPRs and constants, halves of registers, negated and absolute, results
// clamped and scaled, some lanes off. The assembler decides which forms there
// are; the plain one must be.
//
//===----------------------------------------------------------------------===//
#include "EveryChip.h"
#include "IsaRows.h"
#include "MatrixBench.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cmath>

using namespace greta::sim::test;
using llvm::StringRef;

namespace {

using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;

struct Source {
  enum { Vgpr, Sgpr, Constant } kind = Vgpr;
  bool neg = false, abs = false, high = false;
};
struct Form {
  const IsaRow *row;
  Source source[3];
  bool highResult = false, clamp = false, twice = false;
  bool plain = false;
};

unsigned widthOf(char type) {
  return type == 'l' || type == 'd' ? 64 : type == 's' || type == 'h' ? 16 : 32;
}
bool isFloat(char type) { return type == 'f' || type == 'd' || type == 'h'; }
StringRef sourcesOf(const IsaRow &r) {
  return StringRef(r.types).drop_front(2);
}

u64 constantOf(char type) {
  return type == 'f'   ? bits(.5f)
         : type == 'd' ? bits(.5)
         : type == 'h' ? halfBits(.5)
                       : 7;
}

/// The text of a form, with 16-bit registers as halves ("v8.l") or whole.
std::string textOf(const Form &f, StringRef name, bool halves) {
  StringRef types = sourcesOf(*f.row);
  auto reg = [&](unsigned r, char type, bool high) {
    std::string t = registers(r, widthOf(type) / 32 + (widthOf(type) < 32));
    return t + (halves && widthOf(type) == 16 ? high ? ".h" : ".l" : "");
  };
  std::string text = name.str() + " " + reg(8, f.row->types[0], f.highResult);
  unsigned count = unsigned(types.size()) - (f.row->flags & IsaRow::Tied);
  std::string select;
  for (unsigned k = 0; k < count; ++k) {
    const Source &s = f.source[k];
    char type = types[k];
    std::string o = s.kind == Source::Vgpr ? reg(12 + 4 * k, type, s.high)
                    : s.kind == Source::Sgpr
                        ? widthOf(type) == 64
                              ? "s[" + std::to_string(20 + 2 * k) + ":" +
                                    std::to_string(21 + 2 * k) + "]"
                              : "s" + std::to_string(20 + 2 * k)
                    : isFloat(type) ? "0.5"
                                    : "7";
    if (s.abs)
      o = "|" + o + "|";
    text += ", " + (s.neg ? "-" + o : o);
    select += s.high ? "1," : "0,";
  }
  if (!halves && select.find('1') != std::string::npos)
    text += " op_sel:[" + select + (f.highResult ? "1]" : "0]");
  else if (!halves && f.highResult)
    text += " op_sel:[" + select + "1]";
  return text + (f.clamp ? " clamp" : "") + (f.twice ? " mul:2" : "");
}

std::vector<Form> formsOf(const IsaRow &r) {
  StringRef types = sourcesOf(r);
  unsigned count = unsigned(types.size()) - (r.flags & IsaRow::Tied);
  Form plain{&r, {}};
  plain.plain = true;
  std::vector<Form> forms = {plain};
  plain.plain = false;
  auto add = [&](auto change) {
    Form f = plain;
    change(f);
    forms.push_back(f);
  };
  for (unsigned k = 0; k < count; ++k) {
    add([&](Form &f) { f.source[k].kind = Source::Sgpr; });
    add([&](Form &f) { f.source[k].kind = Source::Constant; });
    if (isFloat(types[k])) {
      add([&](Form &f) { f.source[k].neg = true; });
      add([&](Form &f) { f.source[k].abs = true; });
      add([&](Form &f) {
        f.source[k].neg = f.source[k].abs = true;
        f.source[(k + 1) % count].neg = isFloat(types[(k + 1) % count]);
      });
    }
    if (widthOf(types[k]) == 16)
      add([&](Form &f) { f.source[k].high = true; });
  }
  if (widthOf(r.types[0]) == 16)
    add([](Form &f) { f.highResult = true; });
  if (isFloat(r.types[0])) {
    add([](Form &f) { f.clamp = true; });
    add([](Form &f) { f.twice = true; });
  }
  return forms;
}

u64 negated(u64 x, char type) { return x ^ u64(1) << (widthOf(type) - 1); }

/// Clamped or doubled bits of a float result.
u64 finished(u64 x, const Form &f) {
  auto both = [&](auto v) {
    if (f.twice)
      v *= 2;
    if (f.clamp)
      v = v > 0 ? std::min<decltype(v)>(v, 1) : 0;
    return v;
  };
  if (!f.clamp && !f.twice)
    return x;
  char type = f.row->types[0];
  return type == 'f'   ? bits(both(F(x)))
         : type == 'd' ? bits(both(D(x)))
                       : halfBits(both(H(x)));
}

/// Bits as integers in the order of the floats they are.
int64_t ordinal(u64 x, char type) {
  u64 sign = u64(1) << (widthOf(type) - 1);
  return x & sign ? -int64_t(x & (sign - 1)) : int64_t(x);
}
bool same(u64 got, u64 want, const Form &f) {
  char type = f.row->types[0];
  if (got == want)
    return true;
  if (type == 'p' || type == 'y') {
    auto isNan = [&](u64 x) {
      return (x & 0x7fff) > (type == 'p' ? 0x7c00 : 0x7f80);
    };
    for (unsigned shift : {0u, 16u})
      if (u16(got >> shift) != u16(want >> shift) &&
          !(isNan(got >> shift) && isNan(want >> shift)))
        return false;
    return true;
  }
  if (!isFloat(type))
    return false;
  auto value = [&](u64 x) {
    return type == 'f' ? double(F(x)) : type == 'd' ? D(x) : H(x);
  };
  double g = value(got), w = value(want);
  if (std::isnan(g) || std::isnan(w))
    return std::isnan(g) && std::isnan(w);
  // Clamping and scaling lose the sign of zero, scaling denormals as well.
  double smallest = type == 'f' ? 0x1p-126 : type == 'd' ? 0x1p-1022 : 0x1p-14;
  if (f.twice && std::fabs(w) < smallest)
    return std::fabs(g) < smallest;
  if (f.clamp && g == w)
    return true;
  return (f.row->flags & IsaRow::Approximate) &&
         std::llabs(ordinal(got, type) - ordinal(want, type)) <= 2;
}

/// Values of a type: any bits, small numbers, special ones.
u64 draw(std::mt19937 &random, char type) {
  static const double specials[] = {
      0.,        -0.,  1.,   -1.,    .5,       1.5,         -2.5,  INFINITY,
      -INFINITY, NAN,  3e4,  -7e4,   1e-5,     3e-8,        1e-40, -1e-310,
      3e9,       -3e9, 1e30, 65519., 0x1p-126, 2147483647., .1};
  u64 any = u64(random()) << 32 | random();
  unsigned how = random() % 4;
  double v = how ? (int(random() % 2001) - 1000) * (how == 1 ? 1 : .01)
                 : specials[random() % std::size(specials)];
  switch (type) {
  case 'f':
    return how == 3 ? u32(any) : bits(float(v));
  case 'd':
    return how == 3 ? any : bits(v);
  case 'h':
    return how == 3 ? uint16_t(any) : halfBits(v);
  default:
    u64 x = how == 1 ? random() % 70 : how == 2 ? ~u64(random() % 40) : any;
    return widthOf(type) == 64 ? x : x & ((u64(1) << widthOf(type)) - 1);
  }
}

class Vector : public testing::TestWithParam<const char *> {
protected:
  void check(Bench &b, const Form &f, unsigned k, bool gfx9);
};

void Vector::check(Bench &b, const Form &f, unsigned k, bool gfx9) {
  const IsaRow &r = *f.row;
  StringRef types = sourcesOf(r);
  unsigned count = unsigned(types.size());
  bool tied = r.flags & IsaRow::Tied;
  std::mt19937 random(k + 17);
  for (unsigned round = 0; round < 3; ++round) {
    b.fill(random());
    b.wave.setExec(round ? ~u64(0) : 0xfff0ffff0f7fffe9ull);
    // Scaled results have no denormals.
    b.wave.mode = f.twice ? 0x150 : 0x1f0;
    std::vector<Sources> in(b.lanes);
    for (unsigned s = 0; s < count; ++s) {
      char type = types[s];
      unsigned width = widthOf(type);
      bool last = tied && s + 1 == count;
      const Source &o = f.source[s];
      unsigned reg = last ? 8 : 12 + 4 * s;
      u64 scalar =
          o.kind == Source::Constant ? constantOf(type) : draw(random, type);
      b.wave.s[20 + 2 * s] = u32(scalar);
      b.wave.s[21 + 2 * s] = u32(scalar >> 32);
      for (unsigned l = 0; l < b.lanes; ++l) {
        u64 x = last || o.kind == Source::Vgpr ? draw(random, type) : scalar;
        if (width == 16) {
          unsigned shift = (last ? f.highResult : o.high) ? 16 : 0;
          b.row(reg)[l] = (b.row(reg)[l] & ~(0xffffu << shift)) | u32(x)
                                                                      << shift;
        } else {
          b.row(reg)[l] = u32(x);
          if (width == 64)
            b.row(reg + 1)[l] = u32(x >> 32);
        }
        if (!last && o.abs)
          x &= ~(u64(1) << (width - 1));
        in[l].v[s] = !last && o.neg ? negated(x, type) : x;
      }
    }
    unsigned width = widthOf(r.types[0]);
    auto result = [&](unsigned l) {
      return width == 64 ? u64(b.row(9)[l]) << 32 | b.row(8)[l]
                         : u64(b.row(8)[l]);
    };
    for (unsigned l = 0; l < b.lanes; ++l)
      in[l].old = result(l);
    b.run(k);
    bool anyHigh = f.highResult;
    for (const Source &s : f.source)
      anyHigh |= s.high;
    for (unsigned l = 0; l < b.lanes; ++l) {
      u64 got = result(l);
      if (!(b.wave.exec >> l & 1)) {
        ASSERT_EQ(got, in[l].old) << "inactive lane " << l;
        continue;
      }
      u64 want = finished(r.apply(in[l]), f);
      u64 part = got;
      if (width == 16) {
        unsigned shift = f.highResult ? 16 : 0;
        part = got >> shift & 0xffff;
        // The other half: zero on gfx9 (but with op_sel, which keeps it).
        u32 rest = u32(got) & ~(0xffffu << shift),
            kept = u32(in[l].old) & ~(0xffffu << shift);
        if (f.highResult || !gfx9)
          ASSERT_EQ(rest, kept) << "lane " << l;
        else if (!anyHigh && !tied)
          ASSERT_EQ(rest, 0u) << "lane " << l;
      }
      ASSERT_TRUE(same(part, want, f))
          << std::hex << "lane " << l << ": " << in[l].v[0] << ", "
          << (count > 1 ? in[l].v[1] : 0) << ", "
          << (count > 2 ? in[l].v[2] : 0) << " gives " << part << ", not "
          << want;
    }
  }
}

TEST_P(Vector, EveryForm) {
  bool gfx9 = GetParam()[3] == '9';
  std::vector<std::string> names = mnemonics(GetParam()), texts;
  std::vector<Form> candidates;
  for (llvm::ArrayRef<IsaRow> table : {integerRows(), floatRows()})
    for (const IsaRow &r : table) {
      llvm::SmallVector<StringRef, 4> alternatives;
      StringRef(r.names).split(alternatives, '|');
      for (StringRef name : alternatives)
        if (std::binary_search(names.begin(), names.end(), name.str()))
          for (const Form &f : formsOf(r))
            for (bool halves : {false, true}) {
              std::string text = textOf(f, name, halves);
              if (halves && text == textOf(f, name, false))
                continue;
              texts.push_back(text);
              candidates.push_back(f);
            }
    }
  std::vector<std::string> good = assembling(GetParam(), !gfx9, texts);
  std::vector<Form> forms;
  std::vector<const IsaRow *> plain;
  size_t next = 0;
  for (size_t k = 0; k < texts.size(); ++k) {
    bool assembles = next < good.size() && good[next] == texts[k];
    if (assembles) {
      ++next;
      forms.push_back(candidates[k]);
      if (candidates[k].plain)
        plain.push_back(candidates[k].row);
    }
  }
  for (const Form &f : candidates)
    if (f.plain)
      EXPECT_TRUE(llvm::is_contained(plain, f.row))
          << f.row->names << " has no plain form";
  EXPECT_GT(forms.size(), 800u);
  Bench b(GetParam(), !gfx9, good);
  unsigned failed = 0;
  for (unsigned k = 0; k < forms.size() && failed < 12; ++k) {
    SCOPED_TRACE(good[k]);
    bool before = HasFailure();
    check(b, forms[k], k, gfx9);
    failed += HasFailure() && !before;
    if (HasFatalFailure() && ++failed >= 12)
      return;
  }
}

INSTANTIATE_TEST_SUITE_P(Chips, Vector, testing::ValuesIn(everyChip()),
                         [](const auto &info) { return info.param; });

/// A row that no chip has would test nothing.
TEST(VectorRows, AreOnSomeChip) {
  std::vector<std::string> names;
  for (const char *chip : everyChip())
    for (std::string &n : mnemonics(chip))
      names.push_back(std::move(n));
  for (llvm::ArrayRef<IsaRow> table : {integerRows(), floatRows()})
    for (const IsaRow &r : table) {
      llvm::SmallVector<StringRef, 4> alternatives;
      StringRef(r.names).split(alternatives, '|');
      for (StringRef name : alternatives)
        EXPECT_TRUE(llvm::is_contained(names, name)) << name.str();
    }
}

} // namespace
