// Architecture.cpp: see Architecture.h.
#include "model/Architecture.h"

#include <nlohmann/json.hpp>
#include <sstream>

namespace greta::llm {

namespace {
constexpr const char *qkv = "attn_q attn_k attn_v",
                     *attention = "attn_q attn_k attn_v attn_output",
                     *everything =
                         "attn_q attn_k attn_v attn_output ffn_up ffn_down";

// Tensors of a layer, theirs=ours, of all architectures that do not say other.
constexpr const char *usualNames =
    "input_layernorm=attn_norm post_attention_layernorm=ffn_norm "
    "self_attn.q_proj=attn_q self_attn.k_proj=attn_k self_attn.v_proj=attn_v "
    "self_attn.o_proj=attn_output self_attn.q_norm=attn_q_norm "
    "self_attn.k_norm=attn_k_norm mlp.gate_proj=ffn_gate mlp.up_proj=ffn_up "
    "mlp.down_proj=ffn_down";
constexpr const char *expertNames =
    "mlp.gate=ffn_gate_inp mlp.experts.gate_proj=ffn_gate_exps "
    "mlp.experts.up_proj=ffn_up_exps mlp.experts.down_proj=ffn_down_exps "
    "mlp.shared_expert.gate_proj=ffn_gate_shexp "
    "mlp.shared_expert.up_proj=ffn_up_shexp "
    "mlp.shared_expert.down_proj=ffn_down_shexp "
    "mlp.shared_expert_gate=ffn_gate_inp_shexp";
constexpr const char *fourNorms =
    "post_attention_layernorm=post_attention_norm "
    "pre_feedforward_layernorm=ffn_norm "
    "post_feedforward_layernorm=post_ffw_norm";

constexpr const char *deepseekNames =
    "self_attn.q_proj=attn_q self_attn.q_a_proj=attn_q_a "
    "self_attn.q_a_layernorm=attn_q_a_norm self_attn.q_b_proj=attn_q_b "
    "self_attn.kv_a_proj_with_mqa=attn_kv_a_mqa "
    "self_attn.kv_a_layernorm=attn_kv_a_norm self_attn.kv_b_proj=attn_kv_b "
    "mlp.gate=ffn_gate_inp "
    "mlp.gate.e_score_correction_bias=exp_probs_b_bias "
    "mlp.experts.gate_proj=ffn_gate_exps mlp.experts.up_proj=ffn_up_exps "
    "mlp.experts.down_proj=ffn_down_exps "
    "mlp.shared_experts.gate_proj=ffn_gate_shexp "
    "mlp.shared_experts.up_proj=ffn_up_shexp "
    "mlp.shared_experts.down_proj=ffn_down_shexp";

constexpr const char *bertNames =
    "attention.self.query=attn_q attention.self.key=attn_k "
    "attention.self.value=attn_v attention.output.dense=attn_output "
    "attention.output.LayerNorm=attn_output_norm intermediate.dense=ffn_up "
    "output.dense=ffn_down output.LayerNorm=layer_output_norm";

constexpr uint64_t gemma =
    NormsBefore | NormsAfter | NormsLessOne | WidthScale | QueryScalar;
constexpr uint64_t cohere =
    NormsBefore | MeanNorms | Parallel | PairsInFiles | LogitScale;
constexpr uint64_t deepseek = NormsBefore | PairsInFiles | Experts |
                              SharedExperts | LatentKeys | ForeignCode;
constexpr uint64_t bert =
    Bidirectional | LearnedPositions | MeanNorms | NormBiases | Ungated;

} // namespace

// RoBERTa is BERT with other positions and tokenizers; models for many
// languages have the second name.
static Architecture roberta(const char *huggingFace) {
  return Architecture(huggingFace, "bert", bert | LatePositions)
      .activates(Activation::Gelu)
      .hasBiases(everything)
      .hasEpsilon("layer_norm_eps")
      .hasNames(bertNames)
      .assumes(R"({"layer_norm_eps": 1e-12, "hidden_act": "gelu",
          "pad_token_id": 1})");
}

static const Architecture architectures[] = {
    Architecture("llama", "llama", NormsBefore | PairsInGguf)
        .asksForBiases("attention_bias", attention),
    Architecture("mistral", "llama", NormsBefore | PairsInGguf)
        .windows(Windows::Always)
        .assumes(R"({"sliding_window": 4096})"),
    Architecture("qwen2", "qwen2", NormsBefore)
        .windows(Windows::IfAsked)
        .hasBiases(qkv)
        .assumes(R"({"sliding_window": 4096})"),
    Architecture("qwen3", "qwen3", NormsBefore | HeadNorms)
        .windows(Windows::IfAsked)
        .asksForBiases("attention_bias", attention)
        .assumes(R"({"sliding_window": 4096})"),
    Architecture("qwen3_moe", "qwen3moe",
                 NormsBefore | HeadNorms | Experts | DenseLayers)
        .windows(Windows::AllIfAsked)
        .asksForBiases("attention_bias", attention)
        .hasNames(expertNames)
        .assumes(R"({"sliding_window": 4096})"),
    Architecture("qwen2_moe", "qwen2moe",
                 NormsBefore | Experts | SharedExperts | SharedGate |
                     SharesOfAll | DenseLayers)
        .windows(Windows::AllIfAsked)
        .hasBiases(qkv)
        .hasNames(expertNames)
        .assumes(R"({"sliding_window": 4096})"),
    Architecture("mixtral", "llama", NormsBefore | PairsInGguf | Experts)
        .windows(Windows::Always)
        .hasNames("block_sparse_moe.gate=ffn_gate_inp "
                  "block_sparse_moe.experts.w1=ffn_gate_exps "
                  "block_sparse_moe.experts.w3=ffn_up_exps "
                  "block_sparse_moe.experts.w2=ffn_down_exps")
        .assumes(R"({"norm_topk_prob": true, "rope_theta": 1000000})"),
    Architecture("smollm3", "smollm3", NormsBefore | PairsInGguf | LayersOfRope)
        .windows(Windows::WithoutRopeIfAsked, 4)
        .asksForBiases("attention_bias", attention)
        .assumes(R"({"tie_word_embeddings": true, "rope_theta": 2000000})"),
    Architecture("gemma2", "gemma2", gemma | SoftCaps)
        .activates(Activation::GeluTanh)
        .windows(Windows::Pattern, 2)
        .asksForBiases("attention_bias", attention)
        .hasNames(fourNorms)
        .assumes(R"({"tie_word_embeddings": true, "sliding_window": 4096,
          "query_pre_attn_scalar": 256, "attn_logit_softcapping": 50,
          "final_logit_softcapping": 30})"),
    Architecture("gemma3_text", "gemma3",
                 gemma | HeadNorms | SoftCaps | LocalRope)
        .activates(Activation::GeluTanh)
        .windows(Windows::Pattern, 6)
        .asksForBiases("attention_bias", attention)
        .hasNames(fourNorms)
        .assumes(R"({"tie_word_embeddings": true, "sliding_window": 4096,
          "query_pre_attn_scalar": 256, "rope_theta": 1000000,
          "vocab_size": 262208, "hidden_size": 2304,
          "intermediate_size": 9216, "num_hidden_layers": 26,
          "num_attention_heads": 8, "num_key_value_heads": 4,
          "head_dim": 256, "max_position_embeddings": 131072,
          "rms_norm_eps": 1e-6, "hidden_activation": "gelu_pytorch_tanh"})"),
    Architecture("phi3", "phi3",
                 NormsBefore | FusedQkv | FusedGate | PartialRope | ForeignCode)
        .windows(Windows::Always)
        .hasNames("self_attn.qkv_proj=attn_qkv mlp.gate_up_proj=ffn_gate_up")
        .hasGgufNames("ffn_up=ffn_gate_up")
        .assumes(R"({"original_max_position_embeddings": 4096})"),
    // GGUF files that were converted from the first form of the model have
    // queries, keys and values in one.
    Architecture("glm", "chatglm",
                 NormsBefore | FusedQkv | FusedGate | PartialRope |
                     PairsInFiles)
        .asksForBiases("attention_bias", qkv)
        .hasNames("mlp.gate_up_proj=ffn_gate_up")
        .hasGgufNames("ffn_up=ffn_gate_up")
        .assumes(R"({"partial_rotary_factor": 0.5, "attention_bias": true,
          "head_dim": 128})"),
    Architecture("glm4", "glm4",
                 NormsBefore | NormsAfter | FusedGate | PartialRope |
                     PairsInFiles)
        .asksForBiases("attention_bias", qkv)
        .hasNames("post_self_attn_layernorm=post_attention_norm "
                  "post_mlp_layernorm=post_ffw_norm "
                  "mlp.gate_up_proj=ffn_gate_up")
        .hasGgufNames("ffn_up=ffn_gate_up")
        .assumes(R"({"partial_rotary_factor": 0.5, "attention_bias": true})"),
    Architecture("granite", "granite", NormsBefore | PairsInGguf | Multipliers)
        .asksForBiases("attention_bias", attention)
        .assumes(R"({"attention_multiplier": 1})"),
    Architecture("olmo2", "olmo2", NormsAfter | RowNorms)
        .asksForBiases("attention_bias", attention)
        .hasNames("post_attention_layernorm=post_attention_norm "
                  "post_feedforward_layernorm=post_ffw_norm"),
    Architecture("olmoe", "olmoe",
                 NormsBefore | RowNorms | Experts | SharesOfAll)
        .asksForBiases("attention_bias", attention)
        .hasNames(expertNames),
    Architecture("gpt_oss", "gpt-oss",
                 NormsBefore | Experts | Sinks | GatesInTurn)
        .activates(Activation::ClampedSwiglu)
        .windows(Windows::Pattern, 2)
        .asksForBiases("attention_bias", attention)
        .hasBiases("ffn_gate_inp ffn_gate_exps ffn_up_exps ffn_down_exps")
        .hasNames("self_attn.sinks=attn_sinks mlp.router=ffn_gate_inp "
                  "mlp.experts.gate_up_proj=ffn_gate_up_exps "
                  "mlp.experts.down_proj=ffn_down_exps")
        .hasGgufNames("post_attention_norm=ffn_norm")
        .assumes(R"({"attention_bias": true, "norm_topk_prob": true,
          "sliding_window": 128, "swiglu_limit": 7, "swiglu_alpha": 1.702,
          "rope_theta": 150000, "rope_scaling": {"rope_type": "yarn",
          "factor": 32, "beta_fast": 32, "beta_slow": 1, "truncate": false,
          "original_max_position_embeddings": 4096}})"),
    Architecture("deepseek_v2", "deepseek2", deepseek | SharesOfAll)
        .hasNames(deepseekNames)
        .assumes(R"({"topk_method": "greedy"})"),
    Architecture("deepseek_v3", "deepseek2", deepseek | ChoiceBias)
        .hasNames(deepseekNames)
        .assumes(R"({"norm_topk_prob": true, "n_group": 8, "topk_group": 4,
          "routed_scaling_factor": 2.5, "first_k_dense_replace": 3,
          "rope_interleave": true})"),
    Architecture("cohere", "command-r", cohere)
        .asksForBiases("attention_bias", attention)
        .hasEpsilon("layer_norm_eps")
        .assumes(R"({"tie_word_embeddings": true, "logit_scale": 0.0625,
          "layer_norm_eps": 1e-5, "rope_theta": 500000})"),
    Architecture("cohere2", "cohere2", cohere | RopeInWindows)
        .windows(Windows::Pattern, 4)
        .asksForBiases("attention_bias", attention)
        .hasEpsilon("layer_norm_eps")
        .assumes(R"({"tie_word_embeddings": true, "logit_scale": 0.0625,
          "layer_norm_eps": 1e-5, "sliding_window": 4096})"),
    Architecture("starcoder2", "starcoder2",
                 NormsBefore | MeanNorms | NormBiases | Ungated)
        .activates(Activation::GeluTanh)
        .windows(Windows::Always)
        .asksForBiases("use_bias", everything)
        .hasEpsilon("norm_epsilon")
        .hasNames("mlp.c_fc=ffn_up mlp.c_proj=ffn_down")
        .assumes(R"({"tie_word_embeddings": true, "use_bias": true,
          "norm_epsilon": 1e-5})"),
    Architecture("bert", "bert", bert)
        .activates(Activation::Gelu)
        .hasBiases(everything)
        .hasEpsilon("layer_norm_eps")
        .hasNames(bertNames)
        .assumes(R"({"layer_norm_eps": 1e-12, "hidden_act": "gelu"})"),
    roberta("roberta"),
    roberta("xlm-roberta"),
    Architecture("nomic_bert", "nomic-bert",
                 Bidirectional | MeanNorms | NormBiases | FusedQkv |
                     ForeignCode)
        .hasEpsilon("layer_norm_eps")
        .hasNames("attn.Wqkv=attn_qkv attn.out_proj=attn_output "
                  "norm1=attn_output_norm norm2=layer_output_norm "
                  "mlp.fc11=ffn_up mlp.fc12=ffn_gate mlp.fc2=ffn_down")
        .assumes(R"({"layer_norm_eps": 1e-12, "hidden_act": "silu",
          "rope_theta": 1000})"),
};

std::vector<std::string> wordsOf(const std::string &text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;)
    words.push_back(word);
  return words;
}

static std::string find(const char *pairs, const std::string &theirs) {
  for (const std::string &pair : wordsOf(pairs))
    if (size_t equals = pair.find('='); pair.substr(0, equals) == theirs)
      return pair.substr(equals + 1);
  return "";
}

std::string Architecture::nameOf(const std::string &theirs) const {
  std::string ours = find(names, theirs);
  return ours.empty() ? find(usualNames, theirs) : ours;
}

std::string Architecture::nameInGguf(const std::string &theirs) const {
  std::string ours = find(ggufNames, theirs);
  return ours.empty() ? theirs : ours;
}

Architecture &Architecture::activates(Activation how) {
  activation = how;
  return *this;
}

Architecture &Architecture::windows(Windows which, int64_t every) {
  window = which;
  period = every;
  return *this;
}

Architecture &Architecture::hasBiases(const char *weights) {
  biases = weights;
  return *this;
}

Architecture &Architecture::asksForBiases(const char *field,
                                          const char *weights) {
  biasField = field;
  askedBiases = weights;
  return *this;
}

Architecture &Architecture::hasEpsilon(const char *field) {
  epsilon = field;
  return *this;
}

Architecture &Architecture::hasNames(const char *pairs) {
  names = pairs;
  return *this;
}

Architecture &Architecture::hasGgufNames(const char *pairs) {
  ggufNames = pairs;
  return *this;
}

Architecture &Architecture::assumes(const char *json) {
  defaults = json;
  return *this;
}

nlohmann::json Architecture::assumed() const {
  return std::string(defaults).empty() ? nlohmann::json::object()
                                       : nlohmann::json::parse(defaults);
}

const Architecture *findHuggingFace(const std::string &name) {
  for (const Architecture &architecture : architectures)
    if (name == architecture.huggingFace)
      return &architecture;
  return nullptr;
}

const Architecture *findGguf(const std::string &name, bool hasExperts,
                             bool areSigmoids) {
  for (const Architecture &architecture : architectures)
    if (name == architecture.gguf && architecture.has(Experts) == hasExperts &&
        architecture.has(ChoiceBias) == areSigmoids)
      return &architecture;
  return nullptr;
}

std::vector<const Architecture *> allArchitectures() {
  std::vector<const Architecture *> all;
  for (const Architecture &architecture : architectures)
    all.push_back(&architecture);
  return all;
}

std::string architectureNames() {
  std::string names;
  for (const Architecture &architecture : architectures)
    names +=
        (names.empty() ? "" : ", ") + std::string(architecture.huggingFace);
  return names;
}

} // namespace greta::llm
