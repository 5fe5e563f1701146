/* SPDX-License-Identifier: Apache-2.0 */
/* Further work of a kubelet for a running pod: its environment, and its readiness. */
#include "api/condition.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "lab/lab_internal.h"
#include "net/kernel/netns.h"
#include "sdn/service_env.h"

#include <stdlib.h>

#define ENVIRONMENT_MAX ((size_t) 4 << 20)
#define STATUS_TRIES 8

/* ---- environment ---- */

static char *environment_path(const char *ns)
{
    return xasprintf("%s/%s/environment", NETNS_ETC, ns);
}

int pod_write_environment(struct lab *l, const char *project, const char *ns, bool links,
                          struct err *e)
{
    CLEANUP(json_free) struct json *services = NULL;
    CLEANUP(json_free) struct json *api = NULL;
    CLEANUP(json_free) struct json *env = json_array();
    CLEANUP_FREE char *dir = xasprintf("%s/%s", NETNS_ETC, ns);
    CLEANUP_FREE char *path = environment_path(ns);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    const struct json *item;
    int r = lab_get(l, "v1", "services", project, NULL, &services, e);
    if (r < 0 || ((r = lab_get(l, "v1", "services", "default", "kubernetes", &api, e)) < 0 &&
                  r != -ENOENT)) {
        return r;
    }
    struct json *list = json_ensure_array(services, "items");
    if (api && !streq(project, "default")) {
        json_append(list, json_clone(api));
    }
    service_env_add(list, project, links, env);
    JSON_FOREACH (item, env) {
        strbuf_addf(&text, "%s\n", json_get_string(item));
    }
    r = dir_make(dir, 0755, e);
    return r < 0 ? r : file_write_atomic(path, strbuf_cstr(&text), text.size, 0644, e);
}

void pod_enter_environment(const char *ns)
{
    CLEANUP_FREE char *path = environment_path(ns);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT_MAX(ENVIRONMENT_MAX);
    if (file_read(path, ENVIRONMENT_MAX, &text, NULL) < 0) {
        return; /* A lab made by a version without these. */
    }
    char *save = NULL;
    for (char *line = text.size ? strtok_r(text.data, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save)) {
        char *eq = strchr(line, '=');
        if (eq) {
            *eq = '\0';
            setenv(line, eq + 1, 1);
        }
    }
}

/* ---- readiness ---- */

static void set_ready(struct json *pod, bool ready)
{
    struct json *cs;
    condition_set(pod, "Ready", ready ? "True" : "False", NULL, NULL, time_wall_ms());
    JSON_FOREACH (cs, json_path(pod, "status", "containerStatuses", NULL)) {
        json_set_bool(cs, "ready", ready);
    }
}

int lab_pod_ready(struct lab *l, const char *project, const char *name, bool ready, struct err *e)
{
    int r = lab_load(l, e);
    CLEANUP_FREE char *path = api_path("v1", "pods", project, name, "status");
    for (int i = 0; i < STATUS_TRIES && (r == 0 || r == -ESTALE); i++) {
        CLEANUP(json_free) struct json *pod = NULL;
        if ((r = lab_get(l, "v1", "pods", project, name, &pod, e)) == -ENOENT) {
            return err_set(e, r, "pod %s/%s does not exist in lab %s", project, name, l->name);
        }
        if (r < 0) {
            return r;
        }
        set_ready(pod, ready);
        if ((r = lab_call(l, "PUT", path, pod, NULL, e)) == 0) {
            return 0;
        }
    }
    return r;
}
