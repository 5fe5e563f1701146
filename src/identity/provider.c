/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/provider.h"

#include "base/mem.h"
#include "identity/kinds.h"

static const struct identity_kind *const kinds[] = {
    &identity_basic_auth,
    &identity_keystone,
    &identity_ldap,
    NULL,
};

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
