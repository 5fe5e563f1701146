/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/admin/ldap_sync.h"

#include "api/kinds.h"
#include "base/map.h"
#include "base/mem.h"
#include "identity/secret.h"
#include "oauth/config.h"

#include <strings.h>

#define DN "dn" /* The pseudo attribute: the name of the entry. */

/* ---- configuration ---- */

static const struct config_row query_rows[] = {{"baseDN", CONFIG_TEXT, true, NULL},
                                               {"scope", CONFIG_TEXT, false, NULL},
                                               {"derefAliases", CONFIG_TEXT, false, NULL},
                                               {"timeout", CONFIG_NUMBER, false, NULL},
                                               {"filter", CONFIG_TEXT, false, NULL},
                                               {"pageSize", CONFIG_NUMBER, false, NULL},
                                               {0}};
static const struct config_row rfc2307_rows[] = {
    {"groupsQuery", CONFIG_OBJECT, true, query_rows},
    {"groupUIDAttribute", CONFIG_TEXT, true, NULL},
    {"groupNameAttributes", CONFIG_TEXTS, true, NULL},
    {"groupMembershipAttributes", CONFIG_TEXTS, true, NULL},
    {"usersQuery", CONFIG_OBJECT, true, query_rows},
    {"userUIDAttribute", CONFIG_TEXT, true, NULL},
    {"userNameAttributes", CONFIG_TEXTS, true, NULL},
    {"tolerateMemberNotFoundErrors", CONFIG_BOOL, false, NULL},
    {"tolerateMemberOutOfScopeErrors", CONFIG_BOOL, false, NULL},
    {0}};
static const struct config_row ad_rows[] = {{"usersQuery", CONFIG_OBJECT, true, query_rows},
                                            {"userNameAttributes", CONFIG_TEXTS, true, NULL},
                                            {"groupMembershipAttributes", CONFIG_TEXTS, true, NULL},
                                            {0}};
static const struct config_row augmented_rows[] = {
    {"groupsQuery", CONFIG_OBJECT, true, query_rows},
    {"groupUIDAttribute", CONFIG_TEXT, true, NULL},
    {"groupNameAttributes", CONFIG_TEXTS, true, NULL},
    {"usersQuery", CONFIG_OBJECT, true, query_rows},
    {"userNameAttributes", CONFIG_TEXTS, true, NULL},
    {"groupMembershipAttributes", CONFIG_TEXTS, true, NULL},
    {0}};
static const char *const schemas[] = {[LDAP_SYNC_RFC2307] = "rfc2307",
                                      [LDAP_SYNC_AD] = "activeDirectory",
                                      [LDAP_SYNC_AUGMENTED_AD] = "augmentedActiveDirectory"};
static const struct config_row rows[] = {
    {"url", CONFIG_TEXT, true, NULL},
    {"bindDN", CONFIG_TEXT, false, NULL},
    {"bindPassword", CONFIG_SECRET, false, NULL},
    {"insecure", CONFIG_BOOL, false, NULL},
    {"ca", CONFIG_TEXT, false, NULL},
    {"groupUIDNameMapping", CONFIG_MAP, false, NULL},
    {"rfc2307", CONFIG_OBJECT, false, rfc2307_rows},
    {"activeDirectory", CONFIG_OBJECT, false, ad_rows},
    {"augmentedActiveDirectory", CONFIG_OBJECT, false, augmented_rows},
    {0}};

static int parse_query(const struct json *schema, const char *key, struct ldap_sync_query *q,
                       struct err *e)
{
    static const char *const derefs[] = {[LDAP_DEREF_NEVER] = "never",
                                         [LDAP_DEREF_SEARCH] = "search",
                                         [LDAP_DEREF_BASE] = "base",
                                         [LDAP_DEREF_ALWAYS] = "always"};
    const struct json *v = json_get(schema, key);
    const char *scope = json_get_text(v, "scope"), *deref = json_get_text(v, "derefAliases");
    *q = (struct ldap_sync_query){
        .base = json_get_text(v, "baseDN"),
        .filter = json_get_text(v, "filter"),
        .scope = LDAP_SCOPE_SUB,
        .deref = LDAP_DEREF_ALWAYS,
        .timeout_s = (uint32_t) json_get_int_or(json_get(v, "timeout"), 0),
        .page_size = (uint32_t) json_get_int_or(json_get(v, "pageSize"), 0)};
    struct err why = {0};
    if (!ldap_dn_is_below(q->base, q->base)) {
        return err_set(e, -EINVAL, "%s.baseDN: \"%.200s\" is no distinguished name", key, q->base);
    }
    if (*scope && ldap_scope_parse(scope, &q->scope) < 0) {
        return err_set(e, -EINVAL, "%s.scope: \"%.80s\" is not base, one or sub", key, scope);
    }
    size_t i = 0;
    while (*deref && i < ARRAY_SIZE(derefs) && strcasecmp(derefs[i], deref) != 0) {
        i++;
    }
    if (i == ARRAY_SIZE(derefs)) {
        return err_set(e, -EINVAL,
                       "%s.derefAliases: \"%.80s\" is not never, search, base or always", key,
                       deref);
    }
    q->deref = *deref ? (enum ldap_deref) i : LDAP_DEREF_ALWAYS;
    q->filter = *q->filter ? q->filter : "(objectClass=*)";
    return ldap_filter_check(q->filter, &why) < 0
               ? err_set(e, -EINVAL, "%s.filter: %s", key, why.text)
               : 0;
}

struct attribute_check {
    const char *wrong;
};

static void check_attribute(void *ctx, const char *attribute)
{
    struct attribute_check *c = ctx;
    if (!ldap_attribute_is_valid(attribute)) {
        c->wrong = attribute;
    }
}

static int parse_schema(struct ldap_sync *s, struct err *e)
{
    const struct json *v = json_get(s->doc, schemas[s->schema]);
    s->group_uid = json_get_text(v, "groupUIDAttribute");
    s->user_uid = json_get_text(v, "userUIDAttribute");
    s->group_names = json_get(v, "groupNameAttributes");
    s->user_names = json_get(v, "userNameAttributes");
    s->memberships = json_get(v, "groupMembershipAttributes");
    s->skip_missing = json_get_bool(json_get(v, "tolerateMemberNotFoundErrors"), false);
    s->skip_outside = json_get_bool(json_get(v, "tolerateMemberOutOfScopeErrors"), false);
    int r = parse_query(v, "usersQuery", &s->users, e);
    if (r == 0 && s->schema != LDAP_SYNC_AD) {
        r = parse_query(v, "groupsQuery", &s->groups, e);
    }
    struct attribute_check c = {0};
    ldap_sync_each_attribute(s, true, check_attribute, &c);
    ldap_sync_each_attribute(s, false, check_attribute, &c);
    if (r == 0 && c.wrong) {
        r = err_set(e, -EINVAL, "\"%.80s\" is no attribute of LDAP", c.wrong);
    }
    return r < 0 ? err_prefix(e, "%s", schemas[s->schema]) : 0;
}

static int parse_server(struct ldap_sync *s, struct err *e)
{
    const struct json *doc = s->doc;
    int r = ldap_url_parse(json_get_text(doc, "url"), &s->url, e);
    if (r < 0) {
        return err_prefix(e, "url");
    }
    if (*s->url.base || s->url.attribute || s->url.has_scope || s->url.filter) {
        return err_set(e, -EINVAL, "url: must end after the host and port; queries say the rest");
    }
    s->host_port = xasprintf("%s:%u", s->url.host, s->url.port);
    s->insecure = json_get_bool(json_get(doc, "insecure"), false);
    if (s->insecure && s->url.tls) {
        return err_set(e, -EINVAL, "insecure: cannot be true with ldaps://");
    }
    if (s->insecure && *json_get_text(doc, "ca")) {
        return err_set(e, -EINVAL, "ca: has no effect where insecure is true");
    }
    if (!*json_get_text(doc, "bindDN") != !json_get(doc, "bindPassword")) {
        return err_set(e, -EINVAL, "bindDN: needs bindPassword, and bindPassword needs bindDN");
    }
    return 0;
}

/* The document with absolute names of files; owned. */
static struct json *with_files(const struct json *doc, const char *dir)
{
    CLEANUP(json_free) struct json *list = json_array();
    struct json *one = json_append(list, json_object());
    json_set(one, "provider", json_clone(doc));
    oauth_config_resolve_files(list, dir);
    return json_take(one, "provider");
}

int ldap_sync_parse(const struct json *doc, const char *dir, struct ldap_sync *ret, struct err *e)
{
    struct ldap_sync s = {0};
    size_t n = 0;
    if (!streq(json_get_text(doc, "kind"), "LDAPSyncConfig")) {
        return err_set(e, -EINVAL, "kind: must be LDAPSyncConfig");
    }
    int r = config_rows_check(doc, rows, e);
    for (size_t i = 0; i < ARRAY_SIZE(schemas); i++) {
        if (json_get(doc, schemas[i])) {
            s.schema = (enum ldap_sync_schema) i;
            n++;
        }
    }
    if (r == 0 && n != 1) {
        r = err_set(e, -EINVAL,
                    "must have one of rfc2307, activeDirectory and augmentedActiveDirectory");
    }
    if (r < 0) {
        return r;
    }
    s.doc = with_files(doc, dir);
    s.name_map = json_get(s.doc, "groupUIDNameMapping");
    r = parse_server(&s, e);
    r = r < 0 ? r : parse_schema(&s, e);
    if (r < 0) {
        ldap_sync_done(&s);
        return r;
    }
    *ret = s;
    return 0;
}

void ldap_sync_done(struct ldap_sync *s)
{
    json_free(s->doc);
    ldap_url_done(&s->url);
    free(s->host_port);
    *s = (struct ldap_sync){0};
}

void ldap_sync_each_attribute(const struct ldap_sync *s, bool of_groups,
                              void (*fn)(void *ctx, const char *attribute), void *ctx)
{
    const char *uid = of_groups ? s->group_uid : s->user_uid;
    const struct json *names = of_groups ? s->group_names : s->user_names, *item;
    if (*uid && !streq(uid, DN)) {
        fn(ctx, uid);
    }
    JSON_FOREACH (item, names) {
        if (!streq(json_get_string(item), DN)) {
            fn(ctx, json_get_string(item));
        }
    }
    if (of_groups != (s->schema == LDAP_SYNC_RFC2307)) {
        return; /* RFC 2307 has memberships in groups, Active Directory has them in users. */
    }
    JSON_FOREACH (item, s->memberships) {
        fn(ctx, json_get_string(item));
    }
}

void ldap_entries_done(struct ldap_entries *l)
{
    for (size_t i = 0; i < l->n; i++) {
        ldap_entry_done(&l->list[i]);
    }
    free(l->list);
    *l = (struct ldap_entries){0};
}

/* ---- from entries to groups ---- */

struct user {
    char *name;   /* NULL: none that can be one. */
    bool several; /* Entries have this UID. */
};

struct maker {
    const struct ldap_sync *s;
    struct ldap_sync_groups *out;
    struct smap groups; /* Keys of UIDs to groups, which 'out' owns. */
    struct smap users;  /* Keys of UIDs to struct user. */
    struct smap only, except;
    bool has_only;
};

static void free_group(struct ldap_sync_group *g)
{
    free(g->uid);
    free(g->name);
    json_free(g->users);
    free(g->wrong);
    free(g);
}

void ldap_sync_groups_done(struct ldap_sync_groups *g)
{
    for (size_t i = 0; i < g->n; i++) {
        free_group(g->list[i]);
    }
    free(g->list);
    *g = (struct ldap_sync_groups){0};
}

static void free_user(void *v)
{
    struct user *u = v;
    free(u->name);
    free(u);
}

/* The first reason stays. */
static void mark(struct ldap_sync_group *g, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void mark(struct ldap_sync_group *g, const char *fmt, ...)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    strbuf_vaddf(&text, fmt, ap);
    va_end(ap);
    if (!g->wrong) {
        g->wrong = strbuf_steal(&text);
    }
}

/* The form in which UIDs are compared, as a search by the attribute would compare them; NULL: it is
 * no UID. */
static char *fold(const char *attribute, const char *uid)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    if (streq(attribute, DN)) {
        return ldap_dn_normalize(uid, &out, NULL) < 0 ? NULL : strbuf_steal(&out);
    }
    for (; *uid; uid++) {
        /* Active Directory's schema has no attribute: the UIDs are the names, which have a case. */
        bool upper = *attribute && *uid >= 'A' && *uid <= 'Z';
        strbuf_addc(&out, upper ? (char) (*uid - 'A' + 'a') : *uid);
    }
    return strbuf_steal(&out);
}

/* The first value of the attribute; NULL: none, or no text.  '*ret_there' tells both apart. */
static const char *value_of(const struct ldap_entry *entry, const char *attribute, bool *ret_there)
{
    const struct ldap_attribute *a = ldap_entry_get(entry, attribute);
    struct ldap_value dn = {.data = entry->dn, .size = strlen(entry->dn)};
    const struct ldap_value *v = streq(attribute, DN) ? &dn : a ? &a->values[0] : NULL;
    *ret_there = v != NULL;
    return v && ldap_value_is_text(v) ? v->data : NULL;
}

/* That of the first attribute that is there. */
static const char *first_of(const struct ldap_entry *entry, const struct json *attributes)
{
    const struct json *item;
    JSON_FOREACH (item, attributes) {
        bool there;
        const char *v = value_of(entry, json_get_string(item), &there);
        if (there) {
            return v;
        }
    }
    return NULL;
}

static const char *mapped_name(const struct maker *m, const char *key)
{
    for (size_t i = 0; i < json_count(m->s->name_map); i++) {
        CLEANUP_FREE char *k = fold(m->s->group_uid, json_key_at(m->s->name_map, i));
        if (streq_null(k, key)) {
            return json_get_string(json_at(m->s->name_map, i));
        }
    }
    return NULL;
}

/* A new group.  'name' may be NULL, and 'key' for one that nothing refers to. */
static struct ldap_sync_group *add_group(struct maker *m, const char *uid, const char *key,
                                         const char *name)
{
    struct ldap_sync_group *g = NEW(struct ldap_sync_group);
    const char *mapped = key ? mapped_name(m, key) : NULL;
    name = mapped ? mapped : name;
    *g = (struct ldap_sync_group){
        .uid = xstrdup(uid), .name = xstrdup(name ? name : ""), .users = json_object()};
    const char *wrong = name ? group_check_name(name) : NULL;
    if (!name) {
        mark(g, "its entry has no text in any of groupNameAttributes");
    } else if (wrong) {
        mark(g, "its name \"%.200s\" %s", name, wrong);
    }
    m->out->list = grow(m->out->list, &m->out->cap, m->out->n + 1, sizeof(void *));
    m->out->list[m->out->n++] = g;
    if (key) {
        smap_set(&m->groups, key, g);
    }
    return g;
}

static bool is_wanted(const struct maker *m, const char *key)
{
    return (!m->has_only || smap_get(&m->only, key)) && !smap_get(&m->except, key);
}

static void add_user(struct ldap_sync_group *g, const char *name, const char *entry)
{
    const char *wrong = name ? user_check_name(name) : NULL;
    if (!name) {
        mark(g, "the entry of its member \"%.200s\" has no text in any of userNameAttributes",
             entry);
    } else if (wrong) {
        mark(g, "the name \"%.200s\" of its member \"%.200s\" %s", name, entry, wrong);
    } else {
        json_set(g->users, name, json_null());
    }
}

/* A group that cannot be one, for one reason. */
static struct ldap_sync_group *add_wrong(struct maker *m, const char *uid, const char *key,
                                         const char *why)
{
    struct ldap_sync_group *g = add_group(m, uid, key, NULL);
    free(g->wrong);
    g->wrong = xstrdup(why);
    return g;
}

/* Calls 'fn' for each value of the memberships, NULL for one that is no text. */
static void each_membership(const struct maker *m, const struct ldap_entry *entry,
                            void (*fn)(struct maker *m, void *ctx, const char *value), void *ctx)
{
    const struct json *item;
    JSON_FOREACH (item, m->s->memberships) {
        const struct ldap_attribute *a = ldap_entry_get(entry, json_get_string(item));
        for (size_t i = 0; a && i < a->n; i++) {
            const struct ldap_value *v = &a->values[i];
            fn((struct maker *) m, ctx, ldap_value_is_text(v) ? v->data : NULL);
        }
    }
}

/* Whether the server has sent a part of the values only, as Active Directory does for more than
 * 1,500 ("member;range=0-1499"). */
static bool is_cut(const struct maker *m, const struct ldap_entry *entry)
{
    const struct json *item;
    JSON_FOREACH (item, m->s->memberships) {
        CLEANUP_FREE char *start = xasprintf("%s;range=", json_get_string(item));
        for (size_t i = 0; i < entry->n; i++) {
            if (strncasecmp(entry->attributes[i].name, start, strlen(start)) == 0) {
                return true;
            }
        }
    }
    return false;
}

static void member(struct maker *m, void *ctx, const char *value)
{
    struct ldap_sync_group *g = ctx;
    CLEANUP_FREE char *key = value ? fold(m->s->user_uid, value) : NULL;
    const struct user *u = key ? smap_get(&m->users, key) : NULL;
    if (!value) {
        mark(g, "a member is no text");
    } else if (u && u->several) {
        mark(g, "its member \"%.200s\" has several entries", value);
    } else if (u) {
        add_user(g, u->name, value);
    } else if (key && streq(m->s->user_uid, DN) && !ldap_dn_is_below(value, m->s->users.base)) {
        if (!m->s->skip_outside) {
            mark(g, "its member \"%.200s\" is outside of usersQuery.baseDN", value);
        }
    } else if (!m->s->skip_missing) {
        mark(g, "its member \"%.200s\" has no entry", value);
    }
}

static void index_users(struct maker *m, const struct ldap_entries *users)
{
    for (size_t i = 0; i < users->n; i++) {
        bool there;
        const char *uid = value_of(&users->list[i], m->s->user_uid, &there);
        const char *name = first_of(&users->list[i], m->s->user_names);
        CLEANUP_FREE char *key = uid ? fold(m->s->user_uid, uid) : NULL;
        struct user *u = key ? smap_get(&m->users, key) : NULL;
        if (u) {
            u->several = true;
        } else if (key) {
            u = NEW(struct user);
            u->name = name ? xstrdup(name) : NULL;
            smap_set(&m->users, key, u);
        }
    }
}

static void group_entry(struct maker *m, const struct ldap_entry *entry)
{
    bool there;
    const char *uid = value_of(entry, m->s->group_uid, &there);
    CLEANUP_FREE char *key = uid ? fold(m->s->group_uid, uid) : NULL;
    struct ldap_sync_group *g = key ? smap_get(&m->groups, key) : NULL;
    const char *name = first_of(entry, m->s->group_names);
    bool cut = is_cut(m, entry);
    if (g) {
        mark(g, "several entries have its UID");
        return;
    }
    if (!key && there && !m->has_only) {
        add_wrong(m, entry->dn, NULL, "its UID is no text");
    }
    if (!key || !is_wanted(m, key)) {
        return;
    }
    bool named = name || mapped_name(m, key), has_members = cut;
    const struct json *item;
    JSON_FOREACH (item, m->s->memberships) {
        has_members |= ldap_entry_get(entry, json_get_string(item)) != NULL;
    }
    if (!named && !has_members && !m->has_only) {
        return; /* Such as the organizational unit that holds the groups. */
    }
    g = add_group(m, uid, key, name);
    if (cut) {
        mark(g, "the server sent a part of its members only: use a schema of Active Directory");
    } else if (m->s->schema == LDAP_SYNC_RFC2307) {
        each_membership(m, entry, member, g);
    }
}

struct member_of {
    const struct ldap_entry *entry;
    const char *name; /* NULL: none. */
};

static void member_of(struct maker *m, void *ctx, const char *value)
{
    const struct member_of *u = ctx;
    CLEANUP_FREE char *key = value ? fold(m->s->group_uid, value) : NULL;
    struct ldap_sync_group *g = key ? smap_get(&m->groups, key) : NULL;
    if (!g && key && m->s->schema == LDAP_SYNC_AD && is_wanted(m, key)) {
        g = add_group(m, value, key, value);
    }
    if (g) {
        add_user(g, u->name, u->entry->dn);
    }
}

static void fill_set(const struct maker *m, struct smap *set, const struct json *uids)
{
    const struct json *item;
    smap_init(set, NULL);
    JSON_FOREACH (item, uids) {
        CLEANUP_FREE char *key = fold(m->s->group_uid, json_get_string(item));
        if (key) {
            smap_set(set, key, (void *) item);
        }
    }
}

static void add_absent(struct maker *m, const struct json *only)
{
    const struct json *item;
    JSON_FOREACH (item, only) {
        const char *uid = json_get_string(item);
        CLEANUP_FREE char *key = fold(m->s->group_uid, uid);
        if (!key || (!smap_get(&m->groups, key) && !smap_get(&m->except, key))) {
            add_wrong(m, uid, key, "the directory has no such group")->absent = true;
        }
    }
}

/* Two groups of one name: either could be a trap for the other. */
static void check_names(struct ldap_sync_groups *out)
{
    struct smap names;
    smap_init(&names, NULL);
    for (size_t i = 0; i < out->n; i++) {
        struct ldap_sync_group *g = out->list[i], *other = smap_get(&names, g->name);
        if (g->absent || !*g->name) {
            continue;
        }
        if (other) {
            mark(g, "its name \"%.200s\" is that of \"%.200s\", too", g->name, other->uid);
            mark(other, "its name \"%.200s\" is that of \"%.200s\", too", g->name, g->uid);
        } else {
            smap_set(&names, g->name, g);
        }
    }
    smap_done(&names);
}

void ldap_sync_make(const struct ldap_sync *s, const struct ldap_entries *groups,
                    const struct ldap_entries *users, const struct json *only,
                    const struct json *except, struct ldap_sync_groups *ret)
{
    struct maker m = {.s = s, .out = ret, .has_only = only != NULL};
    smap_init(&m.groups, NULL);
    smap_init(&m.users, free_user);
    fill_set(&m, &m.only, only);
    fill_set(&m, &m.except, except);
    if (s->schema == LDAP_SYNC_RFC2307) {
        index_users(&m, users);
    }
    for (size_t i = 0; s->schema != LDAP_SYNC_AD && i < groups->n; i++) {
        group_entry(&m, &groups->list[i]);
    }
    for (size_t i = 0; s->schema != LDAP_SYNC_RFC2307 && i < users->n; i++) {
        struct member_of u = {.entry = &users->list[i],
                              .name = first_of(&users->list[i], s->user_names)};
        each_membership(&m, &users->list[i], member_of, &u);
    }
    add_absent(&m, only);
    check_names(ret);
    smap_done(&m.groups);
    smap_done(&m.users);
    smap_done(&m.only);
    smap_done(&m.except);
}
