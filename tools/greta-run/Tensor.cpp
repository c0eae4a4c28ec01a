// Tensor.cpp: small floats, generated inputs, and comparison.
//
// Random numbers, the same on every machine: element i of `random:SEED` takes
// two 64-bit words of SplitMix64,
//   w(k) = mix(SEED * 0x9e3779b97f4a7c15 + (k + 1) * 0x9e3779b97f4a7c15),
// k = 2p and 2p + 1 with p = i / 2; u = ((w >> 11) + 0.5) / 2^53; Box-Muller r
// = sqrt(-2 ln u0), a = 2 pi u1 gives r cos a for even i and r sin a for odd i,
// times SIGMA, rounded once to the element type. Integers take LO + w(i) mod
// (HI - LO + 1); without a range, all values of the type.
#include "Tensor.h"
#include "Npy.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>

namespace greta_run {
namespace {

[[noreturn]] void badInput(const std::string &Text, const std::string &What) {
  throw std::runtime_error("--input=" + Text + ": " + What);
}

struct FloatFormat {
  const char *Name;
  unsigned Exponent, Mantissa;
  int Bias;
  // The values of the largest exponent: IEEE infinities; only NaN at all ones
  // (fn); nothing, -0 being NaN (fnuz).
  enum { IEEE, FN, FNUZ } Kind;
};
constexpr FloatFormat formats[] = {{"f32", 8, 23, 127, FloatFormat::IEEE},
                                   {"f16", 5, 10, 15, FloatFormat::IEEE},
                                   {"bf16", 8, 7, 127, FloatFormat::IEEE},
                                   {"f8e4m3fn", 4, 3, 7, FloatFormat::FN},
                                   {"f8e4m3fnuz", 4, 3, 8, FloatFormat::FNUZ},
                                   {"f8e5m2", 5, 2, 15, FloatFormat::IEEE},
                                   {"f8e5m2fnuz", 5, 2, 16, FloatFormat::FNUZ}};

const FloatFormat *floatFormat(const std::string &DType) {
  for (const FloatFormat &F : formats)
    if (DType == F.Name)
      return &F;
  return nullptr;
}

double decode(const FloatFormat &F, uint32_t Bits) {
  uint32_t MantissaMask = (1u << F.Mantissa) - 1,
           ExponentMask = (1u << F.Exponent) - 1;
  bool Negative = Bits >> (F.Exponent + F.Mantissa) & 1;
  uint32_t E = Bits >> F.Mantissa & ExponentMask, M = Bits & MantissaMask;
  double Nan = std::numeric_limits<double>::quiet_NaN();
  if (F.Kind == FloatFormat::IEEE && E == ExponentMask)
    return M ? Nan : Negative ? -INFINITY : INFINITY;
  if (F.Kind == FloatFormat::FN && E == ExponentMask && M == MantissaMask)
    return Nan;
  if (F.Kind == FloatFormat::FNUZ && Negative && !E && !M)
    return Nan;
  int Exponent =
      static_cast<int>(E ? E : 1) - F.Bias - static_cast<int>(F.Mantissa);
  double V =
      std::ldexp(static_cast<double>(E ? M | (1u << F.Mantissa) : M), Exponent);
  return Negative ? -V : V;
}

// Nearest even. Too large becomes infinity, or the largest number where there
// is none.
uint32_t encode(const FloatFormat &F, double V) {
  uint32_t Sign = std::signbit(V) ? 1u << (F.Exponent + F.Mantissa) : 0;
  V = std::fabs(V);
  if (std::isnan(V))
    return F.Kind == FloatFormat::FNUZ ? 1u << (F.Exponent + F.Mantissa)
                                       : (1u << (F.Exponent + F.Mantissa)) - 1;
  if (V == 0)
    return F.Kind == FloatFormat::FNUZ ? 0 : Sign;
  uint32_t Top = (1u << F.Exponent) - 1;
  uint32_t Largest = F.Kind == FloatFormat::IEEE ? Top << F.Mantissa // infinity
                     : F.Kind == FloatFormat::FN
                         ? (Top << F.Mantissa | ((1u << F.Mantissa) - 2))
                         : (Top << F.Mantissa | ((1u << F.Mantissa) - 1));
  int E = std::max(std::ilogb(V),
                   1 - F.Bias); // denormals share the smallest exponent
  double Scaled =
      std::nearbyint(std::ldexp(V, static_cast<int>(F.Mantissa) - E));
  // The hidden bit adds one to the exponent field, and so does a mantissa that
  // rounded up.
  double Bits = Scaled + std::ldexp(static_cast<double>(E + F.Bias - 1),
                                    static_cast<int>(F.Mantissa));
  return Sign | (Bits >= Largest ? Largest : static_cast<uint32_t>(Bits));
}

uint64_t word(uint64_t Seed, uint64_t K) {
  constexpr uint64_t gamma = 0x9e3779b97f4a7c15;
  uint64_t Z = Seed * gamma + (K + 1) * gamma;
  Z = (Z ^ (Z >> 30)) * 0xbf58476d1ce4e5b9;
  Z = (Z ^ (Z >> 27)) * 0x94d049bb133111eb;
  return Z ^ (Z >> 31);
}

// Calls Body(begin, end) on all processors; bounds are multiples of `Unit`.
template <typename Body> void parallel(int64_t Count, int64_t Unit, Body B) {
  int64_t Threads = std::max(1u, std::thread::hardware_concurrency());
  int64_t Part = (Count / Threads / Unit + 1) * Unit;
  std::vector<std::thread> Workers;
  for (int64_t Begin = 0; Begin < Count; Begin += Part)
    Workers.emplace_back(B, Begin, std::min(Count, Begin + Part));
  for (std::thread &W : Workers)
    W.join();
}

int64_t count(const std::vector<int64_t> &Shape) {
  int64_t N = 1;
  for (int64_t Dim : Shape)
    N *= Dim;
  return N;
}

std::vector<uint8_t> floats(const FloatFormat &F, int64_t N,
                            const std::function<double(int64_t)> &Value) {
  size_t Width = (1 + F.Exponent + F.Mantissa) / 8;
  std::vector<uint8_t> Bytes(static_cast<size_t>(N) * Width);
  parallel(N, 2, [&](int64_t Begin, int64_t End) {
    for (int64_t I = Begin; I < End; ++I) {
      uint32_t Bits = encode(F, Value(I));
      memcpy(&Bytes[static_cast<size_t>(I) * Width], &Bits, Width);
    }
  });
  return Bytes;
}

std::vector<uint8_t> normals(const FloatFormat &F, int64_t N, uint64_t Seed,
                             double Sigma) {
  return floats(F, N, [=](int64_t I) {
    uint64_t P = static_cast<uint64_t>(I) / 2;
    auto Unit = [](uint64_t W) {
      return (static_cast<double>(W >> 11) + 0.5) * 0x1p-53;
    };
    double R = std::sqrt(-2 * std::log(Unit(word(Seed, 2 * P))));
    double A = 2 * M_PI * Unit(word(Seed, 2 * P + 1));
    return Sigma * R * (I % 2 ? std::sin(A) : std::cos(A));
  });
}

std::vector<uint8_t> integers(unsigned Bits, int64_t N,
                              const std::function<int64_t(int64_t)> &Value) {
  std::vector<uint8_t> Bytes((static_cast<size_t>(N) * Bits + 7) / 8);
  for (int64_t I = 0; I < N; ++I) {
    int64_t V = Value(I);
    if (Bits == 4)
      Bytes[static_cast<size_t>(I) / 2] |=
          static_cast<uint8_t>((V & 15) << (I % 2 * 4));
    else
      memcpy(&Bytes[static_cast<size_t>(I) * Bits / 8], &V, Bits / 8);
  }
  return Bytes;
}

std::vector<std::string> split(const std::string &Text, char Separator) {
  std::vector<std::string> Parts;
  size_t Begin = 0;
  for (size_t End; (End = Text.find(Separator, Begin)) != std::string::npos;
       Begin = End + 1)
    Parts.push_back(Text.substr(Begin, End - Begin));
  Parts.push_back(Text.substr(Begin));
  return Parts;
}

template <typename T>
T number(const std::string &Spec, const std::string &Text) {
  size_t Used = 0;
  T Value{};
  try {
    if constexpr (std::is_same_v<T, double>)
      Value = std::stod(Text, &Used);
    else if constexpr (std::is_same_v<T, uint64_t>)
      Value = Text[0] == '-' ? throw std::invalid_argument("")
                             : std::stoull(Text, &Used);
    else
      Value = std::stoll(Text, &Used);
  } catch (const std::exception &) {
    Used = std::string::npos;
  }
  if (Used != Text.size())
    badInput(Spec, "'" + Text + "' is not a number");
  return Value;
}

Input generated(const std::string &Text,
                const std::vector<std::string> &Parts) {
  Input In;
  In.Text = Text;
  std::vector<std::string> Dims = split(Parts[0], 'x');
  In.DType = Dims.back();
  Dims.pop_back();
  unsigned Bits = bitsOf(In.DType);
  if (!Bits)
    badInput(Text, "unknown element type '" + In.DType + "'");
  for (const std::string &Dim : Dims) {
    In.Shape.push_back(number<int64_t>(Text, Dim));
    if (In.Shape.back() < 0)
      badInput(Text, "a negative dim");
  }
  bytesOf(In.DType, In.Shape); // refuses what no memory holds
  const FloatFormat *F = floatFormat(In.DType);
  auto Shape = In.Shape;
  if (Parts[1] == "zeros" && Parts.size() == 2) {
    In.Make = [=, Size = bytesOf(In.DType, Shape)] {
      return std::vector<uint8_t>(Size);
    };
  } else if (Parts[1] == "value" && Parts.size() == 3) {
    if (F) {
      double V = number<double>(Text, Parts[2]);
      In.Make = [=] {
        return floats(*F, count(Shape), [=](int64_t) { return V; });
      };
    } else {
      int64_t V = number<int64_t>(Text, Parts[2]);
      In.Make = [=] {
        return integers(Bits, count(Shape), [=](int64_t) { return V; });
      };
    }
  } else if (Parts[1] == "random" && F &&
             (Parts.size() == 3 || Parts.size() == 4)) {
    uint64_t Seed = number<uint64_t>(Text, Parts[2]);
    double Sigma = Parts.size() == 4 ? number<double>(Text, Parts[3]) : 1.0;
    In.Make = [=] { return normals(*F, count(Shape), Seed, Sigma); };
  } else if (Parts[1] == "random" && !F &&
             (Parts.size() == 3 || Parts.size() == 5)) {
    uint64_t Seed = number<uint64_t>(Text, Parts[2]);
    int64_t Hi = INT64_MAX >> (64 - Bits), Lo = -Hi - 1;
    if (Parts.size() == 5) {
      int64_t Min = Lo, Max = Hi;
      Lo = number<int64_t>(Text, Parts[3]);
      Hi = number<int64_t>(Text, Parts[4]);
      if (Lo > Hi || Lo < Min || Hi > Max)
        badInput(Text, "the range does not fit " + In.DType);
    }
    // None: every number of 64 bits.
    uint64_t Span = static_cast<uint64_t>(Hi) - static_cast<uint64_t>(Lo) + 1;
    In.Make = [=] {
      return integers(Bits, count(Shape), [=](int64_t I) {
        uint64_t Word = word(Seed, static_cast<uint64_t>(I));
        return static_cast<int64_t>(static_cast<uint64_t>(Lo) +
                                    (Span ? Word % Span : Word));
      });
    };
  } else {
    badInput(
        Text,
        "'" + Parts[1] +
            "': expected random:SEED[:SIGMA] (integers: random:SEED[:LO:HI]), "
            "value:V or zeros after the type");
  }
  return In;
}

template <typename T> T load(const uint8_t *P) {
  T Value;
  memcpy(&Value, P, sizeof(T));
  return Value;
}

void compareRow(const Elements &Got, const Elements &Want, int64_t Begin,
                int64_t Columns, double Rtol, double Atol, Difference &D) {
  double Square = 0, WantSquare = 0, Max = 0, WantMax = 0;
  for (int64_t I = Begin; I < Begin + Columns; ++I) {
    double G = Got[I], W = Want[I];
    bool Same = G == W || (std::isnan(G) && std::isnan(W));
    double Error = Same ? 0 : std::fabs(G - W);
    if (!Same && (!std::isfinite(G) || !std::isfinite(W)))
      Error = INFINITY;
    if (!Same && !(Error <= Atol + Rtol * std::fabs(W)) && D.Outside++ == 0)
      D.FirstOutside = I;
    Square += Error * Error;
    Max = std::max(Max, Error);
    if (std::isfinite(W)) {
      WantSquare += W * W;
      WantMax = std::max(WantMax, std::fabs(W));
    }
  }
  constexpr double tiny = std::numeric_limits<double>::min();
  D.MaxAbs = std::max(D.MaxAbs, Max);
  D.RowEuclidean =
      std::max(D.RowEuclidean,
               std::sqrt(Square) / std::max(std::sqrt(WantSquare), tiny));
  D.RowMaximum = std::max(D.RowMaximum, Max / std::max(WantMax, tiny));
}

} // namespace

int64_t HostTensor::elements() const { return count(Shape); }

unsigned bitsOf(const std::string &DType) {
  if (const FloatFormat *F = floatFormat(DType))
    return 1 + F->Exponent + F->Mantissa;
  return DType == "i64" || DType == "f64" ? 64
         : DType == "i32"                 ? 32
         : DType == "i16"                 ? 16
         : DType == "i8"                  ? 8
         : DType == "i4"                  ? 4
                                          : 0;
}

std::string shapeText(const std::vector<int64_t> &Shape) {
  std::string Text;
  for (int64_t Dim : Shape)
    Text += (Text.empty() ? "" : "x") + std::to_string(Dim);
  return Text.empty() ? "scalar" : Text;
}

size_t bytesOf(const std::string &DType, const std::vector<int64_t> &Shape) {
  int64_t Bits = bitsOf(DType);
  for (int64_t Dim : Shape)
    if (__builtin_mul_overflow(Bits, Dim, &Bits))
      throw std::runtime_error("shape " + shapeText(Shape) +
                               " is larger than the address space");
  return static_cast<size_t>(Bits / 8 + (Bits % 8 != 0));
}

// i32:1003, f32:0.5: a number that is no file's name.
static std::optional<Input> scalar(const std::string &Text,
                                   const std::vector<std::string> &Parts) {
  static const std::set<std::string> Types = {
      "i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"};
  if (Parts.size() != 2 || !Types.count(Parts[0]))
    return std::nullopt;
  Input In;
  In.Text = Text;
  In.DType = Parts[0];
  In.IsScalar = true;
  const char *Begin = Parts[1].c_str();
  char *End = nullptr;
  errno = 0;
  std::vector<uint8_t> Bytes;
  unsigned Bits = In.DType == "i1" ? 1 : bitsOf(In.DType);
  if (In.DType[0] == 'i') {
    int64_t Integer = std::strtoll(Begin, &End, 10);
    int64_t Most = INT64_MAX >> (64 - Bits), Least = -Most - 1;
    if (Bits == 1)
      Most = 1, Least = 0;
    if (End != Begin && !*End &&
        (errno == ERANGE || Integer < Least || Integer > Most))
      badInput(Text, "the value is no " + In.DType);
    Bytes.resize(std::max(Bits / 8, 1u));
    memcpy(Bytes.data(), &Integer, Bytes.size());
  } else {
    double Float = std::strtod(Begin, &End);
    // f64 has no format to round to.
    Bytes.resize(Bits / 8);
    if (const FloatFormat *F = floatFormat(In.DType))
      Bytes = floats(*F, 1, [=](int64_t) { return Float; });
    else
      memcpy(Bytes.data(), &Float, Bytes.size());
  }
  if (End == Begin || *End)
    return std::nullopt;
  In.Make = [Bytes] { return Bytes; };
  return In;
}

// Whether a text is a shape with an element type, "512x4096xf16".
static bool isShape(const std::string &Text) {
  std::vector<std::string> Dims = split(Text, 'x');
  bool Known = Dims.size() > 1 && bitsOf(Dims.back());
  Dims.pop_back();
  for (const std::string &Dim : Dims)
    Known = Known && !Dim.empty() &&
            Dim.find_first_not_of("0123456789") == std::string::npos;
  return Known;
}

Input parseInput(const std::string &Text) {
  std::vector<std::string> Parts = split(Text, ':');
  if (std::optional<Input> Scalar = scalar(Text, Parts))
    return *Scalar;
  if (Parts.size() > 1 && (Parts[1] == "random" || Parts[1] == "value" ||
                           Parts[1] == "zeros" || isShape(Parts[0])))
    return generated(Text, Parts);
  if (isShape(Text))
    badInput(Text,
             "say what to fill it with: random:SEED, value:V or zeros after "
             "the type");
  Input In;
  In.Text = Text;
  std::string Path = Text, As;
  if (Parts.size() > 1 && bitsOf(Parts[0])) {
    As = Parts[0];
    Path = Text.substr(As.size() + 1);
  }
  NpyHeader H = readNpyHeader(Path);
  In.DType = H.DType;
  In.Shape = H.Shape;
  if (!As.empty() && As != H.DType) {
    unsigned Bits = bitsOf(As);
    bool Carrier =
        (H.DType == "u16" && Bits == 16) || (H.DType == "u8" && Bits <= 8);
    if (!Carrier)
      badInput(Text,
               "a file of " + H.DType + " cannot hold " + As +
                   (Bits == 16 ? "; save it as uint16" : "; save it as uint8"));
    In.DType = As;
    if (As == "i4") {
      if (In.Shape.empty())
        badInput(Text, "packed i4 needs a dim");
      In.Shape.back() *= 2;
    }
  }
  In.Make = [=] { return readNpyData(Path, H); };
  return In;
}

Elements::Elements(const HostTensor &T) : Bytes(T.Bytes.data()) {
  const FloatFormat *F = floatFormat(T.DType);
  Width = bitsOf(T.DType) / 8;
  if (T.DType == "f64")
    Kind = F64;
  else if (T.DType == "f32")
    Kind = F32;
  else if (T.DType == "i64")
    Kind = I64;
  else if (T.DType == "i32")
    Kind = I32;
  else if (T.DType == "i16")
    Kind = I16;
  else if (T.DType == "i8")
    Kind = I8;
  else if (!F)
    Kind = I4;
  else {
    // Every value of a small float, once.
    Kind = Small;
    Table.resize(size_t(1) << 8 * Width);
    for (uint32_t Bits = 0; Bits < Table.size(); ++Bits)
      Table[Bits] = static_cast<float>(decode(*F, Bits));
  }
}

double Elements::operator[](int64_t Index) const {
  size_t I = static_cast<size_t>(Index);
  const uint8_t *P = Bytes + I * Width;
  switch (Kind) {
  case F64:
    return load<double>(P);
  case F32:
    return load<float>(P);
  case I64:
    return static_cast<double>(load<int64_t>(P));
  case I32:
    return load<int32_t>(P);
  case I16:
    return load<int16_t>(P);
  case I8:
    return static_cast<int8_t>(*P);
  case Small:
    return Table[Width == 1 ? *P : load<uint16_t>(P)];
  case I4:
    break;
  }
  int Nibble = Bytes[I / 2] >> (I % 2 * 4) & 15;
  return Nibble < 8 ? Nibble : Nibble - 16;
}

Difference compare(const HostTensor &Got, const HostTensor &Want, double Rtol,
                   double Atol) {
  Elements G(Got), W(Want);
  int64_t Columns = Want.Shape.empty() ? 1 : Want.Shape.back();
  if (Columns < FewColumns)
    Columns = Want.elements();
  int64_t Rows = Columns ? Want.elements() / Columns : 0;
  Difference Total;
  std::mutex Lock;
  parallel(Rows, 1, [&](int64_t Begin, int64_t End) {
    Difference D;
    for (int64_t R = Begin; R < End; ++R)
      compareRow(G, W, R * Columns, Columns, Rtol, Atol, D);
    std::lock_guard<std::mutex> Guard(Lock);
    Total.MaxAbs = std::max(Total.MaxAbs, D.MaxAbs);
    Total.RowEuclidean = std::max(Total.RowEuclidean, D.RowEuclidean);
    Total.RowMaximum = std::max(Total.RowMaximum, D.RowMaximum);
    Total.Outside += D.Outside;
    if (D.Outside &&
        (Total.FirstOutside < 0 || D.FirstOutside < Total.FirstOutside))
      Total.FirstOutside = D.FirstOutside;
  });
  return Total;
}

} // namespace greta_run
