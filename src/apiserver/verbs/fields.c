/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/verbs/fields.h"

#include "api/typed.h"
#include "apiserver/request/respond.h"
#include "apiserver/verbs/apply.h"
#include "base/timeutil.h"

/* ---- options ---- */

static bool is_printable(const char *s)
{
    for (; *s; s++) {
        if ((unsigned char) *s < 0x20 || *s == 0x7f) {
            return false;
        }
    }
    return true;
}

static void check_option(struct api_causes *c, const char *field, const char *s,
                         const char *const *values)
{
    for (size_t i = 0; values[i]; i++) {
        if (streq(s, values[i])) {
            return;
        }
    }
    CLEANUP(json_free) struct json *v = json_string(s);
    api_unsupported(c, field, v, values);
}

static void check_manager(struct request *q, const char *manager, bool apply, struct api_causes *c)
{
    if (apply && !*manager) {
        api_required(c, "fieldManager", "is required for apply patch");
    }
    if (strlen(manager) > API_MANAGER_MAX) {
        api_too_long(c, "fieldManager", API_MANAGER_MAX);
    } else if (!is_printable(manager)) {
        CLEANUP(json_free) struct json *v = json_string(manager);
        api_invalid(c, "fieldManager", v, "should only contain printable characters");
    }
}

/* The default manager: the program's name in User-Agent. */
static char *manager_of_agent(const struct request *q)
{
    const char *agent = http_header(q->x, "user-agent");
    size_t n = agent ? strcspn(agent, "/") : 0;
    CLEANUP_FREE char *name = xstrndup(n ? agent : "", MIN(n, (size_t) API_MANAGER_MAX));
    return *name && is_printable(name) ? TAKE(name) : xstrdup("unknown");
}

static const char *options_kind(const struct request *q)
{
    static const char *const kinds[VERB_MAX] = {[VERB_CREATE] = "CreateOptions",
                                                [VERB_UPDATE] = "UpdateOptions",
                                                [VERB_PATCH] = "PatchOptions"};
    return kinds[q->verb] ? kinds[q->verb] : "DeleteOptions";
}

int fields_parse_options(struct request *q, struct outcome *outcome)
{
    static const char *const runs[] = {"All", NULL};
    static const char *const validations[] = {"Ignore", "Warn", "Strict", NULL};
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    const char *dry_run = http_query(q->x, "dryRun");
    const char *validation = http_query(q->x, "fieldValidation");
    const char *manager = http_query(q->x, "fieldManager");
    if (dry_run && *dry_run) {
        check_option(&causes, "dryRun", dry_run, runs);
        q->dry_run = true;
    }
    if (validation && *validation) {
        check_option(&causes, "fieldValidation", validation, validations);
        q->validation = streq(validation, "Strict")   ? FIELDS_STRICT
                        : streq(validation, "Ignore") ? FIELDS_IGNORE
                                                      : FIELDS_WARN;
    }
    CLEANUP_FREE char *type = request_content_type(q);
    bool apply = q->verb == VERB_PATCH && streq(type, APPLY_TYPE);
    check_manager(q, manager ? manager : "", apply, &causes);
    if (!apply && q->verb == VERB_PATCH && http_query(q->x, "force")) {
        api_forbidden(&causes, "force", "may not be specified for non-apply patch");
    }
    if (causes.n) {
        outcome_invalid_options(outcome, options_kind(q), &causes);
        return -EINVAL;
    }
    free(q->manager);
    q->manager = manager && *manager ? xstrdup(manager) : manager_of_agent(q);
    return 0;
}

/* ---- unknown fields ---- */

/* Maximum bytes of one warning's path, and of all warnings: they are sent as headers. */
#define WARNING_MAX 256
#define WARNINGS_MAX 4096

static void refuse(struct request *q, const struct api_paths *unknown, struct outcome *outcome)
{
    const struct api_kind *k = q->kind;
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    for (size_t i = 0; i < unknown->n; i++) {
        strbuf_addf(&text, "%sunknown field \"%s\"", i ? ", " : "", unknown->list[i]);
    }
    outcome_error(outcome, 400, "BadRequest",
                  "%s in version \"%s\" cannot be handled as a %s: strict decoding error: %s",
                  k->kind, k->version, k->kind, text.data);
}

int fields_prune(struct request *q, struct json *obj, bool quiet, struct outcome *outcome)
{
    CLEANUP(api_paths_done) struct api_paths unknown = {0};
    struct err e = {0};
    const struct api_schema *schema = api_kind_schema(q->kind);
    api_schema_prune(schema, obj, &unknown);
    if (q->kind->prune) {
        q->kind->prune(obj, &unknown);
    }
    /* What a patch makes is validated, as in Kubernetes, which then answers 422. */
    if (!q->kind->custom && q->verb != VERB_PATCH && api_typed_check(schema, obj, &e) < 0) {
        outcome_error(outcome, 400, "BadRequest",
                      "%s in version \"%s\" cannot be handled as a %s: %s", q->kind->kind,
                      q->kind->version, q->kind->kind, e.text);
        return -EINVAL;
    }
    if (unknown.n && q->validation == FIELDS_STRICT) {
        refuse(q, &unknown, outcome);
        return -EINVAL;
    }
    size_t size = 0;
    for (size_t i = 0; i < unknown.n && !quiet && q->validation == FIELDS_WARN; i++) {
        CLEANUP_FREE char *text = xasprintf("unknown field \"%.*s\"", WARNING_MAX, unknown.list[i]);
        size += strlen(text);
        if (size <= WARNINGS_MAX) {
            request_warn(q, "-", text);
        }
    }
    return 0;
}

/* ---- managedFields ---- */

struct api_manager fields_manager(const struct request *q, bool applies)
{
    return (struct api_manager){.name = q->manager,
                                .applies = applies,
                                .subresource = q->subresource,
                                .now_ms = time_wall_ms()};
}

void fields_record(const struct request *q, const struct json *old, struct json *obj)
{
    struct api_manager m = fields_manager(q, false);
    api_managed_update(q->kind, old, obj, &m);
}
