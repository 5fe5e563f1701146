/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/kubectl/learn.h"

#include <stdio.h>

static int learn(struct session *s)
{
    struct err e = {0};
    int r = s->kinds ? 0 : discovery_fetch_sync(s->client, &s->kinds, &e);
    return r < 0 ? session_fail(s, &e, NULL) : 0;
}

int learn_resources(struct session *s, int n, char *const *args, struct resources *ret)
{
    struct err e = {0};
    struct api_registry compiled_in;
    api_registry_init(&compiled_in, NULL);
    int r = resources_parse(&compiled_in, n, args, ret, &e);
    api_registry_done(&compiled_in);
    if (r == -ENOENT) {
        if (learn(s) != 0) {
            return 1;
        }
        r = resources_parse(discovery_registry(s->kinds), n, args, ret, &e);
    }
    return r < 0 ? session_error("%s", e.text) : 0;
}

int learn_manifests(struct session *s, struct manifests *m)
{
    struct err e = {0};
    struct api_registry compiled_in;
    api_registry_init(&compiled_in, NULL);
    int r = manifests_resolve(m, &compiled_in, &e);
    api_registry_done(&compiled_in);
    if (r < 0) {
        if (learn(s) != 0) {
            return 1;
        }
        r = manifests_resolve(m, discovery_registry(s->kinds), &e);
    }
    return r < 0 ? session_error("%s", e.text) : 0;
}

const struct api_kind *learn_kind(struct session *s, const char *name)
{
    struct api_registry compiled_in;
    struct err e = {0};
    api_registry_init(&compiled_in, NULL);
    const struct api_kind *k = api_registry_by_alias(&compiled_in, name);
    api_registry_done(&compiled_in);
    if (!k && discovery_fetch_sync(s->client, &s->kinds, &e) == 0) {
        k = api_registry_by_alias(discovery_registry(s->kinds), name);
    }
    if (!k) {
        fprintf(stderr, "warning: the server doesn't have a resource type '%s'\n", name);
    }
    return k;
}
