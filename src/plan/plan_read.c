/*
 * Reading a plan file (docs/formats/plan.md): the document, its model, mesh, stages, lists and findings.
 * Boundaries and parameters are read by plan_read_spec.c and plan_read_facts.c. One pass over the text;
 * nothing of it is kept.
 */
#include "plan/plan_read.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "mesh/mesh.h"
#include "plan/intern.h"
#include "plan/plan_make.h"
#include "plan/plan_reader.h"
#include "plan/plan_write.h"

/* ---- format and version ---- */

static bool read_format(sw_plan_reader *r, void *unused)
{
    sw_json_text text;

    (void)unused;
    if (!sw_json_string(&r->json, &text))
        return false;
    if (!sw_json_text_is(text, "shardwright-plan"))
        return sw_plan_refuse(r, "give a file that `shardwright plan` wrote",
                              "format is '%.*s', not shardwright-plan", sw_plan_shown(text), text.bytes);
    r->has_format = true;
    return true;
}

static bool read_version(sw_plan_reader *r, void *unused)
{
    uint64_t version = 0;

    (void)unused;
    if (!sw_json_u64(&r->json, &version))
        return false;
    if (version != SW_PLAN_VERSION)
        return sw_plan_refuse(r, "make the plan again with this program",
                              "plan file version %" PRIu64 ", this program reads %d", version,
                              SW_PLAN_VERSION);
    return true;
}

/* ---- model ---- */

/* Value of a hex digit in small letters; 16 for another character. */
static uint64_t hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return (uint64_t)(c - '0');
    return c >= 'a' && c <= 'f' ? (uint64_t)(c - 'a') + 10 : 16;
}

static bool read_fingerprint(sw_plan_reader *r, void *at)
{
    uint64_t *out = at;
    sw_json_text text;

    if (!sw_json_string(&r->json, &text))
        return false;
    bool is_sound = text.length == 16;
    *out = 0;
    for (size_t i = 0; is_sound && i < text.length; i++) {
        uint64_t digit = hex_digit(text.bytes[i]);
        is_sound = digit < 16;
        *out = *out << 4 | digit;
    }
    return is_sound || sw_plan_refuse(r, "", "a fingerprint has 16 hex digits, small letters");
}

static bool read_layers(sw_plan_reader *r, void *at)
{
    const uint32_t *layers = at;

    if (!sw_plan_read_u32(r, at))
        return false;
    return *layers <= SW_MAX_TENSORS || sw_plan_over_limit(r, "layers", SW_MAX_TENSORS);
}

static bool read_model(sw_plan_reader *r, void *at)
{
    static const sw_plan_key keys[] = {
        SW_KEY("architecture", sw_plan_read_text, sw_plan, architecture),
        SW_KEY("model_type", sw_plan_read_text, sw_plan, model_type),
        SW_KEY("family", sw_plan_read_text, sw_plan, family),
        SW_KEY("parameters", sw_plan_read_u64, sw_plan, n_params),
        SW_KEY("elements", sw_plan_read_u64, sw_plan, elements),
        SW_KEY("layers", read_layers, sw_plan, n_layers),
        SW_KEY("fingerprint", read_fingerprint, sw_plan, fingerprint),
    };
    return sw_plan_read_object(r, "model", keys, SW_COUNT(keys), at);
}

/* ---- mesh ---- */

/* The sizes as the file has them; they must agree with each other. */
typedef struct sizes {
    uint32_t pp, dp, cp, tp, ep, dp_replicate, dp_shard, edp, ranks;
    sw_ep_mode mode;
} sizes;

static bool read_ep_mode(sw_plan_reader *r, void *at)
{
    sw_ep_mode *out = at;
    const char *words[SW_EP_MODE_COUNT_];
    uint32_t mode = 0;

    for (uint32_t i = 0; i < SW_EP_MODE_COUNT_; i++)
        words[i] = sw_ep_mode_name((sw_ep_mode)i);
    if (!sw_plan_read_word(r, "ep_mode", words, SW_COUNT(words), &mode))
        return false;
    *out = (sw_ep_mode)mode;
    return true;
}

static bool settle_mesh(sw_plan_reader *r, const sizes *s)
{
    bool is_axis = s->mode == SW_EP_AXIS;
    sw_error why = {0};
    sw_mesh mesh;
    char axes[128];
    char ep[32] = "";

    if (is_axis)
        (void)snprintf(ep, sizeof ep, ",ep=%" PRIu32, s->ep);
    (void)snprintf(axes, sizeof axes,
                   "pp=%" PRIu32 ",dp_replicate=%" PRIu32 ",dp_shard=%" PRIu32 ",cp=%" PRIu32
                   "%s,tp=%" PRIu32,
                   s->pp, s->dp_replicate, s->dp_shard, s->cp, ep, s->tp);
    if (sw_mesh_init(&mesh, axes, is_axis ? 0 : s->ep, &why) != SW_OK)
        return sw_plan_refuse(r, why.help, "mesh: %s", why.what);
    if (sw_mesh_axis_size(&mesh, SW_AXIS_DP) != s->dp)
        return sw_plan_refuse(r, "",
                              "mesh: dp=%" PRIu32 " is not dp_replicate=%" PRIu32 " times dp_shard=%" PRIu32,
                              s->dp, s->dp_replicate, s->dp_shard);
    if (sw_mesh_ranks(&mesh) != s->ranks)
        return sw_plan_refuse(r, "", "mesh: the axes multiply out to %" PRIu32 " ranks, not %" PRIu32,
                              sw_mesh_ranks(&mesh), s->ranks);
    if (sw_mesh_ep_mode(&mesh) != s->mode || sw_mesh_axis_size(&mesh, SW_AXIS_EP) != s->ep)
        return sw_plan_refuse(r, "", "mesh: ep=%" PRIu32 " with ep_mode '%s'", s->ep,
                              sw_ep_mode_name(s->mode));
    uint32_t edp = s->mode == SW_EP_TP_EXTEND ? sw_mesh_axis_size(&mesh, SW_AXIS_EDP) : 0;
    if (edp != s->edp)
        return sw_plan_refuse(r, "", "mesh: edp is %" PRIu32 ", not %" PRIu32, edp, s->edp);
    sw_plan_set_mesh(r->plan, &mesh);
    return true;
}

static bool read_mesh(sw_plan_reader *r, void *unused)
{
    static const sw_plan_key keys[] = {
        SW_KEY("pp", sw_plan_read_u32, sizes, pp),
        SW_KEY("dp", sw_plan_read_u32, sizes, dp),
        SW_KEY("cp", sw_plan_read_u32, sizes, cp),
        SW_KEY("tp", sw_plan_read_u32, sizes, tp),
        SW_KEY("ep", sw_plan_read_u32, sizes, ep),
        SW_KEY("dp_replicate", sw_plan_read_u32, sizes, dp_replicate),
        SW_KEY("dp_shard", sw_plan_read_u32, sizes, dp_shard),
        SW_KEY("ep_mode", read_ep_mode, sizes, mode),
        SW_KEY_OPTIONAL("edp", sw_plan_read_u32, sizes, edp),
        SW_KEY("ranks", sw_plan_read_u32, sizes, ranks),
    };
    sizes s = {0};

    (void)unused;
    return sw_plan_read_object(r, "mesh", keys, SW_COUNT(keys), &s) && settle_mesh(r, &s);
}

/* ---- stages ---- */

/* [first, one past the last] */
static bool read_range(sw_plan_reader *r, void *at)
{
    sw_stage *stage = at;

    return sw_plan_read_two(r, "stages: layers", "first and end", sw_plan_read_u32, &stage->first_layer,
                            &stage->end_layer);
}

static bool read_stage(sw_plan_reader *r, void *at)
{
    static const sw_plan_key keys[] = {
        SW_KEY_OF_ALL("layers", read_range),
        SW_KEY("embed", sw_plan_read_bool, sw_stage, has_embed),
        SW_KEY("head", sw_plan_read_bool, sw_stage, has_head),
    };
    return sw_plan_read_object(r, "a stage", keys, SW_COUNT(keys), at);
}

static bool read_stages(sw_plan_reader *r, void *unused)
{
    sw_plan *plan = r->plan;
    sw_plan_list list = {(void **)&plan->stages, &plan->n_stages, sizeof *plan->stages, SW_PLAN_MAX_STAGES};

    (void)unused;
    return sw_plan_read_list(r, "stages", list, read_stage);
}

static bool settle_stages(sw_plan_reader *r)
{
    const sw_plan *plan = r->plan;
    uint32_t pp = sw_mesh_axis_size(plan->mesh, SW_AXIS_PP);

    if (plan->n_stages != pp)
        return sw_plan_refuse(r, "", "%" PRIu32 " stages on a mesh of pp=%" PRIu32, plan->n_stages, pp);
    for (uint32_t i = 0; i < plan->n_specs; i++) {
        if (plan->specs[i].pp_stage >= pp)
            return sw_plan_refuse(r, "", "boundary '%.100s' is on stage %" PRIu32 " of %" PRIu32,
                                  plan->specs[i].fqn, plan->specs[i].pp_stage, pp);
    }
    return true;
}

/* ---- lists ---- */

static bool read_special(sw_plan_reader *r, void *at)
{
    static const sw_plan_key keys[] = {
        SW_KEY("handler", sw_plan_read_name, sw_special, handler),
        SW_KEY("reason", sw_plan_read_text, sw_special, reason),
    };
    return sw_plan_read_object(r, "special", keys, SW_COUNT(keys), at);
}

static bool read_specials(sw_plan_reader *r, void *unused)
{
    sw_plan *plan = r->plan;
    sw_plan_list list = {(void **)&plan->special, &plan->n_special, sizeof *plan->special, SW_MAX_TENSORS};

    (void)unused;
    return sw_plan_read_members(r, "special", list, read_special);
}

/* The handler of a parameter is among its facts; the list gives it by the parameter's full name. */
static bool give_handler(sw_plan_reader *r, const sw_map *by_fqn, const sw_spec *spec, sw_spec_param *p,
                         uint32_t *n)
{
    sw_plan *plan = r->plan;
    char fqn[4096];
    int length = snprintf(fqn, sizeof fqn, "%s%s%.*s", spec->fqn, spec->fqn_length == 0 ? "" : ".",
                          (int)p->path_length, p->path);
    const uint32_t *at =
        length > 0 && (size_t)length < sizeof fqn ? sw_map_find(by_fqn, fqn, (size_t)length) : NULL;

    if (at == NULL)
        return true;
    sw_facts facts = plan->facts[p->facts];
    facts.handler = plan->special[*at].handler;
    p->facts = sw_plan_intern_facts(plan, &facts);
    ++*n;
    return p->facts != UINT32_MAX || sw_plan_no_memory(r);
}

static bool settle_specials(sw_plan_reader *r)
{
    sw_map by_fqn SW_AUTO(sw_map_clear) = {0};
    sw_plan *plan = r->plan;
    uint32_t n = 0;

    for (uint32_t i = 0; i < plan->n_special; i++) {
        bool is_new = false;
        if (sw_map_put(&by_fqn, plan->special[i].fqn, strlen(plan->special[i].fqn), i, &is_new) == NULL)
            return sw_plan_no_memory(r);
    }
    for (uint32_t i = 0; plan->n_special > 0 && i < plan->n_specs; i++) {
        sw_spec *spec = &plan->specs[i];
        for (uint32_t k = 0; k < spec->n_params; k++) {
            if (!give_handler(r, &by_fqn, spec, &spec->params[k], &n))
                return false;
        }
    }
    return n == plan->n_special ||
           sw_plan_refuse(r, "",
                          "special names %" PRIu32 " parameters, of which the boundaries hold %" PRIu32,
                          plan->n_special, n);
}

static bool read_pair(sw_plan_reader *r, void *at)
{
    sw_tied_pair *pair = at;

    return sw_plan_read_two(r, "tied: a pair", "the stored name and the other", sw_plan_read_name,
                            &pair->first, &pair->second);
}

static bool read_tied(sw_plan_reader *r, void *unused)
{
    sw_plan *plan = r->plan;
    sw_plan_list list = {(void **)&plan->tied, &plan->n_tied, sizeof *plan->tied, SW_PLAN_MAX_MEMBERS};

    (void)unused;
    return sw_plan_read_list(r, "tied", list, read_pair);
}

static bool read_kind(sw_plan_reader *r, void *at)
{
    static const char *const kinds[] = {"cp", "ep"};
    const char **out = at;
    uint32_t word = 0;

    if (!sw_plan_read_word(r, "kind of parallel module", kinds, SW_COUNT(kinds), &word))
        return false;
    *out = kinds[word];
    return true;
}

static bool read_parallel_module(sw_plan_reader *r, void *at)
{
    static const sw_plan_key keys[] = {
        SW_KEY("kind", read_kind, sw_parallel_module, kind),
        SW_KEY("axis", sw_plan_read_axis, sw_parallel_module, axis),
        SW_KEY("size", sw_plan_read_u32, sw_parallel_module, size),
    };
    return sw_plan_read_object(r, "a parallel module", keys, SW_COUNT(keys), at);
}

static bool read_parallel(sw_plan_reader *r, void *unused)
{
    sw_plan *plan = r->plan;
    sw_plan_list list = {(void **)&plan->parallel, &plan->n_parallel, sizeof *plan->parallel,
                         SW_PLAN_MAX_BOUNDARIES};

    (void)unused;
    return sw_plan_read_members(r, "parallel_modules", list, read_parallel_module);
}

/* ---- findings ---- */

static bool read_uncovered(sw_plan_reader *r, void *unused)
{
    sw_plan_list list = {(void **)&r->uncovered, &r->n_uncovered, sizeof *r->uncovered, SW_MAX_TENSORS};

    (void)unused;
    return sw_plan_read_list(r, "uncovered", list, sw_plan_read_text);
}

static bool read_findings(sw_plan_reader *r, const char *what, sw_severity severity)
{
    static const sw_plan_key keys[] = {
        SW_KEY("code", sw_plan_read_name, sw_finding, code),
        SW_KEY("fqn", sw_plan_read_text, sw_finding, fqn),
        SW_KEY("text", sw_plan_read_text, sw_finding, what),
        SW_KEY_OPTIONAL("help", sw_plan_read_text, sw_finding, help),
    };

    (void)sw_json_enter_array(&r->json);
    while (sw_json_next_element(&r->json)) {
        sw_finding f = {.help = ""};
        if (!sw_plan_read_object(r, what, keys, SW_COUNT(keys), &f))
            return false;
        sw_report_add(r->plan->report, severity, f.code, f.fqn, f.help, "%s", f.what);
        if (sw_report_is_cut(r->plan->report))
            return sw_plan_no_memory(r);
    }
    return r->json.status == SW_OK;
}

static bool read_warnings(sw_plan_reader *r, void *unused)
{
    (void)unused;
    return read_findings(r, "a warning", SW_SEVERITY_WARNING);
}

static bool read_notes(sw_plan_reader *r, void *unused)
{
    (void)unused;
    return read_findings(r, "a note", SW_SEVERITY_NOTE);
}

/* The list repeats what the findings say, so that a consumer need not look through them. */
static bool settle_uncovered(sw_plan_reader *r)
{
    uint32_t n = 0;

    for (size_t i = 0; i < sw_report_count(r->plan->report); i++) {
        const sw_finding *f = sw_report_finding(r->plan->report, i);
        if (strcmp(f->code, "uncovered") != 0)
            continue;
        if (n == r->n_uncovered || strcmp(r->uncovered[n], f->fqn) != 0)
            return sw_plan_refuse(r, "", "uncovered lacks '%.100s', which a finding names", f->fqn);
        n++;
    }
    return n == r->n_uncovered ||
           sw_plan_refuse(r, "", "uncovered: no finding names '%.100s'", r->uncovered[n]);
}

/* ---- the document ---- */

static const sw_plan_key plan_keys[] = {
    SW_KEY_OF_ALL("format", read_format),
    SW_KEY_OF_ALL("version", read_version),
    SW_KEY_OF_ALL("model", read_model),
    SW_KEY_OF_ALL("mesh", read_mesh),
    SW_KEY("sequence_parallel", sw_plan_read_bool, sw_plan, sequence_parallel),
    SW_KEY("loss_parallel", sw_plan_read_bool, sw_plan, loss_parallel),
    SW_KEY("derived", sw_plan_read_bool, sw_plan, derive),
    SW_KEY("allow_uncovered", sw_plan_read_bool, sw_plan, allow_uncovered),
    SW_KEY_OF_ALL("stages", read_stages),
    SW_KEY_OF_ALL("boundaries", sw_plan_read_boundaries),
    SW_KEY_OF_ALL("special", read_specials),
    SW_KEY_OF_ALL("tied", read_tied),
    SW_KEY_OF_ALL("parallel_modules", read_parallel),
    SW_KEY_OF_ALL("uncovered", read_uncovered),
    SW_KEY_OF_ALL("warnings", read_warnings),
    SW_KEY_OF_ALL("notes", read_notes),
};

sw_status sw_plan_read(sw_plan **out, const void *bytes, size_t n_bytes, const char *source, sw_error *err)
{
    sw_plan_reader r SW_AUTO(sw_plan_reader_clear) = {.err = err};
    sw_mesh one_rank;
    sw_plan *plan = NULL;

    *out = NULL;
    SW_TRY(sw_mesh_init(&one_rank, "", 0, err)); /* until the file's is read */
    SW_TRY(sw_plan_make_empty(&plan, &one_rank, err));
    r.plan = plan;
    sw_plan_reader_init(&r);
    sw_json_init(&r.json, bytes, n_bytes, source, plan->arena, err);
    if (sw_plan_read_object(&r, "a plan", plan_keys, SW_COUNT(plan_keys), plan) && sw_json_finish(&r.json) &&
        settle_stages(&r) && settle_specials(&r) && settle_uncovered(&r)) {
        *out = plan;
        return SW_OK;
    }
    sw_plan_destroy(plan);
    return r.json.status;
}

sw_status sw_plan_load(sw_plan **out, const char *path, sw_error *err)
{
    sw_file_map map SW_AUTO(sw_file_map_close) = {0};

    SW_NEED(out, err);
    *out = NULL;
    SW_NEED(path, err);
    SW_TRY(sw_file_map_open(&map, path, SW_PLAN_MAX_BYTES, err));
    if (sw_file_is_lfs_pointer(map))
        return SW_FAIL(err, SW_E_FORMAT, "fetch the file itself: git lfs pull",
                       "%s: a Git LFS pointer, not the file", path);
    return sw_plan_read(out, map.bytes, map.n_bytes, path, err);
}
