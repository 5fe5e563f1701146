/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/jwt.h"

#include "base/base64.h"
#include "base/mem.h"

void jwt_done(struct jwt *t)
{
    json_free(t->header);
    json_free(t->claims);
    strbuf_done(&t->signature);
    *t = (struct jwt){.signature = STRBUF_INIT};
}

bool jwt_looks_like(const char *text)
{
    const char *a = strchr(text, '.'), *b = a ? strchr(a + 1, '.') : NULL;
    return b && !strchr(b + 1, '.');
}

static int parse_object(const char *what, const char *text, size_t size, struct json **ret,
                        struct err *e)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    CLEANUP(json_free) struct json *v = NULL;
    if (base64url_decode(text, size, &b) < 0) {
        return err_set(e, -EINVAL, "the token's %s is not base64url", what);
    }
    int r = json_parse(strbuf_cstr(&b), b.size, &v, e);
    if (r < 0) {
        return err_prefix(e, "the token's %s", what), r;
    }
    if (!json_is(v, JSON_OBJECT)) {
        return err_set(e, -EINVAL, "the token's %s is not an object", what);
    }
    *ret = TAKE(v);
    return 0;
}

int jwt_parse(const char *text, struct jwt *ret, struct err *e)
{
    CLEANUP(jwt_done) struct jwt t = {.signature = STRBUF_INIT};
    if (strlen(text) > JWT_MAX_SIZE) {
        return err_set(e, -E2BIG, "the token is larger than %d bytes", JWT_MAX_SIZE);
    }
    if (!jwt_looks_like(text)) {
        return err_set(e, -EINVAL, "the token does not have three parts");
    }
    size_t n = strcspn(text, "."), m = strcspn(text + n + 1, ".");
    const char *signature = text + n + 1 + m + 1;
    int r = parse_object("header", text, n, &t.header, e);
    if (r < 0 || (r = parse_object("claims", text + n + 1, m, &t.claims, e)) < 0) {
        return r;
    }
    if (json_get(t.header, "crit")) {
        return err_set(e, -EINVAL, "the token has critical extensions");
    }
    if (base64url_decode(signature, strlen(signature), &t.signature) < 0) {
        return err_set(e, -EINVAL, "the token's signature is not base64url");
    }
    t.signed_size = n + 1 + m;
    *ret = t;
    t = (struct jwt){.signature = STRBUF_INIT};
    return 0;
}

static void add_part(const struct json *v, struct strbuf *out)
{
    CLEANUP_FREE char *text = json_to_text(v);
    base64url_encode(text, strlen(text), out);
}

void jwt_write_unsigned(const struct json *header, const struct json *claims, struct strbuf *out)
{
    add_part(header, out);
    strbuf_addc(out, '.');
    add_part(claims, out);
}
