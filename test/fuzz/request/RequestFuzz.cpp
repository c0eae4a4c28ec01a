// RequestFuzz.cpp: libFuzzer over the body of a request to the server, a chat
// where it has messages, to the model `tiny`. An accepted body must give tokens
// of the model that leave room in the context; any other is a Refusal.
#include "ReadModel.h"
#include "server/Http.h"
#include "server/Requests.h"

using namespace greta_fuzz;

// Templates run in a process of their own, one for each conversation; here the
// messages are the prompt as they came.
ChatTemplate::ChatTemplate(const Model &) {}
std::string ChatTemplate::prompt(const json &Messages) const {
  return Messages.dump(-1, ' ', false, json::error_handler_t::replace);
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *Data, size_t Size,
                                          size_t MaxSize, unsigned Seed) {
  return mutateJson(Data, Size, MaxSize, Seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *Data, size_t Size) {
  constexpr int64_t Capacity = 256;
  static const Model M = readModel("", "tiny");
  static const Tokenizer T(M);
  static const RequestReader Reader(M, T, Capacity);
  std::string Body(reinterpret_cast<const char *>(Data), Size);
  try {
    Asked A = Reader.read(Body, Body.find("\"messages\"") != Body.npos);
    int64_t Prompt = static_cast<int64_t>(A.request.tokens.size());
    if (!Prompt || A.request.most < 1 || Prompt + A.request.most > Capacity)
      __builtin_trap();
    for (int32_t Token : A.request.tokens)
      if (Token < 0 || Token >= M.config.vocabulary)
        __builtin_trap();
  } catch (const Refusal &Why) {
    if (Why.status < 400 || Why.status >= 500 || !*Why.what())
      __builtin_trap();
  }
  return 0;
}
