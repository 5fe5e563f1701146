/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/workloads/history.h"

#include "api/patch/patch.h"
#include "base/mem.h"
#include "cli/kubectl/print.h"
#include "cli/workloads/template.h"
#include "workload/deployment.h"
#include "workload/template_hash.h"

#include <inttypes.h>
#include <stdlib.h>

void history_done(struct history *h)
{
    free(h->entries);
    json_free(h->list);
    *h = (struct history){0};
}

const char *dc_phase(const struct json *rc)
{
    const char *phase = annotation_of(rc, DC_PHASE);
    return phase && *phase ? phase : "New";
}

bool dc_phase_is_terminal(const struct json *rc)
{
    return streq(dc_phase(rc), "Complete") || streq(dc_phase(rc), "Failed");
}

/* The number of the revision; -1: it has none. */
static int64_t revision_of(const struct api_kind *k, const struct json *o)
{
    int64_t n = -1;
    if (kind_is(k, "apps", "DaemonSet") || kind_is(k, "apps", "StatefulSet")) {
        return json_get_int_or(json_get(o, "revision"), -1);
    }
    const char *text = annotation_of(o, kind_is_dc(k) ? DC_VERSION : DEPLOYMENT_REVISION);
    return text && str_to_i64(text, 0, INT64_MAX, &n) == 0 ? n : -1;
}

static bool belongs(const struct api_kind *k, const struct json *owner, const struct json *o)
{
    const char *uid = json_path_string(owner, "metadata", "uid", NULL);
    const struct json *ref;
    if (kind_is_dc(k)) {
        return streq_null(annotation_of(o, DC_NAME),
                          json_path_string(owner, "metadata", "name", NULL));
    }
    JSON_FOREACH (ref, json_path(o, "metadata", "ownerReferences", NULL)) {
        if (uid && json_get_bool(json_get(ref, "controller"), false) &&
            streq(json_get_text(ref, "uid"), uid)) {
            return true;
        }
    }
    return false;
}

static int by_revision(const void *a, const void *b)
{
    const struct history_entry *x = a, *y = b;
    return x->revision < y->revision ? -1 : x->revision > y->revision;
}

void history_make(const struct api_kind *k, const struct json *owner, struct json *list,
                  struct history *ret)
{
    struct history h = {.list = list};
    const struct json *items = json_get(list, "items"), *o;
    h.entries = xcalloc(json_count(items) + 1, sizeof(*h.entries));
    JSON_FOREACH (o, items) {
        int64_t revision = revision_of(k, o);
        if (revision >= 0 && belongs(k, owner, o)) {
            h.entries[h.n++] = (struct history_entry){revision, o};
        }
    }
    qsort(h.entries, h.n, sizeof(*h.entries), by_revision);
    *ret = h;
}

int history_load(struct targets *t, const struct target *g, struct history *ret)
{
    static const struct {
        const char *group, *kind, *version, *plural;
    } kinds[] = {
        {"apps", "Deployment", "apps/v1", "replicasets"},
        {"apps", "DaemonSet", "apps/v1", "controllerrevisions"},
        {"apps", "StatefulSet", "apps/v1", "controllerrevisions"},
        {DC_GROUP, "DeploymentConfig", "v1", "replicationcontrollers"},
    };
    CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
    CLEANUP_STRBUF struct strbuf labels = STRBUF_INIT;
    struct json *list = NULL;
    struct err e = {0};
    size_t i = 0;
    while (i < ARRAY_SIZE(kinds) && !kind_is(g->kind, kinds[i].group, kinds[i].kind)) {
        i++;
    }
    if (i == ARRAY_SIZE(kinds)) {
        return session_error("no history viewer has been implemented for \"%s.%s\"", g->kind->kind,
                             g->kind->group);
    }
    const char *ns = json_path_string(g->object, "metadata", "namespace", NULL);
    CLEANUP_FREE char *base = api_path(kinds[i].version, kinds[i].plural, ns, NULL, NULL);
    strbuf_adds(&path, base);
    if (kind_is_dc(g->kind)) {
        strbuf_addf(&labels, "%s=%s", DC_NAME, target_name(g));
    } else {
        template_selector(g->object, &labels);
    }
    resource_query(&path, "labelSelector", strbuf_cstr(&labels));
    if (api_request_sync(t->s.client, "GET", strbuf_cstr(&path), NULL, NULL, NULL, &list, &e) < 0) {
        return session_fail(&t->s, &e, NULL);
    }
    history_make(g->kind, g->object, list, ret);
    return 0;
}

const struct history_entry *history_find(const struct history *h, int64_t revision)
{
    if (revision == 0) {
        return h->n > 1 ? &h->entries[h->n - 2] : NULL;
    }
    for (size_t i = 0; i < h->n; i++) {
        if (h->entries[i].revision == revision) {
            return &h->entries[i];
        }
    }
    return NULL;
}

void history_write(const struct api_kind *k, const struct history *h, struct strbuf *out)
{
    bool dc = kind_is_dc(k);
    if (dc) {
        strbuf_adds(out, "REVISION  STATUS    CAUSE\n");
    } else {
        strbuf_adds(out, "REVISION  CHANGE-CAUSE\n");
    }
    for (size_t i = 0; i < h->n; i++) {
        const struct json *o = h->entries[i].object;
        const char *cause = annotation_of(o, dc ? DC_REASON : CHANGE_CAUSE);
        strbuf_addf(out, "%-8" PRId64 "  ", h->entries[i].revision);
        if (dc) {
            strbuf_addf(out, "%-8s  %s\n", dc_phase(o), cause && *cause ? cause : "<unknown>");
        } else {
            strbuf_addf(out, "%s\n", cause && *cause ? cause : "<none>");
        }
    }
}

struct json *history_template(const struct api_kind *k, const struct json *owner,
                              const struct history_entry *entry)
{
    if (kind_is(k, "apps", "DaemonSet") || kind_is(k, "apps", "StatefulSet")) {
        CLEANUP(json_free) struct json *whole = json_clone(owner);
        const struct json *data = json_get(entry->object, "data");
        if (!data || api_patch_strategic(k, &whole, data, NULL) < 0) {
            return NULL;
        }
        const struct json *template = json_path(whole, "spec", "template", NULL);
        return template ? json_clone(template) : NULL;
    }
    const struct json *template = json_path(entry->object, "spec", "template", NULL);
    struct json *copy = template ? json_clone(template) : NULL;
    struct json *labels = json_path(copy, "metadata", "labels", NULL);
    if (json_is(labels, JSON_OBJECT)) {
        json_remove(labels, LABEL_TEMPLATE_HASH);
    }
    return copy;
}

/* ---- words ---- */

static void pairs(const struct json *o, const char *indent, const char *title, const char *between,
                  struct strbuf *out)
{
    size_t n = 0;
    CLEANUP_FREE const char **keys = print_sorted_keys(o, &n);
    for (size_t i = 0; i < n; i++) {
        strbuf_addf(out, "%s%s\t%s%s%s\n", indent, i == 0 ? title : "", keys[i], between,
                    json_get_text(o, keys[i]));
    }
}

static void texts(const struct json *list, const char *title, struct strbuf *out)
{
    const struct json *v;
    if (json_count(list) > 0) {
        strbuf_addf(out, "    %s:\n", title);
    }
    JSON_FOREACH (v, list) {
        strbuf_addf(out, "      %s\n", json_get_string(v) ? json_get_string(v) : "");
    }
}

static void environment(const struct json *list, struct strbuf *out)
{
    const struct json *v;
    strbuf_addf(out, "    Environment:\t%s\n", json_count(list) ? "" : "<none>");
    JSON_FOREACH (v, list) {
        const char *value = json_get_string(json_get(v, "value"));
        strbuf_addf(out, "      %s:\t%s\n", json_get_text(v, "name"),
                    value                      ? value
                    : json_get(v, "valueFrom") ? "<set from another object>"
                                               : "");
    }
}

static void mounts(const struct json *list, struct strbuf *out)
{
    const struct json *v;
    strbuf_addf(out, "    Mounts:\t%s\n", json_count(list) ? "" : "<none>");
    JSON_FOREACH (v, list) {
        strbuf_addf(out, "      %s from %s (%s)\n", json_get_text(v, "mountPath"),
                    json_get_text(v, "name"),
                    json_get_bool(json_get(v, "readOnly"), false) ? "ro" : "rw");
    }
}

static void containers(const struct json *list, const char *title, struct strbuf *out)
{
    const struct json *c, *p;
    if (json_count(list) > 0) {
        strbuf_addf(out, "  %s:\n", title);
    }
    JSON_FOREACH (c, list) {
        strbuf_addf(out, "   %s:\n    Image:\t%s\n", json_get_text(c, "name"),
                    json_get_text(c, "image"));
        const struct json *ports = json_get(c, "ports");
        if (json_count(ports) == 0) {
            strbuf_adds(out, "    Port:\t<none>\n");
        }
        JSON_FOREACH (p, ports) {
            const char *protocol = json_get_text(p, "protocol");
            strbuf_addf(out, "    Port:\t%" PRId64 "/%s\n",
                        json_get_int_or(json_get(p, "containerPort"), 0),
                        *protocol ? protocol : "TCP");
        }
        texts(json_get(c, "command"), "Command", out);
        texts(json_get(c, "args"), "Args", out);
        pairs(json_path(c, "resources", "limits", NULL), "    ", "Limits:", ":\t", out);
        pairs(json_path(c, "resources", "requests", NULL), "    ", "Requests:", ":\t", out);
        environment(json_get(c, "env"), out);
        mounts(json_get(c, "volumeMounts"), out);
    }
}

void history_describe(const struct json *template, struct strbuf *out)
{
    const struct json *spec = json_get(template, "spec"), *v;
    const char *account = json_get_text(spec, "serviceAccountName");
    strbuf_adds(out, "Pod Template:\n");
    pairs(json_path(template, "metadata", "labels", NULL), "  ", "Labels:", "=", out);
    pairs(json_path(template, "metadata", "annotations", NULL), "  ", "Annotations:", ": ", out);
    if (*account) {
        strbuf_addf(out, "  Service Account:\t%s\n", account);
    }
    containers(json_get(spec, "initContainers"), "Init Containers", out);
    containers(json_get(spec, "containers"), "Containers", out);
    const struct json *volumes = json_get(spec, "volumes");
    strbuf_addf(out, "  Volumes:\t%s\n", json_count(volumes) ? "" : "<none>");
    JSON_FOREACH (v, volumes) {
        strbuf_addf(out, "   %s\n", json_get_text(v, "name"));
    }
}
