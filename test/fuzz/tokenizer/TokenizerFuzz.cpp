// TokenizerFuzz.cpp: libFuzzer over the text of a tokenizer.json, and behind
// its last line break a text to encode.
#include "ReadModel.h"
#include "model/Json.h"

using namespace greta_fuzz;

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *Data, size_t Size,
                                          size_t MaxSize, unsigned Seed) {
  std::string_view All(reinterpret_cast<char *>(Data), Size);
  size_t End = All.rfind('\n');
  if (End == All.npos || Seed % 4 == 0)
    return LLVMFuzzerMutate(Data, Size, MaxSize);
  std::string Text(All.substr(End));
  size_t Room = MaxSize > Text.size() ? MaxSize - Text.size() : 0;
  if (Room < End)
    return LLVMFuzzerMutate(Data, Size, MaxSize);
  size_t Now = mutateJson(Data, End, Room, Seed / 4);
  std::copy(Text.begin(), Text.end(), Data + Now);
  return Now + Text.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *Data, size_t Size) {
  std::string_view All(reinterpret_cast<const char *>(Data), Size);
  size_t End = std::min(All.rfind('\n'), Size);
  expectOneLine([&] {
    Model M;
    M.path = "m";
    M.config.vocabulary = 512;
    M.files.push_back(std::make_unique<Mapping>("/proc/self/exe"));
    M.tokenizer = parseJson(All.substr(0, End), "tokenizer.json");
    if (!M.tokenizer.is_object())
      return;
    checkTokenizer(M, std::string(All.substr(End)));
  });
  return 0;
}
