/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/provider.h"

#include "base/mem.h"
#include "identity/attempt.h"
#include "identity/kinds.h"

static const struct identity_kind *const kinds[] = {
    &identity_allow_all, &identity_basic_auth, &identity_deny_all,       &identity_github,
    &identity_gitlab,    &identity_google,     &identity_htpasswd,       &identity_keystone,
    &identity_ldap,      &identity_openid,     &identity_request_header, NULL,
};

void identity_attempt_cancel(struct identity_attempt *a)
{
    a->cancel(a);
}

/* Whether 'word' is one of the blank-separated 'words'. */
static bool is_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = words; *p; p += strcspn(p, " "), p += *p == ' ') {
        if (strcspn(p, " ") == n && strncmp(p, word, n) == 0) {
            return true;
        }
    }
    return false;
}

int identity_check_keys(const struct json *provider, const char *keys, struct err *e)
{
    for (size_t i = 0; i < json_count(provider); i++) {
        const char *key = json_key_at(provider, i);
        if (!is_word(keys, key) && !streq(key, "apiVersion") && !streq(key, "kind")) {
            return err_set(e, -EINVAL, "%.80s: unknown key", key);
        }
    }
    return 0;
}

const struct identity_kind *const *identity_kinds(void)
{
    return kinds;
}

const struct identity_kind *identity_kind_find(const char *name)
{
    for (const struct identity_kind *const *k = kinds; *k; k++) {
        if (streq((*k)->name, name)) {
            return *k;
        }
    }
    return NULL;
}

void identity_done(struct identity *id)
{
    free(TAKE(id->user));
    free(TAKE(id->preferred));
    free(TAKE(id->name));
    free(TAKE(id->email));
    for (char **g = id->groups; g && *g; g++) {
        free(*g);
    }
    free(TAKE(id->groups));
}
