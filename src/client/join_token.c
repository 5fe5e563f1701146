/* SPDX-License-Identifier: Apache-2.0 */
#include "client/join_token.h"

#include "base/mem.h"
#include "base/random.h"
#include "base/timeutil.h"

#define ID_SIZE 6
#define SECRET_SIZE 16

static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";

/* A random letter of uniform distribution. */
static char random_letter(void)
{
    unsigned char b;
    do {
        random_bytes(&b, 1);
    } while (b >= 252); /* 7 times 36 */
    return letters[b % 36];
}

bool join_token_is_id(const char *s)
{
    return strlen(s) == ID_SIZE && strspn(s, letters) == ID_SIZE;
}

bool join_token_is_token(const char *s)
{
    return strlen(s) == ID_SIZE + 1 + SECRET_SIZE && strspn(s, letters) == ID_SIZE &&
           s[ID_SIZE] == '.' && strspn(s + ID_SIZE + 1, letters) == SECRET_SIZE;
}

struct json *join_token_new(const struct join_token_spec *spec, char out[JOIN_TOKEN_SIZE])
{
    for (size_t i = 0; i < JOIN_TOKEN_SIZE - 1; i++) {
        out[i] = i == ID_SIZE ? '.' : random_letter();
    }
    out[JOIN_TOKEN_SIZE - 1] = '\0';
    struct json *o = json_object();
    json_set_string(o, "apiVersion", "v1");
    json_set_string(o, "kind", "Secret");
    json_set_string(o, "type", JOIN_TOKEN_TYPE);
    struct json *meta = json_ensure_object(o, "metadata");
    json_set(meta, "name", json_stringf("bootstrap-token-%.*s", ID_SIZE, out));
    json_set_string(meta, "namespace", JOIN_TOKEN_NAMESPACE);
    struct json *data = json_ensure_object(o, "stringData");
    json_set(data, "token-id", json_string_n(out, ID_SIZE));
    json_set(data, "token-secret", json_string_n(out + ID_SIZE + 1, SECRET_SIZE));
    json_set_string(data, "usage-bootstrap-authentication", "true");
    json_set_string(data, "description", spec->description);
    if (spec->until_ms) {
        char time[TIME_TEXT_SIZE];
        time_format_s(spec->until_ms, time);
        json_set_string(data, "expiration", time);
    }
    if (spec->node_name) {
        json_set_string(data, JOIN_TOKEN_NODE, spec->node_name);
    }
    if (spec->single_use) {
        json_set_string(data, JOIN_TOKEN_SINGLE, "true");
    }
    return o;
}
