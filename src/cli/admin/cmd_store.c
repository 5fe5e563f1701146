/* SPDX-License-Identifier: Apache-2.0 */
/* tenet store: backup, restore, export, import and repair of the registry's store. */
#include "base/mem.h"
#include "cli/admin/store_import.h"
#include "cli/command.h"
#include "master/master_config.h"
#include "net/loop/process.h"
#include "store/sqlite/sqlite_file.h"
#include "wire/yaml.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char help[] =
    "usage: tenet store COMMAND [FILE] [OPTIONS]\n"
    "\n"
    "The storage of a registry as a whole: the one that the master's configuration names.\n"
    "\n"
    "  export FILE     write all objects to FILE (-: standard output), in a form that every "
    "backend\n"
    "                  can import; works while masters run\n"
    "  import FILE     fill the store with what was exported (-: standard input); no master may "
    "run\n"
    "  release KIND    let numbers be given out again after a repair: KIND is hostsubnets or\n"
    "                  netnamespaces; with SQLite the master must be stopped\n"
    "\n"
    "Of SQLite (for etcd there is etcdctl snapshot and etcdctl defrag):\n"
    "  backup FILE     write a checked copy of the database; works while the master runs\n"
    "  restore FILE    put a backup in the place of the database; the master must be stopped\n"
    "  check           read all of it; works while the master runs\n"
    "  repair          report damage; with --force, remove it, and keep the damaged file\n"
    "                  beside the new one; the master must be stopped\n"
    "  defrag          give free space back to the disk; the master must be stopped\n";

enum { OPT_FORCE = OPT_FIRST_FREE, OPT_REVISION };

static const struct command_option options[] = {
    {"config", 'c', "FILE", "master-config.yaml", COMPLETE_FILE},
    {"force", OPT_FORCE, NULL,
     "import, restore: replace the present registry; repair: change the file"},
    {"min-revision", OPT_REVISION, "N", "import: revisions go on after N, which clients have seen"},
    {0},
};

struct args {
    const char *command, *file, *config;
    bool force;
    uint64_t min_revision;
    struct command_settings settings;
};

/* ---- commands ---- */

static int done(const struct store_config *cfg, const char *what, size_t keys, uint64_t revision)
{
    fprintf(stderr, "%s: %zu keys, revision %" PRIu64 " (%s)\n", what, keys, revision,
            streq(cfg->backend, "sqlite") ? cfg->path : cfg->backend);
    return 0;
}

static int run_export(const struct store_config *cfg, const struct args *a)
{
    struct err e = {0};
    size_t keys = 0;
    uint64_t revision = 0;
    if (streq(a->file, "-")) {
        int r = store_export(cfg, stdout, &keys, &revision, &e);
        return r < 0 ? command_fail(&e, "export") : done(cfg, "exported", keys, revision);
    }
    /* The file gets its name only when it is complete. */
    CLEANUP_FREE char *part = xasprintf("%s.part", a->file);
    if (access(a->file, F_OK) == 0) {
        return command_fail(NULL, "export: %s exists: give another name, or remove it", a->file);
    }
    (void) unlink(part);
    FILE *out = fopen(part, "wex");
    if (!out) {
        return command_fail(NULL, "export: %s: %s", part, strerror(errno));
    }
    int r = fchmod(fileno(out), 0600) < 0 ? err_sys(&e, -errno, "chmod %s", part) : 0;
    if (r == 0) {
        r = store_export(cfg, out, &keys, &revision, &e);
    }
    if (r == 0 && fsync(fileno(out)) < 0) {
        r = err_sys(&e, -errno, "sync %s", part);
    }
    if (fclose(out) != 0 && r == 0) {
        r = err_sys(&e, -errno, "write %s", part);
    }
    if (r == 0 && rename(part, a->file) < 0) {
        r = err_sys(&e, -errno, "rename %s", part);
    }
    if (r < 0) {
        (void) unlink(part);
        return command_fail(&e, "export");
    }
    return done(cfg, "exported", keys, revision);
}

/* Copies standard input to a file that can be read twice; NULL with errno. */
static FILE *spool_input(void)
{
    FILE *f = tmpfile();
    char buf[65536];
    size_t n;
    while (f && (n = fread(buf, 1, sizeof buf, stdin)) > 0) {
        if (fwrite(buf, 1, n, f) != n) {
            fclose(f);
            return NULL;
        }
    }
    return f;
}

static int run_import(const struct store_config *cfg, const struct args *a)
{
    struct err e = {0};
    struct import_result result = {0};
    FILE *in = streq(a->file, "-") ? spool_input() : fopen(a->file, "re");
    if (!in) {
        return command_fail(NULL, "import: %s: %s", a->file, strerror(errno));
    }
    int r = store_import(cfg, in, a->force, &result, &e);
    fclose(in);
    return r < 0 ? command_fail(&e, "import") : done(cfg, "imported", result.keys, result.revision);
}

static int run_backup(const struct store_config *cfg, const struct args *a)
{
    struct err e = {0};
    struct sqlite_file_info info;
    return sqlite_file_backup(cfg->path, a->file, &info, &e) < 0
               ? command_fail(&e, "backup")
               : done(cfg, "backed up", info.n_keys, info.revision);
}

static int run_restore(const struct store_config *cfg, const struct args *a)
{
    struct err e = {0};
    struct sqlite_file_info info;
    return sqlite_file_restore(a->file, cfg->path, a->force, &info, &e) < 0
               ? command_fail(&e, "restore")
               : done(cfg, "restored", info.n_keys, info.revision);
}

static void print_finding(void *path, const char *text)
{
    printf("%s: %s\n", (const char *) path, text);
}

static int run_repair(const struct store_config *cfg, const struct args *a)
{
    struct err e = {0};
    struct sqlite_repair result = {0};
    size_t n = 0;
    int r = a->force ? sqlite_repair(cfg->path, print_finding, (void *) cfg->path, &result, &e)
                     : sqlite_scan(cfg->path, print_finding, (void *) cfg->path, &n, &e);
    if (r < 0) {
        return command_fail(&e, "repair");
    }
    if (!n && !result.n_findings) {
        printf("%s: nothing is damaged\n", cfg->path);
        return 0;
    }
    if (!a->force) {
        return command_fail(NULL,
                            "repair: %zu findings; nothing was changed: --force removes what is "
                            "damaged",
                            n);
    }
    printf("%s: %zu keys are left, %zu were taken out; the damaged file is %s\n", cfg->path,
           result.n_keys, result.n_dropped, result.kept);
    free(result.kept);
    if (result.holds_subnets) {
        printf("No subnet is given out to a node before \"tenet store release hostsubnets\".\n");
    }
    if (result.holds_vnids) {
        printf("No VNID is given out to a project before \"tenet store release netnamespaces\".\n");
    }
    return 0;
}

static int run_release(const struct store_config *cfg, const struct args *a)
{
    struct err e = {0};
    const char *key = streq(a->file, "hostsubnets")     ? STORE_HOLD_SUBNETS
                      : streq(a->file, "netnamespaces") ? STORE_HOLD_VNIDS
                                                        : NULL;
    if (!key) {
        return command_usage(&cmd_store, "release: \"%s\" is not hostsubnets or netnamespaces",
                             a->file);
    }
    int r = store_remove_key(cfg, key, &e);
    if (r == -ENOENT) {
        printf("%s: nothing was held\n", a->file);
        return 0;
    }
    return r < 0 ? command_fail(&e, "release") : (printf("%s: released\n", a->file), 0);
}

static int run_check(const struct store_config *cfg, const struct args *a)
{
    struct err e = {0};
    struct sqlite_file_info info;
    if (sqlite_file_check(cfg->path, print_finding, (void *) cfg->path, &info, &e) < 0) {
        return command_fail(&e, "check");
    }
    printf("%s: good\nkeys: %zu\nrevision: %" PRIu64 "\nhistory: %zu changes\nsize: %" PRIu64
           " bytes\nunused: %" PRIu64 " bytes\n",
           cfg->path, info.n_keys, info.revision, info.n_history, info.size, info.unused);
    return 0;
}

static int run_defrag(const struct store_config *cfg, const struct args *a)
{
    struct err e = {0};
    struct sqlite_file_info before, after;
    if (sqlite_file_defrag(cfg->path, &before, &after, &e) < 0) {
        return command_fail(&e, "defrag");
    }
    printf("%s: %" PRIu64 " bytes before, %" PRIu64 " now\n", cfg->path, before.size, after.size);
    return 0;
}

static const struct {
    const char *name;
    bool takes_file, sqlite_only;
    int (*run)(const struct store_config *cfg, const struct args *a);
} actions[] = {
    {"export", true, false, run_export}, {"import", true, false, run_import},
    {"backup", true, true, run_backup},  {"restore", true, true, run_restore},
    {"check", false, true, run_check},   {"defrag", false, true, run_defrag},
    {"repair", false, true, run_repair}, {"release", true, false, run_release},
};

/* ---- options ---- */

static void args_done(struct args *a)
{
    command_settings_done(&a->settings);
}

/* Returns -1 to go on, else the exit status. */
static int parse_options(int argc, char **argv, struct args *a)
{
    int opt;
    const char *name = NULL;
    optind = 0;
    while ((opt = command_getopt(&cmd_store, argc, argv, &name)) != -1) {
        switch (opt) {
        case 'c':
            a->config = optarg;
            break;
        case OPT_FORCE:
            a->force = true;
            break;
        case OPT_REVISION:
            if (str_to_u64(optarg, INT64_MAX, &a->min_revision) < 0) {
                return command_usage(&cmd_store, "--min-revision: \"%s\" is not a number", optarg);
            }
            break;
        case OPT_SETTING:
            command_settings_add(&a->settings, name, optarg);
            break;
        default:
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    a->command = optind < argc ? argv[optind++] : NULL;
    a->file = optind < argc ? argv[optind++] : NULL;
    return command_expect_end(&cmd_store, argc, argv);
}

static int find_store(const struct args *a, struct master_config *c)
{
    struct err e = {0};
    if (a->config && master_config_load(a->config, c, &e) < 0) {
        return command_fail(&e, NULL);
    }
    if (command_settings_apply(&a->settings, &master_options, c, &e) < 0) {
        return command_usage(&cmd_store, "%s", e.text);
    }
    if (master_config_check(c, MASTER_WHOLE, &e) < 0) {
        return command_usage(&cmd_store, "%s", e.text);
    }
    return streq(c->storage_backend, "memory")
               ? command_usage(&cmd_store, "the backend memory has nothing that stays")
               : -1;
}

static int run(int argc, char **argv)
{
    __attribute__((cleanup(master_config_donep))) struct master_config c;
    __attribute__((cleanup(args_done))) struct args a = {0};
    master_config_init(&c);
    int status = parse_options(argc, argv, &a);
    if (status >= 0 || (status = find_store(&a, &c)) >= 0) {
        return status;
    }
    struct store_config cfg = {.backend = c.storage_backend,
                               .path = c.storage_path,
                               .endpoints = c.storage_endpoints,
                               .ca_file = c.etcd_ca,
                               .cert_file = c.etcd_cert,
                               .key_file = c.etcd_key,
                               .min_revision = a.min_revision};
    for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
        if (!streq_null(a.command, actions[i].name)) {
            continue;
        }
        if (actions[i].takes_file != (a.file != NULL)) {
            return command_usage(&cmd_store, "%s takes %s", a.command,
                                 a.file ? "no FILE" : "a FILE");
        }
        if (actions[i].sqlite_only && !streq(cfg.backend, "sqlite")) {
            return command_usage(&cmd_store,
                                 "%s is for SQLite; etcd has etcdctl snapshot and etcdctl defrag",
                                 a.command);
        }
        return actions[i].run(&cfg, &a);
    }
    return command_usage(
        &cmd_store,
        "\"%s\" is not one of export, import, backup, restore, check, repair, release, "
        "defrag",
        a.command ? a.command : "");
}

const struct command cmd_store = {
    .name = "store",
    .summary = "export, import, back up and check the registry",
    .help = help,
    .notes =
        "Revisions never go back: an import or a restore goes on after the newest of both.\n"
        "Exit status: 0 done, 1 failed (nothing was changed, or the import is to be run again) or "
        "damage\n"
        "was found, 2 usage.\n",
    .options = options,
    .settings = &master_options,
    .daemons = MASTER_STORE,
    .complete = "export import backup restore check repair release defrag " COMPLETE_FILE,
    .run = run};
