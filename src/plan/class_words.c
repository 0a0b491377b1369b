/*
 * What names mean in every family, where no table speaks: how a projection's rows are cut, what a tower
 * holds, which names no gradient reaches. What no one can know from a name is left SW_LAYOUT_UNKNOWN and
 * refused later, never guessed.
 */
#include "plan/class_words.h"

#include <string.h>

#include "base/status.h"

/*
 * How a segment of a name is cut when only a word rule gave the role, and what `layout: stacked` of an
 * override means for it. The first row whose word it is wins.
 */
// clang-format off
static const struct { const char *segment; sw_layout layout; sw_layout stacked; } word_layouts[] = {
    { "q_proj",    SW_LAYOUT_HEADS,    SW_LAYOUT_STACKED    },
    { "q_b_proj",  SW_LAYOUT_HEADS,    SW_LAYOUT_STACKED    },
    { "kv_b_proj", SW_LAYOUT_HEADS,    SW_LAYOUT_STACKED    },
    { "k_proj",    SW_LAYOUT_KV_HEADS, SW_LAYOUT_STACKED    },
    { "v_proj",    SW_LAYOUT_KV_HEADS, SW_LAYOUT_STACKED    },
    { "o_proj",    SW_LAYOUT_HEADS,    SW_LAYOUT_STACKED    },
    { "kv_proj",   SW_LAYOUT_UNKNOWN,  SW_LAYOUT_KV_STACKED }, /* fused: matched by the word v_proj, stored nobody knows how */
    { "qk_proj",   SW_LAYOUT_UNKNOWN,  SW_LAYOUT_STACKED    },
};

static const char *const common_towers[] = {
    "vision_tower", "vision_model", "vision_encoder", "visual", "audio_tower", "audio_model", "audio_encoder",
    "multi_modal_projector", "mm_projector", "embed_vision", "embed_audio", "patch_merger", "image_newline",
};
// clang-format on

static bool has_segment(const char *name, const char *word)
{
    return sw_role_pattern_matches(name, word, SW_MATCH_EXACT);
}

/* Bytes up to the end of the first segment that is `word`; 0: there is none. */
static size_t segment_end(const char *name, const char *word)
{
    size_t length = strlen(word);

    for (const char *hit = strstr(name, word); hit != NULL; hit = strstr(hit + 1, word)) {
        bool starts = hit == name || hit[-1] == '.';
        if (starts && (hit[length] == '.' || hit[length] == '\0'))
            return (size_t)(hit - name) + length;
    }
    return 0;
}

size_t sw_tower_prefix(const sw_family *family, const char *name)
{
    size_t end = 0;

    if (family != NULL && family->towers != NULL) {
        for (const char *const *t = family->towers; *t != NULL && end == 0; t++)
            end = segment_end(name, *t);
    }
    for (size_t i = 0; i < SW_COUNT(common_towers) && end == 0; i++)
        end = segment_end(name, common_towers[i]);
    return end;
}

static sw_layout layout_of_words(sw_role role, const char *name)
{
    switch (role) {
    case SW_ROLE_EMBED:
    case SW_ROLE_LM_HEAD:
        return SW_LAYOUT_VOCAB;
    case SW_ROLE_FUSED_QKV:
    case SW_ROLE_FUSED_GATE_UP:
        return SW_LAYOUT_UNKNOWN;
    case SW_ROLE_MOE_EXPERT:
    case SW_ROLE_SHARED_EXPERT:
        return strstr(name, "gate_up") != NULL || strstr(name, "gate_and_up") != NULL ||
                       strstr(name, "w13") != NULL
                   ? SW_LAYOUT_UNKNOWN
                   : SW_LAYOUT_PLAIN;
    case SW_ROLE_COLWISE:
    case SW_ROLE_ROWWISE:
        for (size_t i = 0; i < SW_COUNT(word_layouts); i++) {
            if (has_segment(name, word_layouts[i].segment))
                return word_layouts[i].layout;
        }
        return SW_LAYOUT_PLAIN;
    default:
        return SW_LAYOUT_PLAIN;
    }
}

sw_layout sw_stacked_layout(sw_role role, const char *name)
{
    if (role == SW_ROLE_FUSED_QKV)
        return SW_LAYOUT_QKV_STACKED;
    for (size_t i = 0; i < SW_COUNT(word_layouts); i++) {
        if (has_segment(name, word_layouts[i].segment))
            return word_layouts[i].stacked;
    }
    return SW_LAYOUT_STACKED;
}

/*
 * Experts under one name: a weight has three dims, a bias two. The bias of a numbered expert has one, and
 * gets its expert dim where it is stacked.
 */
static bool is_batched(const char *name, uint32_t n_dims)
{
    size_t length = strlen(name);
    size_t bias = strlen("bias");
    bool is_bias = length > bias && strcmp(name + length - bias, "bias") == 0 &&
                   (name[length - bias - 1] == '.' || name[length - bias - 1] == '_');

    return n_dims >= (is_bias ? 2U : 3U);
}

/* Role by rules of words alone; the form of batched experts is told from their dims. */
void sw_class_from_words(sw_class *class_, sw_role role, const char *name, uint32_t n_dims)
{
    class_->role = role;
    class_->layout = layout_of_words(role, name);
    if (role == SW_ROLE_MOE_EXPERT) {
        class_->side = sw_role_is_row_like(name) ? SW_SIDE_IN : SW_SIDE_OUT;
        class_->form = is_batched(name, n_dims) ? SW_FORM_EXPERTS : SW_FORM_LINEAR;
    } else if (role == SW_ROLE_SHARED_EXPERT) {
        class_->side = sw_role_is_row_like(name) ? SW_SIDE_IN : SW_SIDE_OUT;
    }
}

/* Names that no gradient reaches, in every family. */
// clang-format off
static const struct common_name {
    const char *words;
    sw_match_mode mode;
    sw_role role; /* when no rule gives one */
    uint32_t flags;
    const char *what;
} common_names[] = {
    { "inv_freq",                SW_MATCH_EXACT, SW_ROLE_SKIP,     SW_ROW_BUFFER, "rotary and mask buffers"  },
    { "masked_bias",             SW_MATCH_EXACT, SW_ROLE_SKIP,     SW_ROW_BUFFER, "rotary and mask buffers"  },
    { "freqs_cis",               SW_MATCH_EXACT, SW_ROLE_SKIP,     SW_ROW_BUFFER, "rotary and mask buffers"  },
    { "rope.freqs",              SW_MATCH_WHOLE, SW_ROLE_SKIP,     SW_ROW_BUFFER, "rotary and mask buffers"  },
    { "e_score_correction_bias", SW_MATCH_EXACT, SW_ROLE_MOE_GATE, SW_ROW_FROZEN, "router correction biases" },
    { "expert_bias",             SW_MATCH_EXACT, SW_ROLE_MOE_GATE, SW_ROW_FROZEN, "router correction biases" },
};
// clang-format on

static const struct common_name *common_name_of(const char *lower)
{
    for (size_t i = 0; i < SW_COUNT(common_names); i++) {
        if (sw_role_pattern_matches(lower, common_names[i].words, common_names[i].mode))
            return &common_names[i];
    }
    return NULL;
}

/* Heads of a task on top of the model: a few rows, whole. */
static bool is_task_head(const char *lower)
{
    static const char *const words[] = {"score", "classifier", "qa_outputs", "v_head"};

    for (size_t i = 0; i < SW_COUNT(words); i++) {
        if (has_segment(lower, words[i]))
            return true;
    }
    return false;
}

/* Linears that the towers of most families share; whatever else a tower holds is kept whole. */
// clang-format off
static const struct { const char *segment; sw_role role; sw_layout layout; } tower_words[] = {
    { "out_proj", SW_ROLE_ROWWISE, SW_LAYOUT_HEADS },
    { "fc1",      SW_ROLE_COLWISE, SW_LAYOUT_PLAIN },
    { "fc2",      SW_ROLE_ROWWISE, SW_LAYOUT_PLAIN },
};
// clang-format on

static void class_in_tower(sw_class *class_, const char *lower)
{
    class_->role = SW_ROLE_REPLICATED;
    class_->rule_text = "towers";
    for (size_t i = 0; i < SW_COUNT(tower_words); i++) {
        if (!has_segment(lower, tower_words[i].segment))
            continue;
        class_->role = tower_words[i].role;
        class_->layout = tower_words[i].layout;
        class_->rule_text = tower_words[i].segment;
    }
}

/* Names that mean one thing in every family, after all rules of words. */
void sw_class_by_common_names(sw_class *class_, const char *name)
{
    const struct common_name *common = common_name_of(name);
    bool is_open = class_->role == SW_ROLE_SKIP && class_->source == SW_RULE_NONE;

    if (common != NULL && class_->source != SW_RULE_FAMILY && (is_open || common->flags == SW_ROW_FROZEN))
        class_->flags |= common->flags;
    if (!is_open)
        return;
    class_->source = SW_RULE_DEFAULT;
    if (common != NULL) {
        class_->role = common->role;
        class_->reason = common->flags == SW_ROW_BUFFER ? "buffer" : NULL;
        class_->rule_text = common->what;
    } else if (is_task_head(name)) {
        class_->role = SW_ROLE_REPLICATED;
        class_->rule_text = "task heads";
    } else if (class_->is_tower) {
        class_in_tower(class_, name);
    } else {
        class_->source = SW_RULE_NONE;
    }
}
