/* SPDX-License-Identifier: Apache-2.0 */
/* API calls of the lab, by the kubeconfig that the lab wrote for its user. */
#include "base/mem.h"
#include "client/kubeconfig.h"
#include "lab/lab_internal.h"

int lab_connect(struct lab *l, struct err *e)
{
    if (l->api) {
        return 0;
    }
    CLEANUP_FREE char *file = lab_path(l, "kubeconfig");
    struct kubeconfig k = {0};
    int r = kubeconfig_load(file, &k, e);
    if (r < 0) {
        return r;
    }
    if (!l->loop) {
        l->loop = loop_new();
    }
    k.more_servers = master_more_servers(l, false);
    r = api_client_with(l->loop, &k, "tenet-lab/" TENET_VERSION, &l->api, e);
    kubeconfig_done(&k);
    return r;
}

int lab_call(struct lab *l, const char *method, const char *path, const struct json *body,
             struct json **ret, struct err *e)
{
    int r = lab_connect(l, e);
    if (r < 0) {
        return r;
    }
    /* A master that does not run is skipped. */
    for (unsigned i = 0; i < master_count(l); i++) {
        r = api_request_sync(l->api, method, path, NULL, NULL, body, ret, e);
        if (r != -ECONNREFUSED) {
            return r;
        }
    }
    return r == -ECONNREFUSED && !master_runs(l)
               ? err_set(e, r,
                         "the master of lab %s does not run; \"tenet lab --name %s master start\" "
                         "starts it",
                         l->name, l->name)
               : r;
}

int lab_get(struct lab *l, const char *api_version, const char *plural, const char *ns,
            const char *name, struct json **ret, struct err *e)
{
    CLEANUP_FREE char *path = api_path(api_version, plural, ns, name, NULL);
    return lab_call(l, "GET", path, NULL, ret, e);
}

int lab_delete(struct lab *l, const char *api_version, const char *plural, const char *ns,
               const char *name, struct err *e)
{
    CLEANUP_FREE char *path = api_path(api_version, plural, ns, name, NULL);
    CLEANUP_FREE char *at_once = xasprintf("%s?gracePeriodSeconds=0", path);
    int r = lab_call(l, "DELETE", at_once, NULL, NULL, e);
    return r == -ENOENT ? 0 : r;
}

struct absent {
    struct lab *l;
    const char *api_version, *plural, *name;
    struct err err;
};

static int is_absent(void *ctx)
{
    struct absent *a = ctx;
    int r = lab_get(a->l, a->api_version, a->plural, NULL, a->name, NULL, &a->err);
    return r == -ENOENT ? 1 : r;
}

int lab_wait_absent(struct lab *l, const char *api_version, const char *plural, const char *name,
                    struct err *e)
{
    struct absent a = {.l = l, .api_version = api_version, .plural = plural, .name = name};
    int r = lab_wait(is_absent, &a, START_TIMEOUT_MS);
    if (r == -ETIMEDOUT) {
        return err_set(e, r, "%s \"%s\" is still there after %d s", plural, name,
                       START_TIMEOUT_MS / 1000);
    }
    return r < 0 ? err_set(e, r, "%s", a.err.text) : 0;
}
