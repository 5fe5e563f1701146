/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include "apiserver/request/server_priv.h"
#include "client/kubeconfig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define WAIT_MS 20000

struct api_client *rig_client(struct harness *h)
{
    CLEANUP_FREE char *url = harness_url(h);
    struct kubeconfig config = {.server = url, .token = h->keys ? (char[]){HARNESS_TOKEN} : NULL};
    struct api_client *c;
    struct err e = {0};
    if (api_client_with(h->loop, &config, "test", &c, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return c;
}

/* ---- one controller ---- */

struct rig_controller {
    struct controller_row row;
    struct controller_set *set;
    struct informer_set *informers;
    struct recorder *recorder;
};

struct rig_controller *rig_start(struct harness *h, struct api_client *client,
                                 const struct controller *c, const void *config)
{
    struct rig_controller *r = NEW(struct rig_controller);
    r->row.controller = c;
    r->informers = informer_set_new(h->loop, client);
    r->recorder = recorder_new(h->loop, client, "test");
    struct controller_env env = {
        .loop = h->loop, .client = client, .informers = r->informers, .recorder = r->recorder};
    struct err e = {0};
    r->set = controller_set_new(&env, &r->row, 1, config);
    if (controller_set_enable(r->set, 0, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return r;
}

void rig_stop(struct rig_controller *r)
{
    controller_set_free(r->set);
    recorder_free(r->recorder);
    informer_set_free(r->informers);
    free(r);
}

/* ---- waiting ---- */

void rig_wait(struct harness *h, const bool *flag)
{
    assert_int_equal(loop_run_until(h->loop, flag, WAIT_MS), 0);
}

void rig_expect(struct harness *h, const char *path, const char *where, const char *want)
{
    bool never = false;
    char status[16];
    for (int i = 0; i < WAIT_MS / 5; i++) {
        CLEANUP_ANSWER struct answer a = ask(h, "GET", path, NULL);
        snprintf(status, sizeof status, "%d", a.status);
        if (streq(where ? at(&a, where) : status, want)) {
            return;
        }
        loop_run_until(h->loop, &never, 5);
    }
    CLEANUP_ANSWER struct answer a = ask(h, "GET", path, NULL);
    fail_msg("%s: %s is not \"%s\": %s", path, where ? where : "the status", want, a.text);
}

char *rig_text(struct harness *h, const char *path)
{
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", path, NULL, 200);
    json_remove(json_get(a.body, "metadata"), "managedFields");
    return json_to_text(a.body);
}

static void stored(void *ctx, int error, uint64_t revision)
{
    assert_int_equal(error, 0);
    *(bool *) ctx = true;
}

static char *store_key(struct harness *h, const char *group, const char *plural, const char *key)
{
    const struct cache_kind *ck = cache_find(&h->api->cache, api_kind_find(group, "v1", plural));
    return cache_store_key(ck, key);
}

void rig_plant(struct harness *h, const char *group, const char *plural, const char *key,
               const char *body)
{
    CLEANUP_FREE char *full = store_key(h, group, plural, key);
    CLEANUP_FREE char *text = quoted(body);
    CLEANUP(blob_unref) struct blob *b = blob_new(text, strlen(text));
    bool done = false;
    store_put(h->store, full, b, STORE_ANY, stored, &done);
    rig_wait(h, &done);
}

void rig_uproot(struct harness *h, const char *group, const char *plural, const char *key)
{
    CLEANUP_FREE char *full = store_key(h, group, plural, key);
    bool done = false;
    store_delete(h->store, full, STORE_ANY, stored, &done);
    rig_wait(h, &done);
}

/* ---- a server that refuses ---- */

static uint64_t refused_before; /* Requests with 503 at rig_refuse. */

/* The requests that the server has answered with 503. */
static uint64_t refused(struct harness *h)
{
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", "/metrics", NULL, 200);
    uint64_t n = 0;
    for (const char *p = a.text; (p = strstr(p, "apiserver_request_total{")); p++) {
        const char *end = strchr(p, '\n'), *code = strstr(p, "code=\"503\"");
        n += code && code < end ? strtoull(strchr(p, '}') + 1, NULL, 10) : 0;
    }
    return n;
}

void rig_refuse(struct harness *h, bool writes_only)
{
    refused_before = refused(h);
    *(writes_only ? &h->api->lost : &h->api->stopping) = true;
}

void rig_recover(struct harness *h)
{
    bool never = false;
    for (int i = 0; i < WAIT_MS / 5 && refused(h) == refused_before; i++) {
        loop_run_until(h->loop, &never, 5);
    }
    assert_true(refused(h) > refused_before);
    h->api->lost = h->api->stopping = false;
}
