/* SPDX-License-Identifier: Apache-2.0 */
/* tenet adm storage: the form in which the registry keeps objects. */
#include "base/mem.h"
#include "cli/admin/adm.h"
#include "cli/session.h"
#include "client/client.h"

#include <stdio.h>

#define RETRIES 8

static const char help[] =
    "usage: tenet adm storage migrate [KIND...] [OPTIONS]\n"
    "\n"
    "Writes all objects of the kinds again, unchanged: secrets by default. The API server stores\n"
    "those that its encryption configuration would encrypt with another key now, or not at all.\n"
    "Run it after the first key of the configuration has changed on all masters; then the older "
    "key\n"
    "can be removed.\n";

static const struct command_option options[] = {{0}};

/* Writes the object again.  A conflict means that it was written meanwhile, and is well; so is one
 * that is gone. */
static int rewrite(struct session *s, const struct api_kind *k, struct json *obj, struct err *e)
{
    CLEANUP_FREE char *version = api_kind_api_version(k);
    json_set_string(obj, "kind", k->kind); /* An element of a list does not say it. */
    json_set_string(obj, "apiVersion", version);
    const char *name = json_path_string(obj, "metadata", "name", NULL);
    CLEANUP_FREE char *path = api_path(
        version, k->plural, json_path_string(obj, "metadata", "namespace", NULL), name, NULL);
    CLEANUP(json_free) struct json *answer = NULL;
    int r = api_request_sync(s->client, "PUT", path, NULL, NULL, obj, &answer, e);
    return r == -ESTALE || r == -EEXIST || r == -ENOENT ? 0 : r;
}

static int migrate_kind(struct session *s, const struct api_kind *k)
{
    CLEANUP_FREE char *version = api_kind_api_version(k);
    CLEANUP_FREE char *path = api_path(version, k->plural, NULL, NULL, NULL);
    CLEANUP(json_free) struct json *list = NULL;
    struct json *obj;
    struct err e = {0};
    size_t n = 0;
    if (api_request_sync(s->client, "GET", path, NULL, NULL, NULL, &list, &e) < 0) {
        return session_fail(s, &e, NULL);
    }
    JSON_FOREACH (obj, json_get(list, "items")) {
        if (rewrite(s, k, obj, &e) < 0) {
            return session_fail(s, &e, NULL);
        }
        n++;
    }
    printf("%s: %zu objects written again\n", k->plural, n);
    return 0;
}

static int run(int argc, char **argv)
{
    CLEANUP_SESSION struct session s = {0};
    int opt;
    optind = 0;
    while ((opt = session_getopt(&s, &adm_storage, argc, argv, NULL)) != -1) {
        return opt == OPT_HELP ? 0 : 2;
    }
    if (optind == argc || !streq(argv[optind], "migrate")) {
        return command_usage(&adm_storage, "the command is \"migrate\"");
    }
    char *const *names = argv + optind + 1;
    for (size_t i = 0; names[i]; i++) {
        const struct api_kind *k = api_kind_by_alias(names[i]);
        if (!k || k->create_only || k->read_only || k->view) {
            return command_usage(&adm_storage, "\"%s\" is no kind that is stored", names[i]);
        }
    }
    int status = session_open(&s);
    for (size_t i = 0; status == 0 && (i == 0 || names[i]); i++) {
        status = migrate_kind(&s, names[i] ? api_kind_by_alias(names[i])
                                           : api_kind_find("", "v1", "secrets"));
        if (!names[i]) {
            break;
        }
    }
    return status;
}

const struct command adm_storage = {.name = "adm storage",
                                    .summary =
                                        "write objects again, so that they are encrypted anew",
                                    .help = help,
                                    .options = options,
                                    .shared = session_options,
                                    .run = run};
