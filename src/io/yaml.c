/*
 * The YAML tree of io/yaml.h, built from libyaml's events. What could surprise (aliases that multiply, tags,
 * a second document, a key given twice) is refused, so a file means what it looks like. Invariant: the open
 * nodes are a stack of at most SW_YAML_MAX_DEPTH; everything handed out lives in the caller's arena.
 */
#include "io/yaml.h"

#include <inttypes.h>
#include <string.h>
#include <yaml.h>

#include "base/map.h"
#include "base/status.h"
#include "base/text.h"

typedef struct open_node {
    sw_yaml_node *node;
    sw_yaml_node **tail; /* where the next child is linked */
    const char *key;     /* of the child that comes next; NULL: a key comes next, in a mapping */
} open_node;

typedef struct reader {
    yaml_parser_t parser;
    const char *path;
    sw_arena *arena;
    sw_error *err;
    sw_yaml_node *root;
    open_node open[SW_YAML_MAX_DEPTH];
    size_t depth;
    uint32_t n_documents;
} reader;

static void clear_reader(reader *read)
{
    yaml_parser_delete(&read->parser);
}

static uint32_t line_of(yaml_mark_t mark)
{
    return (uint32_t)mark.line + 1;
}

static sw_status fail_line(const reader *read, uint32_t line, const char *help, const char *what)
{
    return SW_FAIL(read->err, SW_E_FORMAT, help, "%s: line %" PRIu32 ": %s", read->path, line, what);
}

static sw_status fail_parser(const reader *read)
{
    const yaml_parser_t *parser = &read->parser;

    if (parser->error == YAML_MEMORY_ERROR)
        return SW_FAIL(read->err, SW_E_NO_MEMORY, "", "%s: no memory to read it", read->path);
    const char *problem = parser->problem == NULL ? "not YAML" : parser->problem;
    if (parser->error == YAML_READER_ERROR) {
        return SW_FAIL(read->err, SW_E_FORMAT, "save the file as UTF-8", "%s: byte %zu: %s", read->path,
                       parser->problem_offset, problem);
    }
    return fail_line(read, line_of(parser->problem_mark), "the file is not valid YAML", problem);
}

/* Anchors and tags, wherever they stand. */
static sw_status check_plainness(const reader *read, const yaml_event_t *event)
{
    const yaml_char_t *anchor = NULL;
    const yaml_char_t *tag = NULL;

    if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    }
    uint32_t line = line_of(event->start_mark);
    if (anchor != NULL || event->type == YAML_ALIAS_EVENT)
        return fail_line(read, line, "write the value out", "anchors and aliases are not supported");
    if (tag != NULL)
        return fail_line(read, line, "remove the tag", "tags are not supported");
    return SW_OK;
}

/* The text of a scalar event, copied. A NUL inside would end it for everyone who reads it later. */
static sw_status copy_text(const reader *read, const yaml_event_t *event, const char **out)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;

    if (memchr(text, '\0', length) != NULL)
        return fail_line(read, line_of(event->start_mark), "take the character out",
                         "a NUL character in a text");
    *out = sw_arena_copy(read->arena, text, length);
    return *out == NULL ? sw_arena_fail(read->arena, read->path, read->err) : SW_OK;
}

/* Link a new node where it stands: under its key, as the next of a sequence, or as the root. NULL: no room.
 */
static sw_yaml_node *add_node(reader *read, sw_yaml_kind kind, uint32_t line)
{
    sw_yaml_node *node = sw_arena_zero(read->arena, 1, sizeof *node);

    if (node == NULL)
        return NULL;
    *node = (sw_yaml_node){.kind = kind, .line = line, .text = ""};
    if (read->depth == 0) {
        read->root = node;
    } else {
        open_node *parent = &read->open[read->depth - 1];
        node->key = parent->key;
        parent->key = NULL;
        *parent->tail = node;
        parent->tail = &node->next;
        parent->node->n_children++;
    }
    return node;
}

static bool awaits_key(const reader *read)
{
    const open_node *top = read->depth == 0 ? NULL : &read->open[read->depth - 1];
    return top != NULL && top->node->kind == SW_YAML_MAPPING && top->key == NULL;
}

static sw_status take_scalar(reader *read, const yaml_event_t *event)
{
    uint32_t line = line_of(event->start_mark);

    if (awaits_key(read)) {
        if (event->data.scalar.length == 0)
            return fail_line(read, line, "give the key a name", "an empty key");
        return copy_text(read, event, &read->open[read->depth - 1].key);
    }
    sw_yaml_node *node = add_node(read, SW_YAML_SCALAR, line);
    if (node == NULL)
        return sw_arena_fail(read->arena, read->path, read->err);
    node->is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    return copy_text(read, event, &node->text);
}

static sw_status open_container(reader *read, sw_yaml_kind kind, const yaml_event_t *event)
{
    uint32_t line = line_of(event->start_mark);

    if (awaits_key(read))
        return fail_line(read, line, "use a text as the key", "a key that is a mapping or a list");
    if (read->depth == SW_YAML_MAX_DEPTH) {
        return SW_FAIL(read->err, SW_E_LIMIT, "write it with fewer levels",
                       "%s: line %" PRIu32 ": more than %d levels deep", read->path, line, SW_YAML_MAX_DEPTH);
    }
    sw_yaml_node *node = add_node(read, kind, line);
    if (node == NULL)
        return sw_arena_fail(read->arena, read->path, read->err);
    read->open[read->depth++] = (open_node){.node = node, .tail = &node->children};
    return SW_OK;
}

/* Looked for when a mapping is complete: one pass with a map, whatever its size. */
static sw_status check_unique(const reader *read, const sw_yaml_node *mapping)
{
    sw_map keys SW_AUTO(sw_map_clear) = {0};

    for (const sw_yaml_node *child = mapping->children; child != NULL; child = child->next) {
        bool is_new = false;
        if (sw_map_put(&keys, child->key, strlen(child->key), child->line, &is_new) == NULL)
            return SW_FAIL(read->err, SW_E_NO_MEMORY, "", "%s: no memory to read it", read->path);
        if (!is_new) {
            return SW_FAIL(read->err, SW_E_FORMAT, "a key may stand once in a mapping",
                           "%s: line %" PRIu32 ": the key '%.200s' stands twice", read->path, child->line,
                           child->key);
        }
    }
    return SW_OK;
}

static sw_status take_event(reader *read, const yaml_event_t *event)
{
    SW_TRY(check_plainness(read, event));
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        read->n_documents++;
        if (read->n_documents > 1)
            return fail_line(read, line_of(event->start_mark), "split the file", "a second document");
        return SW_OK;
    case YAML_SCALAR_EVENT:
        return take_scalar(read, event);
    case YAML_SEQUENCE_START_EVENT:
        return open_container(read, SW_YAML_SEQUENCE, event);
    case YAML_MAPPING_START_EVENT:
        return open_container(read, SW_YAML_MAPPING, event);
    case YAML_MAPPING_END_EVENT:
        return check_unique(read, read->open[--read->depth].node);
    case YAML_SEQUENCE_END_EVENT:
        read->depth--;
        return SW_OK;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
    case YAML_ALIAS_EVENT:
    default:
        return SW_OK;
    }
}

static sw_status read_events(reader *read)
{
    bool is_end = false;

    while (!is_end) {
        yaml_event_t event;
        if (yaml_parser_parse(&read->parser, &event) == 0)
            return fail_parser(read);
        is_end = event.type == YAML_STREAM_END_EVENT;
        sw_status status = take_event(read, &event);
        yaml_event_delete(&event);
        SW_TRY(status);
    }
    return SW_OK;
}

sw_status sw_yaml_read(sw_yaml_node **out, sw_file_map map, const char *path, sw_arena *arena, sw_error *err)
{
    if (map.n_bytes > SW_YAML_MAX_BYTES) {
        return SW_FAIL(err, SW_E_LIMIT, "use patterns: `*` stands for any characters",
                       "%s: %zu bytes, at most %d are read", path, map.n_bytes, SW_YAML_MAX_BYTES);
    }
    reader read SW_AUTO(clear_reader) = {.path = path, .arena = arena, .err = err};
    if (yaml_parser_initialize(&read.parser) == 0)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "%s: no memory to read it", path);
    yaml_parser_set_encoding(&read.parser, YAML_UTF8_ENCODING);
    size_t mark = sw_utf8_mark(map.bytes, map.n_bytes); /* libyaml would take it for a column */
    yaml_parser_set_input_string(&read.parser, map.bytes + mark, map.n_bytes - mark);
    SW_TRY(read_events(&read));

    bool is_empty = read.root != NULL && read.root->kind == SW_YAML_SCALAR && read.root->is_plain &&
                    read.root->text[0] == '\0';
    *out = is_empty ? NULL : read.root;
    return SW_OK;
}

const sw_yaml_node *sw_yaml_get(const sw_yaml_node *mapping, const char *key)
{
    if (mapping == NULL || mapping->kind != SW_YAML_MAPPING)
        return NULL;
    const sw_yaml_node *child = mapping->children;
    while (child != NULL && strcmp(child->key, key) != 0)
        child = child->next;
    return child;
}

static bool is_one_of(const char *text, const char *const *words, size_t n_words)
{
    for (size_t i = 0; i < n_words; i++) {
        if (strcmp(text, words[i]) == 0)
            return true;
    }
    return false;
}

bool sw_yaml_is_null(const sw_yaml_node *node)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};

    if (node == NULL)
        return true;
    return node->kind == SW_YAML_SCALAR && node->is_plain && is_one_of(node->text, nulls, SW_COUNT(nulls));
}

bool sw_yaml_bool(const sw_yaml_node *node, bool *out)
{
    static const char *const trues[] = {"true", "True", "TRUE"};
    static const char *const falses[] = {"false", "False", "FALSE"};

    if (node == NULL || node->kind != SW_YAML_SCALAR || !node->is_plain)
        return false;
    bool is_true = is_one_of(node->text, trues, SW_COUNT(trues));
    if (!is_true && !is_one_of(node->text, falses, SW_COUNT(falses)))
        return false;
    *out = is_true;
    return true;
}
