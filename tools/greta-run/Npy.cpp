// Npy.cpp: see Npy.h.
#include "Npy.h"

#include <cctype>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace greta_run {
namespace {

[[noreturn]] void badFile(const std::string &Path, const std::string &What) {
  throw std::runtime_error(Path + ": " + What);
}

// The header is a Python dict literal with three known keys; this reads that
// and nothing more.
class Header {
public:
  Header(const std::string &Path, const std::string &Text)
      : Path(Path), Text(Text) {}

  NpyHeader parse() {
    std::string Descr;
    bool SeenDescr = false, SeenOrder = false, SeenShape = false;
    NpyHeader H;
    expect('{');
    while (!accept('}')) {
      std::string Key = quoted();
      expect(':');
      if (Key == "descr" && !SeenDescr) {
        SeenDescr = true;
        Descr = quoted();
      } else if (Key == "fortran_order" && !SeenOrder) {
        SeenOrder = true;
        if (word() != "False")
          badFile(Path, "the array is in Fortran order; save it with "
                        "numpy.ascontiguousarray");
      } else if (Key == "shape" && !SeenShape) {
        SeenShape = true;
        H.Shape = tuple();
      } else {
        badFile(Path, "not a .npy header: key '" + Key.substr(0, 40) + "'");
      }
      accept(',');
    }
    if (!SeenDescr || !SeenOrder || !SeenShape)
      badFile(Path, "not a .npy header: a key is missing");
    static const struct {
      const char *Descr, *DType;
    } Types[] = {{"<f4", "f32"}, {"<f2", "f16"}, {"<f8", "f64"}, {"|i1", "i8"},
                 {"<i2", "i16"}, {"<i4", "i32"}, {"<i8", "i64"}, {"|u1", "u8"},
                 {"<u2", "u16"}, {"<u4", "i32"}};
    for (const auto &T : Types)
      if (Descr == T.Descr)
        H.DType = T.DType;
    if (H.DType.empty())
      badFile(
          Path,
          "element type '" + Descr.substr(0, 40) +
              "' is not supported (<f4 <f2 <f8 |i1 <i2 <i4 <i8 <u4 |u1 <u2)");
    return H;
  }

private:
  void skip() {
    while (At < Text.size() && isspace(static_cast<unsigned char>(Text[At])))
      ++At;
  }
  bool accept(char C) {
    skip();
    if (At >= Text.size() || Text[At] != C)
      return false;
    ++At;
    return true;
  }
  void expect(char C) {
    if (!accept(C))
      badFile(Path, std::string("not a .npy header: '") + C + "' is missing");
  }
  std::string quoted() {
    char Quote = accept('\'') ? '\'' : '"';
    if (Quote == '"')
      expect('"');
    size_t End = Text.find(Quote, At);
    if (End == std::string::npos)
      badFile(Path,
              "not a .npy header: a string does not end (structured types "
              "are not supported)");
    std::string S = Text.substr(At, End - At);
    At = End + 1;
    return S;
  }
  std::string word() {
    skip();
    size_t Begin = At;
    while (At < Text.size() && isalnum(static_cast<unsigned char>(Text[At])))
      ++At;
    return Text.substr(Begin, At - Begin);
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> Dims;
    expect('(');
    while (!accept(')')) {
      std::string Digits = word();
      if (Digits.empty() || Digits.size() > 18 ||
          Digits.find_first_not_of("0123456789") != std::string::npos ||
          Dims.size() == 16)
        badFile(Path, "not a .npy header: the shape");
      Dims.push_back(std::stoll(Digits));
      accept(',');
    }
    return Dims;
  }

  const std::string &Path;
  const std::string &Text;
  size_t At = 0;
};

size_t dataBytes(const std::string &Path, const NpyHeader &H) {
  int64_t Bytes = H.DType == "u8"    ? 1
                  : H.DType == "u16" ? 2
                  : H.DType == "f64" ? 8
                                     : bitsOf(H.DType) / 8;
  for (int64_t Dim : H.Shape)
    if (__builtin_mul_overflow(Bytes, Dim, &Bytes))
      badFile(Path, "shape " + shapeText(H.Shape) +
                        " is larger than the address space");
  return static_cast<size_t>(Bytes);
}

} // namespace

NpyHeader readNpyHeader(const std::string &Path) {
  std::ifstream In(Path, std::ios::binary);
  if (!In)
    badFile(Path, std::string("cannot open: ") + strerror(errno));
  char Magic[8] = {};
  In.read(Magic, 8);
  if (!In || memcmp(Magic, "\x93NUMPY", 6) != 0)
    badFile(Path, "not a .npy file");
  unsigned Major = static_cast<unsigned char>(Magic[6]);
  if (Major < 1 || Major > 3)
    badFile(Path, ".npy format version " + std::to_string(Major) +
                      " is not supported");
  unsigned char Size[4] = {};
  size_t SizeBytes = Major == 1 ? 2 : 4;
  In.read(reinterpret_cast<char *>(Size),
          static_cast<std::streamsize>(SizeBytes));
  size_t Length = Size[0] | Size[1] << 8 | Size[2] << 16 |
                  static_cast<size_t>(Size[3]) << 24;
  constexpr size_t maxHeader = 1 << 20;
  if (!In || Length > maxHeader)
    badFile(Path, "not a .npy file: the header's size");
  std::string Text(Length, '\0');
  In.read(Text.data(), static_cast<std::streamsize>(Length));
  if (!In)
    badFile(Path, "the .npy header is cut off");
  NpyHeader H = Header(Path, Text).parse();
  H.DataOffset = 8 + SizeBytes + Length;
  In.seekg(0, std::ios::end);
  size_t Have = static_cast<size_t>(In.tellg()) - H.DataOffset,
         Want = dataBytes(Path, H);
  if (Have != Want)
    badFile(Path, "the file holds " + std::to_string(Have) +
                      " bytes of data, shape " + shapeText(H.Shape) +
                      " needs " + std::to_string(Want));
  return H;
}

std::vector<uint8_t> readNpyData(const std::string &Path, const NpyHeader &H) {
  std::vector<uint8_t> Bytes(dataBytes(Path, H));
  std::ifstream In(Path, std::ios::binary);
  In.seekg(static_cast<std::streamoff>(H.DataOffset));
  In.read(reinterpret_cast<char *>(Bytes.data()),
          static_cast<std::streamsize>(Bytes.size()));
  if (!In)
    badFile(Path, "cannot be read");
  return Bytes;
}

std::vector<uint8_t> npyFile(const HostTensor &T) {
  std::string Descr = T.DType == "f64"    ? "<f8"
                      : T.DType == "f32"  ? "<f4"
                      : T.DType == "f16"  ? "<f2"
                      : T.DType == "bf16" ? "<u2"
                      : T.DType == "i8"   ? "|i1"
                      : T.DType == "i16"  ? "<i2"
                      : T.DType == "i32"  ? "<i4"
                      : T.DType == "i64"  ? "<i8"
                                          : "|u1";
  std::string Shape;
  if (T.DType == "i4")
    Shape = std::to_string(T.Bytes.size()) +
            ","; // packed bytes have no shape of their own
  else
    for (int64_t Dim : T.Shape)
      Shape += std::to_string(Dim) + ",";
  std::string Text = "{'descr': '" + Descr +
                     "', 'fortran_order': False, 'shape': (" + Shape + "), }";
  while ((10 + Text.size() + 1) % 64)
    Text += ' ';
  Text += '\n';
  std::vector<uint8_t> File = {0x93,
                               'N',
                               'U',
                               'M',
                               'P',
                               'Y',
                               1,
                               0,
                               static_cast<uint8_t>(Text.size() & 255),
                               static_cast<uint8_t>(Text.size() >> 8)};
  File.insert(File.end(), Text.begin(), Text.end());
  File.insert(File.end(), T.Bytes.begin(), T.Bytes.end());
  return File;
}

} // namespace greta_run
