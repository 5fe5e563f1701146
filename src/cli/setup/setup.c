/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/setup/setup.h"

#include "base/mem.h"
#include "cli/setup/setup_facts.h"
#include "net/loop/process.h"
#include "wire/yaml.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define UNIT_MS 120000

const struct command_option setup_options[] = {
    {"set", SETUP_OPT_SET, "KEY=VALUE",
     "a further key of the configuration file, such as networkConfig.vxlanPort=4790; may be "
     "repeated"},
    {"ignore-checks", SETUP_OPT_IGNORE, NULL, "goes on although a check fails"},
    {"no-start", SETUP_OPT_NO_START, NULL, "does not start services; prints the commands"},
    {"prefix", SETUP_OPT_PREFIX, "DIR", "makes all files below DIR, and starts no service",
     COMPLETE_FILE},
    {0},
};

bool setup_take_option(struct setup *s, int opt)
{
    switch (opt) {
    case SETUP_OPT_PREFIX:
        s->prefix = optarg;
        return true;
    case SETUP_OPT_SET:
        s->sets = grow(s->sets, &s->sets_cap, s->n_sets + 1, sizeof *s->sets);
        s->sets[s->n_sets++] = optarg;
        return true;
    case SETUP_OPT_IGNORE:
        s->ignore_checks = true;
        return true;
    case SETUP_OPT_NO_START:
        s->no_start = true;
        return true;
    default:
        return false;
    }
}

int setup_open(struct setup *s, bool make, struct err *e)
{
    s->prefix = s->prefix ? s->prefix : "";
    if (*s->prefix && *s->prefix != '/') {
        return err_set(e, -EINVAL, "--prefix %s: must begin with /", s->prefix);
    }
    s->etc = xasprintf("%s/etc/tenet", s->prefix);
    s->state = xasprintf("%s/var/lib/tenet", s->prefix);
    s->run = xasprintf("%s/run/tenet", s->prefix);
    s->cni = xasprintf("%s/etc/cni/net.d", s->prefix);
    if (!make) {
        return 0;
    }
    return setup_files_open(s->etc, &s->files, e);
}

void setup_done(struct setup *s)
{
    s->files = setup_files_free(s->files);
    free(s->sets);
    free(s->etc);
    free(s->state);
    free(s->run);
    free(s->cni);
}

void setup_say(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("  ", stdout);
    vprintf(fmt, ap);
    putchar('\n');
    fflush(stdout);
    va_end(ap);
}

/* ---- checks ---- */

size_t setup_run_checks(const struct setup *s, struct setup_wish *w, const char *endpoints,
                        bool all, struct setup_facts *ret_facts)
{
    static const char *const levels[] = {"ok", "warn", "FAIL"};
    struct setup_finding found[SETUP_MAX_FINDINGS];
    struct setup_facts f;
    struct setup_places p = {.state_dir = s->state, .cni_conf_dir = s->cni, .endpoints = endpoints};
    size_t failed = 0;
    setup_facts_read(&p, w->roles, &f);
    size_t n = setup_check(&f, w, found);
    for (size_t i = 0; i < n; i++) {
        failed += found[i].level == SETUP_FAIL;
        if (!all && found[i].level == SETUP_OK) {
            continue;
        }
        printf("%-4s  %-18s %s\n", levels[found[i].level], found[i].what, found[i].found);
        if (*found[i].todo) {
            printf("%24s -> %s\n", "", found[i].todo);
        }
    }
    fflush(stdout);
    if (ret_facts) {
        *ret_facts = f;
    } else {
        setup_facts_done(&f);
    }
    return failed;
}

/* ---- configuration ---- */

/* The object that holds the last part of 'path', with the names before it made. */
static struct json *holder(struct json *doc, const char *path, const char **ret_name)
{
    for (;;) {
        size_t n = strcspn(path, ".");
        if (!path[n]) {
            *ret_name = path;
            return doc;
        }
        CLEANUP_FREE char *name = xstrndup(path, n);
        doc = json_ensure_object(doc, name);
        path += n + 1;
    }
}

static struct json *list_of(const char *value)
{
    struct json *list = json_array();
    while (*value) {
        size_t n = strcspn(value, ",");
        json_append(list, json_string_n(value, n));
        value += n + (value[n] == ',');
    }
    return list;
}

int setup_config_set(struct json *doc, const struct option_table *t, const char *path,
                     const char *value, struct err *e)
{
    const struct option_row *row = options_find(t, path);
    struct json *v = NULL;
    const char *name;
    if (!row) {
        return err_set(e, -EINVAL, "%s: there is no such key in a %s", path, t->kind);
    }
    bool list = row->type == OPTION_LIST || row->type == OPTION_TEXTS;
    bool text = row->type != OPTION_BOOL && row->type != OPTION_NUMBER && !list;
    if (list && *value != '[') {
        v = list_of(value);
    } else if (text && !row->read) {
        v = json_string(value);
    } else if (yaml_parse(value, strlen(value), &v, e) < 0) {
        return err_prefix(e, "%s", path), -EINVAL;
    }
    struct json *in = holder(doc, path, &name);
    json_set(in, name, v);
    return 0;
}

int setup_config_sets(const struct setup *s, struct json *doc, const struct option_table *t,
                      struct err *e)
{
    for (size_t i = 0; i < s->n_sets; i++) {
        size_t n = strcspn(s->sets[i], "=");
        CLEANUP_FREE char *path = xstrndup(s->sets[i], n);
        if (!s->sets[i][n]) {
            return err_set(e, -EINVAL, "--set %s: is not KEY=VALUE", s->sets[i]);
        }
        if (setup_config_set(doc, t, path, s->sets[i] + n + 1, e) < 0) {
            return err_prefix(e, "--set"), -EINVAL;
        }
    }
    return 0;
}

void setup_config_text(const struct json *doc, const char *command, const char *manual,
                       struct strbuf *out)
{
    strbuf_addf(out,
                "# Made by \"tenet setup %s\", which does not change it any more once it is "
                "edited.\n# %s describes all keys.\n",
                command, manual);
    yaml_write(doc, out);
}

/* ---- services ---- */

/* Runs systemctl; an exit status other than 0 is an error with its words. */
static int systemctl(const char *const argv[], struct err *e)
{
    struct process_spec spec = PROCESS_SPEC_INIT;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    int status = 0;
    spec.argv = argv;
    int r = process_run(&spec, UNIT_MS, &out, &out, &status, e);
    if (r < 0) {
        return r;
    }
    while (out.size && out.data[out.size - 1] == '\n') {
        out.data[--out.size] = '\0';
    }
    return status == 0 ? 0
                       : err_set(e, -EIO, "systemctl %s %s: %s", argv[1], argv[2],
                                 out.size ? strbuf_cstr(&out) : "failed");
}

bool setup_has_unit(const struct setup *s, const char *unit)
{
    const char *const argv[] = {"systemctl", "cat", unit, NULL};
    return !*s->prefix && !s->no_start && setup_has_systemd() && systemctl(argv, NULL) == 0;
}

int setup_start_unit(const char *unit, bool changed, struct err *e)
{
    const char *const enable[] = {"systemctl", "enable", unit, NULL};
    const char *const start[] = {"systemctl", changed ? "restart" : "start", unit, NULL};
    int r = systemctl(enable, e);
    if (r == 0 && (r = systemctl(start, e)) < 0) {
        err_prefix(e, "%s does not start (journalctl -u %s)", unit, unit);
    }
    return r;
}

int setup_stop_unit(const char *unit, struct err *e)
{
    const char *const argv[] = {"systemctl", "disable", unit, NULL};
    const char *const stop[] = {"systemctl", "stop", unit, NULL};
    const char *const reset[] = {"systemctl", "reset-failed", unit, NULL};
    int r = systemctl(stop, e);
    if (r == 0) {
        r = systemctl(argv, e);
    }
    (void) systemctl(reset, NULL); /* A unit that did not fail has nothing to reset. */
    return r;
}

void setup_firewall_text(const struct setup_facts *f, const char *const *ports, struct strbuf *out)
{
    for (size_t i = 0; ports[i]; i++) {
        int n = (int) strcspn(ports[i], "/");
        const char *protocol = ports[i] + n + 1;
        if (f->firewalld) {
            strbuf_addf(out, "firewall-cmd --permanent --add-port=%s\n", ports[i]);
        } else if (f->ufw) {
            strbuf_addf(out, "ufw allow %s\n", ports[i]);
        } else {
            strbuf_addf(out, "nft add rule inet filter input %s dport %.*s accept\n", protocol, n,
                        ports[i]);
        }
    }
    if (f->firewalld) {
        strbuf_adds(out, "firewall-cmd --reload\n");
    }
}
