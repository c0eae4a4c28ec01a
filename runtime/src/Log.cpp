// Log.cpp: see Log.h. A kernel's records are checked like a package: a record
// is read only if all of it lies within the log.
#include "Log.h"
#include "Error.h"

#include <charconv>
#include <cstdio>
#include <cstring>

namespace greta::rt {
namespace {
constexpr size_t headerWords = 4; // site, ids of the program

template <typename T> std::string shortest(T Value) {
  char Text[64];
  return std::string(Text, std::to_chars(Text, Text + sizeof(Text), Value).ptr);
}

std::string element(const LogValue &Value, bool Hex, const uint32_t *Words) {
  uint64_t Bits = Words[0];
  if (Value.words() == 2)
    Bits |= uint64_t(Words[1]) << 32;
  if (Value.DType[0] == 'f') {
    double F64;
    float F32;
    memcpy(&F64, &Bits, sizeof(F64));
    memcpy(&F32, &Words[0], sizeof(F32));
    return Value.words() == 2 ? shortest(F64) : shortest(F32);
  }
  if (Hex) {
    char Text[32];
    snprintf(Text, sizeof(Text), "0x%0*llx",
             std::stoi(Value.DType.substr(1)) / 4,
             static_cast<unsigned long long>(Bits));
    return Text;
  }
  if (Value.DType[0] == 'u')
    return std::to_string(Bits);
  return Value.words() == 2 ? std::to_string(static_cast<int64_t>(Bits))
                            : std::to_string(static_cast<int32_t>(Words[0]));
}

// Returns "(3, 15)" of a row-major index, padded so that lines are aligned.
std::string indexText(const std::vector<uint32_t> &Shape, size_t Index) {
  std::string Text;
  for (size_t Dim = Shape.size(); Dim-- > 0; Index /= Shape[Dim]) {
    std::string One = std::to_string(Index % Shape[Dim]);
    One.insert(0, std::to_string(Shape[Dim] - 1).size() - One.size(), ' ');
    Text = One + (Text.empty() ? "" : ", ") + Text;
  }
  return "idx (" + Text + ")";
}

std::string program(const uint32_t *Record) {
  return concat("pid (", Record[1], ", ", Record[2], ", ", Record[3], ") ");
}

void print(const LogSite &Site, const uint32_t *Record, std::string &Lines) {
  std::string Program = program(Record);
  const uint32_t *Words = Record + headerWords;
  if (Site.Values.empty())
    Lines += Program + "idx ()" + Site.Text + "\n";
  for (size_t V = 0; V < Site.Values.size(); ++V) {
    const LogValue &Value = Site.Values[V];
    std::string Operand =
        Site.Values.size() > 1 ? concat("(operand ", V, ") ") : "";
    for (size_t I = 0; I < Value.Elements; ++I, Words += Value.words())
      Lines += Program + indexText(Value.Shape, I) + Site.Text + Operand +
               element(Value, Site.Hex, Words) + "\n";
  }
}
} // namespace

std::string readLog(const LogDecl &Decl, const std::vector<uint32_t> &Words,
                    uint32_t Taken, std::string &Lines) {
  std::string First;
  size_t Failed = 0, At = 0;
  while (Words.size() - At >= headerWords) {
    const uint32_t *Record = Words.data() + At;
    if (Record[0] >= Decl.Sites.size())
      break;
    const LogSite &Site = Decl.Sites[Record[0]];
    if (Site.Words > Words.size() - At - headerWords)
      break;
    At += headerWords + Site.Words;
    if (!Site.IsAssert) {
      print(Site, Record, Lines);
    } else if (Failed++ == 0) {
      size_t Index = std::min<size_t>(Record[headerWords], Site.Elements - 1);
      First = concat("device-side assert failed: ", Site.Text,
                     Site.Where.empty() ? "" : " (" + Site.Where + ")", ", ",
                     program(Record), indexText(Site.Shape, Index));
    }
  }
  if (At < Taken)
    Lines += concat("... ", Taken - At,
                    " words of what was printed or failed are lost; the log "
                    "holds ",
                    Decl.Words - 1, "\n");
  if (Failed > 1)
    First += concat("; and ", Failed - 1, " more");
  return First;
}

void clearLog(Stream &S, const LogOfLaunch &Log) {
  S.fill(Log.Words, Log.Offset, sizeof(uint32_t), 0);
}

std::string takeLog(Stream &S, const LogOfLaunch &Log) {
  const LogDecl &Decl = *Log.Kernel->Log;
  uint32_t Taken = 0;
  S.read(Log.Words, Log.Offset, &Taken, sizeof(Taken));
  std::vector<uint32_t> Words(std::min<size_t>(Taken, Decl.Words - 1));
  if (!Words.empty())
    S.read(Log.Words, Log.Offset + sizeof(Taken), Words.data(),
           Words.size() * sizeof(uint32_t));
  std::string Lines, Failed = readLog(Decl, Words, Taken, Lines);
  fwrite(Lines.data(), 1, Lines.size(), stdout);
  fflush(stdout);
  return Failed;
}

} // namespace greta::rt
