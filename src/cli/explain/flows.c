/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/explain/flows.h"

#include "base/mem.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- names ---- */

void flow_names_init(struct flow_names *n)
{
    *n = (struct flow_names){0};
    smap_init(&n->pods, free);
    smap_init(&n->nodes, free);
}

void flow_names_done(struct flow_names *n)
{
    smap_done(&n->pods);
    smap_done(&n->nodes);
}

void flow_names_pod(struct flow_names *n, const struct json *pod, bool gone)
{
    const char *ns = json_path_string(pod, "metadata", "namespace", NULL);
    const char *name = json_path_string(pod, "metadata", "name", NULL);
    const char *ip = json_path_string(pod, "status", "podIP", NULL);
    const char *phase = json_path_string(pod, "status", "phase", NULL);
    bool over = gone || streq_null(phase, "Succeeded") || streq_null(phase, "Failed");
    if (!ns || !name || !ip || json_get_bool(json_path(pod, "spec", "hostNetwork", NULL), false)) {
        return;
    }
    CLEANUP_FREE char *text = xasprintf("%s/%s", ns, name);
    if (!over) {
        smap_set(&n->pods, ip, TAKE(text));
        /* Otherwise another pod has the address by now. */
    } else if (streq_null(smap_get(&n->pods, ip), text)) {
        smap_remove(&n->pods, ip);
    }
}

static void name_end(struct json *end, const struct flow_names *n)
{
    const char *name = json_get(end, "pod") ? NULL : smap_get(&n->pods, json_get_text(end, "ip"));
    const char *slash = name ? strchr(name, '/') : NULL;
    if (slash) {
        CLEANUP_FREE char *ns = xstrndup(name, (size_t) (slash - name));
        json_set_string(end, "namespace", ns);
        json_set_string(end, "pod", slash + 1);
    }
}

static void name_node(struct json *event, const struct flow_names *n, const char *address,
                      const char *key)
{
    const char *name = smap_get(&n->nodes, json_get_text(event, address));
    if (name) {
        json_set_string(event, key, name);
    }
}

void flow_name(struct json *event, const struct flow_names *n)
{
    if (json_get(event, "from")) {
        name_end(json_get(event, "from"), n);
        name_end(json_get(event, "to"), n);
        name_node(event, n, "remote", "remoteNode");
        name_node(event, n, "vtep", "senderNode");
    }
}

bool flow_is_of(const struct json *event, const char *project)
{
    const char *sender = json_get_text(event, "sender");
    size_t n = project ? strlen(project) : 0;
    return !project || json_get(event, "lost") ||
           streq(json_get_text(json_get(event, "from"), "namespace"), project) ||
           streq(json_get_text(json_get(event, "to"), "namespace"), project) ||
           streq(json_get_text(json_get(event, "service"), "namespace"), project) ||
           (strncmp(sender, project, n) == 0 && sender[n] == '/');
}

/* ---- lines ---- */

static void add_row(const char *const cells[FLOW_COLUMNS], size_t width[FLOW_COLUMNS],
                    struct strbuf *out)
{
    for (size_t i = 0; i < FLOW_COLUMNS; i++) {
        width[i] = MAX(width[i], strlen(cells[i]));
        strbuf_addf(out, i + 1 < FLOW_COLUMNS ? "%-*s   " : "%.*s\n",
                    i + 1 < FLOW_COLUMNS ? (int) width[i] : (int) strlen(cells[i]), cells[i]);
    }
}

void flow_render_head(size_t width[FLOW_COLUMNS], struct strbuf *out)
{
    static const char *const head[FLOW_COLUMNS] = {"TIME", "NODE",     "FROM",
                                                   "TO",   "PROTOCOL", "VERDICT"};
    add_row(head, width, out);
}

/* "red/web:80", or the address if no pod is known. */
static void add_end(const struct json *end, struct strbuf *out)
{
    if (*json_get_text(end, "pod")) {
        strbuf_addf(out, "%s/%s", json_get_text(end, "namespace"), json_get_text(end, "pod"));
    } else {
        strbuf_adds(out, *json_get_text(end, "ip") ? json_get_text(end, "ip") : "-");
    }
    if (json_get(end, "port")) {
        strbuf_addf(out, ":%" PRId64, json_get_int_or(json_get(end, "port"), 0));
    }
}

static void add_destination(const struct json *event, struct strbuf *out)
{
    const struct json *service = json_get(event, "service");
    if (service) {
        if (*json_get_text(service, "name")) {
            strbuf_addf(out, "service %s/%s", json_get_text(service, "namespace"),
                        json_get_text(service, "name"));
        } else {
            strbuf_addf(out, "service %s", json_get_text(service, "ip"));
        }
        strbuf_addf(out, ":%" PRId64 " at ", json_get_int_or(json_get(service, "port"), 0));
    }
    add_end(json_get(event, "to"), out);
}

static void add_verdict(const struct json *event, struct strbuf *out)
{
    const char *action = json_get_text(event, "action"), *object = json_get_text(event, "object");
    if (streq(action, "drop")) {
        strbuf_addf(out, "dropped: %s", json_get_text(event, "cause"));
        strbuf_addf(out, *object ? " (%s)" : "%s", object);
    } else if (streq(action, "tunnel")) {
        const char *node = json_get_text(event, "remoteNode");
        strbuf_addf(out, "to node %s", *node ? node : json_get_text(event, "remote"));
    } else if (streq(action, "host")) {
        strbuf_adds(out, "to the host");
    } else {
        strbuf_adds(out, streq(action, "deliver") ? "delivered" : action);
    }
}

void flow_render(const struct json *event, size_t width[FLOW_COLUMNS], struct strbuf *out)
{
    CLEANUP_STRBUF struct strbuf from = STRBUF_INIT, to = STRBUF_INIT, verdict = STRBUF_INIT;
    const char *time = json_get_text(event, "time"), *clock = strchr(time, 'T');
    CLEANUP_FREE char *when =
        xstrndup(clock ? clock + 1 : time, strcspn(clock ? clock + 1 : time, "Z"));
    int64_t lost = json_get_int_or(json_get(event, "lost"), 0);
    if (lost) {
        strbuf_addf(&verdict, "%" PRId64 " more flows than can be shown", lost);
        add_row((const char *const[]){when, json_get_text(event, "node"), "-", "-", "-",
                                      strbuf_cstr(&verdict)},
                width, out);
        return;
    }
    add_end(json_get(event, "from"), &from);
    if (!*json_get_text(json_get(event, "from"), "pod") && *json_get_text(event, "sender")) {
        strbuf_addf(&from, " of %s", json_get_text(event, "sender"));
    }
    add_destination(event, &to);
    add_verdict(event, &verdict);
    add_row((const char *const[]){when, json_get_text(event, "node"), strbuf_cstr(&from),
                                  strbuf_cstr(&to), json_get_text(event, "protocol"),
                                  strbuf_cstr(&verdict)},
            width, out);
}
