// RequestFuzz.cpp: libFuzzer over the body of a request to the server, a chat
// where it has messages, to the model `tiny`. An accepted body must give tokens
// of the model that leave room in the context; any other is a Refusal.
#include "ReadModel.h"
#include "server/Http.h"
#include "server/Requests.h"

using namespace greta_fuzz;

// Templates run in a process of their own, one for each conversation; here the
// messages are the prompt as they came.
ChatTemplate::ChatTemplate(const Model &)
    : source("{{ tools }} <tool_call> {{ enable_thinking }}") {}
std::string ChatTemplate::prompt(const nlohmann::ordered_json &Messages,
                                 const nlohmann::ordered_json &Tools,
                                 const nlohmann::ordered_json &Values) const {
  return Messages.dump(-1, ' ', false,
                       nlohmann::ordered_json::error_handler_t::replace) +
         std::to_string(Tools.size()) + std::to_string(Values.size());
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
    bool IsChat = Body.find("\"messages\"") != Body.npos;
    Api Words = !IsChat                                      ? Api::Completion
                : Body.find("\"options\"") != Body.npos      ? Api::Ollama
                : Body.find("\"input_schema\"") != Body.npos ? Api::Messages
                                                             : Api::Chat;
    Asked A = Reader.read(Body, Words);
    const Request &R = A.requests.at(0);
    int64_t Prompt = static_cast<int64_t>(R.tokens.size());
    if (!Prompt || R.most < 1 || Prompt + R.most > Capacity)
      __builtin_trap();
    for (int32_t Token : R.tokens)
      if (Token < 0 || Token >= M.config.vocabulary)
        __builtin_trap();
  } catch (const Refusal &Why) {
    if (Why.status < 400 || Why.status >= 500 || !*Why.what())
      __builtin_trap();
  }
  return 0;
}
