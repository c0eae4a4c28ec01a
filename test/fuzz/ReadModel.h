// ReadModel.h: what the fuzzers of model files share: a folder that a model's
// files are written to, what must hold of a model that was taken, and mutations
// of JSON that leave it JSON.
#ifndef GRETA_TEST_FUZZ_READ_MODEL_H
#define GRETA_TEST_FUZZ_READ_MODEL_H

#include "model/Fp8.h"
#include "tokenizer/Tokenizer.h"

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <random>
#include <unistd.h>

extern "C" size_t LLVMFuzzerMutate(uint8_t *Data, size_t Size, size_t MaxSize);

namespace greta_fuzz {
using namespace greta::llm;
using nlohmann::json;

// Runs `Read`, which must end well or in one line of text.
template <typename Body> void expectOneLine(Body Read) {
  try {
    Read();
  } catch (const std::exception &E) {
    std::string Text = E.what();
    if (Text.empty() || Text.find('\n') != std::string::npos)
      __builtin_trap();
  }
}

// In memory where the system has such a folder; removed at the end.
class Folder {
public:
  Folder() {
    Path = std::filesystem::exists("/dev/shm")
               ? "/dev/shm/greta-fuzz-XXXXXX"
               : (std::filesystem::temp_directory_path() / "greta-fuzz-XXXXXX")
                     .string();
    if (!mkdtemp(Path.data()))
      abort();
  }
  ~Folder() { std::filesystem::remove_all(Path); }
  std::string write(const std::string &Name, const void *Data,
                    size_t Size) const {
    std::string File = Path + "/" + Name;
    int To = open(File.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (To < 0 || ::write(To, Data, Size) != static_cast<ssize_t>(Size))
      abort();
    close(To);
    return File;
  }
  std::string Path;
};

// A model that was taken: every byte of its weights is in a file, and rows can
// be read.
inline void checkTaken(const Model &M) {
  uint64_t Sum = 0;
  auto Reads = [&](const uint8_t *From, size_t Bytes) {
    bool IsInside = false;
    for (const auto &File : M.files)
      IsInside |=
          From >= File->data() && From + Bytes <= File->data() + File->size();
    if (!IsInside)
      __builtin_trap();
    Sum += From[0] + From[Bytes - 1];
  };
  for (const auto &[Name, W] : M.weights) {
    size_t Rows = static_cast<size_t>(W.rows());
    std::vector<float> Numbers(static_cast<size_t>(W.columns()));
    if (W.format == Format::Int4) {
      expandGrouped(W, W.rows() - 1, Numbers.data());
      Sum += canPackGrouped(W);
      continue;
    }
    for (size_t Row = 0; Row < Rows; Row += W.rowsOfPart())
      Reads(W.row(Row), W.rowsOfPart() * W.rowBytes());
    size_t Last = W.headOrder.inFile(Rows - 1);
    if (W.format == Format::F8_E4M3)
      expandFp8(W, Last, Numbers.data());
    else
      expandRow(W.format, W.row(Last), W.columns(), Numbers.data());
  }
  volatile uint64_t Seen = Sum;
  (void)Seen;
}

// A tokenizer that was taken: tokens are the model's, and have bytes.
inline void checkTokenizer(const Model &M, const std::string &Text) {
  Tokenizer T(M);
  for (bool AddsSpecial : {false, true})
    for (int32_t Token : T.encode(Text, AddsSpecial)) {
      if (Token < 0 || Token >= M.config.vocabulary)
        __builtin_trap();
      T.bytesOf(Token);
      T.isEnd(Token);
    }
}

// A value somewhere in `Root`.
inline json &anyOf(json &Root, std::mt19937 &Random) {
  json *At = &Root;
  while (At->is_structured() && !At->empty() && Random() % 5) {
    auto It = At->begin();
    std::advance(It, static_cast<std::ptrdiff_t>(Random() % At->size()));
    At = &*It;
  }
  return *At;
}

// Replaces, removes, copies or renames a value; false where nothing can be.
inline void mutateValue(json &Root, std::mt19937 &Random) {
  static const json Interesting = {nullptr,
                                   true,
                                   false,
                                   0,
                                   -1,
                                   1,
                                   2,
                                   8,
                                   16,
                                   64,
                                   256,
                                   1e300,
                                   1e-300,
                                   0.5,
                                   "",
                                   "linear",
                                   "llama3",
                                   "BPE",
                                   "silu",
                                   "\xc3\xa9",
                                   "<s>",
                                   "mistral",
                                   "qwen2",
                                   "Split",
                                   "NFC",
                                   "Sequence",
                                   INT64_MAX,
                                   INT64_MIN,
                                   UINT64_MAX,
                                   1u << 31,
                                   json::array(),
                                   json::object(),
                                   json::array({0, 1 << 20}),
                                   "sliding_attention"};
  json &One = anyOf(Root, Random), &Other = anyOf(Root, Random);
  switch (Random() % 6) {
  case 0:
  case 1:
    One = Interesting[Random() % Interesting.size()];
    break;
  case 2: {
    json Copy = Other;
    One = std::move(Copy);
    break;
  }
  case 3:
    if (One.is_array() && !One.empty())
      One.erase(Random() % One.size());
    else if (One.is_object() && !One.empty())
      One.erase(std::next(One.begin(),
                          static_cast<std::ptrdiff_t>(Random() % One.size())));
    break;
  case 4:
    if (One.is_array())
      One.push_back(Other);
    else if (One.is_number_integer())
      One = One.get<int64_t>() ^ int64_t(1) << Random() % 63;
    break;
  case 5:
    if (One.is_string() && !One.get_ref<std::string &>().empty()) {
      std::string &Text = One.get_ref<std::string &>();
      Text[Random() % Text.size()] = static_cast<char>(Random() % 95 + 32);
    } else if (One.is_object()) {
      One["x"] = Other;
    }
    break;
  }
}

// Some mutations of a text that is JSON; of any other, and half of the time,
// libFuzzer's own.
inline size_t mutateJson(uint8_t *Data, size_t Size, size_t MaxSize,
                         unsigned Seed) {
  std::mt19937 Random(Seed);
  json Root = Random() % 2 ? json::parse(Data, Data + Size, nullptr, false)
                           : json(json::value_t::discarded);
  if (Root.is_discarded())
    return LLVMFuzzerMutate(Data, Size, MaxSize);
  for (unsigned Left = 1 + Random() % 3; Left; --Left)
    mutateValue(Root, Random);
  std::string Text = Root.dump(-1, ' ', false, json::error_handler_t::replace);
  if (Text.size() > MaxSize)
    return LLVMFuzzerMutate(Data, Size, MaxSize);
  std::copy(Text.begin(), Text.end(), Data);
  return Text.size();
}

} // namespace greta_fuzz
#endif
