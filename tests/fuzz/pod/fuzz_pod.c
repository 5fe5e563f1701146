/* SPDX-License-Identifier: Apache-2.0 */
/* Any pod, with any objects: its environment is bounded and has each name once, the files of its
 * volumes stay in the volume, and its /etc/hosts ends with a line.
 *
 * The input is {"pod": ..., "objects": {"configmaps/NAME": ...}, "services": [...], "hosts": "..."}. */
#include "base/mem.h"
#include "pod/env.h"
#include "pod/files.h"
#include "pod/hosts_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) ((x) ? (void) 0 : abort())

static int find_object(void *ctx, enum pod_object_kind kind, const char *ns, const char *name,
                       const struct json **ret)
{
    CLEANUP_FREE char *key = xasprintf("%s/%s", pod_object_plural(kind), name);
    *ret = json_get(ctx, key);
    return *ret ? 0 : -ENOENT;
}

static void check_env(const struct json *pod, const struct json *container,
                      const struct pod_facts *f)
{
    CLEANUP(pod_env_done) struct pod_env env = {0};
    CLEANUP(json_free) struct json *command = NULL;
    struct err e = {0};
    int r = pod_env_make(pod, container, f, &env, &e);
    CHECK(r == 0 || (e.text[0] && !env.v));
    for (size_t i = 0; i < env.n; i++) {
        CHECK(strlen(env.v[i].value) <= POD_ENV_TEXT_MAX);
        for (size_t j = 0; j < i && i < 64; j++) {
            CHECK(!streq(env.v[i].key, env.v[j].key));
        }
    }
    const struct json *list = json_get(container, "command");
    r = pod_env_expand_list(list, pod_env_pairs(&env), &command, &e);
    CHECK(r < 0 || json_count(command) == json_count(list));
}

static void check_files(const struct json *pod, const struct json *volume,
                        const struct pod_facts *f)
{
    static const char *const tokens[] = {"t"};
    CLEANUP(pod_files_done) struct pod_files files = {0};
    struct err e = {0};
    int r = pod_files_make(pod, volume, f, (struct pod_tokens){tokens, 1}, &files, &e);
    CHECK(r == 0 || (e.text[0] && files.n == 0));
    for (size_t i = 0; i < files.n; i++) {
        CLEANUP_FREE char *ends = xasprintf("/%s/", files.v[i].path);
        CHECK(!strstr(ends, "/../") && !strstr(ends, "//") && !strstr(ends, "/./"));
        CHECK(!str_has_prefix(files.v[i].path, "..") && files.v[i].mode <= 0777);
        CHECK(i == 0 || strcmp(files.v[i - 1].path, files.v[i].path) < 0);
    }
}

static void check_hosts(const struct json *pod, const char *node_hosts)
{
    static const char *const ips[] = {"192.0.2.1"};
    CLEANUP_FREE char *text = pod_hosts_file(pod, (struct runtime_texts){ips, 1}, "d", node_hosts);
    CHECK(text[strlen(text) - 1] == '\n');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(json_free) struct json *v = NULL;
    const struct json *item;
    if (json_parse((const char *) data, size, &v, NULL) < 0) {
        return 0;
    }
    const struct json *pod = json_get(v, "pod");
    const struct pod_facts facts = {.find_object = find_object,
                                    .ctx = json_get(v, "objects"),
                                    .services = json_get(v, "services"),
                                    .allocatable = json_get(v, "allocatable")};
    JSON_FOREACH (item, json_path(pod, "spec", "containers", NULL)) {
        check_env(pod, item, &facts);
    }
    JSON_FOREACH (item, json_path(pod, "spec", "volumes", NULL)) {
        check_files(pod, item, &facts);
    }
    check_hosts(pod, json_get_string(json_get(v, "hosts")));
    return 0;
}
