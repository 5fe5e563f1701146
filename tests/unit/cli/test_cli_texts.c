/* SPDX-License-Identifier: Apache-2.0 */
/* Every row of the options, and every text in the tree that is made from rows. */
#include "apiserver/apiserver.h"
#include "base/mem.h"
#include "cli/command.h"
#include "cli/texts.h"
#include "dns/dns.h"
#include "master/master_config.h"
#include "net/loop/process.h"
#include "node/config.h"
#include "node/introspect/introspect.h"
#include "wire/yaml.h"

#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define MAX_TEXT (1u << 20)
#define MASTER_DONE __attribute__((cleanup(master_config_donep)))

/* The tables, each with two configurations that have the defaults. */
struct both {
    const struct option_table *table;
    void *config, *dflt;
    const char *sample;
};

static void each_table(void (*fn)(const struct both *b))
{
    MASTER_DONE struct master_config m, m_dflt;
    CLEANUP(node_config_done) struct node_config n;
    CLEANUP(node_config_done) struct node_config n_dflt;
    master_config_init(&m);
    master_config_init(&m_dflt);
    node_config_init(&n);
    node_config_init(&n_dflt);
    fn(&(struct both){&master_options, &m, &m_dflt, "packaging/config/master-config.yaml"});
    fn(&(struct both){&node_options, &n, &n_dflt, "packaging/config/node-config.yaml"});
}

static void check_words(const struct option_row *row)
{
    const char *name = row->path ? row->path : row->flag;
    size_t n = row->help ? strlen(row->help) : 0;
    if (n == 0 || row->help[n - 1] == '.') {
        fail_msg("%s: the help text is not a phrase", name);
    }
    if (row->detail && !str_has_suffix(row->detail, ".")) {
        fail_msg("%s: the detail is not a sentence", name);
    }
    if (row->flag && !row->arg) {
        fail_msg("%s: the flag has no argument", name);
    }
    if (row->type == OPTION_CHOICE && !row->choices) {
        fail_msg("%s: there are no choices", name);
    }
}

static void check_row(const struct both *b, size_t i)
{
    const struct option_row *row = &b->table->rows[i];
    struct err e = {0};
    check_words(row);
    for (size_t k = 0; k < i; k++) {
        const struct option_row *other = &b->table->rows[k];
        assert_false(row->path && other->path && streq(row->path, other->path));
        assert_false(row->flag && other->flag && streq(row->flag, other->flag));
    }
    if ((row->dflt && option_set(row, b->config, row->dflt, &e) < 0) ||
        (row->example && option_set(row, b->config, row->example, &e) < 0)) {
        fail_msg("%s: default or example: %s", row->path, e.text);
    }
}

static void check_rows(const struct both *b)
{
    for (size_t i = 0; i < b->table->n; i++) {
        check_row(b, i);
    }
}

static void rows_are_whole(void **state)
{
    each_table(check_rows);
}

/* A value that the row must refuse. */
static const char *wrong_value(const struct option_row *row)
{
    switch (row->type) {
    case OPTION_TEXT:
    case OPTION_FILE:
        return row->set || row->set_path ? "?\t/" : "";
    case OPTION_LIST:
    case OPTION_TEXTS:
        return "?,,";
    default:
        return "?";
    }
}

static void refuse(const struct both *b, const struct option_row *row, const char *value)
{
    struct err e = {0};
    CLEANUP_FREE char *key = xasprintf("%s: ", row->path);
    CLEANUP_FREE char *flag = xasprintf("--%s: ", row->flag);
    if (options_set_path(b->table, b->config, row->path, value, &e) != -EINVAL ||
        !str_has_prefix(e.text, key) || !e.text[strlen(key)]) {
        fail_msg("%s: \"%s\": %s", row->path, value, e.text);
    }
    if (row->flag && (options_set_flag(b->table, b->config, row->flag, value, &e) != -EINVAL ||
                      !str_has_prefix(e.text, flag))) {
        fail_msg("--%s: \"%s\": %s", row->flag, value, e.text);
    }
}

static void check_refusals(const struct both *b)
{
    for (size_t i = 0; i < b->table->n; i++) {
        const struct option_row *row = &b->table->rows[i];
        if (!row->path) {
            continue;
        }
        refuse(b, row, wrong_value(row));
        if (row->type == OPTION_NUMBER && row->max > row->min && row->max < INT64_MAX) {
            CLEANUP_FREE char *above = xasprintf("%lld", (long long) row->max + 1);
            CLEANUP_FREE char *below = xasprintf("%lld", (long long) row->min - 1);
            refuse(b, row, above);
            refuse(b, row, below);
        }
    }
}

static void a_wrong_value_is_refused_with_the_key(void **state)
{
    each_table(check_refusals);
}

static bool same_member(const struct option_row *row, const void *a, const void *b)
{
    const char *x = (const char *) a + row->offset, *y = (const char *) b + row->offset;
    if (row->type == OPTION_BOOL || row->type == OPTION_NUMBER) {
        return memcmp(x, y, row->size) == 0;
    }
    if (row->type == OPTION_CIDR) {
        return prefix_equal(*(const struct ip4_prefix *) x, *(const struct ip4_prefix *) y);
    }
    return row->type == OPTION_TEXTS ? !*(char ***) x && !*(char ***) y
                                     : streq_null(*(char **) x, *(char **) y);
}

static void check_sample(const struct both *b)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT_MAX(MAX_TEXT);
    CLEANUP(json_free) struct json *doc = NULL;
    struct err e = {0};
    if (file_read(b->sample, MAX_TEXT, &text, &e) < 0 ||
        yaml_parse(strbuf_cstr(&text), text.size, &doc, &e) < 0 ||
        options_read(b->table, b->config, doc, NULL, &e) < 0) {
        fail_msg("%s: %s", b->sample, e.text);
    }
    for (size_t i = 0; i < b->table->n; i++) {
        const struct option_row *row = &b->table->rows[i];
        if (row->size && !row->shown && !same_member(row, b->config, b->dflt)) {
            fail_msg("%s: %s is not the default", b->sample, row->path);
        }
    }
}

static void sample_files_have_the_defaults(void **state)
{
    each_table(check_sample);
}

/* With every "#" before a key removed the file is still one that the daemon reads. */
static void check_examples(const struct both *b)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT_MAX(MAX_TEXT), all = STRBUF_INIT;
    CLEANUP(json_free) struct json *doc = NULL;
    struct err e = {0};
    assert_int_equal(file_read(b->sample, MAX_TEXT, &text, &e), 0);
    for (const char *p = strbuf_cstr(&text); *p; p += strcspn(p, "\n") + 1) {
        const char *key = *p == '#' ? p + 1 + strspn(p + 1, " ") : p;
        bool comment = *p == '#' && (p[1] == ' ' && key != p + 3);
        if (!comment) {
            strbuf_addf(&all, "%.*s\n", (int) strcspn(p, "\n") - (*p == '#'), p + (*p == '#'));
        }
    }
    if (yaml_parse(strbuf_cstr(&all), all.size, &doc, &e) < 0 ||
        options_read(b->table, b->config, doc, NULL, &e) < 0) {
        fail_msg("%s: %s\n%s", b->sample, e.text, strbuf_cstr(&all));
    }
}

static void examples_of_the_sample_files_are_read(void **state)
{
    each_table(check_examples);
}

static void texts_are_as_the_rows_make_them(void **state)
{
    for (const struct texts_file *f = texts_files; f->path; f++) {
        CLEANUP_STRBUF struct strbuf now = STRBUF_INIT_MAX(MAX_TEXT), text = STRBUF_INIT;
        struct err e = {0};
        if (file_read(f->path, MAX_TEXT, &now, &e) < 0 ||
            texts_make(f, strbuf_cstr(&now), &text, &e) < 0) {
            fail_msg("%s", e.text);
        }
        if (!streq(strbuf_cstr(&now), strbuf_cstr(&text))) {
            fail_msg("%s differs from the rows: run \"make generate\"", f->path);
        }
    }
}

static void a_part_without_an_end_is_refused(void **state)
{
    static const struct {
        const char *now, *error;
    } cases[] = {
        {"# generated: commands\nx\n", "x: \"commands\" has no end"},
        {"# generated: commands\n# generated: commands\n", "x: \"commands\" has no end"},
        {"# generated: nosuch\n# generated: end\n",
         "x: \"nosuch\" is not a text that is generated"},
        {"# generated: options of nosuch\n# generated: end\n", "x: \"nosuch\" is not a command"},
        {"# generated: options of node nosuch\n# generated: end\n",
         "x: \"node nosuch\" is not a command"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
        struct err e = {0};
        const struct texts_file f = {"x", NULL};
        assert_int_equal(texts_make(&f, cases[i].now, &out, &e), -EINVAL);
        assert_string_equal(e.text, cases[i].error);
    }
}

static void check_metrics(const struct prom_table *tables, size_t n)
{
    for (size_t t = 0; t < n; t++) {
        for (size_t i = 0; i < tables[t].n; i++) {
            const struct prom_metric *m = &tables[t].rows[i];
            bool known =
                streq(m->type, "counter") || streq(m->type, "gauge") || streq(m->type, "histogram");
            bool has_value = m->write || m->size == sizeof(bool) || m->size == sizeof(uint32_t) ||
                             m->size == sizeof(uint64_t);
            if (!known || !has_value || !str_has_suffix(m->help, ".")) {
                fail_msg("%s: the row is not whole", m->name);
            }
        }
    }
}

static void rows_of_metrics_are_whole(void **state)
{
    check_metrics(introspect_metric_tables, INTROSPECT_METRIC_TABLES);
    check_metrics(apiserver_metric_tables, APISERVER_METRIC_TABLES);
    check_metrics(dns_metric_tables, DNS_METRIC_TABLES);
}

/* ---- completion ---- */

static void scripts_of_completion_are_shell(void **state)
{
    assert_int_equal(system("bash -n packaging/completion/tenet.bash"), 0);
    assert_int_equal(system("zsh -n packaging/completion/_tenet"), 0);
    assert_int_equal(system("fish -n packaging/completion/tenet.fish"), 0);
}

/* The first words that bash offers for the last of 'words'. */
static void offers(const char *words, const char *want)
{
    char line[256] = "";
    CLEANUP_FREE char *command =
        xasprintf("bash -c 'source packaging/completion/tenet.bash; tenet() { echo object; }; "
                  "timeout() { shift; \"$@\"; }; COMP_WORDS=(%s); "
                  "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _tenet; echo ${COMPREPLY[@]:0:3}'",
                  words);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof line, f));
    pclose(f);
    line[strcspn(line, "\n")] = '\0';
    assert_string_equal(line, want);
}

static void bash_completes_by_the_rows(void **state)
{
    offers("tenet no", "node");
    offers("tenet get nodes \"\"", "object");
    offers("tenet get -o \"\"", "wide json yaml");
    offers("tenet master --tls \"\"", "auto off");
    offers("tenet master --controller-l", "--controller-lease-ttl");
    offers("tenet node \"\"", "flows maps");
    offers("tenet node maps serv", "services serving");
    offers("tenet store --storage-backend s", "sqlite");
    offers("tenet adm pod-network join-projects --to \"\"", "object");
}

/* ---- commands ---- */

static void options_are_only_those_of_the_daemon(void **state)
{
    const struct command c = {
        .name = "x", .help = "", .settings = &master_options, .daemons = MASTER_CONTROLLERS};
    char flag[] = "--controller-lease-ttl", other[] = "--storage-path", value[] = "20";
    char *known[] = {flag, flag, value, NULL};
    char *unknown[] = {flag, other, value, NULL};
    const char *name = NULL;
    CLEANUP_STRBUF struct strbuf help = STRBUF_INIT;
    optind = 0;
    assert_int_equal(command_getopt(&c, 3, known, &name), OPT_SETTING);
    assert_string_equal(name, "controller-lease-ttl");
    optind = 0;
    assert_int_equal(command_getopt(&c, 3, unknown, &name), '?');
    command_help(&c, &help);
    assert_non_null(strstr(strbuf_cstr(&help), "--controller-lease-ttl"));
    assert_null(strstr(strbuf_cstr(&help), "--storage-path"));
}

static void check_option(void *ctx, const struct command_option *o)
{
    const struct command *c = ctx;
    if (o->name &&
        (!*o->help || (str_has_suffix(o->help, ".") && !str_has_suffix(o->help, "...")))) {
        fail_msg("tenet %s --%s: the help text is not a phrase", c->name, o->name);
    }
}

static void options_of_commands_are_whole(void **state)
{
    for (size_t i = 0; commands[i]; i++) {
        assert_non_null(commands[i]->summary);
        assert_ptr_equal(command_find(commands[i]->name), commands[i]);
        command_each_option(commands[i], check_option, (void *) commands[i]);
    }
    assert_null(command_find("nosuch"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_whole),
        cmocka_unit_test(a_wrong_value_is_refused_with_the_key),
        cmocka_unit_test(sample_files_have_the_defaults),
        cmocka_unit_test(examples_of_the_sample_files_are_read),
        cmocka_unit_test(texts_are_as_the_rows_make_them),
        cmocka_unit_test(a_part_without_an_end_is_refused),
        cmocka_unit_test(rows_of_metrics_are_whole),
        cmocka_unit_test(scripts_of_completion_are_shell),
        cmocka_unit_test(bash_completes_by_the_rows),
        cmocka_unit_test(options_are_only_those_of_the_daemon),
        cmocka_unit_test(options_of_commands_are_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
