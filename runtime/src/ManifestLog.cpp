// ManifestLog.cpp: the log of a kernel in manifest.json.
#include "ManifestReader.h"

namespace greta::rt {
namespace {

constexpr uint32_t maxLogWords = 1 << 22; // of a log; also a value's elements

// Returns the shape of what is printed, and counts its elements.
std::vector<uint32_t> logShape(const ManifestReader &R, size_t &Elements) {
  std::vector<uint32_t> Shape;
  for (const ManifestReader &Dim : R.list(0, 16)) {
    Shape.push_back(Dim.small(maxLogWords));
    Elements *= Shape.back();
    if (Elements > maxLogWords)
      R.bad("more than ", maxLogWords, " elements");
  }
  return Shape;
}

// Checks UTF-8 text that a terminal shows: only lines and tabs may move the
// cursor. U+0080 to U+009F control terminals, too.
std::string logText(const ManifestReader &R) {
  std::string Text = R.string();
  if (Text.size() > 4096)
    R.bad("longer than 4096 bytes");
  for (size_t I = 0; I < Text.size(); ++I) {
    auto C = static_cast<unsigned char>(Text[I]);
    bool Second = I > 0 && Text[I - 1] == '\xc2' && C >= 0x80 && C < 0xa0;
    if (Second)
      Text[I - 1] = '?';
    if (Second || C == 0x7f || (C < ' ' && C != '\n' && C != '\t'))
      Text[I] = '?';
  }
  return Text;
}

} // namespace

LogDecl readLog(const ManifestReader &R, const Variant &V) {
  LogDecl L;
  L.Temp = R.at("temp").integer(0, maxList);
  if (L.Temp >= V.Temps.size())
    R.at("temp").bad("there are ", V.Temps.size(), " temps");
  const TensorDecl &T = V.Temps[L.Temp];
  if (T.DType != "i32" || T.StaticShape.size() != 1 || T.StaticShape[0] < 2 ||
      T.StaticShape[0] > static_cast<int64_t>(maxLogWords))
    R.at("temp").bad("not of i32 with 2 to ", maxLogWords, " elements");
  L.Words = static_cast<size_t>(T.StaticShape[0]);
  for (const ManifestReader &S : R.at("sites").list(1)) {
    LogSite &Site = L.Sites.emplace_back();
    Site.IsAssert = S.at("kind").oneOf({"print", "assert"}) == "assert";
    Site.Text = logText(S.at("text"));
    if (Site.IsAssert) {
      Site.Where = logText(S.at("where"));
      Site.Shape = logShape(S.at("shape"), Site.Elements);
      Site.Words = 1;
      continue;
    }
    Site.Hex = S.at("hex").boolean();
    for (const ManifestReader &Value : S.at("values").list()) {
      LogValue &One = Site.Values.emplace_back();
      One.DType = Value.at("dtype").oneOf(
          {"i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64"});
      One.Shape = logShape(Value.at("shape"), One.Elements);
      Site.Words += One.Elements * One.words();
    }
  }
  return L;
}

} // namespace greta::rt
