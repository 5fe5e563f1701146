/* SPDX-License-Identifier: Apache-2.0 */
/* Get and list: answered from the watch cache. */
#include "apiserver/verbs/read.h"

#include "api/proto.h"
#include "apiserver/access/authz.h"
#include "apiserver/access/node_storage.h"
#include "apiserver/access/visible.h"
#include "apiserver/request/encode.h"
#include "apiserver/request/respond.h"
#include "apiserver/verbs/list_stream.h"
#include "base/base64.h"
#include "base/timeutil.h"
#include "wire/protobuf.h"

#include <inttypes.h>
#include <stdio.h>

/* Lists above either limit are sent in pieces. */
#define LONG_LIST 2000
#define LONG_LIST_BYTES ((size_t) 4 << 20)

/* ---- parameters ---- */

int version_parse(struct request *q, uint64_t *ret, bool *ret_present, struct outcome *outcome)
{
    const char *s = http_query(q->x, "resourceVersion");
    uint64_t n = 0;
    if (s && *s && str_to_u64(s, UINT64_MAX, &n) < 0) {
        outcome_error(outcome, 400, "BadRequest",
                      "resourceVersion: Invalid value: \"%.64s\": strconv.ParseUint: invalid "
                      "syntax",
                      s);
        return -EINVAL;
    }
    *ret = n;
    *ret_present = s && *s;
    return 0;
}

void outcome_too_large(struct outcome *o, const struct request *q, uint64_t revision)
{
    outcome_error(o, 504, "Timeout",
                  "Timeout: Too large resource version: %" PRIu64 ", current: %" PRIu64, revision,
                  q->server->cache.revision);
    outcome_add_cause(o, "ResourceVersionTooLarge", NULL, "Too large resource version");
    o->retry_s = 1;
}

/* Whether the kind shows each user only the objects that the user may
 * get, and this user may not list all of them. */
static bool sees_a_part(struct request *q)
{
    const struct api_kind *k = q->kind;
    return k->personal && (q->verb == VERB_LIST || q->verb == VERB_WATCH) &&
           !q->server->security->open &&
           !authz_may(q->server->security, q->user, "list", k->view->of->group, k->view->of->plural,
                      NULL, NULL);
}

bool own_sees(const struct request *q, const struct object *o)
{
    const struct api_kind *k = q->kind;
    if (!k->own) {
        return true;
    }
    int name = api_field_find(k, "userName"), uid = api_field_find(k, "userUID");
    /* A certificate names no UID. */
    return streq(api_index_field(o->index, (size_t) name), q->user->name) &&
           (!q->user->uid || streq(api_index_field(o->index, (size_t) uid), q->user->uid));
}

int selection_parse(struct request *q, struct selection *ret, struct outcome *outcome)
{
    struct selection s = {.name = q->verb == VERB_WATCH ? q->name : NULL};
    struct err e = {0};
    const struct api_kind *k = q->kind;
    const char *labels = http_query(q->x, "labelSelector");
    const char *fields = http_query(q->x, "fieldSelector");
    if (labels && *labels && api_selector_parse_labels(labels, &s.labels, &e) < 0) {
        outcome_error(outcome, 400, "BadRequest", "%s", e.text);
        return -EINVAL;
    }
    if (fields && *fields) {
        int r = api_selector_parse_fields(k, fields, &s.fields, &e);
        if (r < 0) {
            outcome_error(outcome, 400, "BadRequest", "%s", e.text);
            selection_done(&s);
            return r;
        }
    }
    if (node_storage_is_partial(k) && !q->server->security->open &&
        !q->server->security->always_allow) {
        s.node = user_node(q->user);
        s.kind = k;
        s.parsed = &q->server->parsed;
    }
    s.own = k->own ? q : NULL;
    s.visible = sees_a_part(q) ? visible_ref(q->server->security, q->user, k) : NULL;
    *ret = s;
    return 0;
}

void selection_done(struct selection *s)
{
    s->labels = api_selector_free(s->labels);
    s->fields = api_selector_free(s->fields);
    s->visible = visible_unref(s->visible);
}

bool selection_matches(const struct selection *s, const struct object *o)
{
    return (!s->name || streq(api_index_field(o->index, 0), s->name)) &&
           api_selector_matches(s->fields, o->index) && api_selector_matches(s->labels, o->index) &&
           (!s->own || own_sees(s->own, o)) &&
           (!s->visible || visible_has(s->visible, api_index_field(o->index, 0))) &&
           (!s->node ||
            node_storage_sees(s->node, s->kind, parsed_get(s->parsed, (struct object *) o)));
}

const char *selection_value(const struct request *q, const struct selection *s)
{
    return q->ck->indexed >= 0 ? api_selector_value(s->fields, (size_t) q->ck->indexed) : NULL;
}

struct cache_range selection_range(const struct request *q, const struct selection *s)
{
    return (struct cache_range){
        .namespace = q->namespace,
        .name = s->name ? s->name : api_selector_value(s->fields, 0),
        .value = selection_value(q, s),
    };
}

/* ---- get ---- */

void handle_get(struct request *q, struct outcome *outcome)
{
    uint64_t version;
    bool present;
    if (version_parse(q, &version, &present, outcome) < 0) {
        return;
    }
    if (version > q->server->cache.revision) {
        outcome_too_large(outcome, q, version);
        return;
    }
    CLEANUP_FREE char *key = cache_key(q->namespace, q->name);
    struct object *o = keyset_get(&q->ck->objects, key);
    if (!o || !own_sees(q, o)) {
        outcome_not_found(outcome, q->kind, q->name);
    } else {
        outcome_object(outcome, 200, blob_ref(o->text));
    }
}

/* ---- continue tokens ---- */

/* 'revision' 0: the next page shows the objects that exist then, and 'left' is 0; otherwise
 * 'left' is the number of objects after 'key'. */
static char *token_make(uint64_t revision, const char *key, size_t left)
{
    CLEANUP(json_free) struct json *t = json_object();
    json_set_string(t, "v", "meta.k8s.io/v1");
    json_set_int(t, "rv", revision ? (int64_t) revision : -1);
    json_set_string(t, "start", key);
    if (left) {
        json_set_int(t, "left", (int64_t) left);
    }
    CLEANUP_FREE char *text = json_to_text(t);
    struct strbuf out = STRBUF_INIT;
    base64url_encode(text, strlen(text), &out);
    return strbuf_steal(&out);
}

static int token_parse(const char *s, uint64_t *ret_revision, char **ret_key, size_t *ret_left)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    CLEANUP(json_free) struct json *t = NULL;
    int64_t rv;
    if (base64url_decode(s, strlen(s), &text) < 0 ||
        json_parse(strbuf_cstr(&text), text.size, &t, NULL) < 0 ||
        !streq_null(json_path_string(t, "v", NULL), "meta.k8s.io/v1") ||
        json_get_int(json_get(t, "rv"), &rv) < 0 || rv == 0 || rv < -1 ||
        !json_path_string(t, "start", NULL)) {
        return -EINVAL;
    }
    *ret_revision = rv < 0 ? 0 : (uint64_t) rv;
    *ret_key = xstrdup(json_path_string(t, "start", NULL));
    *ret_left = (size_t) MAX(json_get_int_or(json_get(t, "left"), 0), 0);
    return 0;
}

/* ---- list ---- */

struct list_request {
    struct selection sel;
    uint64_t revision; /* The revision whose state is listed. */
    uint64_t limit;    /* 0: none. */
    char *after;       /* The list continues after this key; NULL: from the start. */
    size_t left;       /* Number of remaining objects; 0: not known yet. */
};

static void list_done(struct list_request *l)
{
    selection_done(&l->sel);
    free(l->after);
}

static void outcome_expired(struct outcome *o, const char *key)
{
    outcome_error(o, 410, "Expired",
                  "The provided continue parameter is too old to display a consistent list "
                  "result. You can start a new list without the continue parameter, or use "
                  "the continue token in this response to retrieve the remainder of the "
                  "results. Continuing with the provided token results in an inconsistent "
                  "list - objects that were created, modified, or deleted between the time "
                  "the first chunk was returned and now may show up in the list.");
    o->resume = token_make(0, key, 0);
}

static int parse_continue(struct request *q, const char *token, struct list_request *l,
                          struct outcome *outcome)
{
    uint64_t revision;
    if (token_parse(token, &revision, &l->after, &l->left) < 0) {
        outcome_error(outcome, 400, "BadRequest", "continue key is not valid");
        return -EINVAL;
    }
    if (revision && revision < q->ck->floor) {
        outcome_expired(outcome, l->after);
        return -EINVAL;
    }
    if (revision > q->server->cache.revision) {
        outcome_too_large(outcome, q, revision);
        return -EINVAL;
    }
    if (revision) {
        l->revision = revision;
    }
    return 0;
}

/* Evaluates resourceVersion, resourceVersionMatch and continue. */
static int parse_revision(struct request *q, struct list_request *l, struct outcome *outcome)
{
    const char *match = http_query(q->x, "resourceVersionMatch");
    const char *token = http_query(q->x, "continue");
    uint64_t version;
    bool present;
    if (version_parse(q, &version, &present, outcome) < 0) {
        return -EINVAL;
    }
    bool exact = match && streq(match, "Exact");
    if (match && *match && !exact && !streq(match, "NotOlderThan")) {
        outcome_error(outcome, 400, "BadRequest",
                      "resourceVersionMatch: Unsupported value: \"%.40s\": supported values: "
                      "\"Exact\", \"NotOlderThan\"",
                      match);
        return -EINVAL;
    }
    if (match && *match && !present) {
        outcome_error(outcome, 400, "BadRequest",
                      "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless "
                      "resourceVersion is provided");
        return -EINVAL;
    }
    if (exact && version == 0) {
        outcome_error(
            outcome, 400, "BadRequest",
            "resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden "
            "for resourceVersion \"0\"");
        return -EINVAL;
    }
    l->revision = q->server->cache.revision;
    if (token && *token) {
        if (version) {
            outcome_error(outcome, 400, "BadRequest",
                          "specifying resource version is not allowed when using continue");
            return -EINVAL;
        }
        return parse_continue(q, token, l, outcome);
    }
    if (version > l->revision) {
        outcome_too_large(outcome, q, version);
        return -EINVAL;
    }
    if (version && (exact || (!match && l->limit))) {
        if (version < q->ck->floor) {
            outcome_error(outcome, 410, "Expired",
                          "The resourceVersion for the provided list is too old.");
            return -EINVAL;
        }
        l->revision = version;
    }
    return 0;
}

static int list_parse(struct request *q, struct list_request *l, struct outcome *outcome)
{
    const char *limit = http_query(q->x, "limit");
    uint64_t below_zero;
    if (limit && *limit == '-' && str_to_u64(limit + 1, INT64_MAX, &below_zero) == 0) {
        limit = NULL; /* A negative limit is none. */
    }
    if (limit && *limit && str_to_u64(limit, INT64_MAX, &l->limit) < 0) {
        outcome_error(outcome, 400, "BadRequest", "limit: Invalid value: \"%.40s\"", limit);
        return -EINVAL;
    }
    return parse_revision(q, l, outcome) < 0 || selection_parse(q, &l->sel, outcome) < 0 ? -EINVAL
                                                                                         : 0;
}

void list_write_item(struct request *q, const struct object *o, int64_t now_ms, struct strbuf *out)
{
    const struct accept *a = &q->accept;
    CLEANUP(blob_unref) struct blob *text = request_text(q, o->text);
    if (a->form == FORM_OBJECT) {
        request_write_item(q, text, out);
        return;
    }
    if (a->form == FORM_PARTIAL) {
        request_write_partial(q, text, out);
        return;
    }
    CLEANUP(json_free) struct json *obj = object_parse_as(o, q->kind);
    api_table_row(q->kind, obj, text->data, text->size, a->include, now_ms, out);
}

static void write_head(struct request *q, const struct list_request *l, const char *token,
                       size_t remaining, struct strbuf *out)
{
    const struct accept *a = &q->accept;
    const struct api_kind *k = q->kind;
    const char *version = a->v1beta1 ? "v1beta1" : "v1";
    if (a->form == FORM_TABLE) {
        strbuf_addf(out, "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/%s\"", version);
    } else if (a->form == FORM_PARTIAL) {
        strbuf_addf(out,
                    "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/%s\"",
                    version);
    } else {
        CLEANUP_FREE char *own = request_api_version(q);
        CLEANUP_FREE char *list = api_kind_list_kind(k);
        strbuf_addf(out, "{\"kind\":\"%s\",\"apiVersion\":\"%s\"", list, own);
    }
    strbuf_addf(out, ",\"metadata\":{\"resourceVersion\":\"%" PRIu64 "\"", l->revision);
    if (token) {
        strbuf_addf(out, ",\"continue\":\"%s\"", token);
        if (!l->sel.labels && !l->sel.fields) {
            strbuf_addf(out, ",\"remainingItemCount\":%zu", remaining);
        }
    }
    strbuf_adds(out, "},");
    if (a->form == FORM_TABLE) {
        strbuf_adds(out, "\"columnDefinitions\":");
        api_table_columns(k, out);
        strbuf_addc(out, ',');
    }
    strbuf_addf(out, "\"%s\":[", a->form == FORM_TABLE ? "rows" : "items");
}

/* The objects of the page; '*ret_remaining' is the number of objects that follow
 * (at least one, if it cannot be determined). */
static struct object **collect(struct request *q, const struct list_request *l, size_t *ret_n,
                               size_t *ret_size, size_t *ret_remaining)
{
    struct object **found = NULL, *o;
    size_t n = 0, cap = 0, size = 0, remaining = 0;
    struct cache_walk w;
    struct cache_range range = selection_range(q, &l->sel);
    range.after = l->after;
    cache_walk_init(&w, q->ck, &range, l->revision);
    while ((o = cache_walk_next(&w))) {
        if (!selection_matches(&l->sel, o)) {
            continue;
        }
        if (l->limit && n == l->limit) {
            remaining++;
            if (l->sel.labels || l->sel.fields) {
                break;
            }
            if (l->left > n) {
                remaining = l->left - n;
                break;
            }
            continue;
        }
        found = grow(found, &cap, n + 1, sizeof(struct object *));
        found[n++] = o;
        size += o->text->size + 1;
    }
    cache_walk_done(&w);
    *ret_n = n;
    *ret_size = size;
    *ret_remaining = remaining;
    return found;
}

/* The whole list in protobuf. */
static void put_proto(struct request *q, struct object **found, size_t n,
                      const struct strbuf *metadata, struct strbuf *out)
{
    CLEANUP_STRBUF struct strbuf items = STRBUF_INIT;
    for (size_t i = 0; i < n; i++) {
        CLEANUP(blob_unref) struct blob *message = encode_cached(q, found[i]);
        pb_put_bytes(&items, API_PROTO_ITEM, message->data, message->size);
    }
    encode_list_head(q, metadata->size + items.size, out);
    strbuf_add(out, metadata->data, metadata->size);
    strbuf_add(out, strbuf_cstr(&items), items.size);
    api_proto_put_end(out);
}

/* Answers with these objects; the array is taken over.  'size': their bytes. */
static void put_list(struct request *q, const struct list_request *l, struct object **list,
                     size_t n, size_t size, size_t remaining, struct outcome *outcome)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    CLEANUP_FREE struct object **found = list;
    CLEANUP_FREE char *token =
        remaining ? token_make(l->revision, found[n - 1]->key, remaining) : NULL;
    int64_t now_ms = time_wall_ms();
    bool is_long = n > LONG_LIST || size > LONG_LIST_BYTES;
    if (q->accept.protobuf) {
        CLEANUP_STRBUF struct strbuf metadata = STRBUF_INIT;
        bool counted = token && !l->sel.labels && !l->sel.fields;
        api_proto_put_list_meta(l->revision, token, counted ? &remaining : NULL, &metadata);
        if (is_long) {
            outcome_take_over(outcome);
            list_stream_begin(q, &metadata, TAKE(found), n);
        } else {
            put_proto(q, found, n, &metadata, &out);
            outcome_text(outcome, 200, API_PROTO_TYPE, &out);
        }
        return;
    }
    write_head(q, l, token, remaining, &out);
    bool plain = !q->accept.pretty && !q->accept.yaml;
    if (plain && is_long) {
        outcome_take_over(outcome);
        list_stream_begin(q, &out, TAKE(found), n);
        return;
    }
    strbuf_reserve(&out, q->accept.form == FORM_OBJECT ? size + 3 : 0);
    for (size_t i = 0; i < n; i++) {
        if (i) {
            strbuf_addc(&out, ',');
        }
        list_write_item(q, found[i], now_ms, &out);
    }
    strbuf_adds(&out, "]}\n");
    if (plain) {
        outcome_text(outcome, 200, NULL, &out);
        return;
    }
    struct json *v = NULL;
    json_parse(out.data, out.size, &v, NULL);
    outcome_json(outcome, 200, NULL, v);
}

static void fill_list(struct request *q, const struct list_request *l, struct outcome *outcome)
{
    size_t n, size, remaining;
    struct object **found = collect(q, l, &n, &size, &remaining);
    put_list(q, l, found, n, size, remaining, outcome);
}

void list_answer(struct request *q, struct object *const *found, size_t n, struct outcome *outcome)
{
    const struct list_request l = {.revision = q->server->cache.revision};
    struct object **list = n ? xcalloc(n, sizeof *list) : NULL;
    size_t size = 0;
    for (size_t i = 0; i < n; i++) {
        list[i] = found[i];
        size += found[i]->text->size + 1;
    }
    put_list(q, &l, list, n, size, 0, outcome);
}

void handle_list(struct request *q, struct outcome *outcome)
{
    struct list_request l = {0};
    if (list_parse(q, &l, outcome) == 0) {
        fill_list(q, &l, outcome);
    }
    list_done(&l);
}
