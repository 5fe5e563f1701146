/* SPDX-License-Identifier: Apache-2.0 */
#include "preload.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "bench: %s: %s\n", what, why);
    exit(1);
}

void preload_open(struct preload *s)
{
    static const struct store_config memory = {.backend = "memory"};
    struct err e = {0};
    *s = (struct preload){.loop = loop_new()};
    if (store_open(s->loop, &memory, &s->store, &e) < 0) {
        fail("the store", e.text);
    }
}

void preload_await(struct preload *s, const char *what, const bool *flag)
{
    if (loop_run_until(s->loop, flag, PRELOAD_WAIT_MS) < 0) {
        fail(what, "waited in vain");
    }
}

static void on_stored(void *ctx, int error, uint64_t revision)
{
    struct preload *s = ctx;
    if (error < 0) {
        fail("the store", strerror(-error));
    }
    s->done = ++s->stored == s->sent;
}

void preload_put(struct preload *s, const char *resource, const char *ns, const char *text)
{
    CLEANUP(json_free) struct json *o = NULL;
    if (json_parse(text, strlen(text), &o, NULL) < 0) {
        abort();
    }
    CLEANUP_FREE char *key = xasprintf("/registry/%s/%s%s%s", resource, ns, *ns ? "/" : "",
                                       json_path_string(o, "metadata", "name", NULL));
    CLEANUP(blob_unref) struct blob *value = blob_new(text, strlen(text));
    s->sent++;
    s->done = false;
    store_put(s->store, key, value, STORE_ABSENT, on_stored, s);
}

void preload_put_all(struct preload *s, const char *resource, struct json *list)
{
    const struct json *o;
    JSON_FOREACH (o, list) {
        CLEANUP_FREE char *text = json_to_text(o);
        preload_put(s, resource, "", text);
    }
    json_free(list);
}

void preload_settle(struct preload *s)
{
    preload_await(s, "the objects", &s->done);
}
