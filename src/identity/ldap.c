/* SPDX-License-Identifier: Apache-2.0 */
/* LDAPPasswordIdentityProvider: bind, search for the name, bind as the entry found.
 *
 * A connection of its own serves each attempt, so that no bind of one person is in effect for
 * another.  Referrals are not followed: they would send passwords to hosts that nobody named. */
#include "base/base64.h"
#include "identity/kinds.h"
#include "identity/ldap_conn.h"
#include "identity/peer_attempt.h"
#include "identity/secret.h"

#define DEFAULT_ATTRIBUTE "uid"
#define DEFAULT_FILTER "(objectClass=*)"
#define DN "dn" /* The pseudo attribute: the name of the entry. */
/* One more than is allowed shows that a name is not unique. */
#define SIZE_LIMIT 2

enum field { ID, PREFERRED, NAME, EMAIL, N_FIELDS };
static const char *const field_keys[] = {
    [ID] = "id", [PREFERRED] = "preferredUsername", [NAME] = "name", [EMAIL] = "email"};

struct ldap {
    struct identity_provider base;
    struct loop *loop;
    struct json *config;
    struct ldap_server server;
    struct ldap_url url;
    char *bind_password;
    const char **attributes; /* To ask for; borrowed from 'config'; NULL at the end. */
    struct list attempts;
};

enum step { BIND, SEARCH, PROVE };

struct ldap_attempt {
    struct peer_attempt base;
    struct ldap *provider;
    struct ldap_conn *conn;
    enum step step;
    char *user, *password;
    struct ldap_entry entry;
    unsigned n_entries;
};

/* ---- configuration ---- */

static const struct config_row attribute_rows[] = {{"id", CONFIG_TEXTS, true, NULL},
                                                   {"preferredUsername", CONFIG_TEXTS, false, NULL},
                                                   {"name", CONFIG_TEXTS, false, NULL},
                                                   {"email", CONFIG_TEXTS, false, NULL},
                                                   {0}};
static const struct config_row rows[] = {{"url", CONFIG_TEXT, true, NULL},
                                         {"bindDN", CONFIG_TEXT, false, NULL},
                                         {"bindPassword", CONFIG_SECRET, false, NULL},
                                         {"insecure", CONFIG_BOOL, false, NULL},
                                         {"ca", CONFIG_TEXT, false, NULL},
                                         {"attributes", CONFIG_OBJECT, true, attribute_rows},
                                         {0}};

static int check_attributes(const struct json *attributes, struct err *e)
{
    for (size_t i = 0; i < json_count(attributes); i++) {
        const struct json *item;
        JSON_FOREACH (item, json_at(attributes, i)) {
            if (!ldap_attribute_is_valid(json_get_string(item))) {
                return err_set(e, -EINVAL, "attributes.%s: \"%.80s\" is no attribute of LDAP",
                               json_key_at(attributes, i), json_get_string(item));
            }
        }
    }
    return 0;
}

static int check(const struct json *provider, struct err *e)
{
    CLEANUP(ldap_url_done) struct ldap_url url = {0};
    int r = config_rows_check(provider, rows, e);
    if (r < 0) {
        return r;
    }
    r = ldap_url_parse(json_get_text(provider, "url"), &url, e);
    if (r < 0) {
        return err_prefix(e, "url");
    }
    bool insecure = json_get_bool(json_get(provider, "insecure"), false);
    if (insecure && url.tls) {
        return err_set(e, -EINVAL, "insecure: cannot be true with ldaps://");
    }
    if (insecure && *json_get_text(provider, "ca")) {
        return err_set(e, -EINVAL, "ca: has no effect where insecure is true");
    }
    if (!*json_get_text(provider, "bindDN") != !json_get(provider, "bindPassword")) {
        return err_set(e, -EINVAL, "bindDN: needs bindPassword, and bindPassword needs bindDN");
    }
    return check_attributes(json_get(provider, "attributes"), e);
}

static void close_ldap(struct identity_provider *base)
{
    struct ldap *p = CONTAINER_OF(base, struct ldap, base);
    peer_attempts_cancel(&p->attempts);
    ldap_server_done(&p->server);
    ldap_url_done(&p->url);
    secret_text_free(p->bind_password);
    free(p->attributes);
    json_free(p->config);
    free(p);
}

/* The attributes that the search asks for. */
static void list_attributes(struct ldap *p)
{
    size_t n = 0, cap = 0;
    for (size_t i = 0; i < N_FIELDS; i++) {
        const struct json *item;
        JSON_FOREACH (item, json_path(p->config, "attributes", field_keys[i], NULL)) {
            if (!streq(json_get_string(item), DN)) {
                p->attributes = grow(p->attributes, &cap, n + 2, sizeof *p->attributes);
                p->attributes[n++] = json_get_string(item);
            }
        }
    }
    if (!n) { /* "1.1": no attribute (RFC 4511, 4.5.1.8). */
        p->attributes = grow(p->attributes, &cap, 2, sizeof *p->attributes);
        p->attributes[n++] = "1.1";
    }
    p->attributes[n] = NULL;
}

static int open_ldap(struct loop *l, const struct json *config, struct identity_provider **ret,
                     struct err *e)
{
    struct ldap *p = NEW(struct ldap);
    p->base.kind = &identity_ldap;
    p->loop = l;
    p->config = json_clone(config);
    list_init(&p->attempts);
    list_attributes(p);
    int r = ldap_url_parse(json_get_text(config, "url"), &p->url, e);
    if (r == 0) {
        r = ldap_server_init(&p->server, &p->url,
                             json_get_bool(json_get(config, "insecure"), false),
                             json_get_text(config, "ca"), e);
    }
    if (r == 0 && (r = secret_read(json_get(config, "bindPassword"), &p->bind_password, e)) < 0) {
        err_prefix(e, "bindPassword");
    }
    if (r == 0 && *json_get_text(config, "bindDN") && !*p->bind_password) {
        /* Servers take such a bind for an anonymous one. */
        r = err_set(e, -EINVAL, "bindPassword: is empty");
    }
    if (r < 0) {
        close_ldap(&p->base);
        return r;
    }
    *ret = &p->base;
    return 0;
}

/* ---- the person ---- */

/* The first value of the first attribute that the entry has; NULL: none. */
static char *value_of(const struct ldap *p, const struct ldap_entry *entry, enum field field)
{
    const struct json *item;
    JSON_FOREACH (item, json_path(p->config, "attributes", field_keys[field], NULL)) {
        if (streq(json_get_string(item), DN)) {
            return xstrdup(entry->dn);
        }
        const struct ldap_attribute *a = ldap_entry_get(entry, json_get_string(item));
        if (!a || !a->values[0].size) {
            continue;
        }
        if (ldap_value_is_text(&a->values[0])) {
            return xstrdup(a->values[0].data);
        }
        if (field == ID) { /* Not text: shown as base64. */
            CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
            strbuf_adds(&out, "b64:");
            base64url_encode(a->values[0].data, a->values[0].size, &out);
            return strbuf_steal(&out);
        }
    }
    return NULL;
}

static void prove(struct ldap_attempt *a)
{
    struct identity id = {.user = value_of(a->provider, &a->entry, ID),
                          .preferred = value_of(a->provider, &a->entry, PREFERRED),
                          .name = value_of(a->provider, &a->entry, NAME),
                          .email = value_of(a->provider, &a->entry, EMAIL)};
    if (!id.user) {
        peer_attempt_fail(&a->base, "entry \"%.200s\" has none of attributes.id", a->entry.dn);
    } else {
        peer_attempt_prove(&a->base, &id);
    }
    identity_done(&id);
}

/* ---- steps ---- */

static void search(struct ldap_attempt *a)
{
    const struct ldap *p = a->provider;
    CLEANUP_STRBUF struct strbuf filter = STRBUF_INIT;
    struct err e = {0};
    strbuf_addf(&filter, "(&%s(%s=", p->url.filter ? p->url.filter : DEFAULT_FILTER,
                p->url.attribute ? p->url.attribute : DEFAULT_ATTRIBUTE);
    ldap_filter_escape(a->user, strlen(a->user), &filter);
    strbuf_adds(&filter, "))");
    struct ldap_search s = {.base = p->url.base,
                            .scope = p->url.has_scope ? p->url.scope : LDAP_SCOPE_SUB,
                            .size_limit = SIZE_LIMIT,
                            .time_limit = IDENTITY_DEADLINE_MS / 1000,
                            .filter = filter.data,
                            .attributes = p->attributes};
    a->step = SEARCH;
    a->base.stage = "search";
    if (ldap_conn_search(a->conn, &s, &e) < 0) {
        peer_attempt_fail(&a->base, "search: %s", e.text);
    }
}

static void ready(void *ctx)
{
    struct ldap_attempt *a = ctx;
    const char *dn = json_get_text(a->provider->config, "bindDN");
    if (*dn) {
        a->step = BIND;
        a->base.stage = "bind as bindDN";
        ldap_conn_bind(a->conn, dn, a->provider->bind_password);
    } else {
        search(a);
    }
}

static void bound(struct ldap_attempt *a, const struct ldap_message *m)
{
    char buf[LDAP_RESULT_TEXT_SIZE];
    if (m->operation != LDAP_BIND_RESPONSE) {
        peer_attempt_fail(&a->base, "bind: unexpected answer");
    } else if (a->step == BIND && m->result == LDAP_SUCCESS) {
        search(a);
    } else if (a->step == BIND) {
        peer_attempt_fail(&a->base, "bind as bindDN: %s", ldap_result_text(m->result, buf));
    } else if (m->result == LDAP_SUCCESS) {
        prove(a);
    } else if (m->result == LDAP_INAPPROPRIATE_AUTH || m->result == LDAP_INVALID_CREDENTIALS) {
        peer_attempt_refuse(&a->base, "wrong password of \"%.200s\"", a->entry.dn);
    } else {
        peer_attempt_fail(&a->base, "bind as \"%.200s\": %s", a->entry.dn,
                          ldap_result_text(m->result, buf));
    }
}

static void found(struct ldap_attempt *a, struct ldap_message *m)
{
    char buf[LDAP_RESULT_TEXT_SIZE];
    if (m->operation == LDAP_ENTRY) {
        if (!a->n_entries++) {
            a->entry = m->entry;
            m->entry = (struct ldap_entry){0};
        }
        return;
    }
    if (m->operation == LDAP_REFERENCE) {
        return;
    }
    if (m->operation != LDAP_SEARCH_DONE) {
        peer_attempt_fail(&a->base, "search: unexpected answer");
    } else if (a->n_entries > 1 || m->result == LDAP_SIZE_LIMIT) {
        peer_attempt_fail(&a->base, "the name belongs to several entries");
    } else if (m->result == LDAP_NO_SUCH_OBJECT || (m->result == LDAP_SUCCESS && !a->n_entries)) {
        peer_attempt_refuse(&a->base, "no entry has the name");
    } else if (m->result != LDAP_SUCCESS) {
        peer_attempt_fail(&a->base, "search: %s", ldap_result_text(m->result, buf));
    } else if (!*a->entry.dn) {
        /* A bind with the empty name succeeds without a check of the password. */
        peer_attempt_fail(&a->base, "the entry found has an empty name");
    } else {
        a->step = PROVE;
        a->base.stage = "bind as the entry";
        ldap_conn_bind(a->conn, a->entry.dn, a->password);
    }
}

static void message(void *ctx, struct ldap_message *m)
{
    struct ldap_attempt *a = ctx;
    if (a->step == SEARCH) {
        found(a, m);
    } else {
        bound(a, m);
    }
}

static void failed(void *ctx, const char *why)
{
    struct ldap_attempt *a = ctx;
    peer_attempt_fail(&a->base, "%s", why);
}

static const struct ldap_conn_ops conn_ops = {.ready = ready, .message = message, .failed = failed};

static void stop(struct peer_attempt *base)
{
    struct ldap_attempt *a = CONTAINER_OF(base, struct ldap_attempt, base);
    a->conn = ldap_conn_free(a->conn);
    secret_text_free(TAKE(a->password));
    free(TAKE(a->user));
    ldap_entry_done(&a->entry);
}

static struct identity_attempt *password(struct identity_provider *base, const char *user,
                                         const char *text, identity_fn *fn, void *ctx)
{
    struct ldap *p = CONTAINER_OF(base, struct ldap, base);
    struct ldap_attempt *a = NEW(struct ldap_attempt);
    a->provider = p;
    a->user = xstrdup(user);
    a->password = xstrdup(text);
    peer_attempt_begin(&a->base, p->loop, &p->attempts, stop, fn, ctx);
    if (!*text || !*user) {
        peer_attempt_refuse(&a->base, "empty name or password");
    } else if (!peer_attempts_full(&a->base, &p->attempts)) {
        a->base.stage = "connect";
        a->conn = ldap_conn_new(p->loop, &p->server, &conn_ops, a);
    }
    return &a->base.base;
}

const struct identity_kind identity_ldap = {.name = "LDAPPasswordIdentityProvider",
                                            .check = check,
                                            .open = open_ldap,
                                            .close = close_ldap,
                                            .password = password};
