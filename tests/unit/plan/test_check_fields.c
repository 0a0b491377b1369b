/*
 * Every field of a plan file, edited one after the other in a real plan: the check must say something of
 * each, or the table says why it need not. A key of docs/formats/plan.md without a row fails the test.
 */
#include "check_bench.h"
#include "page.h"
#include "plan_text.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "plan/plan_read.h"
#include "plan/report.h"

#define PAGE "../formats/plan.md" /* from docs/reference/ */

#define NEXT                                                                                                 \
    "'architectures': ['Qwen3NextForCausalLM'], 'model_type': 'qwen3_next', 'num_hidden_layers': 1, "        \
    "'hidden_size': 16, 'num_attention_heads': 4, 'num_key_value_heads': 2, 'head_dim': 4, "                 \
    "'intermediate_size': 16, 'vocab_size': 15, 'full_attention_interval': 4, 'linear_num_key_heads': 2, "   \
    "'linear_num_value_heads': 4, 'linear_key_head_dim': 4, 'linear_value_head_dim': 4, "                    \
    "'linear_conv_kernel_dim': 4, 'num_experts': 4, 'num_experts_per_tok': 2, 'moe_intermediate_size': 8, "  \
    "'shared_expert_intermediate_size': 8"
#define FEW_KEYS                                                                                             \
    "'architectures': ['Olmo2ForCausalLM'], 'model_type': 'olmo2', 'num_hidden_layers': 1, 'hidden_size': "  \
    "16, "                                                                                                   \
    "'num_attention_heads': 4, 'num_key_value_heads': 2, 'intermediate_size': 16, 'vocab_size': 16"
#define GPT2                                                                                                 \
    "'architectures': ['GPT2LMHeadModel'], 'model_type': 'gpt2', 'n_layer': 1, 'n_embd': 16, 'n_head': 4, "  \
    "'n_positions': 8, 'vocab_size': 16, 'n_inner': 32"
#define STRANGER "'architectures': ['Stranger'], 'hidden_size': 16, 'num_attention_heads': 4"

/* The plans that are edited. */
enum { DENSE = 0, WHOLE_SEQUENCE, EXPERTS, AXIS, PARTS, TIES, KEYS, MIXERS, TRANSPOSED, TOUCHED, UNKNOWN };

// clang-format off
static const tiny_case cases[] = {
    [DENSE]          = {.config = BIASED, .mesh = "pp=2,dp=2,cp=2,tp=2"},
    [WHOLE_SEQUENCE] = {.config = BIASED, .mesh = "tp=2", .no_sp = true},
    [EXPERTS]        = {.config = MOE, .mesh = "dp=2,tp=2", .ep = 4},
    [AXIS]           = {.config = MOE, .mesh = "dp=2,ep=2,tp=2"},
    [PARTS]          = {.config = FUSED, .mesh = "tp=2"},
    [TIES]           = {.config = TIED, .mesh = "dp=2,tp=2"},
    [KEYS]           = {.config = FEW_KEYS, .mesh = "dp=2,tp=4"},
    [MIXERS]         = {.config = NEXT, .mesh = "tp=2"},
    [TRANSPOSED]     = {.config = GPT2, .mesh = "tp=2"},
    [TOUCHED]        = {.config = BIASED, .mesh = "tp=2", .overrides =
        "- match: model.layers.0.self_attn\n  out_names: [output, weights]\n"
        "  tp_divide_attrs: [intermediate_size]\n  region_dispatch: false\n"
        "  inner_target: self\n  inner_wrapper: cp_ring\n  inner_out_src: first_input\n"
        "- match: model.layers.1.mlp\n  params: {+: {gate_proj.weight: {tp: S(0)}}}\n"
        "- match: model.layers.1\n  params: {}\n  in_src: {x: {tp: R}}\n  in_dst: {x: {tp: R}}\n"},
    [UNKNOWN]        = {.config = STRANGER, .params = "strange.thing F32 16x16\n", .mesh = "tp=2",
                        .allow_uncovered = true},
};

/* What must come of an edit. */
typedef enum outcome { IS_ERROR, IS_WARNING, IS_NOTE, IS_REFUSED, IS_NOTHING } outcome;

#define ATTN  "/boundaries/model.layers.0.self_attn"
#define BLOCK "/boundaries/model.layers.0.mlp"
#define Q     ATTN "/params/q_proj.weight"
#define K     ATTN "/params/k_proj.weight"
#define HEAD  "/boundaries/lm_head"
#define NORM  "/boundaries/model.norm"
#define EMBED "/boundaries/model.embed_tokens"

/* One edit: the value at `at` becomes `value` (JSON with single quotes; NULL: the key is taken away). */
static const struct row {
    const char *heading; /* in plan.md */
    const char *key;
    int plan;
    const char *at;
    const char *value;
    outcome must;
    const char *code; /* or what the refusal says, or why nothing need be found */
} rows[] = {
    {"The document", "format",             DENSE, "/format", "'another'", IS_REFUSED, "not shardwright-plan"},
    {"The document", "version",            DENSE, "/version", "2", IS_REFUSED, "plan file version 2"},
    {"The document", "model",              DENSE, "/model", "{}", IS_REFUSED, "lacks 'architecture'"},
    {"The document", "mesh",               DENSE, "/mesh", "{}", IS_REFUSED, "lacks 'pp'"},
    {"The document", "sequence_parallel",  DENSE, "/sequence_parallel", "false", IS_ERROR, "stale_switch"},
    {"The document", "sequence_parallel",  EXPERTS, "/sequence_parallel", "false", IS_ERROR, "stale_switch"},
    {"The document", "sequence_parallel",  WHOLE_SEQUENCE, "/sequence_parallel", "true", IS_ERROR, "stale_switch"},
    {"The document", "loss_parallel",      DENSE, "/loss_parallel", "true", IS_ERROR, "loss_contract"},
    {"The document", "derived",            DENSE, "/derived", "false", IS_ERROR, "stale_switch"},
    {"The document", "allow_uncovered",    DENSE, "/allow_uncovered", "true", IS_NOTHING, "nothing is uncovered"},
    {"The document", "allow_uncovered",    UNKNOWN, "/allow_uncovered", "false", IS_ERROR, "uncovered"},
    {"The document", "stages",             DENSE, "/stages", "[]", IS_REFUSED, "0 stages on a mesh of pp=2"},
    {"The document", "boundaries",         DENSE, NORM, NULL, IS_ERROR, "uncovered"},
    {"The document", "special",            DENSE, "/special/model.norm.weight", "{'handler': 'x', 'reason': 'y'}",
                                           IS_ERROR, "stale_special"},
    {"The document", "special",            MIXERS, "/special", "{}", IS_ERROR, "stale_special"},
    {"The document", "tied",               DENSE, "/tied", "[['model.embed_tokens.weight', 'lm_head.weight']]",
                                           IS_ERROR, "tied_conflict"},
    {"The document", "tied",               TIES, "/tied", "[]", IS_ERROR, "tied_conflict"},
    {"The document", "tied",               TIES, "/tied/0/0", "'model.norm.weight'", IS_ERROR, "tied_conflict"},
    {"The document", "tied",               TIES, "/tied/0/1", "'model.norm.weight'", IS_ERROR, "tied_conflict"},
    {"The document", "parallel_modules",   DENSE, "/parallel_modules", "{}", IS_ERROR, "stale_parallel"},
    {"The document", "uncovered",          DENSE, "/uncovered", "['x']", IS_REFUSED, "uncovered"},
    {"The document", "warnings",           MIXERS, "/warnings", "[]", IS_WARNING, "differs_from_derived"},
    {"The document", "notes",              MIXERS, "/notes", "[]", IS_WARNING, "differs_from_derived"},

    {"model", "architecture", DENSE, "/model/architecture", "'x'", IS_ERROR, "other_model"},
    {"model", "model_type",   DENSE, "/model/model_type", "'x'", IS_ERROR, "other_model"},
    {"model", "family",       DENSE, "/model/family", "'x'", IS_WARNING, "differs_from_derived"},
    {"model", "parameters",   DENSE, "/model/parameters", "1", IS_ERROR, "other_model"},
    {"model", "elements",     DENSE, "/model/elements", "1", IS_ERROR, "other_model"},
    {"model", "layers",       DENSE, "/model/layers", "3", IS_ERROR, "other_model"},
    {"model", "fingerprint",  DENSE, "/model/fingerprint", "'00000000000000ff'", IS_ERROR, "other_model"},

    {"mesh", "pp",           DENSE, "/mesh/pp", "4", IS_REFUSED, "multiply out to"},
    {"mesh", "dp",           DENSE, "/mesh/dp", "4", IS_REFUSED, "dp=4 is not"},
    {"mesh", "cp",           DENSE, "/mesh/cp", "4", IS_REFUSED, "multiply out to"},
    {"mesh", "tp",           DENSE, "/mesh/tp", "4", IS_REFUSED, "multiply out to"},
    {"mesh", "ep",           DENSE, "/mesh/ep", "2", IS_REFUSED, "ep=2 with ep_mode 'none'"},
    {"mesh", "ep",           DENSE, "/mesh/ep", "0", IS_REFUSED, "ep=0 with ep_mode 'none'"},
    {"mesh", "dp_replicate", DENSE, "/mesh/dp_replicate", "4", IS_REFUSED, "dp=2 is not"},
    {"mesh", "dp_shard",     DENSE, "/mesh/dp_shard", "2", IS_REFUSED, "dp=2 is not"},
    {"mesh", "ep_mode",      AXIS, "/mesh/ep_mode", "'tp_extend'", IS_REFUSED, "multiply out to"},
    {"mesh", "edp",          EXPERTS, "/mesh/edp", "2", IS_REFUSED, "edp is 1, not 2"},
    {"mesh", "ranks",        DENSE, "/mesh/ranks", "32", IS_REFUSED, "multiply out to"},

    {"stages", "layers", DENSE, "/stages/0/layers/1", "2", IS_ERROR, "stale_stage"},
    {"stages", "embed",  DENSE, "/stages/0/embed", "false", IS_ERROR, "stale_stage"},
    {"stages", "head",   DENSE, "/stages/0/head", "true", IS_ERROR, "stale_stage"},

    {"Boundaries", "type",            DENSE, NORM "/type", "'pointwise'", IS_WARNING, "differs_from_derived"},
    {"Boundaries", "params",          DENSE, Q, NULL, IS_ERROR, "uncovered"},
    {"Boundaries", "ep_stack",        EXPERTS, BLOCK "/ep_stack/experts.gate_proj", NULL, IS_ERROR, "not_in_model"},
    {"Boundaries", "in_src",          DENSE, ATTN "/in_src/hidden_states/tp", "'R'", IS_ERROR, "stale_lowering"},
    {"Boundaries", "in_src",          DENSE, ATTN "/in_src", "null", IS_ERROR, "half_declared"},
    {"Boundaries", "in_dst",          DENSE, ATTN "/in_dst/hidden_states/tp", "'S(1)'", IS_ERROR, "stale_lowering"},
    {"Boundaries", "out_src",         DENSE, ATTN "/out_src/output/tp", "'R'", IS_ERROR, "stale_lowering"},
    {"Boundaries", "out_src",         DENSE, NORM "/out_src", "null", IS_WARNING, "differs_from_derived"},
    {"Boundaries", "out_dst",         DENSE, ATTN "/out_dst/output/tp", "'R'", IS_ERROR, "stale_lowering"},
    {"Boundaries", "out_dst",         DENSE, ATTN "/out_dst/output/cp", "'R'", IS_ERROR, "stale_lowering"},
    {"Boundaries", "lowering",        DENSE, ATTN "/lowering/in", "[]", IS_ERROR, "stale_lowering"},
    {"Boundaries", "needs_cp_attn",   DENSE, ATTN "/needs_cp_attn", "false", IS_ERROR, "stale_parallel"},
    {"Boundaries", "needs_cp_attn",   PARTS, ATTN "/needs_cp_attn", "false", IS_WARNING, "differs_from_derived"},
    {"Boundaries", "region_dispatch", DENSE, ATTN "/region_dispatch", "true", IS_ERROR, "injection"},
    {"Boundaries", "region_dispatch", AXIS, BLOCK "/region_dispatch", "true", IS_ERROR, "injection"},
    {"Boundaries", "region_dispatch", DENSE, ATTN "/region_dispatch", "false", IS_WARNING, "differs_from_derived"},
    {"Boundaries", "region_dispatch", TOUCHED, ATTN "/region_dispatch", "null", IS_ERROR, "injection"},
    {"Boundaries", "terminal",        DENSE, NORM "/terminal", "true", IS_ERROR, "stale_stage"},
    {"Boundaries", "tower",           PARTS, NORM "/tower", "true", IS_WARNING, "differs_from_derived"},
    {"Boundaries", "inserted",        DENSE, NORM "/inserted", "true", IS_ERROR, "stale_override"},
    {"Boundaries", "inserted",        TOUCHED, BLOCK "/inserted", "true", IS_ERROR, "stale_override"},
    {"Boundaries", "inserted",        TOUCHED, "/boundaries/model.layers.1/inserted", NULL, IS_WARNING,
                                      "differs_from_derived"},
    {"Boundaries", "tied_alias",      DENSE, NORM "/tied_alias", "true", IS_ERROR, "tied_conflict"},
    {"Boundaries", "tied_alias",      TIES, HEAD "/tied_alias", NULL, IS_ERROR, "tied_conflict"},
    {"Boundaries", "layer",           DENSE, ATTN "/layer", "1", IS_ERROR, "stale_stage"},
    {"Boundaries", "layer",           DENSE, ATTN "/layer", NULL, IS_ERROR, "stale_stage"},
    {"Boundaries", "layer",           DENSE, NORM "/layer", "1", IS_ERROR, "stale_stage"},
    {"Boundaries", "layer",           TOUCHED, ATTN "/layer", "1", IS_ERROR, "stale_stage"},
    {"Boundaries", "stage",           DENSE, ATTN "/stage", "1", IS_ERROR, "stale_stage"},
    {"Boundaries", "ep_size",         EXPERTS, BLOCK "/ep_size", "2", IS_ERROR, "stale_parallel"},
    {"Boundaries", "ep_size",         EXPERTS, BLOCK "/ep_size", NULL, IS_WARNING, "differs_from_derived"},
    {"Boundaries", "ep_size",         DENSE, BLOCK "/ep_size", "2", IS_ERROR, "stale_parallel"},
    {"Boundaries", "span_entry",      DENSE, BLOCK "/span_entry", "'gate_proj'", IS_WARNING, "differs_from_derived"},
    {"Boundaries", "span_entry",      DENSE, BLOCK "/span_entry", "'x'", IS_ERROR, "not_in_model"},
    {"Boundaries", "span_exit",       DENSE, BLOCK "/span_exit", "'down_proj'", IS_WARNING, "differs_from_derived"},
    {"Boundaries", "span_exit",       TOUCHED, ATTN "/span_exit", "'o_proj'", IS_WARNING, "differs_from_derived"},
    {"Boundaries", "tp_local",        DENSE, ATTN "/tp_local/num_heads/1", "4", IS_ERROR, "stale_tp_local"},
    {"Boundaries", "tp_local",        DENSE, ATTN "/tp_local/num_heads/0", "8", IS_ERROR, "stale_tp_local"},
    {"Boundaries", "tp_divide_attrs", TOUCHED, ATTN "/tp_divide_attrs", NULL, IS_ERROR, "stale_tp_local"},
    {"Boundaries", "tp_divide_attrs", DENSE, ATTN "/tp_divide_attrs", "['num_heads']", IS_ERROR, "tp_divide"},
    {"Boundaries", "deferred_bias",   DENSE, ATTN "/deferred_bias", "[]", IS_ERROR, "bias_placement"},
    {"Boundaries", "inner",           KEYS, ATTN "/inner", NULL, IS_ERROR, "stale_inner"},
    {"Boundaries", "inner_target",    DENSE, ATTN "/inner_target", "'self'", IS_ERROR, "injection"},
    {"Boundaries", "inner_target",    TOUCHED, ATTN "/inner_target", NULL, IS_ERROR, "injection"},
    {"Boundaries", "inner_wrapper",   DENSE, ATTN "/inner_wrapper", "'cp_ring'", IS_ERROR, "injection"},
    {"Boundaries", "inner_out_src",   DENSE, ATTN "/inner_out_src", "'first_input'", IS_ERROR, "injection"},
    {"Boundaries", "inner_out_src",   DENSE, ATTN "/inner_out_src", "{'x': {'tp': 'R'}}", IS_ERROR, "injection"},
    {"Boundaries", "local_compute",   DENSE, ATTN "/local_compute", "'x'", IS_ERROR, "injection"},
    {"Boundaries", "local_compute",   AXIS, BLOCK "/local_compute", "'x'", IS_WARNING, "differs_from_derived"},
    {"Boundaries", "out_names",       DENSE, ATTN "/out_names", "['x', 'output']", IS_ERROR, "stale_lowering"},
    {"Boundaries", "out_names",       DENSE, NORM "/out_names", "['x', 'output']", IS_WARNING, "differs_from_derived"},
    {"Boundaries", "overrides",       DENSE, ATTN "/overrides", "['o.yaml:1 x']", IS_NOTE, "not_compared"},
    {"Boundaries", "overrides",       TOUCHED, ATTN "/overrides", NULL, IS_WARNING, "differs_from_derived"},

    {"Parameters", "role",       DENSE, K "/role", "'rowwise'", IS_WARNING, "differs_from_derived"},
    {"Parameters", "role",       DENSE, Q "/role", "'special'", IS_ERROR, "stale_special"},
    {"Parameters", "role",       TOUCHED, K "/role", "'rowwise'", IS_WARNING, "differs_from_derived"},
    {"Parameters", "dtype",      DENSE, Q "/dtype", "'F16'", IS_ERROR, "other_tensor"},
    {"Parameters", "shape",      DENSE, Q "/shape/0", "32", IS_ERROR, "other_tensor"},
    {"Parameters", "view",       DENSE, Q "/view", "[8, 2, 16]", IS_WARNING, "differs_from_derived"},
    {"Parameters", "placement",  DENSE, Q "/placement/tp", "'R'", IS_ERROR, "members_disagree"},
    {"Parameters", "placement",  DENSE, Q "/placement/tp", "'S(1)'", IS_ERROR, "cut_conflict"},
    {"Parameters", "placement",  DENSE, Q "/placement/tp", "'S(0;seg=8+8)'", IS_ERROR, "cut_conflict"},
    {"Parameters", "placement",  DENSE, BLOCK "/params/up_proj.weight/placement/tp", "'S(0;seg=8+8)'", IS_ERROR,
                                 "members_disagree"},
    {"Parameters", "placement",  DENSE, BLOCK "/params/down_proj.weight/placement/tp", "'S(1;seg=8+8)'", IS_ERROR,
                                 "members_disagree"},
    {"Parameters", "placement",  EXPERTS, BLOCK ".shared_expert/params/up_proj.weight/placement/tp", "'S(0;seg=4+4)'",
                                 IS_ERROR, "members_disagree"},
    {"Parameters", "placement",  DENSE, EMBED "/params/weight/placement/tp", "'S(1)'", IS_ERROR, "cut_conflict"},
    {"Parameters", "placement",  DENSE, NORM "/params/weight/placement/tp", "'S(0)'", IS_ERROR, "stale_grad_sum"},
    {"Parameters", "placement",  DENSE, Q "/placement/cp", "'S(1)'", IS_ERROR, "cp_parameter"},
    {"Parameters", "placement",  EXPERTS, BLOCK "/params/experts.gate_proj/placement/ep", "'R'", IS_ERROR, "stale_grad_sum"},
    {"Parameters", "layout",     DENSE, K "/layout", NULL, IS_WARNING, "differs_from_derived"},
    {"Parameters", "dims",       DENSE, Q "/dims", "{'out': 1, 'in': 0}", IS_ERROR, "members_disagree"},
    {"Parameters", "grad_sum",   DENSE, Q "/grad_sum", "[]", IS_ERROR, "stale_grad_sum"},
    {"Parameters", "trained",    DENSE, Q "/trained", "false", IS_REFUSED, "trained is false without a reason"},
    {"Parameters", "reason",     DENSE, Q "/reason", "'frozen'", IS_REFUSED, "a reason why it is not trained, and it is"},
    {"Parameters", "full_norm",  DENSE, NORM "/params/weight/full_norm", "true", IS_WARNING, "differs_from_derived"},
    {"Parameters", "full_norm",  KEYS, ATTN "/params/q_norm.weight/full_norm", NULL, IS_ERROR, "stale_inner"},
    {"Parameters", "centred",    KEYS, ATTN "/params/q_norm.weight/centred", "true", IS_ERROR, "stale_inner"},
    {"Parameters", "in_groups",  DENSE, Q "/in_groups", "true", IS_WARNING, "differs_from_derived"},
    {"Parameters", "overridden", DENSE, Q "/overridden", "true", IS_ERROR, "stale_override"},
    {"Parameters", "overridden", TOUCHED, Q "/overridden", "true", IS_NOTE, "not_compared"},
    {"Parameters", "added_on",   DENSE, ATTN "/params/o_proj.bias/added_on", "'tp rank 0'", IS_ERROR, "bias_placement"},
    {"Parameters", "added_on",   DENSE, Q "/added_on", "'tp rank 0'", IS_ERROR, "bias_placement"},

    {"layout", "kind",  PARTS, ATTN "/params/qkv_proj.weight/layout/kind", "'grouped'", IS_WARNING, "differs_from_derived"},
    {"layout", "parts", PARTS, BLOCK "/params/gate_up_proj.weight/layout/parts", "4", IS_ERROR, "extents_disagree"},
    {"dims", "out", TRANSPOSED, "/boundaries/h.0.mlp/params/c_fc.weight/dims/out", "0", IS_ERROR, "members_disagree"},
    {"dims", "in",  TRANSPOSED, "/boundaries/h.0.mlp/params/c_fc.weight/dims/in", "1", IS_WARNING, "differs_from_derived"},

    {"grad_sum", "axis",   DENSE, Q "/grad_sum/0/axis", "'ep'", IS_ERROR, "stale_grad_sum"},
    {"grad_sum", "group",  KEYS, K "/grad_sum/0/group", "4", IS_ERROR, "stale_grad_sum"},
    {"grad_sum", "reason", DENSE, Q "/grad_sum/0/reason", "'partial'", IS_ERROR, "stale_grad_sum"},

    {"ep_stack", "sources", EXPERTS, BLOCK "/ep_stack/experts.gate_proj/sources", "'experts.#.x.weight'", IS_ERROR,
                            "not_in_model"},
    {"ep_stack", "n",       EXPERTS, BLOCK "/ep_stack/experts.gate_proj/n", "3", IS_REFUSED, "has 3 sources"},

    {"lowering", "in",  DENSE, ATTN "/lowering/in", "[]", IS_ERROR, "stale_lowering"},
    {"lowering", "out", DENSE, ATTN "/lowering/out", "[]", IS_ERROR, "stale_lowering"},
    {"Rows of lowering", "arg",        DENSE, ATTN "/lowering/in/0/arg", "'x'", IS_ERROR, "stale_lowering"},
    {"Rows of lowering", "collective", DENSE, ATTN "/lowering/in/0/collective", "'slice'", IS_ERROR, "stale_lowering"},
    {"Rows of lowering", "axis",       DENSE, ATTN "/lowering/in/0/axis", "'cp'", IS_ERROR, "stale_lowering"},
    {"Rows of lowering", "dim",        DENSE, ATTN "/lowering/in/0/dim", "0", IS_ERROR, "stale_lowering"},
    {"Rows of lowering", "from_dim",   DENSE, ATTN "/lowering/in/0/from_dim", "0", IS_REFUSED, "has no 'from_dim'"},
    {"Rows of lowering", "backward",   DENSE, ATTN "/lowering/in/0/backward", "'none'", IS_ERROR, "stale_lowering"},
    {"Rows of lowering", "position",   DENSE, ATTN "/lowering/in/0/position", "1", IS_ERROR, "stale_lowering"},

    {"inner", "op",       AXIS, BLOCK "/inner/0/op", "'mean_square'", IS_ERROR, "stale_inner"},
    {"inner", "axis",     AXIS, BLOCK "/inner/0/axis", "'tp'", IS_ERROR, "stale_inner"},
    {"inner", "replicas", KEYS, ATTN "/inner/1/replicas", NULL, IS_ERROR, "stale_inner"},
    {"inner", "params",   KEYS, ATTN "/inner/0/params", "['k_norm.weight']", IS_ERROR, "stale_inner"},

    {"special", "handler", MIXERS, "/special/model.layers.0.linear_attn.A_log/handler", "'x'", IS_ERROR, "stale_special"},
    {"special", "reason",  MIXERS, "/special/model.layers.0.linear_attn.A_log/reason", "'x'", IS_ERROR, "stale_special"},

    {"parallel_modules", "kind", DENSE, "/parallel_modules/model.layers.0.self_attn.core/kind", "'ep'", IS_ERROR,
                                 "stale_parallel"},
    {"parallel_modules", "axis", DENSE, "/parallel_modules/model.layers.0.self_attn.core/axis", "'tp'", IS_ERROR,
                                 "stale_parallel"},
    {"parallel_modules", "size", EXPERTS, "/parallel_modules/model.layers.0.mlp.experts/size", "2", IS_ERROR,
                                 "stale_parallel"},

    {"Findings", "code", MIXERS, "/warnings/0/code", "'x'", IS_WARNING, "differs_from_derived"},
    {"Findings", "fqn",  MIXERS, "/warnings/0/fqn", "'x'", IS_WARNING, "differs_from_derived"},
    {"Findings", "text", MIXERS, "/warnings/0/text", "'x'", IS_NOTHING, "words for people, which releases change"},
    {"Findings", "help", MIXERS, "/warnings/0/help", "'x'", IS_NOTHING, "words for people"},
};
// clang-format on

/* ---- editing ---- */

/* JSON of a text with single quotes. */
static json_t *value_of(const char *text)
{
    char quoted[256];
    size_t n = strlen(text);
    json_error_t why;

    assert_true(n < sizeof quoted);
    for (size_t i = 0; i <= n; i++)
        quoted[i] = text[i] == '\'' ? '"' : text[i];
    json_t *value = json_loads(quoted, JSON_DECODE_ANY, &why);
    if (value == NULL)
        fail_msg("%s: %s", text, why.text);
    return value;
}

static json_t *member(json_t *parent, const char *key)
{
    return json_is_array(parent) ? json_array_get(parent, (size_t)strtoul(key, NULL, 10))
                                 : json_object_get(parent, key);
}

/* Set, add or take away what stands at `at`; the test fails unless that changes something. */
static void edit_at(json_t *document, const char *at, const char *value)
{
    char path[256];
    char *rest = path;
    json_t *parent = document;

    (void)snprintf(path, sizeof path, "%s", at + 1);
    char *key = strsep(&rest, "/");
    for (; rest != NULL; key = strsep(&rest, "/")) {
        parent = member(parent, key);
        if (parent == NULL)
            fail_msg("the plan has no '%s' of %s", key, at);
    }
    json_t *old = member(parent, key);
    json_t *fresh = value == NULL ? NULL : value_of(value);
    if (old == fresh || (old != NULL && fresh != NULL && json_equal(old, fresh)))
        fail_msg("%s is %s already", at, value == NULL ? "absent" : value);
    int failed = fresh == NULL           ? json_object_del(parent, key)
                 : json_is_array(parent) ? json_array_set_new(parent, (size_t)strtoul(key, NULL, 10), fresh)
                                         : json_object_set_new(parent, key, fresh);
    assert_int_equal(failed, 0);
}

static char *edited_text(const char *text, const struct row *row)
{
    json_error_t why;
    json_t *document = json_loads(text, 0, &why);

    assert_non_null(document);
    edit_at(document, row->at, row->value);
    char *edited = json_dumps(document, JSON_COMPACT);
    json_decref(document);
    assert_non_null(edited);
    return edited;
}

/* ---- what is found ---- */

static const sw_severity severities[] = {
    [IS_ERROR] = SW_SEVERITY_ERROR, [IS_WARNING] = SW_SEVERITY_WARNING, [IS_NOTE] = SW_SEVERITY_NOTE};

static bool is_found(const sw_report *found, const struct row *row, size_t *n)
{
    bool has_code = false;

    *n = 0;
    for (size_t i = 0; i < sw_report_count(found); i++) {
        const sw_finding *f = sw_report_finding(found, i);
        bool is_passed_over = strcmp(f->code, "not_compared") == 0 && row->must != IS_NOTE;
        *n += !is_passed_over && row->must <= IS_NOTE && f->severity > severities[row->must];
        bool is_of_the_model = strcmp(f->code, "uneven_vocab") == 0; /* said of the sound plan too */
        *n += row->must == IS_NOTHING && f->severity > SW_SEVERITY_NOTE && !is_of_the_model;
        has_code = has_code || (row->must <= IS_NOTE && f->severity == severities[row->must] &&
                                strcmp(f->code, row->code) == 0);
    }
    return has_code || row->must == IS_NOTHING;
}

/* The finding must be there, and nothing worse. */
static bool holds(const bench *b, const struct row *row, const char *text)
{
    sw_plan *plan = NULL;
    sw_report *found = NULL;
    sw_error err = {0};
    size_t n_other = 0;

    sw_status status = sw_plan_read(&plan, text, strlen(text), "plan.json", &err);
    if (row->must == IS_REFUSED) {
        sw_plan_destroy(plan);
        return status == SW_E_FORMAT && strstr(err.what, row->code) != NULL;
    }
    if (status != SW_OK) {
        print_message("  refused: %s\n", err.what);
        return false;
    }
    assert_int_equal(sw_report_create(&found, NULL), SW_OK);
    status = sw_plan_check(plan, b->t.model, found, &err);
    bool is_right =
        is_found(found, row, &n_other) && n_other == 0 && (status == SW_OK) == (row->must != IS_ERROR);
    for (size_t i = 0; !is_right && i < sw_report_count(found); i++) {
        const sw_finding *f = sw_report_finding(found, i);
        print_message("  %s [%s] %s\n", sw_severity_name(f->severity), f->code, f->what);
    }
    sw_report_destroy(found);
    sw_plan_destroy(plan);
    return is_right;
}

static void an_edit_of_any_field_is_noticed(void **state)
{
    size_t n_wrong = 0;

    (void)state;
    for (size_t c = 0; c < SW_COUNT(cases); c++) {
        bench b = bench_of(&cases[c]);
        for (size_t i = 0; i < SW_COUNT(rows); i++) {
            if (rows[i].plan != (int)c)
                continue;
            char *text = edited_text(b.text, &rows[i]);
            if (!holds(&b, &rows[i], text)) {
                print_message("%s -> %s: expected %s\n", rows[i].at,
                              rows[i].value == NULL ? "(absent)" : rows[i].value, rows[i].code);
                n_wrong++;
            }
            free(text);
        }
        bench_drop(&b);
    }
    assert_int_equal(n_wrong, 0);
}

static bool has_row(const char *heading, const char *key)
{
    for (size_t i = 0; i < SW_COUNT(rows); i++) {
        if (strcmp(rows[i].heading, heading) == 0 && strcmp(rows[i].key, key) == 0)
            return true;
    }
    return false;
}

static void every_key_of_the_page_is_edited(void **state)
{
    page_table table;

    (void)state;
    for (size_t i = 0; i < SW_COUNT(rows); i++) {
        if (i > 0 && strcmp(rows[i].heading, rows[i - 1].heading) == 0)
            continue;
        page_open(&table, PAGE, rows[i].heading);
        for (size_t k = 0; k < table.n_rows; k++) {
            if (!has_row(rows[i].heading, table.cells[k][0]))
                fail_msg("plan.md, %s: nothing edits '%s'", rows[i].heading, table.cells[k][0]);
        }
        page_close(&table);
    }
}

/* A user may freeze one projection in the file: that fits together, and differs from what is derived. */
static void a_projection_that_is_frozen_by_hand_is_a_difference(void **state)
{
    bench b = bench_of(&cases[DENSE]);
    const char *const q = "model.layers.0.self_attn";

    (void)state;
    bench_edit_after(&b, q, "'grad_sum':[{'axis':'cp','reason':'context'},{'axis':'dp','reason':'data'}]",
                     "'grad_sum':[],'trained':false,'reason':'frozen'");
    bench_check(&b);
    assert_int_equal(b.status, SW_OK);
    bench_must_find(&b, SW_SEVERITY_WARNING, "differs_from_derived",
                    "model.layers.0.self_attn.q_proj.weight");
    bench_drop(&b);
}

/* A bias that is missing where overrides stand is not made up: it is uncovered. */
static void a_parameter_that_is_missing_beside_overrides_is_uncovered(void **state)
{
    static const struct row row = {"Boundaries", "params", TOUCHED,    ATTN "/params/o_proj.bias",
                                   NULL,         IS_ERROR, "uncovered"};
    bench b = bench_of(&cases[TOUCHED]);
    json_error_t why;
    json_t *document = json_loads(b.text, 0, &why);

    (void)state;
    edit_at(document, row.at, NULL);
    edit_at(document, ATTN "/deferred_bias", "[]");
    char *text = json_dumps(document, JSON_COMPACT);
    assert_true(holds(&b, &row, text));
    free(text);
    json_decref(document);
    bench_drop(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_edit_of_any_field_is_noticed),
        cmocka_unit_test(every_key_of_the_page_is_edited),
        cmocka_unit_test(a_projection_that_is_frozen_by_hand_is_a_difference),
        cmocka_unit_test(a_parameter_that_is_missing_beside_overrides_is_uncovered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
