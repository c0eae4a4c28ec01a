// ConfigFuzz.cpp: libFuzzer over the text of a config.json, beside the weights
// of a layer of each architecture, all of one size.
#include "ReadModel.h"

using namespace greta_fuzz;

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *Data, size_t Size,
                                          size_t MaxSize, unsigned Seed) {
  return mutateJson(Data, Size, MaxSize, Seed);
}

// A safetensors file with `Names` and their shapes, all zeros.
static std::string weights(bool HasBias, bool HasHeadNorms) {
  json Header = json::object();
  size_t Bytes = 0;
  auto Add = [&](const std::string &Name, std::vector<int64_t> Shape) {
    size_t Begin = Bytes;
    Bytes +=
        static_cast<size_t>(Shape[0] * (Shape.size() > 1 ? Shape[1] : 1)) * 2;
    Header[Name] = {
        {"dtype", "F16"}, {"shape", Shape}, {"data_offsets", {Begin, Bytes}}};
  };
  std::string Layer = "model.layers.0.";
  Add("model.embed_tokens.weight", {8, 32});
  Add("model.norm.weight", {32});
  Add("lm_head.weight", {8, 32});
  Add(Layer + "input_layernorm.weight", {32});
  Add(Layer + "post_attention_layernorm.weight", {32});
  for (const char *Name : {"q", "k", "v", "o"}) {
    int64_t Rows = *Name == 'q' || *Name == 'o' ? 32 : 16;
    Add(Layer + "self_attn." + Name + "_proj.weight", {Rows, 32});
    if (HasBias && *Name != 'o')
      Add(Layer + "self_attn." + Name + "_proj.bias", {Rows});
  }
  for (const char *Name : {"q", "k"})
    if (HasHeadNorms)
      Add(Layer + "self_attn." + Name + "_norm.weight", {16});
  for (const char *Name : {"gate", "up", "down"})
    Add(Layer + "mlp." + Name + "_proj.weight", {32, 32});
  std::string Text = Header.dump();
  uint64_t Length = Text.size();
  return std::string(reinterpret_cast<char *>(&Length), 8) + Text +
         std::string(Bytes, '\0');
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *Data, size_t Size) {
  static Folder Places[3];
  static const bool AreMade = [] {
    for (int I = 0; I < 3; ++I) {
      std::string File = weights(I == 1, I == 2);
      Places[I].write("model.safetensors", File.data(), File.size());
    }
    return true;
  }();
  (void)AreMade;
  std::string_view Text(reinterpret_cast<const char *>(Data), Size);
  const Folder &Place = Places[Text.find("qwen2") != Text.npos   ? 1
                               : Text.find("qwen3") != Text.npos ? 2
                                                                 : 0];
  expectOneLine([&] {
    Place.write("config.json", Data, Size);
    Model M = readModel(Place.Path, "");
    checkTaken(M);
    // Rope's tables are as long as what turns of a head's pairs, and of
    // positive numbers; each layer has one of them.
    const Config &C = M.config;
    for (const Rope &R : C.ropes)
      for (const auto *Factors : {&R.factors, &R.longFactors}) {
        if (!Factors->empty() &&
            static_cast<int64_t>(Factors->size()) * 2 != C.rotated)
          __builtin_trap();
        for (double Factor : *Factors)
          if (!(Factor > 0))
            __builtin_trap();
      }
    if (static_cast<int64_t>(C.kinds.size()) != C.layers)
      __builtin_trap();
    for (const LayerKind &Kind : C.kinds)
      if (Kind.rope >= C.ropes.size())
        __builtin_trap();
  });
  return 0;
}
