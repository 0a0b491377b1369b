"""The cases of make_goldens.py: for each the model type, the config, and how its folder differs from what
save_pretrained writes.

Keys of a case besides `type` and `config`:

    omit     keys of config.json that published checkpoints do not have: left out of the file, so what the
             class assumes
    rename   (prefix, replacement): names as published files have them
    copies   {name: source}: tensors that published files hold twice
    masks    positions of GPT-2's mask buffers, which published files hold
    regroup  "internlm2": Llama's tensors under InternLM2's names and in its layout
    mscale   True: attention scores scaled as DeepSeek's own code does with mscale_all_dim (the class of
             transformers leaves it out in version 2)
    attention
             "sdpa" instead of "eager": Falcon's eager attention adds ALiBi a second time with the mask
"""

EPS = 1e-3  # large enough to be seen in the results

COMMON = dict(
    vocab_size=61, tie_word_embeddings=False, pad_token_id=0, bos_token_id=1, eos_token_id=2,
)
SMALL = dict(
    COMMON, hidden_size=24, intermediate_size=30, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=32, attention_dropout=0.0,
)


def common(**changes):
    return dict(COMMON, **changes)


def small(eps="rms_norm_eps", **changes):
    """Heads of 6 that together make the hidden size; `eps` is what the config calls it, None: it does not."""
    return dict(dict(SMALL, **({eps: EPS} if eps else {})), **changes)


def llama(**changes):
    """Heads whose sizes do not make the hidden size."""
    return dict(small(hidden_size=20, head_dim=6, vocab_size=63, intermediate_size=26, rope_theta=700.0),
                **changes)


def gpt2(**changes):
    return dict(common(
        n_positions=19, n_embd=20, n_layer=2, n_head=4, n_inner=26, resid_pdrop=0.0, embd_pdrop=0.0,
        attn_pdrop=0.0, layer_norm_epsilon=EPS, tie_word_embeddings=True), **changes)


def partial_rotary(**changes):
    """Three heads of 10, of which 4 (with a factor of 0.4) are turned."""
    return small(**dict(dict(
        hidden_size=30, num_attention_heads=3, num_key_value_heads=1, intermediate_size=26,
        partial_rotary_factor=0.4, rope_theta=700.0), **changes))


def gpt_neox(**changes):
    return dict(common(
        hidden_size=30, intermediate_size=26, num_hidden_layers=2, num_attention_heads=3, rotary_pct=0.4,
        max_position_embeddings=32, hidden_dropout=0.0, attention_dropout=0.0, rotary_emb_base=700,
        layer_norm_eps=EPS), **changes)


def opt(**changes):
    return dict(common(
        hidden_size=20, ffn_dim=26, word_embed_proj_dim=20, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=21, dropout=0.0, attention_dropout=0.0, activation_function="relu",
        tie_word_embeddings=True), **changes)


def falcon(**changes):
    return dict(common(
        hidden_size=30, num_hidden_layers=2, num_attention_heads=5, ffn_hidden_size=26, bias=False,
        max_position_embeddings=32, hidden_dropout=0.0, attention_dropout=0.0, tie_word_embeddings=True,
        layer_norm_epsilon=EPS, new_decoder_architecture=False, multi_query=True, parallel_attn=True,
        alibi=False), **changes)


def falcon_alibi(**changes):
    return falcon(multi_query=False, parallel_attn=False, bias=True, alibi=True, **changes)


def qwen2_moe(**changes):
    return dict(small(
        num_experts=6, num_experts_per_tok=2, moe_intermediate_size=7,
        shared_expert_intermediate_size=14, intermediate_size=26), **changes)


def deepseek(**changes):
    return dict(small(
        None, hidden_size=20, intermediate_size=26, moe_intermediate_size=8, num_hidden_layers=3,
        num_key_value_heads=4, first_k_dense_replace=1, n_routed_experts=6, n_shared_experts=1,
        num_experts_per_tok=2, n_group=1, topk_group=1, kv_lora_rank=12, q_lora_rank=14,
        qk_nope_head_dim=8, qk_rope_head_dim=6, v_head_dim=5, routed_scaling_factor=1.5), **changes)


def deepseek_v2(**changes):
    return deepseek(**dict(dict(topk_method="greedy", norm_topk_prob=False), **changes))


def deepseek_v3(**changes):
    return deepseek(**dict(dict(
        n_routed_experts=9, n_group=3, topk_group=2, norm_topk_prob=True, moe_intermediate_size=5,
        qk_nope_head_dim=7), **changes))


def yarn(**changes):
    """The bounds and the factor all matter, for heads as small as these."""
    scaling = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 256,
               "beta_fast": 4.0, "beta_slow": 0.5}
    return dict(rope_theta=200.0, max_position_embeddings=1024, rope_scaling=dict(scaling, **changes))


def deepseek_yarn(mscale, mscale_all_dim):
    config = yarn(type="yarn", mscale=mscale, mscale_all_dim=mscale_all_dim)
    del config["rope_scaling"]["rope_type"]
    return config


LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16}
LONGROPE = {"type": "longrope", "short_factor": [1.0, 1.1, 1.25], "long_factor": [1.5, 2.75, 4.0]}


def case(model_type, config, **form):
    return dict(form, type=model_type, config=config)


CASES = {
    "llama": case("llama", llama()),
    "llama_biases": case("llama", llama(
        num_attention_heads=6, hidden_size=24, num_key_value_heads=3, attention_bias=True, mlp_bias=True)),
    "llama_rope_llama3": case("llama", llama(head_dim=10, rope_theta=500.0, rope_scaling=LLAMA3)),
    "llama_rope_linear": case("llama", llama(rope_scaling={"type": "linear", "factor": 2.5})),
    "llama_rope_yarn": case("llama", llama(head_dim=10, **yarn())),
    "llama_tied": case("llama", small(num_key_value_heads=4, tie_word_embeddings=True), omit=["head_dim"]),
    "internlm2": case("llama", small(num_attention_heads=6), omit=["head_dim"],
                      regroup="internlm2"),
    "internlm2_bias": case("llama", small(attention_bias=True), omit=["head_dim"], regroup="internlm2"),
    "mistral": case("mistral", llama(sliding_window=4, head_dim=10)),
    "qwen2": case("qwen2", small(), omit=["layer_types"]),
    "qwen2_window": case("qwen2", small(
        use_sliding_window=True, sliding_window=4, max_window_layers=1, tie_word_embeddings=True),
        omit=["layer_types"]),
    "mistral_defaults": case("mistral", small(None, sliding_window=4096), omit=[
        "sliding_window", "max_position_embeddings", "rope_theta", "rms_norm_eps", "hidden_act", "head_dim"]),
    "qwen3": case("qwen3", llama(head_dim=10), omit=["layer_types"]),
    "gemma": case("gemma", llama(num_key_value_heads=1, head_dim=10, tie_word_embeddings=True)),
    "gemma2": case("gemma2", llama(
        head_dim=8, num_hidden_layers=3, tie_word_embeddings=True, sliding_window=4,
        query_pre_attn_scalar=17, attn_logit_softcapping=1.5, final_logit_softcapping=2.0,
        hidden_activation="gelu_pytorch_tanh"), omit=["layer_types"]),
    "gemma_older_key": case("gemma", llama(
        head_dim=10, hidden_act="gelu", hidden_activation="gelu_pytorch_tanh", tie_word_embeddings=True)),
    "gemma2_without_caps": case("gemma2", llama(
        head_dim=8, tie_word_embeddings=True, attn_logit_softcapping=None, final_logit_softcapping=None,
        hidden_activation="gelu_pytorch_tanh"), omit=["layer_types", "sliding_window", "query_pre_attn_scalar"]),
    "phi3": case("phi3", small(resid_pdrop=0.0, embd_pdrop=0.0, original_max_position_embeddings=32)),
    "phi3_partial_window": case("phi3", partial_rotary(
        partial_rotary_factor=0.6, sliding_window=4, original_max_position_embeddings=32)),
    "phi3_longrope": case("phi3", small(original_max_position_embeddings=8, rope_scaling=LONGROPE)),
    "phi3_longrope_short": case("phi3", small(original_max_position_embeddings=20, rope_scaling=LONGROPE)),
    "gpt2": case("gpt2", gpt2(), rename=("transformer.", ""), masks=19),
    "gpt2_prefixed": case("gpt2", gpt2(n_embd=21, n_head=3, n_inner=None)),
    "gpt2_scaled_by_layer": case("gpt2", gpt2(scale_attn_by_inverse_layer_idx=True)),
    "gpt2_unscaled": case("gpt2", gpt2(scale_attn_weights=False)),
    "gpt_neox": case("gpt_neox", gpt_neox(), omit=["rope_theta"]),
    "gpt_neox_serial": case("gpt_neox", gpt_neox(use_parallel_residual=False), omit=["rope_theta"]),
    "opt": case("opt", opt()),
    "opt_post_norm": case("opt", opt(do_layer_norm_before=False)),
    "opt_narrow_post_norm": case("opt", opt(do_layer_norm_before=False, word_embed_proj_dim=14)),
    "bloom": case("bloom", common(
        hidden_size=18, n_layer=2, n_head=9, hidden_dropout=0.0, attention_dropout=0.0,
        layer_norm_epsilon=EPS,
        tie_word_embeddings=True), rename=("transformer.", "")),
    "bloom_sum_of_norm": case("bloom", common(
        hidden_size=18, n_layer=2, n_head=3, hidden_dropout=0.0, attention_dropout=0.0,
        apply_residual_connection_post_layernorm=True, tie_word_embeddings=False)),
    "falcon_multi_query": case("falcon", falcon(),
                               copies={"lm_head.weight": "transformer.word_embeddings.weight"}),
    "falcon_grouped": case("falcon", falcon(
        hidden_size=36, num_attention_heads=6, new_decoder_architecture=True, num_kv_heads=2)),
    "falcon_one_group": case("falcon", falcon(
        hidden_size=24, num_attention_heads=4, ffn_hidden_size=28, new_decoder_architecture=True, num_kv_heads=1)),
    "falcon_one_norm": case("falcon", falcon(
        hidden_size=24, num_attention_heads=4, new_decoder_architecture=True, num_kv_heads=2,
        num_ln_in_parallel_attn=1, tie_word_embeddings=False)),
    "falcon_alibi": case("falcon", falcon_alibi(hidden_size=24, num_attention_heads=4), attention="sdpa"),
    "falcon_alibi_9_heads": case("falcon", falcon_alibi(hidden_size=18, num_attention_heads=9),
                                 attention="sdpa"),
    "starcoder2": case("starcoder2", small(
        "norm_epsilon", sliding_window=4, tie_word_embeddings=True, use_bias=True, residual_dropout=0.0,
        embedding_dropout=0.0)),
    "olmo2": case("olmo2", small()),
    "glm": case("glm", llama(head_dim=12, partial_rotary_factor=0.5, attention_bias=True)),
    "glm4": case("glm4", llama(head_dim=12, partial_rotary_factor=0.5, attention_bias=True)),
    "cohere": case("cohere", small("layer_norm_eps", logit_scale=0.3, tie_word_embeddings=True)),
    "cohere_qk_norm": case("cohere", small(
        "layer_norm_eps", logit_scale=0.3, tie_word_embeddings=True, use_qk_norm=True)),
    "mixtral": case("mixtral", llama(num_local_experts=6, num_experts_per_tok=2, intermediate_size=9)),
    "mixtral_defaults": case("mixtral", small(None, num_local_experts=6, intermediate_size=9), omit=[
        "rope_theta", "rms_norm_eps", "num_experts_per_tok", "max_position_embeddings", "sliding_window",
        "head_dim"]),
    "qwen2_moe": case("qwen2_moe", qwen2_moe()),
    "qwen2_moe_mixed": case("qwen2_moe", qwen2_moe(
        norm_topk_prob=True, num_hidden_layers=3, mlp_only_layers=[1])),
    "qwen2_moe_step": case("qwen2_moe", qwen2_moe(num_hidden_layers=3, decoder_sparse_step=2)),
    "qwen2_moe_no_bias": case("qwen2_moe", qwen2_moe(qkv_bias=False)),
    "qwen3_moe": case("qwen3_moe", llama(
        num_experts=6, num_experts_per_tok=2, moe_intermediate_size=9, norm_topk_prob=True)),
    "qwen3_moe_plain": case("qwen3_moe", llama(
        num_experts=5, num_experts_per_tok=2, moe_intermediate_size=9, norm_topk_prob=False,
        mlp_only_layers=[0], intermediate_size=28, attention_bias=True)),
    "olmoe": case("olmoe", small(intermediate_size=9, num_experts=7, num_experts_per_tok=2)),
    "olmoe_defaults": case("olmoe", small(
        None, intermediate_size=9, num_experts=8, num_experts_per_tok=8), omit=[
        "rms_norm_eps", "num_experts_per_tok", "max_position_embeddings", "rope_theta", "norm_topk_prob"]),
    "olmoe_clip": case("olmoe", small(
        intermediate_size=9, num_experts=5, num_experts_per_tok=2, norm_topk_prob=True, clip_qkv=0.8)),
    "deepseek_v2": case("deepseek_v2", deepseek_v2()),
    "deepseek_v2_lite": case("deepseek_v2", deepseek_v2(
        q_lora_rank=None, n_shared_experts=2, **deepseek_yarn(0.707, 0.707)), mscale=True),
    "deepseek_v2_groups": case("deepseek_v2", deepseek_v2(
        topk_method="group_limited_greedy", n_routed_experts=8, n_group=4, topk_group=2,
        num_experts_per_tok=3, moe_intermediate_size=5, **deepseek_yarn(1.0, 0))),
    "deepseek_v3": case("deepseek_v3", deepseek_v3()),
    "deepseek_v3_yarn": case("deepseek_v3", deepseek_v3(
        q_lora_rank=None, n_shared_experts=2, **deepseek_yarn(1.0, 1.0))),
    "gpt_oss": case("gpt_oss", llama(
        intermediate_size=9, num_local_experts=6, num_experts_per_tok=2, sliding_window=4,
        attention_bias=True, layer_types=["sliding_attention", "full_attention"],
        **yarn(truncate=False))),
    "granite": case("granite", small(
        embedding_multiplier=3.0, residual_multiplier=0.6, attention_multiplier=0.3, logits_scaling=1.7,
        tie_word_embeddings=True)),
    "olmo": case("olmo", small(None, clip_qkv=1.5)),
    "phi": case("phi", partial_rotary(eps="layer_norm_eps", resid_pdrop=0.0, embd_pdrop=0.0)),
    "phi_tied": case("phi", partial_rotary(
        eps="layer_norm_eps", resid_pdrop=0.0, embd_pdrop=0.0, hidden_size=40, num_attention_heads=4,
        num_key_value_heads=2, intermediate_size=28, tie_word_embeddings=True)),
    "phi_qk_norm": case("phi", partial_rotary(
        eps="layer_norm_eps", resid_pdrop=0.0, embd_pdrop=0.0, qk_layernorm=True)),
    "gptj": case("gptj", gpt2(rotary_dim=4, tie_word_embeddings=False)),
    "stablelm": case("stablelm", partial_rotary(eps="layer_norm_eps", use_qkv_bias=True, hidden_dropout=0.0)),
    "stablelm_parallel_qk_norm": case("stablelm", partial_rotary(
        eps="layer_norm_eps", hidden_dropout=0.0, use_parallel_residual=True, qk_layernorm=True)),
    "mpt": case("mpt", common(
        d_model=18, n_layers=2, n_heads=9, expansion_ratio=4, max_seq_len=32, resid_pdrop=0.0,
        emb_pdrop=0.0, no_bias=True, layer_norm_epsilon=EPS, tie_word_embeddings=True)),
    "codegen": case("codegen", gpt2(n_embd=24, n_ctx=19, rotary_dim=4, tie_word_embeddings=False)),
    "gpt_bigcode": case("gpt_bigcode", gpt2(multi_query=True)),
    "gpt_bigcode_many_heads": case("gpt_bigcode", gpt2(multi_query=False, n_embd=18, n_head=2)),
    "smollm3_window": case("smollm3", small(
        no_rope_layer_interval=2, num_hidden_layers=3, use_sliding_window=True, sliding_window=4),
        omit=["layer_types", "no_rope_layers"]),
    "smollm3": case("smollm3", small(
        no_rope_layers=[1, 0, 1], num_hidden_layers=3, tie_word_embeddings=True)),
}
