/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/texts.h"

#include "apiserver/apiserver.h"
#include "base/mem.h"
#include "cli/command.h"
#include "cli/completion.h"
#include "controllers/scheduling/scheduler_metrics.h"
#include "dns/dns.h"
#include "kubelet/agent/serve.h"
#include "kubelet/config.h"
#include "kubelet/server/stats.h"
#include "master/master_config.h"
#include "node/config.h"
#include "node/introspect/introspect.h"
#include "router/metrics.h"

#define MARK "generated: "
#define MAN_WIDTH 110    /* Line width of the manual's source. */
#define SAMPLE_WIDTH 100 /* Line width of a comment of a sample file. */

/* ---- sentences ---- */

/* Whether a phrase begins with a value ("sqlite, etcd", "auto: HTTPS"), which stays as it is. */
static bool begins_with_value(const char *phrase)
{
    size_t n = strcspn(phrase, " ");
    return n && (phrase[n - 1] == ',' || phrase[n - 1] == ':');
}

/* Appends a phrase as a sentence, with a blank before it unless it is the first. */
static void add_sentence(struct strbuf *out, const char *phrase)
{
    bool lower = *phrase >= 'a' && *phrase <= 'z' && !begins_with_value(phrase);
    strbuf_addf(out, "%s%c%s%s", out->size ? " " : "", lower ? *phrase - 'a' + 'A' : *phrase,
                phrase + 1, str_has_suffix(phrase, ".") ? "" : ".");
}

/* Writes the whole description of an option except its default. */
static void add_meaning(struct strbuf *out, const struct option_row *row)
{
    add_sentence(out, row->help);
    if (row->detail) {
        strbuf_addf(out, " %s", row->detail);
    }
}

/* ---- the manual ---- */

/* Writes one word in roff; words in backquotes are bold. */
static void add_roff_word(struct strbuf *out, const char *word, size_t n, bool *bold)
{
    if (*word == '.' || *word == '\'') {
        strbuf_adds(out, "\\&");
    }
    for (size_t i = 0; i < n; i++) {
        if (word[i] == '`') {
            *bold = !*bold;
            strbuf_adds(out, *bold ? "\\fB" : "\\fR");
        } else if (word[i] == '-') {
            strbuf_adds(out, "\\-");
        } else if (word[i] == '\\') {
            strbuf_adds(out, "\\e");
        } else {
            strbuf_addc(out, word[i]);
        }
    }
}

static void add_roff(struct strbuf *out, const char *text)
{
    bool bold = false;
    size_t column = 0;
    while (*text) {
        size_t n = strcspn(text, " ");
        bool wrap = column + 1 + n > MAN_WIDTH;
        if (column) {
            strbuf_addc(out, wrap ? '\n' : ' ');
        }
        column = wrap || !column ? n : column + 1 + n;
        add_roff_word(out, text, n, &bold);
        text += n + strspn(text + n, " ");
    }
    strbuf_addc(out, '\n');
}

static void add_range(struct strbuf *out, const struct option_row *row)
{
    if (row->type == OPTION_NUMBER && row->max > row->min && row->min > INT64_MIN) {
        strbuf_addf(out, " Range: %lld to %lld.", (long long) row->min, (long long) row->max);
    }
}

static void man_key(struct strbuf *out, const struct option_row *row)
{
    CLEANUP_STRBUF struct strbuf name = STRBUF_INIT, text = STRBUF_INIT;
    add_meaning(&text, row);
    add_range(&text, row);
    if (row->dflt || row->unset) {
        strbuf_addf(&text, " Default: %s.",
                    row->unset   ? row->unset
                    : *row->dflt ? row->dflt
                                 : "none");
    }
    if (row->path) {
        strbuf_addf(&name, "`%s`%s", row->path, row->flag ? ", " : "");
    }
    if (row->flag) {
        strbuf_addf(&name, "`--%s` %s", row->flag, row->arg);
    }
    strbuf_adds(out, ".TP\n");
    add_roff(out, strbuf_cstr(&name));
    add_roff(out, strbuf_cstr(&text));
}

static void man_keys(struct strbuf *out, const struct option_table *t)
{
    for (size_t i = 0; i < t->n; i++) {
        man_key(out, &t->rows[i]);
    }
}

static void man_option(void *ctx, const struct command_option *o)
{
    struct strbuf *out = ctx;
    CLEANUP_STRBUF struct strbuf name = STRBUF_INIT, text = STRBUF_INIT;
    if (!o->name) {
        return;
    }
    if (o->id < OPT_HELP) {
        strbuf_addf(&name, "`-%c`, ", o->id);
    }
    strbuf_addf(&name, "`--%s`", o->name);
    if (o->arg) {
        strbuf_addf(&name, "%s%s", *o->arg == '[' ? "" : " ", o->arg);
    }
    strbuf_adds(out, ".TP\n");
    add_roff(out, strbuf_cstr(&name));
    add_sentence(&text, o->help);
    if (o->detail) {
        strbuf_addf(&text, " %s", o->detail);
    }
    add_roff(out, strbuf_cstr(&text));
}

/* Flags of a daemon's settings are in the manual of its configuration file, if it has one. */
static void man_options(struct strbuf *out, const struct command *c)
{
    struct command own = *c;
    bool has_file = c->settings && c->settings->rows[0].path;
    own.settings = c->daemons == MASTER_STORE || !has_file ? c->settings : NULL;
    command_each_option(&own, man_option, out);
}

static void man_commands(struct strbuf *out)
{
    for (size_t i = 0; commands[i]; i++) {
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        add_sentence(&text, commands[i]->summary);
        strbuf_addf(out, ".TP\n.BR tenet\\-%s (1)\n", commands[i]->name);
        add_roff(out, strbuf_cstr(&text));
    }
}

/* ---- sample files ---- */

static void add_comment(struct strbuf *out, const char *indent, const char *text)
{
    size_t column = 0;
    while (*text) {
        size_t n = strcspn(text, " ");
        if (!column || column + 1 + n > SAMPLE_WIDTH) {
            strbuf_addf(out, "%s%s#", column ? "\n" : "", indent);
            column = strlen(indent) + 1;
        }
        strbuf_addc(out, ' ');
        column += 1 + n;
        for (size_t i = 0; i < n; i++) {
            if (text[i] != '`') {
                strbuf_addc(out, text[i]);
            }
        }
        text += n + strspn(text + n, " ");
    }
    strbuf_addc(out, '\n');
}

/* Writes a text in YAML. */
static void add_scalar(struct strbuf *out, const struct option_row *row, const char *s, size_t n)
{
    CLEANUP_FREE char *text = xstrndup(s, n);
    bool word = streq(text, "off") || streq(text, "on") || streq(text, "yes") ||
                streq(text, "no") || !*text;
    bool quoted = word && row->type != OPTION_BOOL;
    strbuf_addf(out, "%s%s%s", quoted ? "\"" : "", text, quoted ? "\"" : "");
}

/* Writes the value after "key:", with the blank before it. */
static void add_value(struct strbuf *out, const struct option_row *row, const char *value)
{
    bool list = row->type == OPTION_LIST || row->type == OPTION_TEXTS;
    if (row->yaml) {
        strbuf_adds(out, row->yaml);
        return;
    }
    strbuf_adds(out, list ? " [" : " ");
    for (const char *p = value; *p || !list;) {
        size_t n = list ? strcspn(p, ",") : strlen(p);
        add_scalar(out, row, p, n);
        p += n;
        if (!list) {
            break;
        }
        strbuf_adds(out, *p ? ", " : "");
        p += *p == ',';
    }
    strbuf_adds(out, list ? "]" : "");
}

static bool is_shown(const struct option_row *row)
{
    return row->dflt || row->shown;
}

/* The section of a row: "networkConfig"; "" for a row without one.  Owned. */
static char *section_of(const struct option_row *row)
{
    const char *dot = row->path ? strchr(row->path, '.') : NULL;
    return dot ? xstrndup(row->path, (size_t) (dot - row->path)) : xstrdup("");
}

/* Whether a row of the section is in effect, not in a comment. */
static bool section_is_shown(const struct option_table *t, const char *section)
{
    bool shown = false;
    for (size_t i = 0; i < t->n; i++) {
        CLEANUP_FREE char *own = section_of(&t->rows[i]);
        shown |= streq(own, section) && is_shown(&t->rows[i]);
    }
    return shown;
}

static void sample_row(struct strbuf *out, const struct option_row *row, const char *section)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    const char *indent = *section ? "  " : "";
    const char *key = *section ? row->path + strlen(section) + 1 : row->path;
    add_meaning(&text, row);
    if (row->unset) {
        strbuf_addf(&text, " Default: %s.", row->unset);
    }
    add_comment(out, indent, strbuf_cstr(&text));
    strbuf_addf(out, "%s%s%s:", is_shown(row) ? "" : "#", indent, key);
    add_value(out, row, row->dflt ? row->dflt : row->example);
    strbuf_addc(out, '\n');
}

/* Rows that have neither a default nor an example are other names of keys. */
static void sample(struct strbuf *out, const struct option_table *t, const char *command)
{
    CLEANUP_FREE char *last = xstrdup("");
    strbuf_addf(out,
                "# Configuration of \"tenet %s\"; see tenet-%s-config(5).\n"
                "# What is left out has the value shown, or the default that the comment names. A "
                "key that is not\n"
                "# known is an error. This file is made by \"make generate\".\n"
                "apiVersion: v1\nkind: %s\n",
                command, command, t->kind);
    for (size_t i = 0; i < t->n; i++) {
        const struct option_row *row = &t->rows[i];
        CLEANUP_FREE char *section = section_of(row);
        if (!row->path || !(row->dflt || row->example)) {
            continue;
        }
        if (!*section || !streq(section, last)) {
            strbuf_addc(out, '\n');
        }
        if (*section && !streq(section, last)) {
            strbuf_addf(out, "%s%s:\n", section_is_shown(t, section) ? "" : "#", section);
        }
        sample_row(out, row, section);
        free(last);
        last = TAKE(section);
    }
}

static void sample_master(struct strbuf *out)
{
    sample(out, &master_options, "master");
}

static void sample_node(struct strbuf *out)
{
    sample(out, &node_options, "node");
}

static void sample_kubelet(struct strbuf *out)
{
    sample(out, &kubelet_options, "kubelet");
}

/* ---- tables of the docs ---- */

static const char *daemon_of(const struct option_row *row)
{
    unsigned both = MASTER_API | MASTER_CONTROLLERS;
    return (row->daemons & both) == both ? "both"
           : row->daemons & MASTER_API   ? "API server"
                                         : "controllers";
}

/* Backquotes of the rows are Markdown already. */
static void key_table(struct strbuf *out, const struct option_table *t)
{
    bool master = t == &master_options;
    strbuf_addf(out, "| key | flag | default | meaning |%s\n|---|---|---|---|%s\n",
                master ? " for |" : "", master ? "---|" : "");
    for (size_t i = 0; i < t->n; i++) {
        const struct option_row *row = &t->rows[i];
        bool quoted = row->dflt && *row->dflt;
        const char *dflt = row->unset ? row->unset : quoted ? row->dflt : row->dflt ? "none" : "";
        strbuf_addf(out, "| %s%s%s | %s%s%s | %s%s%s | %s |", row->path ? "`" : "",
                    row->path ? row->path : "", row->path ? "`" : "", row->flag ? "`--" : "",
                    row->flag ? row->flag : "", row->flag ? "`" : "", quoted ? "`" : "", dflt,
                    quoted ? "`" : "", row->help);
        strbuf_addf(out, master ? " %s |\n" : "\n", daemon_of(row));
    }
}

/* Keys of OpenShift's files without rows. */
static void other_key_table(struct strbuf *out, const struct option_table *t)
{
    strbuf_adds(out, "| key | stands for, or why it has no effect |\n|---|---|\n");
    for (const struct option_alias *a = t->alias; a && a->path; a++) {
        strbuf_addf(out, "| `%s` | `%s` |\n", a->path, a->to);
    }
    for (const struct option_idle *i = t->idle; i && i->path; i++) {
        strbuf_addf(out, "| `%s` | %s |\n", i->path, i->why);
    }
}

/* ---- metrics ---- */

/* Labels are named without their values: "result" of "result=\"sent\"". */
static void metric_table(struct strbuf *out, const struct prom_table *tables, size_t n)
{
    strbuf_adds(out, "| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n");
    for (size_t t = 0; t < n; t++) {
        for (size_t i = 0; i < tables[t].n; i++) {
            const struct prom_metric *m = &tables[t].rows[i];
            if (i > 0 && streq(m[-1].name, m->name)) {
                continue;
            }
            strbuf_addf(out, "| `%s` | %s | %.*s | %s |\n", m->name, m->type,
                        m->label ? (int) strcspn(m->label, "=") : 0, m->label ? m->label : "",
                        m->help);
        }
    }
}

/* ---- files ---- */

const struct texts_file texts_files[] = {
    {"docs/configuration.md", NULL},
    {"docs/kubelet.md", NULL},
    {"docs/master.md", NULL},
    {"docs/metrics.md", NULL},
    {"docs/node.md", NULL},
    {"packaging/config/kubelet-config.yaml", sample_kubelet},
    {"packaging/config/master-config.yaml", sample_master},
    {"packaging/config/node-config.yaml", sample_node},
    {"packaging/completion/tenet.bash", completion_bash},
    {"packaging/completion/_tenet", completion_zsh},
    {"packaging/completion/tenet.fish", completion_fish},
    {"packaging/man/tenet.1", NULL},
    {"packaging/man/tenet-adm.1", NULL},
    {"packaging/man/tenet-annotate.1", NULL},
    {"packaging/man/tenet-apiserver.1", NULL},
    {"packaging/man/tenet-autoscale.1", NULL},
    {"packaging/man/tenet-check.1", NULL},
    {"packaging/man/tenet-collect.1", NULL},
    {"packaging/man/tenet-controllers.1", NULL},
    {"packaging/man/tenet-create.1", NULL},
    {"packaging/man/tenet-csi-controller.1", NULL},
    {"packaging/man/tenet-delete.1", NULL},
    {"packaging/man/tenet-deploy.1", NULL},
    {"packaging/man/tenet-describe.1", NULL},
    {"packaging/man/tenet-dns.1", NULL},
    {"packaging/man/tenet-edit.1", NULL},
    {"packaging/man/tenet-expose.1", NULL},
    {"packaging/man/tenet-export.1", NULL},
    {"packaging/man/tenet-flows.1", NULL},
    {"packaging/man/tenet-get.1", NULL},
    {"packaging/man/tenet-idle.1", NULL},
    {"packaging/man/tenet-kubelet.1", NULL},
    {"packaging/man/tenet-kubelet-config.5", NULL},
    {"packaging/man/tenet-lab.1", NULL},
    {"packaging/man/tenet-label.1", NULL},
    {"packaging/man/tenet-logs.1", NULL},
    {"packaging/man/tenet-master.1", NULL},
    {"packaging/man/tenet-master-config.5", NULL},
    {"packaging/man/tenet-node.1", NULL},
    {"packaging/man/tenet-node-config.5", NULL},
    {"packaging/man/tenet-patch.1", NULL},
    {"packaging/man/tenet-rollback.1", NULL},
    {"packaging/man/tenet-rollout.1", NULL},
    {"packaging/man/tenet-router.1", NULL},
    {"packaging/man/tenet-run.1", NULL},
    {"packaging/man/tenet-scale.1", NULL},
    {"packaging/man/tenet-scc.1", NULL},
    {"packaging/man/tenet-secrets.1", NULL},
    {"packaging/man/tenet-set.1", NULL},
    {"packaging/man/tenet-setup.1", NULL},
    {"packaging/man/tenet-status.1", NULL},
    {"packaging/man/tenet-store.1", NULL},
    {"packaging/man/tenet-token.1", NULL},
    {"packaging/man/tenet-trace.1", NULL},
    {"packaging/man/tenet-wait.1", NULL},
    {"packaging/man/tenet-whoami.1", NULL},
    {NULL, NULL},
};

/* "options of get", "options of node flows" */
static int make_options(const char *name, struct strbuf *out, struct err *e)
{
    size_t n = strcspn(name, " ");
    CLEANUP_FREE char *first = xstrndup(name, n);
    const struct command *c = command_find(first);
    for (size_t i = 0; c && name[n]; i++) {
        if (!c->groups || !c->groups[i]) {
            c = NULL;
        } else if (streq(c->groups[i]->name, name)) {
            c = c->groups[i];
            break;
        }
    }
    if (!c) {
        return err_set(e, -EINVAL, "\"%s\" is not a command", name);
    }
    man_options(out, c);
    return 0;
}

static int make_part(const char *name, struct strbuf *out, struct err *e)
{
    static const char options[] = "options of ";
    if (str_has_prefix(name, options)) {
        return make_options(name + strlen(options), out, e);
    }
    if (streq(name, "keys of the master")) {
        man_keys(out, &master_options);
    } else if (streq(name, "keys of the node")) {
        man_keys(out, &node_options);
    } else if (streq(name, "keys of the kubelet")) {
        man_keys(out, &kubelet_options);
    } else if (streq(name, "commands")) {
        man_commands(out);
    } else if (streq(name, "table of the master's options -->")) {
        key_table(out, &master_options);
    } else if (streq(name, "table of the node's options -->")) {
        key_table(out, &node_options);
    } else if (streq(name, "table of the kubelet's options -->")) {
        key_table(out, &kubelet_options);
    } else if (streq(name, "table of the master's other keys -->")) {
        other_key_table(out, &master_options);
    } else if (streq(name, "table of the node's other keys -->")) {
        other_key_table(out, &node_options);
    } else if (streq(name, "table of the kubelet's other keys -->")) {
        other_key_table(out, &kubelet_options);
    } else if (streq(name, "metrics of the kubelet -->")) {
        metric_table(out, &kubelet_metrics, 1);
    } else if (streq(name, "metrics of resources -->")) {
        metric_table(out, &stats_resource_metrics, 1);
    } else if (streq(name, "metrics of containers -->")) {
        metric_table(out, &stats_cadvisor_metrics, 1);
    } else if (streq(name, "metrics of volumes -->")) {
        metric_table(out, &stats_volume_metrics, 1);
    } else if (streq(name, "metrics of the router -->")) {
        metric_table(out, &router_metrics, 1);
    } else if (streq(name, "metrics of probes -->")) {
        metric_table(out, &kubelet_probe_metrics, 1);
    } else if (streq(name, "metrics of the agent -->")) {
        metric_table(out, introspect_metric_tables, INTROSPECT_METRIC_TABLES);
    } else if (streq(name, "metrics of the API server -->")) {
        metric_table(out, apiserver_metric_tables, APISERVER_METRIC_TABLES);
    } else if (streq(name, "metrics of the scheduler -->")) {
        metric_table(out, &scheduler_metrics, 1);
    } else if (streq(name, "metrics of DNS -->")) {
        metric_table(out, dns_metric_tables, DNS_METRIC_TABLES);
    } else {
        return err_set(e, -EINVAL, "\"%s\" is not a text that is generated", name);
    }
    return 0;
}

int texts_make(const struct texts_file *f, const char *now, struct strbuf *out, struct err *e)
{
    const char *mark, *p = now;
    if (f->whole) {
        f->whole(out);
        return 0;
    }
    while ((mark = strstr(p, MARK))) {
        size_t size = strcspn(mark, "\n");
        CLEANUP_FREE char *name = xstrndup(mark + strlen(MARK), size - strlen(MARK));
        const char *next = strstr(mark + size, MARK);
        if (!next || !str_has_prefix(next, MARK "end")) {
            return err_set(e, -EINVAL, "%s: \"%s\" has no end", f->path, name);
        }
        strbuf_add(out, p, (size_t) (mark - p) + size + 1);
        if (make_part(name, out, e) < 0) {
            return err_prefix(e, "%s", f->path);
        }
        while (next[-1] != '\n') {
            next--;
        }
        p = next + strcspn(next, "\n") + 1;
        strbuf_add(out, next, (size_t) (p - next));
    }
    strbuf_adds(out, p);
    return 0;
}
