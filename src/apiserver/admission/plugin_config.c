/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/admission/plugin_config.h"

#include "api/kind.h"
#include "apiserver/admission/admission.h"
#include "apiserver/admission/plugin_names.h"
#include "base/suggest.h"
#include "net/loop/process.h"
#include "wire/yaml.h"

#define MAX_FILE ((size_t) 1 << 20)
#define MAX_DAYS_S (INT64_C(3650) * 86400)
#define DEFAULT_KIND "DefaultAdmissionConfig"

static char **texts_free(char **list)
{
    for (size_t i = 0; list && list[i]; i++) {
        free(list[i]);
    }
    free(list);
    return NULL;
}

void admission_config_done(struct admission_config *c)
{
    json_free(c->docs);
    texts_free(c->order);
    json_free(c->on);
    json_free(c->projects.list);
    texts_free(c->node_labels);
    *c = (struct admission_config){0};
}

/* ---- the documents of plug-ins ---- */

struct default_doc {
    bool disable;
};
static const struct option_row default_rows[] = {
    {.path = "disable", .type = OPTION_BOOL, OPTION_MEMBER(struct default_doc, disable)},
};
static const struct option_table default_table = {
    .kind = DEFAULT_KIND, .rows = default_rows, .n = ARRAY_SIZE(default_rows)};

#define MEMBER(member) OPTION_MEMBER(struct admission_config, member)

static const struct option_row run_once_rows[] = {
    {.path = "activeDeadlineSecondsOverride",
     .type = OPTION_NUMBER,
     .min = 1,
     .max = MAX_DAYS_S,
     MEMBER(run_once_s)},
};
static const struct option_table run_once_table = {
    .kind = "RunOnceDurationConfig", .rows = run_once_rows, .n = ARRAY_SIZE(run_once_rows)};

static const struct option_row override_rows[] = {
    {.path = "memoryRequestToLimitPercent",
     .type = OPTION_NUMBER,
     .max = 100,
     MEMBER(override.memory_request)},
    {.path = "cpuRequestToLimitPercent",
     .type = OPTION_NUMBER,
     .max = 100,
     MEMBER(override.cpu_request)},
    {.path = "limitCPUToMemoryPercent",
     .type = OPTION_NUMBER,
     .max = 1000000,
     MEMBER(override.cpu_limit)},
};
static const struct option_table override_table = {
    .kind = "ClusterResourceOverrideConfig", .rows = override_rows, .n = ARRAY_SIZE(override_rows)};

static int check_label(const char *name, struct err *e)
{
    const char *why = api_check_qualified_name(name);
    return why ? err_set(e, -EINVAL, "\"%.80s\": %s", name, why) : 0;
}

static const struct option_row constraint_rows[] = {
    {.path = "nodeSelectorLabelBlacklist",
     .type = OPTION_TEXTS,
     .items = "labels",
     .check = check_label,
     .dflt = "kubernetes.io/hostname",
     MEMBER(node_labels)},
};
static const struct option_table constraint_table = {
    .kind = "PodNodeConstraintsConfig", .rows = constraint_rows, .n = ARRAY_SIZE(constraint_rows)};

static int check_selector(const struct json *selector, struct err *e)
{
    if (selector && !json_is(selector, JSON_OBJECT) && !json_is(selector, JSON_NULL)) {
        return err_set(e, -EINVAL, "selector: must be a mapping of labels to values");
    }
    for (size_t i = 0; i < json_count(selector); i++) {
        const char *key = json_key_at(selector, i);
        const char *value = json_get_string(json_at(selector, i));
        if (api_check_qualified_name(key) || !value || api_check_label_value(value)) {
            return err_set(e, -EINVAL, "selector.%.80s: must be a label with a text as its value",
                           key);
        }
    }
    return 0;
}

static int check_limit(const struct json *limit, struct err *e)
{
    const struct json *max = json_get(limit, "maxProjects");
    int64_t n;
    if (!json_is(limit, JSON_OBJECT)) {
        return err_set(e, -EINVAL, "must be a mapping with selector and maxProjects");
    }
    for (size_t i = 0; i < json_count(limit); i++) {
        const char *key = json_key_at(limit, i);
        if (!streq(key, "selector") && !streq(key, "maxProjects")) {
            return err_set(e, -EINVAL, "%.80s: unknown key; there are selector and maxProjects",
                           key);
        }
    }
    if (max && !json_is(max, JSON_NULL) && (json_get_int(max, &n) < 0 || n < 0 || n > 1000000)) {
        return err_set(e, -EINVAL, "maxProjects: must be a whole number in 0-1000000");
    }
    return check_selector(json_get(limit, "selector"), e);
}

static int read_limits(void *config, const struct json *v, struct err *e)
{
    struct project_limits *p = &((struct admission_config *) config)->projects;
    struct err why = {0};
    if (!json_is(v, JSON_ARRAY)) {
        return err_set(e, -EINVAL, "must be a list of limits");
    }
    for (size_t i = 0; i < json_count(v); i++) {
        if (check_limit(json_at(v, i), &why) < 0) {
            return err_set(e, -EINVAL, "[%zu].%s", i, why.text);
        }
    }
    json_free(p->list);
    p->list = json_clone(v);
    return 0;
}

#define NO_LIMIT .type = OPTION_NUMBER, .min = 0, .max = 1000000
static const struct option_row project_rows[] = {
    {.path = "limits", .read = read_limits},
    {.path = "maxProjectsForSystemUsers", NO_LIMIT, MEMBER(projects.system_users)},
    {.path = "maxProjectsForServiceAccounts", NO_LIMIT, MEMBER(projects.service_accounts)},
};
static const struct option_table project_table = {
    .kind = "ProjectRequestLimitConfig", .rows = project_rows, .n = ARRAY_SIZE(project_rows)};

/* The plug-ins with a kind of their own. */
static const struct document {
    const char *plugin;
    const struct option_table *table;
} documents[] = {
    {"ClusterResourceOverride", &override_table},
    {"PodNodeConstraints", &constraint_table},
    {"ProjectRequestLimit", &project_table},
    {"RunOnceDuration", &run_once_table},
};

static const struct option_table *table_of(const char *plugin)
{
    for (size_t i = 0; i < ARRAY_SIZE(documents); i++) {
        if (streq(documents[i].plugin, plugin)) {
            return documents[i].table;
        }
    }
    return NULL;
}

/* ---- reading one document ---- */

/* Before the document of a plug-in is read: what it leaves out has its default again. */
static void reset(struct admission_config *c, const struct option_table *t)
{
    if (t == &project_table) {
        json_free(c->projects.list);
        c->projects = (struct project_limits){.system_users = -1, .service_accounts = -1};
    } else if (t == &override_table) {
        c->override = (struct resource_override){0};
    }
}

static int check_whole(const struct admission_config *c, const struct option_table *t,
                       struct err *e)
{
    const struct resource_override *o = &c->override;
    return t == &override_table && !o->memory_request && !o->cpu_request && !o->cpu_limit
               ? err_set(e, -EINVAL,
                         "must have one of memoryRequestToLimitPercent, "
                         "cpuRequestToLimitPercent and limitCPUToMemoryPercent")
               : 0;
}

/* Versions of OpenShift's groups name the same kinds since release 3.10. */
static int check_version(const struct json *doc, struct err *e)
{
    const char *version = json_get_string(json_get(doc, "apiVersion"));
    return streq_null(version, "v1") || (version && str_has_suffix(version, ".openshift.io/v1"))
               ? 0
               : err_set(e, -EINVAL, "apiVersion: must be \"v1\"");
}

static int read_table(const struct option_table *t, void *to, const struct json *doc, struct err *e)
{
    CLEANUP(json_free) struct json *plain = json_clone(doc);
    json_set_string(plain, "apiVersion", "v1");
    options_init(t, to);
    return options_read(t, to, plain, NULL, e);
}

/* A plug-in by its name in the file. */
struct plugin {
    const char *name;                   /* In the table of plug-ins, or as the file has it. */
    const struct admission_plugin *row; /* NULL: 'other'. */
    const struct admission_name *other;
};

static int find_plugin(const char *name, struct plugin *ret, struct err *e)
{
    const char *words[128];
    size_t n = 0;
    ret->row = admission_plugin_find(name);
    ret->other = ret->row ? NULL : admission_name_find(name);
    ret->name = ret->row ? ret->row->name : name;
    if (ret->row || ret->other) {
        return 0;
    }
    for (size_t i = 0; admission_plugin_at(i) && n < ARRAY_SIZE(words); i++) {
        words[n++] = admission_plugin_at(i)->name;
    }
    for (unsigned i = 0; admission_name_at(i) && n < ARRAY_SIZE(words); i++) {
        words[n++] = admission_name_at(i)->name;
    }
    const char *near = suggest(name, words, n);
    return err_set(e, -EINVAL, "unknown admission plug-in%s%s%s", near ? "; did you mean " : "",
                   near ? near : "", near ? "?" : "");
}

int admission_check_name(const char *name, struct err *e)
{
    struct plugin p;
    struct err why = {0};
    return find_plugin(name, &p, &why) < 0 ? err_set(e, -EINVAL, "%.80s: %s", name, why.text) : 0;
}

/* A document for a name that is no plug-in here. */
static int read_other(const struct admission_name *other, const struct json *doc, struct err *e)
{
    struct default_doc d = {0};
    bool plain = streq(json_get_text(doc, "kind"), DEFAULT_KIND);
    int r = plain ? read_table(&default_table, &d, doc, e) : 0;
    if (r < 0) {
        return r;
    }
    if (other->where == ADMISSION_PART && d.disable) {
        return err_set(e, -EPERM, "cannot be disabled: %s", other->why);
    }
    return other->where == ADMISSION_LACKING && !d.disable
               ? err_set(e, -EINVAL, "is not supported: %s", other->why)
               : 0;
}

const char *admission_config_idle(const char *name, const struct json *entry)
{
    const struct admission_name *other = admission_name_find(name);
    const struct json *doc = json_get(entry, "configuration");
    bool plain = streq(json_get_text(doc, "kind"), DEFAULT_KIND);
    bool off = json_get_bool(json_get(doc, "disable"), false);
    bool quiet = plain && (off || (other && other->where == ADMISSION_PART));
    return other && !quiet ? other->why : NULL;
}

static int read_default(struct admission_config *c, const struct admission_plugin *p,
                        const struct json *doc, struct err *e)
{
    struct default_doc d = {0};
    int r = read_table(&default_table, &d, doc, e);
    if (r < 0) {
        return r;
    }
    if (d.disable && p->required) {
        return err_set(e, -EPERM, "cannot be disabled: without it %s", p->required);
    }
    if (!d.disable && table_of(p->name)) {
        return err_set(e, -EINVAL, "is turned on by a configuration of the kind %s",
                       table_of(p->name)->kind);
    }
    c->on = c->on ? c->on : json_object();
    json_set_bool(c->on, p->name, !d.disable);
    return 0;
}

/* Reads the document of the plug-in 'p'. */
static int read_doc(struct admission_config *c, const struct plugin *p, const struct json *doc,
                    struct err *e)
{
    const struct option_table *t = table_of(p->name);
    const char *kind = json_get_string(json_get(doc, "kind"));
    if (!json_is(doc, JSON_OBJECT)) {
        return err_set(e, -EINVAL, "must be a mapping with apiVersion and kind");
    }
    int r = check_version(doc, e);
    if (r < 0) {
        return r;
    }
    if (p->other) {
        return read_other(p->other, doc, e);
    }
    if (streq_null(kind, DEFAULT_KIND)) {
        return read_default(c, p->row, doc, e);
    }
    if (!t || !streq_null(kind, t->kind)) {
        return err_set(e, -EINVAL, "kind: must be " DEFAULT_KIND "%s%s", t ? " or " : "",
                       t ? t->kind : "");
    }
    reset(c, t);
    if ((r = read_table(t, c, doc, e)) < 0 || (r = check_whole(c, t, e)) < 0) {
        return r;
    }
    c->on = c->on ? c->on : json_object();
    json_set_bool(c->on, p->name, true);
    return 0;
}

/* ---- pluginConfig ---- */

void admission_config_resolve(struct json *plugins, const char *dir)
{
    for (size_t i = 0; i < json_count(plugins); i++) {
        struct json *p = json_at(plugins, i);
        const char *file = json_get_text(p, "location");
        if (*file && *file != '/') {
            json_set(p, "location", json_stringf("%s/%s", dir, file));
        }
    }
}

static int load(const char *file, struct json **ret, struct err *e)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT_MAX(MAX_FILE);
    int r = file_read(file, MAX_FILE, &text, e);
    if (r == 0 && (r = yaml_parse(strbuf_cstr(&text), text.size, ret, e)) < 0) {
        err_prefix(e, "%s", file);
    }
    return r;
}

static bool is_given(const struct json *v)
{
    const char *s = json_get_string(v);
    return v && !json_is(v, JSON_NULL) && !(s && !*s);
}

/* The document of an entry of pluginConfig, owned; '*ret_where': the key that has it. */
static int find_doc(const struct json *entry, struct json **ret, const char **ret_where,
                    struct err *e)
{
    const struct json *inlined = json_get(entry, "configuration");
    const struct json *file = json_get(entry, "location");
    *ret_where = is_given(file) ? "location" : "configuration";
    if (!json_is(entry, JSON_OBJECT) || (!is_given(inlined) && !is_given(file))) {
        *ret_where = NULL;
        return err_set(e, -EINVAL, "must have location or configuration");
    }
    for (size_t i = 0; i < json_count(entry); i++) {
        const char *key = json_key_at(entry, i);
        if (!streq(key, "configuration") && !streq(key, "location")) {
            *ret_where = NULL;
            return err_set(e, -EINVAL, "%.80s: unknown key; there are location and configuration",
                           key);
        }
    }
    if (is_given(inlined) && is_given(file)) {
        return err_set(e, -EINVAL, "cannot be given beside configuration");
    }
    if (is_given(inlined)) {
        *ret = json_clone(inlined);
        return 0;
    }
    return json_get_string(file) ? load(json_get_string(file), ret, e)
                                 : err_set(e, -EINVAL, "must be the name of a file");
}

/* Puts the path of the entry before an error of its document. */
static int entry_error(const char *name, const char *where, const char *file, struct err *e, int r)
{
    CLEANUP_FREE char *text = xstrdup(e->text);
    /* A key of the document goes on the path; a sentence does not. */
    size_t n = strcspn(text, ": ");
    bool has_key = where && !file && text[n] == ':' && text[n + 1] == ' ' && *text != '"';
    return err_set(e, r, ".%.80s%s%s%s%s%s%s", name, where ? "." : "", where ? where : "",
                   has_key ? "." : ": ", file ? file : "", file ? ": " : "", text);
}

static int read_entry(struct admission_config *c, const char *name, const struct json *entry,
                      struct err *e)
{
    CLEANUP(json_free) struct json *doc = NULL;
    const char *where = NULL, *file = NULL;
    struct plugin p;
    int r = find_plugin(name, &p, e);
    r = r < 0 ? r : find_doc(entry, &doc, &where, e);
    const struct json *before = r == 0 ? json_get(c->docs, p.name) : NULL;
    if (before && !json_equal(before, doc)) {
        return err_set(e, -EINVAL,
                       ".%.80s: cannot be combined with another configuration of the plug-in %s, "
                       "in pluginConfig of admissionConfig or of "
                       "kubernetesMasterConfig.admissionConfig",
                       name, p.name);
    }
    if (r == 0) {
        file = streq(where, "location") ? json_get_text(entry, where) : NULL;
        r = read_doc(c, &p, doc, e);
    }
    if (r < 0) {
        return entry_error(name, where, file, e, r);
    }
    c->docs = c->docs ? c->docs : json_object();
    json_set(c->docs, p.name, TAKE(doc));
    return 0;
}

int admission_config_read(struct admission_config *c, const struct json *plugins, struct err *e)
{
    int r = json_is(plugins, JSON_OBJECT)
                ? 0
                : err_set(e, -EINVAL, "must be a mapping of plug-ins to their configuration");
    for (size_t i = 0; r == 0 && i < json_count(plugins); i++) {
        r = read_entry(c, json_key_at(plugins, i), json_at(plugins, i), e);
    }
    return r;
}

/* ---- the order ---- */

static size_t count(char *const *list)
{
    size_t n = 0;
    while (list && list[n]) {
        n++;
    }
    return n;
}

static bool lists_equal(char *const *a, char *const *b)
{
    size_t i = 0;
    while (a[i] && b[i] && streq(a[i], b[i])) {
        i++;
    }
    return !a[i] && !b[i];
}

static int check_order(const struct admission_config *c, char *const *list, struct err *e)
{
    for (size_t i = 0; list[i]; i++) {
        int r = admission_check_name(list[i], e);
        if (r < 0) {
            return r;
        }
    }
    return c->order && count(list) && !lists_equal(c->order, list)
               ? err_set(e, -EINVAL,
                         "cannot be combined with another order, of admissionConfig or "
                         "of kubernetesMasterConfig.admissionConfig")
               : 0;
}

int admission_config_set_order(struct admission_config *c, const char *list, struct err *e)
{
    char **names = xcalloc(strlen(list) + 2, sizeof *names);
    size_t n = 0;
    for (const char *p = list; *p; p += *p == ',') {
        size_t size = strcspn(p, ",");
        names[n++] = xstrndup(p, size);
        p += size;
    }
    int r = check_order(c, names, e);
    if (r == 0 && n && !c->order) {
        c->order = TAKE(names);
    }
    texts_free(names);
    return r;
}

/* ---- rules that join keys ---- */

int admission_config_check(const struct admission_config *c, const char *const *disabled,
                           const char *const *node_labels, struct err *e)
{
    for (size_t i = 0; disabled && disabled[i]; i++) {
        const struct admission_plugin *p = admission_plugin_find(disabled[i]);
        if (p && json_get_bool(json_get(c->on, p->name), false)) {
            return err_set(e, -EINVAL,
                           "admissionConfig.disabledPlugins: %s cannot be combined with "
                           "the configuration in pluginConfig that turns it on",
                           p->name);
        }
    }
    if (node_labels && c->node_labels &&
        !lists_equal((char *const *) node_labels, c->node_labels)) {
        return err_set(e, -EINVAL,
                       "admissionConfig.nodeSelectorLabelBlacklist: cannot be combined "
                       "with pluginConfig.PodNodeConstraints, which has other labels");
    }
    return 0;
}
