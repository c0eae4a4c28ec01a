// GgufPatterns.cpp: see GgufPatterns.h.
#include "tokenizer/GgufPatterns.h"
#include "model/Architecture.h"

namespace greta::llm {

const char *const gpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

// The parts of patterns that several tokenizers share.
#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPACES R"(\s*[\r\n]+|\s+(?!\S)|\s+)"
#define UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"

// OpenAI's cl100k; Qwen's are the same with each digit alone.
constexpr const char *cl100k = CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" SPACES;
constexpr const char *qwen2 = CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" SPACES;
constexpr const char *qwen35 = CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" SPACES;
// OpenAI's o200k, and Mistral's, without contractions and each digit alone.
constexpr const char *o200k =
    R"([^\r\n\p{L}\p{N}]?)" UPPER "*" LOWER "+" CONTRACTIONS "?|"
    R"([^\r\n\p{L}\p{N}]?)" UPPER "+" LOWER "*" CONTRACTIONS "?|"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" SPACES;
constexpr const char *tekken = R"([^\r\n\p{L}\p{N}]?)" UPPER "*" LOWER "+|"
                               R"([^\r\n\p{L}\p{N}]?)" UPPER "+" LOWER "*|"
                               R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" SPACES;
constexpr const char *digits = R"(\p{N})";
constexpr const char *eastAsian = "[一-龥ࠀ-一가-퟿]+";
// Letters of alphabets that have cases, as DeepSeek's first models list them.
constexpr const char *casedWords =
    R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-Ⴥ)"
    R"(Ꭰ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\x{1f7d}ᾀ-ᾴᾶ-ᾼ\x{1fbe}ῂ-ῄῆ-ῌῐ-\x{1fd3})"
    R"(ῖ-\x{1fdb}ῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\x{2126}ℨ\x{212a}-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳ)"
    R"(Ꙁ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)";

const std::vector<GgufTokenizer> &ggufTokenizers() {
  using T = GgufTokenizer;
  // Names that llama.cpp treats alike share a row.
  static const std::vector<GgufTokenizer> all = {
      {"llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral lfm2 midm-2.0 "
       "jina-v5-nano",
       {cl100k},
       T::WholePieces | T::Begins},
      {"dbrx smaug-bpe chatglm-bpe", {cl100k}},
      {"glm4 glm5", {cl100k}, T::WholePieces},
      {"qwen2 deepseek-r1-qwen kormo f2llmv2", {qwen2}, T::Composes},
      {"stablelm2 hunyuan solar-open megrez grok-2", {qwen2}},
      {"qwen35", {qwen35}},
      {"gpt-4o llama4 kanana2 talkie minimax-m2", {o200k}},
      {"tekken", {tekken}, T::WholePieces | T::Begins},
      {"gpt-2 phi-2 roberta-bpe jina-es jina-de jina-v2-es jina-v2-de gigachat "
       "a.x-4.0 mellum modern-bert exaone4 jais trillion granite-docling",
       {gpt2Pattern}},
      {"olmo mpt", {gpt2Pattern}, T::Composes},
      {"starcoder refact smollm codeshell exaone minerva-7b mellum2",
       {digits, gpt2Pattern}},
      {"command-r", {digits, gpt2Pattern}, T::Composes},
      {"falcon", {R"([\p{P}$+<=>^~|`]+)", gpt2Pattern, "[0-9][0-9][0-9]"}},
      {"deepseek-llm",
       {R"([\r\n])", casedWords, R"(\s?[!-/:-~！-／：-～‘-‟\x{3000}-。]+)",
        R"(\s+$)", eastAsian, digits}},
      {"deepseek-coder",
       {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", eastAsian, digits}},
      {"deepseek-v3 hunyuan-dense joyai-llm hy_v4",
       {R"(\p{N}{1,3})", "[一-龥぀-ゟ゠-ヿ]+",
        R"([!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
        R"( ?[\p{P}\p{S}]+[\r\n]*|)" SPACES}},
      // llama.cpp takes these for files that name no pattern.
      {"default",
       {R"([\p{P}$+<=>^~|]+)", gpt2Pattern, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
  };
  return all;
}

#undef CONTRACTIONS
#undef SPACES
#undef UPPER
#undef LOWER

} // namespace

const GgufTokenizer *findGgufTokenizer(const std::string &name) {
  for (const GgufTokenizer &one : ggufTokenizers())
    for (const std::string &own : wordsOf(one.names))
      if (name == own)
        return &one;
  return nullptr;
}

std::string ggufTokenizerNames() {
  std::string names;
  for (const GgufTokenizer &one : ggufTokenizers())
    for (const std::string &own : wordsOf(one.names))
      names += (names.empty() ? "" : ", ") + own;
  return names;
}

} // namespace greta::llm
