/* SPDX-License-Identifier: Apache-2.0 */
/* Opens an identity provider and asks it: "ask_identity FILE" reads {"provider": CONFIG} from the
 * JSON file, then from each line of standard input {"user": NAME, "password": TEXT}, and prints a
 * line of JSON with the outcome of each. */
#include "base/mem.h"
#include "identity/provider.h"
#include "net/loop/process.h"

#include <stdio.h>

struct asked {
    bool done;
};

static void answered(void *ctx, enum identity_outcome outcome, struct identity *id,
                     const struct err *why)
{
    static const char *const words[] = {
        [IDENTITY_PROVED] = "proved", [IDENTITY_REFUSED] = "refused", [IDENTITY_FAILED] = "failed"};
    struct asked *a = ctx;
    CLEANUP(json_free) struct json *o = json_object();
    json_set_string(o, "outcome", words[outcome]);
    if (outcome == IDENTITY_PROVED) {
        json_set_string(o, "user", id->user);
        json_set_string(o, "preferred", id->preferred);
        json_set_string(o, "name", id->name);
        json_set_string(o, "email", id->email);
    } else {
        json_set_string(o, "why", why->text);
    }
    CLEANUP_FREE char *text = json_to_text(o);
    puts(text);
    fflush(stdout);
    a->done = true;
}

static int fail(const struct err *e)
{
    fprintf(stderr, "%s\n", e->text);
    return 1;
}

int main(int argc, char **argv)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    CLEANUP(json_free) struct json *config = NULL;
    struct err e = {0};
    if (argc != 2 || file_read(argv[1], 1 << 20, &text, &e) < 0 ||
        json_parse(text.data, text.size, &config, &e) < 0) {
        return fail(&e);
    }
    const struct json *provider = json_get(config, "provider");
    const struct identity_kind *kind = identity_kind_find(json_get_text(provider, "kind"));
    if (!kind) {
        err_set(&e, -EINVAL, "unknown kind");
        return fail(&e);
    }
    CLEANUP(loop_free) struct loop *l = loop_new();
    struct identity_provider *p = NULL;
    if (kind->check(provider, &e) < 0 || kind->open(l, provider, &p, &e) < 0) {
        return fail(&e);
    }
    char line[4096];
    while (fgets(line, sizeof line, stdin)) {
        CLEANUP(json_free) struct json *q = NULL;
        struct asked a = {0};
        if (json_parse(line, strlen(line), &q, &e) < 0) {
            kind->close(p);
            return fail(&e);
        }
        kind->password(p, json_get_text(q, "user"), json_get_text(q, "password"), answered, &a);
        if (a.done || loop_run_until(l, &a.done, 30000) < 0) {
            fprintf(stderr, "no answer, or one from within the call\n");
            abort();
        }
    }
    kind->close(p);
    return 0;
}
