// SafetensorsFuzz.cpp: libFuzzer over a safetensors file, beside a config.json
// that its seeds fit: of a layer of Llama, of its AWQ form if a name says
// qweight, of its GPTQ form if one says g_idx, too, and of fp8 with blocks if
// one says weight_scale.
// Mutations of the header keep its length right.
#include "ReadModel.h"

#include <cstring>

using namespace greta_fuzz;

namespace {
constexpr size_t LengthBytes = 8;

size_t headerBytes(const uint8_t *Data, size_t Size) {
  uint64_t Length = 0;
  if (Size < LengthBytes)
    return 0;
  memcpy(&Length, Data, LengthBytes);
  return Length <= Size - LengthBytes ? Length : 0;
}

json config(const char *Method) {
  json C = {{"model_type", "llama"},
            {"hidden_act", "silu"},
            {"num_hidden_layers", 1},
            {"hidden_size", 32},
            {"intermediate_size", 32},
            {"vocab_size", 8},
            {"num_attention_heads", 2},
            {"num_key_value_heads", 1},
            {"head_dim", 16},
            {"rms_norm_eps", 1e-5},
            {"max_position_embeddings", 64}};
  if (Method == std::string_view("fp8"))
    C["quantization_config"] = {{"quant_method", Method},
                                {"weight_block_size", {8, 16}}};
  else if (*Method)
    C["quantization_config"] = {
        {"quant_method", Method}, {"bits", 4}, {"group_size", 32}};
  return C;
}
} // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *Data, size_t Size,
                                          size_t MaxSize, unsigned Seed) {
  size_t Length = headerBytes(Data, Size);
  if (!Length || Seed % 4 == 0)
    return LLVMFuzzerMutate(Data, Size, MaxSize);
  std::vector<uint8_t> Tail(Data + LengthBytes + Length, Data + Size);
  size_t Room = MaxSize > LengthBytes + Tail.size()
                    ? MaxSize - LengthBytes - Tail.size()
                    : 0;
  if (Room < Length)
    return LLVMFuzzerMutate(Data, Size, MaxSize);
  uint64_t Now = mutateJson(Data + LengthBytes, Length, Room, Seed / 4);
  memcpy(Data, &Now, LengthBytes);
  std::copy(Tail.begin(), Tail.end(), Data + LengthBytes + Now);
  return LengthBytes + Now + Tail.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *Data, size_t Size) {
  static Folder Places[4];
  static const bool AreMade = [] {
    const char *Methods[] = {"", "awq", "gptq", "fp8"};
    for (int I = 0; I < 4; ++I) {
      std::string Text = config(Methods[I]).dump();
      Places[I].write("config.json", Text.data(), Text.size());
    }
    return true;
  }();
  (void)AreMade;
  std::string_view Text(reinterpret_cast<const char *>(Data), Size);
  auto Says = [&](const char *Name) { return Text.find(Name) != Text.npos; };
  const Folder &Place = Places[Says("weight_scale") ? 3
                               : !Says("qweight")   ? 0
                               : !Says("g_idx")     ? 1
                                                    : 2];
  expectOneLine([&] {
    Place.write("model.safetensors", Data, Size);
    checkTaken(readModel(Place.Path, ""));
  });
  return 0;
}
