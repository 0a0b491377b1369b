/*
 * Head counts against stored rows. Cuts by heads divide what is stored by the counts of config.json, so wrong
 * counts still give even cuts, inside heads. Two things tell: every weight of an attention must hold its
 * heads in the proportion of the config (queries to keys, output to queries), and where the config states
 * head_dim itself, each must hold exactly that much. A size that only follows from hidden_size may differ.
 * Queries must be a multiple of keys.
 */
#include "plan/lint_heads.h"

#include <inttypes.h>

#include "base/checked.h"
#include "model/complete.h"
#include "plan/fault.h"
#include "plan/heads.h"
#include "plan/layout.h"

/* What the heads take along one side of a weight. */
typedef struct head_rows {
    const sw_spec_param *param;
    uint64_t stored;
    uint64_t said; /* by config.json */
} head_rows;

static const char help[] = "check num_attention_heads, num_key_value_heads and head_dim in config.json, or "
                           "state the storage with `layout:` in an override";

static uint64_t attribute(const sw_plan *plan, sw_attr attr)
{
    int64_t value = sw_plan_attribute(plan, attr);
    return value > 0 ? (uint64_t)value : 0;
}

/* The stored dim that holds heads: rows of a projection, columns of the output; -1: none. */
static int head_dim_of(const sw_facts *f)
{
    if (f->shape == NULL || f->shape->n_dims != 2 || f->view != NULL || f->reason != NULL)
        return -1;
    if (f->role == SW_ROLE_ROWWISE)
        return f->layout == SW_LAYOUT_HEADS ? f->in_dim : -1;
    bool is_projection = f->role == SW_ROLE_COLWISE || f->role == SW_ROLE_FUSED_QKV;
    return is_projection && (sw_layout_has_queries(f->layout) || sw_layout_has_keys(f->layout)) ? f->out_dim
                                                                                                : -1;
}

/* By the family's table: the extent that its row gives on this config; 0 when it does not tell. */
static uint64_t said_by_table(const sw_model *model, const sw_param_node *node, int dim)
{
    const sw_family_row *row = model->patterns[node->pattern].row;
    uint64_t dims[SW_MAX_DIMS];
    uint32_t n = 0;

    if (row == NULL || !sw_row_shape(model->family, row, &model->config.attributes, node->layer, dims, &n) ||
        n != 2)
        return 0;
    return dims[dim];
}

/* How many heads stand along that side, queries, keys and values counted one by one. */
static uint64_t heads_of(const sw_plan *plan, sw_layout layout)
{
    uint64_t kv = attribute(plan, SW_ATTR_KV_HEADS);

    if (!sw_layout_has_queries(layout))
        return layout == SW_LAYOUT_KV_HEADS ? kv : 2 * kv;
    return attribute(plan, SW_ATTR_HEADS) + (sw_layout_has_keys(layout) ? 2 * kv : 0);
}

/*
 * Without a table: heads times head_dim. Values and the output may have a size of their own (v_head_dim), and
 * a projection of queries may hold a gate beside each head: both are taken as fitting.
 */
static uint64_t said_by_counts(const sw_plan *plan, const sw_facts *f, uint64_t stored)
{
    uint64_t heads = heads_of(plan, f->layout);
    uint64_t said = heads * attribute(plan, SW_ATTR_HEAD_DIM);
    uint64_t values = heads * attribute(plan, SW_ATTR_V_HEAD_DIM);
    bool may_be_gated = f->role == SW_ROLE_COLWISE && f->layout == SW_LAYOUT_HEADS;

    if (attribute(plan, SW_ATTR_KV_LORA_RANK) != 0)
        return 0; /* latent attention: its heads have parts that only a table knows */
    if (stored == values && f->role != SW_ROLE_FUSED_QKV)
        return stored;
    return may_be_gated && said != 0 && stored % said == 0 ? stored : said;
}

static bool find_rows(const sw_plan *plan, const sw_spec_param *p, head_rows *out)
{
    const sw_facts *f = &plan->facts[p->facts];
    int dim = head_dim_of(f);

    if (p->param == UINT32_MAX || dim < 0)
        return false;
    *out = (head_rows){.param = p, .stored = f->shape->dims[dim]};
    if (plan->model->family != NULL)
        out->said = said_by_table(plan->model, &plan->model->params[p->param], dim);
    else
        out->said = said_by_counts(plan, f, out->stored);
    return out->said != 0;
}

static bool are_in_proportion(const head_rows *a, const head_rows *b)
{
    uint64_t left = 0;
    uint64_t right = 0;

    return sw_mul_u64(a->stored, b->said, &left) && sw_mul_u64(b->stored, a->said, &right) && left == right;
}

/* Each key/value head serves as many query heads: true on any mesh, also where tp cuts nothing. */
static void check_groups(sw_plan *plan, const sw_spec *spec)
{
    uint64_t heads = attribute(plan, SW_ATTR_HEADS);
    uint64_t kv = attribute(plan, SW_ATTR_KV_HEADS);

    if (heads == 0 || kv == 0 || heads % kv == 0 || spec->has_bad_heads || !sw_spec_has_keys(plan, spec))
        return;
    (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "heads", spec->fqn, spec->fqn_length,
                        "check num_attention_heads and num_key_value_heads in config.json",
                        "%" PRIu64 " query heads are no multiple of %" PRIu64 " key/value heads", heads, kv);
}

void sw_lint_heads(sw_plan *plan, const sw_spec *spec)
{
    bool is_stated = plan->model->config.attributes.is_stated[SW_ATTR_HEAD_DIM];
    head_rows first = {0};
    head_rows rows;

    if (spec->type == SW_BOUNDARY_ATTENTION && !spec->is_tower)
        check_groups(plan, spec);
    for (uint32_t i = 0; i < spec->n_params && spec->type == SW_BOUNDARY_ATTENTION && !spec->is_tower; i++) {
        if (!find_rows(plan, &spec->params[i], &rows))
            continue;
        if (first.param == NULL)
            first = rows;
        const sw_spec_param *p = rows.param;
        if (is_stated && rows.stored != rows.said) {
            (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "shape_mismatch", spec->fqn, spec->fqn_length, help,
                                "'%.*s' holds %" PRIu64
                                " rows of heads, and config.json's head counts and head_dim make it %" PRIu64,
                                (int)p->path_length, p->path, rows.stored, rows.said);
            return;
        }
        if (!are_in_proportion(&first, &rows)) {
            (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "shape_mismatch", spec->fqn, spec->fqn_length, help,
                                "'%.*s' holds %" PRIu64 " rows of heads beside %" PRIu64
                                " of '%.*s'; config.json's head counts make it %" PRIu64 " beside %" PRIu64,
                                (int)p->path_length, p->path, rows.stored, first.stored,
                                (int)first.param->path_length, first.param->path, rows.said, first.said);
            return;
        }
    }
}
