/*
 * Reading override files: what each key becomes, each refusal with its text, limits, memory, and the examples
 * and tables of docs/formats/overrides.md against the code.
 */
#include "override_case.h"

#include "base/alloc.h"
#include "base/buffer.h"

/* ---- documents ---- */

static void a_bare_list_is_its_overrides(void **state)
{
    (void)state;
    sw_overrides *o = list_of("- match: a\n- match: b*\n  when: cp\n");
    assert_int_equal(o->n_entries, 2);
    assert_string_equal(o->entries[0].match, "a");
    assert_string_equal(o->entries[0].source, "o.yaml:1");
    assert_false(o->entries[0].is_glob);
    assert_int_equal(o->entries[0].when, SW_WHEN_ALWAYS);
    assert_int_equal(o->entries[0].region_dispatch, -1);
    assert_string_equal(o->entries[1].match, "b*");
    assert_string_equal(o->entries[1].source, "o.yaml:2");
    assert_true(o->entries[1].is_glob);
    assert_int_equal(o->entries[1].when, SW_WHEN_CP);
    sw_overrides_destroy(o);
}

static void an_empty_document_overrides_nothing(void **state)
{
    (void)state;
    sw_overrides *o = list_of("# nothing yet\n");
    read_more(o, "", "empty");
    read_more(o, "overrides: []", "list");
    assert_int_equal(o->n_entries, 0);
    assert_true(o->derive);
    assert_false(o->has_roles);
    sw_overrides_destroy(o);
}

static void derive_is_stored_and_the_last_file_holds(void **state)
{
    (void)state;
    sw_overrides *o = list_of("derive: false\noverrides: [{match: x}]");
    assert_false(o->derive);
    assert_int_equal(o->n_entries, 1);
    read_more(o, "overrides: []", "b");
    assert_false(o->derive);
    read_more(o, "derive: true", "c");
    assert_true(o->derive);
    sw_overrides_destroy(o);
}

static void the_empty_match_is_the_root(void **state)
{
    (void)state;
    sw_overrides *o = list_of("- match: \"\"\n  params: {}\n");
    assert_string_equal(o->entries[0].match, "");
    assert_false(o->entries[0].is_glob);
    assert_int_equal(o->entries[0].params.mode, SW_FIELD_VALUE);
    assert_int_equal(o->entries[0].params.n, 0);
    sw_overrides_destroy(o);
}

/* ---- contract fields ---- */

static void auto_is_unset_none_clears_and_a_mapping_is_a_value(void **state)
{
    (void)state;
    sw_overrides *o =
        list_of("- match: a\n  params: auto\n  in_src: none\n  in_dst: {}\n  out_src: \"auto\"\n"
                "  out_dst: none\n  out_names: none\n");
    const sw_override_entry *e = &o->entries[0];
    assert_int_equal(e->params.mode, SW_FIELD_UNSET);
    assert_int_equal(e->in_src.mode, SW_FIELD_NONE);
    assert_int_equal(e->in_dst.mode, SW_FIELD_VALUE);
    assert_int_equal(e->in_dst.n, 0);
    assert_int_equal(e->out_src.mode, SW_FIELD_UNSET);
    assert_int_equal(e->out_dst.mode, SW_FIELD_NONE);
    assert_int_equal(e->out_names_mode, SW_FIELD_NONE);
    sw_overrides_destroy(o);
}

static void params_keep_their_order_and_axes(void **state)
{
    (void)state;
    sw_overrides *o = list_of("- match: a\n"
                              "  params:\n"
                              "    z.weight: {tp: \" Shard( 1 ) \", cp: REPLICATE}\n"
                              "    b.weight: {ep: S(0)}\n"
                              "    a.weight: {tp: S(-1)}\n"
                              "    q.weight: {tp: \"S(0;seg=8+4r2+4r2)\"}\n");
    const sw_override_io *params = &o->entries[0].params;
    assert_int_equal(params->mode, SW_FIELD_VALUE);
    assert_int_equal(params->n, 4);
    assert_io(params, 0, "z.weight", "cp=R tp=S(1)");
    assert_io(params, 1, "b.weight", "ep=S(0)");
    assert_io(params, 2, "a.weight", "tp=S(-1)");
    assert_io(params, 3, "q.weight", "tp=S(0;seg=8+4r2+4r2)");
    sw_overrides_destroy(o);
}

static void a_plus_makes_params_a_patch(void **state)
{
    (void)state;
    sw_overrides *o = list_of("- match: a\n  params: {+: {w: {tp: shard(0)}}}\n");
    assert_int_equal(o->entries[0].params.mode, SW_FIELD_PATCH);
    assert_int_equal(o->entries[0].params.n, 1);
    assert_io(&o->entries[0].params, 0, "w", "tp=S(0)");
    sw_overrides_destroy(o);
}

static void outputs_without_a_name_are_the_single_output(void **state)
{
    (void)state;
    sw_overrides *o = list_of("- match: a\n  out_src: {tp: partial, cp: shard(1)}\n"
                              "  out_dst: {h: {tp: shard(1)}, w: {tp: replicate}}\n  out_names: [w, h]\n");
    const sw_override_entry *e = &o->entries[0];
    assert_true(e->out_src.is_bare);
    assert_int_equal(e->out_src.n, 1);
    assert_io(&e->out_src, 0, "output", "cp=S(1) tp=P");
    assert_false(e->out_dst.is_bare);
    assert_io(&e->out_dst, 0, "h", "tp=S(1)");
    assert_io(&e->out_dst, 1, "w", "tp=R");
    assert_int_equal(e->out_names_mode, SW_FIELD_VALUE);
    assert_int_equal(e->n_out_names, 2);
    assert_string_equal(e->out_names[0], "w");
    assert_string_equal(e->out_names[1], "h");
    sw_overrides_destroy(o);
}

static void injections_are_read_by_their_registered_names(void **state)
{
    (void)state;
    sw_overrides *o =
        list_of("- match: a\n  region_dispatch: false\n  inner_target: self\n  inner_wrapper: cp_ring\n"
                "  inner_out_src: first_input\n  local_compute: ep_experts\n"
                "- match: b\n  region_dispatch: true\n  inner_out_src: {tp: shard(2)}\n"
                "- match: c\n  inner_out_src: {q: {tp: shard(2)}, k: {tp: replicate}}\n");
    assert_int_equal(o->entries[0].region_dispatch, 0);
    assert_string_equal(o->entries[0].inner_target, "self");
    assert_string_equal(o->entries[0].inner_wrapper, "cp_ring");
    assert_string_equal(o->entries[0].local_compute, "ep_experts");
    assert_true(o->entries[0].has_inner_out_src);
    assert_true(o->entries[0].inner_first_input);
    assert_int_equal(o->entries[1].region_dispatch, 1);
    assert_true(o->entries[1].has_inner_out_src);
    assert_false(o->entries[1].inner_first_input);
    assert_int_equal(o->entries[1].inner_out_src.mode, SW_FIELD_VALUE);
    assert_io(&o->entries[1].inner_out_src, 0, "output", "tp=S(2)");
    assert_int_equal(o->entries[2].inner_out_src.n, 2);
    assert_io(&o->entries[2].inner_out_src, 1, "k", "tp=R");
    sw_overrides_destroy(o);
}

static void attributes_to_divide_are_listed_and_an_empty_list_counts(void **state)
{
    (void)state;
    sw_overrides *o =
        list_of("- {match: a, tp_divide_attrs: [num_heads, _n2]}\n- {match: b, tp_divide_attrs: []}\n");
    assert_true(o->entries[0].has_tp_divide);
    assert_int_equal(o->entries[0].n_tp_divide, 2);
    assert_string_equal(o->entries[0].tp_divide[1], "_n2");
    assert_true(o->entries[1].has_tp_divide);
    assert_int_equal(o->entries[1].n_tp_divide, 0);
    sw_overrides_destroy(o);
}

/* ---- refusals ---- */

#define GRAMMAR                                                                                              \
    "write replicate, partial or shard(N) with N = 0, 1, ..., or a placement as plan files have it: R, P, "  \
    "S(0), S(0;seg=64+16r2+16r2)"
#define NO_VALUE "leave the key out, or give it a value; the empty text is \"\""

static void documents_that_are_no_overrides_are_refused(void **state)
{
    (void)state;
    // clang-format off
    static const refusal rows[] = {
        { "hello", "o.yaml:1: expected a mapping or a list of overrides", "begin with 'overrides:' or with '- match:'" },
        { "override: []", "o.yaml:1: unknown key 'override'", "did you mean 'overrides'?" },
        { "\n\nzzz: []", "o.yaml:3: unknown key 'zzz'", "known: overrides, roles, arch_roles, derive" },
        { "overrides:\n", "o.yaml:1: 'overrides' has no value", NO_VALUE },
        { "overrides: {match: a}", "o.yaml:1: overrides: expected a list of overrides", "begin each entry with '- match:'" },
        { "derive: \"false\"", "o.yaml:1: derive: 'false' is not true or false", "write true or false, without quotes" },
        { "derive: [no]", "o.yaml:1: derive: '' is not true or false", "write true or false, without quotes" },
        { "- a", "o.yaml:1: an override is a mapping", "write - {match: model.norm, ...}" },
        { "- {params: {}}", "o.yaml:1: an override without match", "name a module, or a pattern: match: \"*.self_attn\"" },
        { "- match: a\n- parms: {}\n  match: b", "o.yaml:2: unknown key 'parms'", "did you mean 'params'?" },
        { "- match:\n", "o.yaml:1: 'match' has no value", NO_VALUE },
        { "- match: [a, b]", "o.yaml:1: match: a list or a mapping; expected one FQN or pattern",
          "write one entry for each, or a pattern: `*` stands for any characters" },
        { "- match: \"a\\tb\"", "o.yaml:1: match: the name 'a?b' has control characters", "write 1 to 1024 bytes of UTF-8 on one line" },
        { "- {match: a, when: low_precision}", "o.yaml:1: when: 'low_precision' is not tp, cp or ep",
          "write tp, cp or ep: the entry holds when that axis has more than one rank" },
    };
    // clang-format on
    check_refusals(rows, SW_COUNT(rows));
}

static void contract_fields_with_faults_are_refused(void **state)
{
    (void)state;
    // clang-format off
    static const refusal rows[] = {
        { "- match: a\n  params: auto2", "o.yaml:2: params: 'auto2' is not auto, none or a mapping",
          "write {q_proj.weight: {tp: shard(0)}}" },
        { "- match: a\n  params:", "o.yaml:2: 'params' has no value", NO_VALUE },
        { "- match: a\n  in_src: [x]", "o.yaml:2: in_src: a list; expected auto, none or a mapping",
          "write {hidden_states: {tp: shard(1)}}" },
        { "- match: a\n  params:\n    w: {tp: shard(-1)}", "o.yaml:3: params: w: tp: 'shard(-1)' is not a placement", GRAMMAR },
        { "- match: a\n  out_dst: {tp: partial(max)}", "o.yaml:2: out_dst: output: tp: 'partial(max)' is not a placement",
          GRAMMAR },
        { "- match: a\n  params: {w: {tp: }}", "o.yaml:2: params: w: tp: '' is not a placement", GRAMMAR },
        { "- match: a\n  params: {w: {tp: partial}}", "o.yaml:2: params: w: tp: a stored parameter cannot be partial", "write replicate or shard(N)" },
        { "- match: a\n  params: {w: {tp: [shard(0)]}}",
          "o.yaml:2: params: w: tp: a placement is a word, not a list or a mapping", "write replicate, partial or shard(N)" },
        { "- match: a\n  params: {w: {tp2: shard(0)}}", "o.yaml:2: params: unknown axis 'tp2'", "did you mean 'tp'?" },
        { "- match: a\n  out_dst: {output: partial}", "o.yaml:2: out_dst: unknown axis 'output'", "known: tp, cp, ep" },
        { "- match: a\n  params: {w: {dp: shard(0)}}",
          "o.yaml:2: params: w: axis dp: a data-parallel placement does not belong in a plan",
          "placements are over tp, cp and ep" },
        { "- match: a\n  in_src: {x: {dp_shard: shard(0)}}",
          "o.yaml:2: in_src: x: axis dp_shard: a data-parallel placement does not belong in a plan",
          "placements are over tp, cp and ep" },
        { "- match: a\n  out_dst: {dp_replicate: shard(0)}",
          "o.yaml:2: out_dst: output: axis dp_replicate: a data-parallel placement does not belong in a plan",
          "placements are over tp, cp and ep" },
        { "- match: a\n  out_src: {dp_cp: shard(0)}",
          "o.yaml:2: out_src: output: axis dp_cp: a data-parallel placement does not belong in a plan",
          "placements are over tp, cp and ep" },
        { "- match: a\n  params: {w: {ep_shard: shard(0)}}",
          "o.yaml:2: params: w: axis ep_shard: a data-parallel placement does not belong in a plan",
          "placements are over tp, cp and ep" },
        { "- match: a\n  params: {w: {pp: shard(0)}}",
          "o.yaml:2: params: w: axis pp: a pipeline placement does not belong in a plan",
          "placements are over tp, cp and ep" },
        { "- match: a\n  params: {w: {}}", "o.yaml:2: params: w is not a mapping from axis to placement",
          "write {tp: shard(0)}" },
        { "- match: a\n  in_dst: {tp: shard(1)}", "o.yaml:2: in_dst: tp is not a mapping from axis to placement",
          "write {tp: shard(0)}" },
        { "- match: a\n  params: {+: {w: {tp: R}}, v: {tp: R}}", "o.yaml:2: params: '+' stands alone in its mapping",
          "put the other keys under '+'" },
        { "- match: a\n  params: {+: auto}", "o.yaml:2: params: '+' is not a mapping",
          "write {+: {q_proj.weight: {tp: shard(0)}}}" },
        { "- match: a\n  out_src: {tp: \"S(0;seg=4+4)\"}",
          "o.yaml:2: out_src: output: tp: a composed cut belongs in params; inputs and outputs are cut into equal pieces", "write replicate or shard(N)" },
        { "- match: a\n  out_names: {a: b}", "o.yaml:2: out_names: a mapping; expected a list of names",
          "write [hidden_states, weights]" },
        { "- match: a\n  out_names: x", "o.yaml:2: out_names: 'x' is not auto, none or a mapping",
          "write [hidden_states, weights]" },
        { "- match: a\n  out_names: [x, x]", "o.yaml:2: out_names: the name 'x' stands twice", "remove one" },
        { "- match: a\n  out_names: [[x]]", "o.yaml:2: out_names: a name is a text, not a list or a mapping", "write [a, b]" },
    };
    // clang-format on
    check_refusals(rows, SW_COUNT(rows));
}

static void other_keys_with_faults_are_refused(void **state)
{
    (void)state;
    // clang-format off
    static const refusal rows[] = {
        { "- match: a\n  tp_divide_attrs: num_heads", "o.yaml:2: tp_divide_attrs: expected a list of attributes",
          "write [a, b]" },
        { "- match: a\n  tp_divide_attrs: [a, 2b]", "o.yaml:2: tp_divide_attrs: '2b' is not the name of an attribute",
          "name an attribute of the module, such as num_heads" },
        { "- match: a\n  tp_divide_attrs: [a.b]", "o.yaml:2: tp_divide_attrs: 'a.b' is not the name of an attribute",
          "name an attribute of the module, such as num_heads" },
        { "- match: a\n  tp_divide_attrs: [a,\n a]", "o.yaml:3: tp_divide_attrs: the attribute 'a' stands twice", "remove one" },
        { "- match: a\n  tp_divide_attrs: [\"\"]", "o.yaml:2: tp_divide_attrs: the attribute '' is empty", "write 1 to 1024 bytes of UTF-8 on one line" },
        { "- match: a\n  region_dispatch: yes", "o.yaml:2: region_dispatch: 'yes' is not true or false", "write true or false, without quotes" },
        { "- match: a\n  inner_wrapper: cp_rings", "o.yaml:2: inner_wrapper: unknown function 'cp_rings'",
          "did you mean 'cp_ring'?" },
        { "- match: a\n  local_compute: my.module.fn", "o.yaml:2: local_compute: unknown function 'my.module.fn'",
          "known: ep_experts, grouped_experts" },
        { "- match: a\n  inner_target: [a]", "o.yaml:2: inner_target: a list or a mapping; expected a name", "write one name" },
        { "- match: a\n  inner_out_src: second_input", "o.yaml:2: inner_out_src: expected first_input or placements",
          "write first_input, {tp: shard(2)} or {output: {tp: shard(2)}}" },
        { "- match: a\n  inner_out_src: {}", "o.yaml:2: inner_out_src: expected first_input or placements",
          "write first_input, {tp: shard(2)} or {output: {tp: shard(2)}}" },
    };
    // clang-format on
    check_refusals(rows, SW_COUNT(rows));
}

static void a_refused_file_leaves_the_list_as_it_was(void **state)
{
    (void)state;
    sw_overrides *o = list_of("derive: false\nroles: [[a, norm]]\narch_roles: {qwen2: [[a, norm]]}\n"
                              "overrides: [{match: a, params: {+: {w: {tp: R}}}}]");
    const char *text =
        "derive: true\nroles: {extend: true, rules: []}\narch_roles: {qwen2: [], llama: []}\n"
        "overrides: [{match: a, params: {+: {v: {tp: R}}}}, {match: b}, {match: c, when: never}]";
    assert_int_equal(sw_overrides_read(o, text, strlen(text), "bad.yaml", NULL), SW_E_FORMAT);
    assert_false(o->derive);
    assert_int_equal(o->roles.n_rules, 1);
    assert_false(o->extends_roles);
    assert_int_equal(o->n_arch_roles, 1);
    assert_int_equal(o->arch_roles[0].rules.n_rules, 1);
    assert_int_equal(o->n_entries, 1);
    assert_int_equal(o->entries[0].params.n, 1);
    assert_string_equal(o->entries[0].source, "o.yaml:4");
    sw_overrides_destroy(o);
}

/* ---- limits and memory ---- */

static void assert_limit(const char *text, size_t length, const char *part)
{
    sw_overrides *o = list_of("[]");
    sw_error err = {0};
    assert_int_equal(sw_overrides_read(o, text, length, "o.yaml", &err), SW_E_LIMIT);
    assert_non_null(strstr(err.what, part));
    assert_int_equal(o->n_entries, 0);
    sw_overrides_destroy(o);
}

static void one_entry_or_rule_too_many_is_refused(void **state)
{
    (void)state;
    sw_buffer text = {0};
    for (int i = 0; i <= SW_OVERRIDE_MAX_ENTRIES; i++)
        sw_buffer_printf(&text, "- {match: m%d}\n", i);
    assert_limit(sw_buffer_text(&text), text.length, "o.yaml:16385: more than 16384 overrides");
    sw_buffer_clear(&text);

    sw_buffer_puts(&text, "roles:\n");
    for (int i = 0; i <= SW_OVERRIDE_MAX_RULES; i++)
        sw_buffer_puts(&text, "- [a, norm]\n");
    assert_limit(sw_buffer_text(&text), text.length, "1025 rules, at most 1024");
    sw_buffer_clear(&text);

    sw_buffer_puts(&text, "roles:\n- pattern: [");
    for (int i = 0; i <= SW_OVERRIDE_MAX_PATTERNS; i++)
        sw_buffer_printf(&text, "p%d, ", i);
    sw_buffer_puts(&text, "]\n");
    assert_limit(sw_buffer_text(&text), text.length, "257 patterns, at most 256");
    sw_buffer_clear(&text);

    sw_buffer_puts(&text, "arch_roles:\n");
    for (int i = 0; i <= SW_OVERRIDE_MAX_ARCHITECTURES; i++)
        sw_buffer_printf(&text, "  a%d: []\n", i);
    assert_limit(sw_buffer_text(&text), text.length, "more than 1024 architectures");
    sw_buffer_clear(&text);
}

static void names_are_bounded(void **state)
{
    (void)state;
    sw_buffer text = {0};
    sw_error err = {0};
    sw_overrides *o = list_of("[]");
    sw_buffer_puts(&text, "- match: ");
    for (int i = 0; i < SW_OVERRIDE_MAX_NAME; i++)
        sw_buffer_putc(&text, 'x');
    assert_int_equal(sw_overrides_read(o, sw_buffer_text(&text), text.length, "o.yaml", &err), SW_OK);
    sw_buffer_putc(&text, 'x');
    assert_int_equal(sw_overrides_read(o, sw_buffer_text(&text), text.length, "o.yaml", &err), SW_E_FORMAT);
    assert_non_null(strstr(err.what, "is longer than 1024 bytes"));
    assert_int_equal(o->n_entries, 1);
    sw_buffer_clear(&text);
    sw_overrides_destroy(o);
}

static void the_memory_of_a_list_is_bounded(void **state)
{
    (void)state;
    sw_buffer text = {0};
    sw_overrides *o = list_of("[]");
    sw_error err = {0};
    sw_status status = SW_OK;
    sw_buffer_puts(&text, "- match: a\n  params:\n");
    for (int i = 0; i < 20000; i++)
        sw_buffer_printf(&text, "    w%d: {tp: shard(0)}\n", i);
    for (int i = 0; i < 200 && status == SW_OK; i++)
        status = sw_overrides_read(o, sw_buffer_text(&text), text.length, "o.yaml", &err);
    assert_int_equal(status, SW_E_LIMIT);
    assert_int_equal(err.status, SW_E_LIMIT);
    assert_int_equal(o->n_entries, 1);
    sw_buffer_clear(&text);
    sw_overrides_destroy(o);
}

static void every_failed_allocation_is_reported_and_changes_nothing(void **state)
{
    (void)state;
    const char *text = "derive: false\n"
                       "roles: [[[a, b], norm]]\narch_roles: {qwen2: [[a, norm]]}\n"
                       "overrides:\n- match: kept\n  params: {+: {v: {tp: \"S(0;seg=4+4)\"}}}\n"
                       "- match: b\n  out_names: [x]\n  layout: {segments: [4, 4]}\n  in_src: {h: {tp: R}}\n";
    sw_overrides *o = list_of("- match: kept\n  params: {+: {w: {tp: R}}}\n");
    int64_t live = sw_alloc_live();
    sw_status status = SW_E_NO_MEMORY;

    for (uint64_t n = 1; status != SW_OK; n++) {
        sw_error err = {0};
        sw_alloc_fail_at(n);
        status = sw_overrides_read(o, text, strlen(text), "o.yaml", &err);
        sw_alloc_fail_at(0);
        if (status == SW_OK)
            break;
        assert_int_equal(status, SW_E_NO_MEMORY);
        assert_int_equal(err.status, SW_E_NO_MEMORY);
        assert_true(o->derive);
        assert_false(o->has_roles);
        assert_int_equal(o->n_entries, 1);
        assert_int_equal(o->entries[0].params.n, 1);
        assert_true(n < 100);
    }
    assert_int_equal(o->n_entries, 2);
    assert_int_equal(o->entries[0].params.n, 2);
    assert_true(sw_alloc_live() >= live);
    sw_overrides_destroy(o);
}

/* ---- docs/formats/overrides.md ---- */

static char *read_page(void)
{
    FILE *file = fopen(SW_SOURCE_DIR "/docs/formats/overrides.md", "rb");
    assert_non_null(file);
    char *text = test_calloc(1, 1 << 20);
    size_t n = fread(text, 1, (1 << 20) - 1, file);
    assert_true(n > 1000);
    assert_int_equal(fclose(file), 0);
    return text;
}

static void every_example_of_the_page_is_read(void **state)
{
    (void)state;
    static const char open[] = "\n```yaml\n";
    char *page = read_page();
    int n_examples = 0;

    for (char *at = strstr(page, open); at != NULL; at = strstr(at, open)) {
        at += strlen(open);
        char *end = strstr(at, "\n```\n");
        assert_non_null(end);
        *end = '\0';
        sw_overrides *o = list_of(at);
        assert_true(o->n_entries > 0 || o->has_roles);
        sw_overrides_destroy(o);
        at = end + 1;
        n_examples++;
    }
    assert_int_equal(n_examples, 8);
    test_free(page);
}

/* First cells of the table behind a heading, "a, b, c". */
static void first_cells(const char *page, const char *heading, char *out, size_t capacity)
{
    const char *line = strstr(page, heading);
    size_t used = 0;

    assert_non_null(line);
    line = strstr(line, "\n|---");
    assert_non_null(line);
    line = strchr(line + 1, '\n');
    while (line != NULL && strncmp(line, "\n| `", 4) == 0) {
        const char *end = strchr(line + 4, '`');
        assert_non_null(end);
        used += (size_t)snprintf(out + used, capacity - used, "%s%.*s", used == 0 ? "" : ", ",
                                 (int)(end - line - 4), line + 4);
        assert_true(used < capacity);
        line = strchr(line + 1, '\n');
    }
}

static void assert_words(const char *page, const char *heading, const char *text)
{
    char expected[512] = "";
    char known[600];
    sw_error err = {0};
    sw_overrides *o = list_of("[]");
    first_cells(page, heading, expected, sizeof expected);
    (void)snprintf(known, sizeof known, "known: %s", expected);
    assert_int_equal(sw_overrides_read(o, text, strlen(text), "o.yaml", &err), SW_E_FORMAT);
    assert_string_equal(err.help, known);
    sw_overrides_destroy(o);
}

static void the_tables_of_the_page_are_those_of_the_reader(void **state)
{
    (void)state;
    char *page = read_page();
    assert_words(page, "\n## The document", "zzzzzzzzz: 1");
    assert_words(page, "\n## Entries", "- {zzzzzzzzz: 1}");
    assert_words(page, "\n## Layout", "- {match: a, layout: {zzzzzzzzz: 1, dim: 0}}");
    assert_words(page, "\n| word |", "- {match: a, layout: zzzzzzzzz}");
    test_free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bare_list_is_its_overrides),
        cmocka_unit_test(an_empty_document_overrides_nothing),
        cmocka_unit_test(derive_is_stored_and_the_last_file_holds),
        cmocka_unit_test(the_empty_match_is_the_root),
        cmocka_unit_test(auto_is_unset_none_clears_and_a_mapping_is_a_value),
        cmocka_unit_test(params_keep_their_order_and_axes),
        cmocka_unit_test(a_plus_makes_params_a_patch),
        cmocka_unit_test(outputs_without_a_name_are_the_single_output),
        cmocka_unit_test(injections_are_read_by_their_registered_names),
        cmocka_unit_test(attributes_to_divide_are_listed_and_an_empty_list_counts),
        cmocka_unit_test(documents_that_are_no_overrides_are_refused),
        cmocka_unit_test(contract_fields_with_faults_are_refused),
        cmocka_unit_test(other_keys_with_faults_are_refused),
        cmocka_unit_test(a_refused_file_leaves_the_list_as_it_was),
        cmocka_unit_test(one_entry_or_rule_too_many_is_refused),
        cmocka_unit_test(names_are_bounded),
        cmocka_unit_test(the_memory_of_a_list_is_bounded),
        cmocka_unit_test(every_failed_allocation_is_reported_and_changes_nothing),
        cmocka_unit_test(every_example_of_the_page_is_read),
        cmocka_unit_test(the_tables_of_the_page_are_those_of_the_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
