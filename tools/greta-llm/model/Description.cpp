// Description.cpp: see Description.h.
#include "model/Description.h"
#include "model/Mapping.h"

namespace greta::llm {
namespace {

using nlohmann::json;

struct Field {
  const char *name;
  const char *only;    // the one value, as JSON, of a field that nobody reads
  uint64_t traits = 0; // of architectures that the row is for; 0: all
};
constexpr const char *read = nullptr;         // by the file's reader
constexpr const char *harmless = "any value"; // changes no logits

const Field config[] = {
    {"type_vocab_size", harmless,
     Bidirectional}, // all tokens are of the first type
    {"is_decoder", "false", Bidirectional},
    {"position_embedding_type", "\"absolute\"", LearnedPositions},
    {"attention_probs_dropout_prob", harmless, Bidirectional},
    {"hidden_dropout_prob", harmless, Bidirectional},
    {"classifier_dropout", harmless, Bidirectional},
    {"directionality", harmless, Bidirectional}, // of training
    {"pooler_fc_size", harmless, Bidirectional}, // the pooler is not run
    {"pooler_num_attention_heads", harmless, Bidirectional},
    {"pooler_num_fc_layers", harmless, Bidirectional},
    {"pooler_size_per_head", harmless, Bidirectional},
    {"pooler_type", harmless, Bidirectional},
    // Nomic's own code has these.
    {"max_trained_positions", read, Bidirectional},
    {"rotary_scaling_factor", harmless, Bidirectional}, // of longer texts
    {"rotary_emb_fraction", "1", Bidirectional},
    {"rotary_emb_interleaved", "false", Bidirectional},
    {"activation_function", "\"swiglu\"", Bidirectional},
    {"causal", "false", Bidirectional},
    {"mlp_fc1_bias", "false", Bidirectional},
    {"mlp_fc2_bias", "false", Bidirectional},
    {"parallel_block", "false", Bidirectional},
    {"parallel_block_tied_norm", "false", Bidirectional},
    {"prenorm", "false", Bidirectional},
    {"qkv_proj_bias", "false", Bidirectional},
    {"reorder_and_upcast_attn", harmless, Bidirectional},
    {"scale_attn_by_inverse_layer_idx", "false", Bidirectional},
    {"use_rms_norm", "false", Bidirectional},
    {"attn_pdrop", harmless, Bidirectional},
    {"dense_seq_output", harmless, Bidirectional},
    {"fused_bias_fc", harmless, Bidirectional},
    {"fused_dropout_add_ln", harmless, Bidirectional},
    {"pad_vocab_size_multiple", harmless,
     Bidirectional}, // the weights are padded
    {"summary_activation", harmless, Bidirectional},
    {"summary_first_dropout", harmless, Bidirectional},
    {"summary_proj_to_labels", harmless, Bidirectional},
    {"summary_type", harmless, Bidirectional},
    {"summary_use_proj", harmless, Bidirectional},
    {"use_flash_attn", harmless, Bidirectional},
    {"use_xentropy", harmless, Bidirectional},

    {"model_type", read},
    {"hidden_act", read},
    {"num_hidden_layers", read},
    {"hidden_size", read},
    {"intermediate_size", read},
    {"vocab_size", read},
    {"max_position_embeddings", read},
    {"num_attention_heads", read},
    {"num_key_value_heads", read},
    {"head_dim", read},
    {"rope_theta", read},
    {"rope_scaling", read},
    {"rope_parameters", read},
    {"sliding_window", read},
    {"use_sliding_window", "false", SharedGate}, // of a part of the layers
    {"use_sliding_window", read},
    {"max_window_layers", read},
    {"layer_types", read},
    {"quantization_config", read},
    {"tie_word_embeddings", read},
    {"eos_token_id", read},

    {"hidden_activation", read, WidthScale},
    {"attn_logit_softcapping", read, SoftCaps},
    {"final_logit_softcapping", read, SoftCaps},
    {"query_pre_attn_scalar", read, QueryScalar},
    {"rope_local_base_freq", read, LocalRope},
    {"sliding_window_pattern", read, LocalRope | RopeInWindows},
    {"_sliding_window_pattern", harmless, LocalRope}, // of the configuration
    {"attention_multiplier", read, Multipliers},
    {"embedding_multiplier", read, Multipliers},
    {"logits_scaling", read, Multipliers},
    {"residual_multiplier", read, Multipliers},
    {"logit_scale", read, LogitScale},
    {"original_max_position_embeddings", read, PartialRope},
    {"partial_rotary_factor", read, PartialRope},
    {"num_experts", read, Experts},
    {"num_local_experts", read, Experts},
    {"num_experts_per_tok", read, Experts},
    {"moe_intermediate_size", read, Experts},
    {"norm_topk_prob", read, ChoiceBias},
    {"norm_topk_prob", "false", LatentKeys}, // transformers looks at none
    {"norm_topk_prob", read, Experts},
    {"swiglu_limit", read, GatesInTurn},
    {"swiglu_alpha", read, GatesInTurn},
    {"mlp_only_layers", read, DenseLayers},
    {"no_rope_layers", read, LayersOfRope},
    {"no_rope_layer_interval", read, LayersOfRope},

    {"decoder_sparse_step", read, DenseLayers},
    {"kv_lora_rank", read, LatentKeys},
    {"q_lora_rank", read, LatentKeys},
    {"qk_nope_head_dim", read, LatentKeys},
    {"qk_rope_head_dim", read, LatentKeys},
    {"v_head_dim", read, LatentKeys},
    {"qk_head_dim", harmless, LatentKeys}, // the sum of two
    {"rope_interleave", "true", LatentKeys},
    {"num_nextn_predict_layers", read, LatentKeys},
    {"n_routed_experts", read, SharedExperts},
    {"n_shared_experts", read, SharedExperts},
    {"shared_expert_intermediate_size", read, SharedGate},
    {"routed_scaling_factor", read, LatentKeys},
    {"n_group", read, LatentKeys},
    {"topk_group", read, LatentKeys},
    {"first_k_dense_replace", read, LatentKeys},
    {"moe_layer_freq", "1", LatentKeys},
    {"scoring_func", "\"sigmoid\"", ChoiceBias},
    {"scoring_func", "\"softmax\"", LatentKeys},
    {"topk_method", "\"noaux_tc\"", ChoiceBias},
    {"topk_method", read, LatentKeys},
    {"qkv_bias", "true", SharedGate},
    {"aux_loss_alpha", harmless, SharedExperts},
    {"seq_aux", harmless, SharedExperts},
    {"ep_size", harmless, SharedExperts},
    {"experts_per_token", harmless, GatesInTurn},      // twice there
    {"initial_context_length", harmless, GatesInTurn}, // rope has it, too
    {"attention_bias", "false"},
    {"mlp_bias", "false"},
    {"lm_head_bias", "false"},
    {"full_attn_mod", "1"},
    {"interpolate_factor", "1"},
    {"mlp_type", "\"default\""},
    {"norm_type", "\"layer_norm\"", NormBiases},
    {"rotary_pct", "1"},
    {"scale_attn_weights", "true"},
    {"use_bidirectional_attention", "false"},
    {"use_embedding_sharing", "true"},
    {"use_gated_activation", "true"},
    {"use_parallel_block", "true", Parallel},
    {"use_parallel_embedding", "false"},
    {"use_mrope", "false"},
    {"use_qk_norm", "false"},
    {"rope_interleaved", "false"},
    {"partial_rotary_factor", "1"},
    {"is_encoder_decoder", "false"},
    {"add_cross_attention", "false"},
    {"pruned_heads", "{}"},

    // Training, names, defaults of sampling, and how transformers runs it.
    {"_attn_implementation", harmless},
    {"_attn_implementation_autoset", harmless},
    {"_name_or_path", harmless},
    {"architectures", harmless},
    {"attention_dropout", harmless},
    {"attention_softmax_in_fp32", harmless},
    {"auto_map", harmless, ForeignCode},
    {"bos_token_id", harmless},
    {"cache_implementation", harmless}, // how transformers keeps keys
    {"chunk_size_feed_forward", harmless},
    {"do_sample", harmless},
    {"dtype", harmless},
    {"embd_pdrop", harmless},
    {"embedding_dropout", harmless},
    {"finetuning_task", harmless},
    {"gradient_checkpointing", harmless},
    {"hidden_dropout", harmless},
    {"id2label", harmless},
    {"initializer_range", harmless},
    {"is_decoder", harmless},
    {"is_llama_config", harmless},
    {"keys_to_ignore_at_inference", harmless},
    {"label2id", harmless},
    {"max_length", harmless},
    {"max_new_tokens", harmless},
    {"max_sequence_length", harmless},
    {"min_length", harmless},
    {"model_max_length", harmless},
    {"neftune_noise_alpha", harmless},
    {"num_labels", harmless},
    {"output_attentions", harmless},
    {"output_hidden_states", harmless},
    {"output_router_logits", harmless, Experts},
    {"pad_token_id", read, LatePositions},
    {"pad_token_id", harmless},
    {"output_past", harmless, LatePositions},
    {"prefix", harmless},
    {"pretraining_tp", harmless}, // sums in parts
    {"problem_type", harmless},
    {"repetition_penalty", harmless},
    {"resid_pdrop", harmless},
    {"residual_dropout", harmless},
    {"return_dict", harmless},
    {"router_aux_loss_coef", harmless, Experts},
    {"router_jitter_noise", harmless, Experts},
    {"scale_attention_softmax_in_fp32", harmless},
    {"task_specific_params", harmless},
    {"temperature", harmless},
    {"tokenizer_class", harmless},
    {"top_k", harmless},
    {"top_p", harmless},
    {"torch_dtype", harmless},
    {"torchscript", harmless},
    {"transformers.js_config", harmless},
    {"transformers_version", harmless},
    {"unk_token_id", harmless},
    {"unsloth_fixed", harmless},
    {"unsloth_version", harmless},
    {"use_bfloat16", harmless},
    {"use_cache", harmless},
};

// Beside those of a text model that are harmless.
const Field vision[] = {
    {"model_type", read},
    {"text_config", read},
    {"image_token_index", read},
    {"eos_token_id", read},
    {"quantization_config", read},
    {"tie_word_embeddings", read},
    {"boi_token_index", harmless},
    {"eoi_token_index", harmless},
    {"mm_tokens_per_image", harmless},
    {"vision_config", harmless},
};

const Field rope[] = {
    {"rope_type", read},
    {"type", read},
    {"rope_theta", read},
    {"factor", read},
    {"low_freq_factor", read},
    {"high_freq_factor", read},
    {"original_max_position_embeddings", read},
    {"attention_factor", read},
    {"beta_fast", read},
    {"beta_slow", read},
    {"long_factor", read},
    {"mscale", read},
    {"mscale_all_dim", read},
    {"short_factor", read},
    {"truncate", read},
    {"partial_rotary_factor", read, PartialRope},
    {"partial_rotary_factor", "1"},
};

const Field quantisation[] = {
    {"quant_method", read},
    {"bits", read},
    {"group_size", read},
    {"version", read},
    {"checkpoint_format", read},
    {"zero_point", "true"}, // of AWQ
    {"pack_dtype", "\"int32\""},

    // Tensors say these: which are quantised, zeros, the order of groups.
    {"desc_act", harmless},
    {"lm_head", harmless},
    {"modules_to_not_convert", harmless},
    {"static_groups", harmless},
    {"sym", harmless},
    // How it was quantised, and kernels of others.
    {"act_group_aware", harmless},
    {"backend", harmless},
    {"batch_size", harmless},
    {"block_name_to_quantize", harmless},
    {"cache_block_outputs", harmless},
    {"damp_auto_increment", harmless},
    {"damp_percent", harmless},
    {"dataset", harmless},
    {"do_fuse", harmless},
    {"exllama_config", harmless},
    {"fuse_max_seq_len", harmless},
    {"max_input_length", harmless},
    {"meta", harmless},
    {"model_file_base_name", harmless},
    {"model_name_or_path", harmless},
    {"model_seqlen", harmless},
    {"modules_in_block_to_quantize", harmless},
    {"mse", harmless},
    {"module_name_preceding_first_block", harmless},
    {"pad_token_id", harmless},
    {"tokenizer", harmless},
    {"true_sequential", harmless},
    {"use_cuda_fp16", harmless},
    {"use_exllama", harmless},
};

const Field fp8[] = {
    {"quant_method", read},
    {"weight_block_size", read},
    {"fmt", "\"e4m3\""},
    {"kv_cache_scheme", "null"},

    // Tensors say which are quantised.
    {"ignored_layers", harmless},
    {"modules_to_not_convert", harmless},
    // Activations, which stay as they are.
    {"activation_scheme", harmless},
    {"activation_scale_ub", harmless},
    {"scale_fmt", harmless},
    {"dequantize", harmless}, // how transformers computes
};

const Field compressed[] = {
    {"quant_method", read},
    {"format", read},
    {"config_groups", read},
    {"kv_cache_scheme", "null"},
    {"sparsity_config", read},
    {"transform_config", "{}"},

    // Tensors say these.
    {"ignore", harmless},
    {"quantization_status", harmless},
    {"global_compression_ratio", harmless},
    {"version", harmless},
};

const Field compressedSparsity[] = {
    {"format", "\"dense\""},
    {"global_sparsity", harmless}, // counts zeros
    {"ignore", harmless},
    {"registry_requires_subclass", harmless},
    {"sparsity_structure", harmless},
    {"targets", harmless},
};

const Field compressedGroup[] = {
    {"weights", read},
    {"format", "\"float-quantized\""},
    {"output_activations", "null"},
    {"input_activations", harmless}, // which stay as they are
    {"targets", harmless},           // tensors say it
};

const Field compressedWeights[] = {
    {"strategy", read},
    {"block_structure", read},
    {"type", "\"float\""},
    {"num_bits", "8"},
    {"symmetric", "true"},
    {"dynamic", "false"},
    {"actorder", harmless}, // of groups, which no strategy here has
    {"group_size", harmless},
    {"observer", harmless},
    {"observer_kwargs", harmless},
    {"scale_dtype", harmless},
    {"zp_dtype", harmless},
};

const Field gguf[] = {
    {"block_count", read},
    {"embedding_length", read},
    {"feed_forward_length", read},
    {"context_length", read},
    {"attention.head_count", read},
    {"attention.head_count_kv", read},
    {"attention.key_length", read},
    {"attention.value_length", read},
    {"attention.sliding_window", read},
    {"attention.layer_norm_epsilon", read, MeanNorms},
    {"attention.layer_norm_rms_epsilon", read},
    {"attention.scale", read, Multipliers},
    {"attn_logit_softcapping", read, SoftCaps},
    {"embedding_scale", read, Multipliers},
    {"final_logit_softcapping", read, SoftCaps},
    {"logit_scale", read, Multipliers | LogitScale},
    {"residual_scale", read, Multipliers},
    {"rope.freq_base", read},
    {"rope.freq_base_swa", read, LocalRope},
    {"rope.dimension_count", read},
    {"rope.scaling.type", read},
    {"rope.scaling.factor", read},
    {"rope.scaling.attn_factor", read, PartialRope},
    {"rope.scaling.original_context_length", read},
    {"rope.scaling.yarn_beta_fast", read},
    {"rope.scaling.yarn_beta_slow", read},
    {"rope.scaling.yarn_ext_factor", "1"},
    {"rope.scaling.yarn_attn_factor", "1"},

    {"attention.causal", "false", Bidirectional},
    {"attention.causal", "true"},
    {"pooling_type", read, Bidirectional},
    {"expert_count", read, Experts},
    {"expert_used_count", read, Experts},
    {"expert_feed_forward_length", read, Experts},
    {"expert_shared_feed_forward_length", read, SharedExperts},
    {"attention.kv_lora_rank", read, LatentKeys},
    {"attention.q_lora_rank", read, LatentKeys},
    {"attention.key_length_mla", read, LatentKeys},
    {"attention.value_length_mla", read, LatentKeys},
    {"rope.scaling.yarn_log_multiplier", read, LatentKeys},
    {"nextn_predict_layers", "0", LatentKeys},
    {"expert_shared_count", read, SharedExperts},
    {"expert_weights_scale", read, SharedExperts},
    {"expert_weights_norm", read, SharedExperts},
    {"expert_gating_func", read, SharedExperts},
    {"expert_group_count", read, SharedExperts},
    {"expert_group_used_count", read, SharedExperts},
    {"leading_dense_block_count", read, SharedExperts},
    {"expert_count", "0"},
    {"expert_used_count", "0"},
    {"rope.scale_linear", "1"},
    {"rope.scaling.attn_factor", "1"},

    {"rope.scaling.finetuned", "true", Multipliers}, // whether it has rope
    {"rope.scaling.finetuned", harmless},
    {"tensor_data_layout", harmless}, // llama.cpp knows one
    {"vocab_size", harmless},         // the embedding's rows count
};

const Field *find(Description where, const std::string &name,
                  const Architecture *architecture) {
  auto among = [&](const auto &table) -> const Field * {
    for (const Field &field : table)
      if (name == field.name &&
          (!field.traits || (architecture && architecture->has(field.traits))))
        return &field;
    return nullptr;
  };
  // The fields that the architecture's row names.
  static const Field named = {"", read};
  if (where == Description::Config && architecture &&
      (name == architecture->epsilon ||
       (architecture->biasField && name == architecture->biasField)))
    return &named;
  switch (where) {
  case Description::Config:
    return among(config);
  case Description::Vision: {
    if (const Field *field = among(vision))
      return field;
    const Field *field = among(config);
    return field && field->only == harmless ? field : nullptr;
  }
  case Description::Rope:
    return among(rope);
  case Description::Quantisation:
    return among(quantisation);
  case Description::Fp8:
    return among(fp8);
  case Description::Compressed:
    return among(compressed);
  case Description::CompressedSparsity:
    return among(compressedSparsity);
  case Description::CompressedGroup:
    return among(compressedGroup);
  case Description::CompressedWeights:
    return among(compressedWeights);
  case Description::Gguf:
    return among(gguf);
  }
  return nullptr;
}

// The beginning of a value; GGUF's texts may be no UTF-8.
std::string shown(const json &value) {
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 60) + ".." : text;
}

} // namespace

void checkFields(Description where, const std::string &path, const json &fields,
                 const Architecture *architecture) {
  for (const auto &[name, value] : fields.items()) {
    if (value.is_null())
      continue;
    const Field *field = find(where, name, architecture);
    if (!field)
      fail(path + ": the field '" + name + "' (" + shown(value) +
           ") is not known to greta-llm, and may change what the model "
           "computes");
    if (field->only != read && field->only != harmless &&
        value != json::parse(field->only))
      fail(path + ": the field '" + name + "' is " + shown(value) +
           "; greta-llm runs models where it is " + field->only);
  }
}

} // namespace greta::llm
