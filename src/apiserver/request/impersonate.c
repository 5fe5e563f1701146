/* SPDX-License-Identifier: Apache-2.0 */
/* Impersonation: headers by which a user acts as another user, if the
 * verb impersonate is granted for each header. */
#include "apiserver/request/impersonate.h"

#include "apiserver/access/authz.h"
#include "apiserver/access/oauth_token.h"
#include "apiserver/request/filter.h"
#include "wire/http1.h"

#include <strings.h>

#define PREFIX "Impersonate-"
#define EXTRA "Impersonate-Extra-"
#define AUTHENTICATION "authentication.k8s.io"
#define MAX_VALUES 64

/* Checks the right to one of the headers; answers 403 without it. */
static int check(struct request *q, const char *group, const char *resource, const char *sub,
                 const char *ns, const char *name, struct outcome *outcome)
{
    struct security *s = q->server->security;
    const struct attributes a = {.is_resource = true,
                                 .verb = "impersonate",
                                 .path = "",
                                 .group = group,
                                 .version = "v1",
                                 .resource = resource,
                                 .subresource = sub,
                                 .namespace = ns,
                                 .name = name,
                                 .node = ""};
    CLEANUP_STRBUF struct strbuf why = STRBUF_INIT;
    if (authz_allows(s, q->user, &a, &why)) {
        return 0;
    }
    outcome_forbidden(outcome, q->user, &a, strbuf_cstr(&why));
    return -EACCES;
}

static int check_user(struct request *q, const char *name, struct outcome *outcome)
{
    CLEANUP_FREE char *ns = NULL;
    CLEANUP_FREE char *account = NULL;
    return user_parse_service_account(name, &ns, &account)
               ? check(q, "", "serviceaccounts", "", ns, account, outcome)
               : check(q, "", "users", "", "", name, outcome);
}

/* Decodes a key of an extra header to lower case; keys are percent-encoded because header names
 * cannot contain a slash.  Owned; NULL: malformed. */
static char *extra_key(const char *header)
{
    struct strbuf b = STRBUF_INIT;
    for (const char *p = header + sizeof EXTRA - 1; *p; p++) {
        char c = *p;
        if (c == '%') {
            static const char hex[] = "0123456789abcdef";
            /* The terminating NUL is not a hex digit, so p[1] and p[2] stay within the text. */
            const char *hi = strchr(hex, p[1] | 0x20);
            const char *lo = hi ? strchr(hex, p[2] | 0x20) : NULL;
            c = (char) (lo ? (hi - hex) << 4 | (lo - hex) : '\0');
            p += 2;
        }
        if ((unsigned char) c < ' ' || (unsigned char) c > '~') {
            strbuf_done(&b);
            return NULL;
        }
        strbuf_addc(&b, (char) (c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c));
    }
    return strbuf_steal(&b);
}

static int add_extra(struct request *q, struct user_info *u, const char *header, const char *value,
                     struct outcome *outcome)
{
    CLEANUP_FREE char *key = extra_key(header);
    if (!key || !*key) {
        outcome_error(outcome, 400, "BadRequest", "the header %.80s is malformed", header);
        return -EACCES;
    }
    int r = check(q, AUTHENTICATION, "userextras", key, "", value, outcome);
    if (r == 0) {
        user_add_extra(u, key, value);
    }
    return r;
}

/* Adds groups, uid and extra to 'u', and checks the right to each. */
static int add_all(struct request *q, struct user_info *u, bool *ret_groups,
                   struct outcome *outcome)
{
    const char *name, *value;
    size_t n = 0;
    int r = 0;
    for (size_t i = 0; r == 0 && http_header_at(q->x, i, &name, &value); i++) {
        if (strncasecmp(name, PREFIX, sizeof PREFIX - 1) != 0) {
            continue;
        }
        const char *what = name + sizeof PREFIX - 1;
        if (++n > MAX_VALUES) {
            outcome_error(outcome, 400, "BadRequest", "more than %d impersonation headers",
                          MAX_VALUES);
            return -EACCES;
        }
        if (!strcasecmp(what, "Group")) {
            *ret_groups = true;
            r = check(q, "", "groups", "", "", value, outcome);
            if (r == 0) {
                user_add_group(u, value);
            }
        } else if (!strcasecmp(what, "Uid")) {
            r = check(q, AUTHENTICATION, "uids", "", "", value, outcome);
            if (r == 0) {
                free(u->uid);
                u->uid = xstrdup(value);
            }
        } else if (!strncasecmp(name, EXTRA, sizeof EXTRA - 1)) {
            r = add_extra(q, u, name, value, outcome);
        } else if (strcasecmp(what, "User") != 0) {
            outcome_error(outcome, 400, "BadRequest", "the header %.80s is not known", name);
            r = -EACCES;
        }
    }
    return r;
}

/* Adds the groups that every user of this kind has, and without given groups also those of the
 * Group objects that list the user, as in OpenShift. */
static void add_implied(const struct security *s, struct user_info *u, bool groups_given)
{
    CLEANUP_FREE char *ns = NULL;
    if (!groups_given && user_parse_service_account(u->name, &ns, NULL)) {
        CLEANUP_FREE char *group = xasprintf(GROUP_SERVICE_ACCOUNTS ":%s", ns);
        user_add_group(u, GROUP_SERVICE_ACCOUNTS);
        user_add_group(u, group);
    }
    if (streq(u->name, USER_ANONYMOUS)) {
        user_add_group(u, GROUP_UNAUTHENTICATED);
    } else if (!user_in_group(u, GROUP_UNAUTHENTICATED)) {
        user_add_group(u, GROUP_AUTHENTICATED);
    }
    /* A plain name is a person's, who would have come with an OAuth token. */
    if (!groups_given && !str_has_prefix(u->name, "system:")) {
        user_add_group(u, GROUP_OAUTH);
    }
    if (!groups_given) {
        members_add_groups(s->members, u);
    }
}

int impersonate(struct request *q, struct outcome *outcome)
{
    const char *name, *value, *user = NULL;
    bool any = false, groups = false;
    for (size_t i = 0; http_header_at(q->x, i, &name, &value); i++) {
        if (strncasecmp(name, PREFIX, sizeof PREFIX - 1) == 0) {
            bool is_user = !strcasecmp(name, PREFIX "User");
            if (is_user && user) {
                outcome_error(outcome, 400, "BadRequest", "more than one header Impersonate-User");
                return -EACCES;
            }
            any = true;
            user = is_user ? value : user;
        }
    }
    if (!any) {
        return 0;
    }
    if (!user || !*user) {
        outcome_error(outcome, 400, "BadRequest",
                      "requested groups, uid or extra without impersonating a user: the header "
                      "Impersonate-User is missing");
        return -EACCES;
    }
    CLEANUP(user_unref) struct user_info *u = user_new(user);
    int r = check_user(q, user, outcome);
    if (r == 0) {
        r = add_all(q, u, &groups, outcome);
    }
    if (r == 0) {
        add_implied(q->server->security, u, groups);
        q->impersonator = q->user;
        q->user = TAKE(u);
    }
    return r;
}
