/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "cli/admin/ldap_sync.h"

#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

#define USERS "\"usersQuery\": {\"baseDN\": \"ou=users,dc=x\"}"
#define GROUPS "\"groupsQuery\": {\"baseDN\": \"ou=groups,dc=x\"}"
#define SERVER "\"kind\": \"LDAPSyncConfig\", \"apiVersion\": \"v1\", \"url\": \"ldap://h\""
#define RFC2307(uid, user_uid, more)                                                             \
    "{" SERVER ", \"rfc2307\": {" GROUPS ", \"groupUIDAttribute\": \"" uid                       \
    "\", \"groupNameAttributes\": [\"cn\"], \"groupMembershipAttributes\": [\"member\"], " USERS \
    ", \"userUIDAttribute\": \"" user_uid "\", \"userNameAttributes\": [\"mail\", \"uid\"]" more
#define AD                                                                              \
    "{" SERVER ", \"activeDirectory\": {" USERS ", \"userNameAttributes\": [\"uid\"], " \
    "\"groupMembershipAttributes\": [\"memberOf\"]}}"
#define AUGMENTED                                                                             \
    "{" SERVER ", \"augmentedActiveDirectory\": {" GROUPS ", \"groupUIDAttribute\": \"dn\", " \
    "\"groupNameAttributes\": [\"cn\"], " USERS ", \"userNameAttributes\": [\"uid\"], "       \
    "\"groupMembershipAttributes\": [\"memberOf\"]}}"

static struct json *parse(const char *text)
{
    struct json *o = NULL;
    struct err e = {0};
    if (json_parse(text, strlen(text), &o, &e) < 0) {
        fail_msg("%s: %s", e.text, text);
    }
    return o;
}

/* ---- configuration ---- */

static void configurations_are_judged(void **state)
{
    static const struct {
        const char *text, *error; /* NULL: it is right. */
    } rows[] = {
        {RFC2307("dn", "dn", "}}"), NULL},
        {RFC2307("dn", "dn",
                 ", \"tolerateMemberNotFoundErrors\": true}, \"bindDN\": \"cn=a\", "
                 "\"bindPassword\": {\"file\": \"s\"}, \"ca\": \"ca.crt\"}"),
         NULL},
        {AD, NULL},
        {AUGMENTED, NULL},
        {"{\"kind\": \"Pod\"}", "kind: must be LDAPSyncConfig"},
        {"{" SERVER "}", "must have one of rfc2307, activeDirectory and augmentedActiveDirectory"},
        {RFC2307("dn", "dn", ", \"x\": 1}}"), "rfc2307: x: unknown key"},
        {RFC2307("dn", "a b", "}}"), "rfc2307: \"a b\" is no attribute of LDAP"},
        {"{" SERVER ", \"x\": 1}", "x: unknown key"},
        {"{\"kind\": \"LDAPSyncConfig\", \"url\": \"ldap://h/dc=x\", \"activeDirectory\": {" USERS
         ", \"userNameAttributes\": [\"uid\"], \"groupMembershipAttributes\": [\"m\"]}}",
         "url: must end after the host and port; queries say the rest"},
        {"{" SERVER ", \"bindDN\": \"cn=a\", \"activeDirectory\": {" USERS
         ", \"userNameAttributes\": [\"uid\"], \"groupMembershipAttributes\": [\"m\"]}}",
         "bindDN: needs bindPassword, and bindPassword needs bindDN"},
        {"{" SERVER ", \"activeDirectory\": {\"usersQuery\": {\"baseDN\": \"x\"}, "
         "\"userNameAttributes\": [\"uid\"], \"groupMembershipAttributes\": [\"m\"]}}",
         "activeDirectory: usersQuery.baseDN: \"x\" is no distinguished name"},
        {"{" SERVER ", \"activeDirectory\": {\"usersQuery\": {\"baseDN\": \"dc=x\", \"scope\": "
         "\"all\"}, \"userNameAttributes\": [\"uid\"], \"groupMembershipAttributes\": [\"m\"]}}",
         "activeDirectory: usersQuery.scope: \"all\" is not base, one or sub"},
        {"{" SERVER ", \"activeDirectory\": {\"usersQuery\": {\"baseDN\": \"dc=x\", "
         "\"derefAliases\": \"no\"}, \"userNameAttributes\": [\"uid\"], "
         "\"groupMembershipAttributes\": [\"m\"]}}",
         "activeDirectory: usersQuery.derefAliases: \"no\" is not never, search, base or always"},
        {"{" SERVER ", \"activeDirectory\": {\"usersQuery\": {\"baseDN\": \"dc=x\", \"pageSize\": "
         "-1}, \"userNameAttributes\": [\"uid\"], \"groupMembershipAttributes\": [\"m\"]}}",
         "activeDirectory: usersQuery: pageSize: must be a number from 0"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free) struct json *doc = parse(rows[i].text);
        struct ldap_sync s = {0};
        struct err e = {0};
        int r = ldap_sync_parse(doc, "/etc", &s, &e);
        assert_string_equal(e.text, rows[i].error ? rows[i].error : "");
        assert_int_equal(r, rows[i].error ? -EINVAL : 0);
        ldap_sync_done(&s);
    }
}

static void files_are_of_the_folder_and_queries_have_defaults(void **state)
{
    CLEANUP(json_free)
    struct json *doc =
        parse(RFC2307("dn", "dn",
                      "}, \"bindDN\": \"cn=a\", \"bindPassword\": {\"file\": \"s\"}, "
                      "\"ca\": \"ca.crt\"}"));
    struct ldap_sync s = {0};
    assert_int_equal(ldap_sync_parse(doc, "/etc", &s, NULL), 0);
    assert_string_equal(json_get_text(s.doc, "ca"), "/etc/ca.crt");
    assert_string_equal(json_path_string(s.doc, "bindPassword", "file", NULL), "/etc/s");
    assert_string_equal(s.host_port, "h:389");
    assert_string_equal(s.users.filter, "(objectClass=*)");
    assert_int_equal(s.users.scope, LDAP_SCOPE_SUB);
    assert_int_equal(s.users.deref, LDAP_DEREF_ALWAYS);
    ldap_sync_done(&s);
}

/* ---- groups ---- */

/* Entries of '[{"dn": "...", "attribute": ["value", ...]}, ...]'. */
static struct ldap_entries entries(const char *text)
{
    CLEANUP(json_free) struct json *list = parse(text);
    struct ldap_entries l = {.list = xcalloc(json_count(list) + 1, sizeof *l.list),
                             .n = json_count(list)};
    for (size_t i = 0; i < l.n; i++) {
        const struct json *o = json_at(list, i);
        struct ldap_entry *entry = &l.list[i];
        entry->dn = xstrdup(json_get_text(o, "dn"));
        entry->attributes = xcalloc(json_count(o), sizeof *entry->attributes);
        for (size_t k = 0; k < json_count(o); k++) {
            const struct json *values = json_at(o, k);
            if (!json_is(values, JSON_ARRAY)) {
                continue;
            }
            struct ldap_attribute *a = &entry->attributes[entry->n++];
            *a = (struct ldap_attribute){.name = xstrdup(json_key_at(o, k)),
                                         .values =
                                             xcalloc(json_count(values) + 1, sizeof *a->values),
                                         .n = json_count(values)};
            for (size_t v = 0; v < a->n; v++) {
                const char *s = json_get_string(json_at(values, v));
                a->values[v] = (struct ldap_value){.data = xstrdup(s), .size = strlen(s)};
            }
        }
    }
    return l;
}

static void describe(const struct ldap_sync_groups *g, struct strbuf *out)
{
    for (size_t i = 0; i < g->n; i++) {
        strbuf_addf(out, "%s%s:", i ? "; " : "", g->list[i]->name);
        for (size_t k = 0; !g->list[i]->wrong && k < json_count(g->list[i]->users); k++) {
            strbuf_addf(out, " %s", json_key_at(g->list[i]->users, k));
        }
        if (g->list[i]->wrong) {
            strbuf_addf(out, " ! %s", g->list[i]->wrong);
        }
    }
}

#define JOE "{\"dn\": \"uid=joe,ou=users,dc=x\", \"uid\": [\"joe\"], \"mail\": [\"joe@x\"]}"
#define ANN "{\"dn\": \"uid=ann,ou=users,dc=x\", \"uid\": [\"ann\"]}"

struct row {
    const char *config, *groups, *users, *only, *except, *want;
};

static void check(const struct row *row)
{
    CLEANUP(json_free) struct json *doc = parse(row->config);
    CLEANUP(json_free) struct json *only = row->only ? parse(row->only) : NULL;
    CLEANUP(json_free) struct json *except = row->except ? parse(row->except) : NULL;
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    struct ldap_entries g = entries(row->groups), u = entries(row->users);
    struct ldap_sync_groups made = {0};
    struct ldap_sync s = {0};
    struct err e = {0};
    if (ldap_sync_parse(doc, "/", &s, &e) < 0) {
        fail_msg("%s", e.text);
    }
    ldap_sync_make(&s, &g, &u, only, except, &made);
    describe(&made, &text);
    assert_string_equal(strbuf_cstr(&text), row->want);
    ldap_sync_groups_done(&made);
    ldap_sync_done(&s);
    ldap_entries_done(&g);
    ldap_entries_done(&u);
}

static void check_all(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        check(&rows[i]);
    }
}

static void rfc2307_has_members_in_groups(void **state)
{
#define DEV(members) \
    "[{\"dn\": \"cn=dev,ou=groups,dc=x\", \"cn\": [\"dev\"], \"member\": [" members "]}]"
#define BY_DN RFC2307("dn", "dn", "}}")
    static const struct row rows[] = {
        {BY_DN,
         DEV("\"uid=joe,ou=users,dc=x\", \"UID=ANN, OU=users,DC=x\", "
             "\"uid=joe,ou=users,dc=x\""),
         "[" JOE ", " ANN "]", NULL, NULL, "dev: joe@x ann"},
        {RFC2307("cn", "uid", "}}"), DEV("\"JOE\", \"ann\""), "[" JOE ", " ANN "]", NULL, NULL,
         "dev: joe@x ann"},
        /* The unit that holds the groups is no group, and an empty group is one. */
        {BY_DN,
         "[{\"dn\": \"ou=groups,dc=x\", \"ou\": [\"groups\"]}, {\"dn\": \"cn=e,ou=groups,dc=x\", "
         "\"cn\": [\"e\"]}]",
         "[]", NULL, NULL, "e:"},
        {BY_DN, DEV("\"uid=eve,ou=users,dc=x\""), "[" JOE "]", NULL, NULL,
         "dev: ! its member \"uid=eve,ou=users,dc=x\" has no entry"},
        {RFC2307("dn", "dn", ", \"tolerateMemberNotFoundErrors\": true}}"),
         DEV("\"uid=eve,ou=users,dc=x\", \"uid=joe,ou=users,dc=x\""), "[" JOE "]", NULL, NULL,
         "dev: joe@x"},
        {RFC2307("dn", "dn", ", \"tolerateMemberNotFoundErrors\": true}}"),
         DEV("\"uid=eve,ou=others,dc=x\""), "[" JOE "]", NULL, NULL,
         "dev: ! its member \"uid=eve,ou=others,dc=x\" is outside of usersQuery.baseDN"},
        {RFC2307("dn", "dn", ", \"tolerateMemberOutOfScopeErrors\": true}}"),
         DEV("\"uid=joe,ou=users,dc=x\", \"uid=eve,ou=others,dc=x\""), "[" JOE "]", NULL, NULL,
         "dev: joe@x"},
        {RFC2307("dn", "dn", "}, \"groupUIDNameMapping\": {\"CN=dev, ou=groups,dc=x\": \"devs\"}}"),
         DEV(""), "[]", NULL, NULL, "devs:"},
        {BY_DN, DEV(""), "[]", "[\"cn=DEV,ou=groups,dc=x\"]", NULL, "dev:"},
        {BY_DN, DEV(""), "[]", "[\"cn=no,ou=groups,dc=x\"]", NULL,
         ": ! the directory has no such group"},
        {BY_DN, DEV(""), "[]", NULL, "[\"cn=dev,ou=groups,dc=x\"]", ""},
        {BY_DN, DEV(""), "[]", "[\"cn=dev,ou=groups,dc=x\"]", "[\"cn=dev,ou=groups,dc=x\"]", ""},
    };
    check_all(rows, ARRAY_SIZE(rows));
}

static void active_directory_has_them_in_users(void **state)
{
#define MEMBER(name, of) \
    "{\"dn\": \"uid=" name ",ou=users,dc=x\", \"uid\": [\"" name "\"], \"memberOf\": [" of "]}"
    static const struct row rows[] = {
        {AD, "[]", "[" MEMBER("joe", "\"dev\", \"ops\"") ", " MEMBER("ann", "\"dev\", \"Dev\"") "]",
         NULL, NULL, "dev: joe ann; ops: joe; Dev: ann"},
        {AD, "[]", "[" MEMBER("joe", "\"dev\", \"ops\"") "]", "[\"ops\"]", NULL, "ops: joe"},
        {AD, "[]", "[" MEMBER("joe", "\"a:b\"") "]", NULL, NULL,
         "a:b: ! its name \"a:b\" may not contain \":\""},
        {AD, "[]", "[{\"dn\": \"cn=x\", \"memberOf\": [\"dev\"]}]", NULL, NULL,
         "dev: ! the entry of its member \"cn=x\" has no text in any of userNameAttributes"},
        {AUGMENTED,
         "[{\"dn\": \"cn=dev,ou=groups,dc=x\", \"cn\": [\"dev\"]}, "
         "{\"dn\": \"cn=old,ou=groups,dc=x\", \"cn\": [\"old\"]}]",
         "[" MEMBER("joe", "\"CN=dev,OU=groups,DC=x\", \"cn=foreign,dc=y\"") "]", NULL, NULL,
         "dev: joe; old:"},
    };
    check_all(rows, ARRAY_SIZE(rows));
}

static void a_hostile_directory_makes_no_group(void **state)
{
    static const struct row rows[] = {
        /* No virtual groups and system users. */
        {BY_DN, "[{\"dn\": \"cn=m,dc=x\", \"cn\": [\"system:masters\"]}]", "[]", NULL, NULL,
         "system:masters: ! its name \"system:masters\" may not contain \":\""},
        {BY_DN, DEV("\"uid=joe,ou=users,dc=x\""),
         "[{\"dn\": \"uid=joe,ou=users,dc=x\", \"uid\": [\"system:admin\"]}]", NULL, NULL,
         "dev: ! the name \"system:admin\" of its member \"uid=joe,ou=users,dc=x\" may not contain "
         "\":\""},
        /* Control characters. */
        {BY_DN, "[{\"dn\": \"cn=m,dc=x\", \"cn\": [\"a\\u001b[2J\"]}]", "[]", "[\"cn=m,dc=x\"]",
         NULL, ": ! its entry has no text in any of groupNameAttributes"},
        {BY_DN, DEV("\"uid=joe\\nann,ou=users,dc=x\""), "[" JOE "]", NULL, NULL,
         "dev: ! a member is no text"},
        {BY_DN, DEV("\"uid=joe,ou=users,dc=x\""),
         "[{\"dn\": \"uid=joe,ou=users,dc=x\", \"mail\": [\"a\\u0007\"], \"uid\": [\"joe\"]}]",
         NULL, NULL,
         "dev: ! the entry of its member \"uid=joe,ou=users,dc=x\" has no text in any of "
         "userNameAttributes"},
        {BY_DN, "[{\"dn\": \"cn=a\\u001b,dc=x\", \"cn\": [\"a\"]}]", "[]", NULL, NULL,
         ": ! its UID is no text"},
        /* A base as text inside of a value is no base. */
        {BY_DN, DEV("\"cn=eve\\\\,ou=users\\\\,dc=x\""), "[" JOE "]", NULL, NULL,
         "dev: ! its member \"cn=eve\\,ou=users\\,dc=x\" is outside of usersQuery.baseDN"},
        {BY_DN, DEV("\"uid=joe,ou=users,dc=x,\""), "[" JOE "]", NULL, NULL,
         "dev: ! its member \"uid=joe,ou=users,dc=x,\" has no entry"},
        /* Two entries that claim to be one user or group. */
        {RFC2307("cn", "uid", "}}"), DEV("\"joe\""),
         "[" JOE ", {\"dn\": \"cn=t,dc=x\", \"uid\": [\"Joe\"]}]", NULL, NULL,
         "dev: ! its member \"joe\" has several entries"},
        {BY_DN,
         "[{\"dn\": \"cn=dev,dc=x\", \"cn\": [\"dev\"]}, {\"dn\": \"cn=dev,dc=y\", \"cn\": "
         "[\"dev\"]}]",
         "[]", NULL, NULL,
         "dev: ! its name \"dev\" is that of \"cn=dev,dc=y\", too; dev: ! its name \"dev\" is that "
         "of \"cn=dev,dc=x\", too"},
        {RFC2307("gid", "uid", "}}"),
         "[{\"dn\": \"cn=a,dc=x\", \"gid\": [\"1\"], \"cn\": [\"a\"]}, {\"dn\": \"cn=b,dc=x\", "
         "\"gid\": [\"1\"], \"cn\": [\"b\"]}]",
         "[]", NULL, NULL, "a: ! several entries have its UID"},
        /* A part of the members. */
        {BY_DN,
         "[{\"dn\": \"cn=big,dc=x\", \"cn\": [\"big\"], \"member\": [], \"member;range=0-1499\": "
         "[\"uid=joe,ou=users,dc=x\"]}]",
         "[" JOE "]", NULL, NULL,
         "big: ! the server sent a part of its members only: use a schema of Active Directory"},
    };
    check_all(rows, ARRAY_SIZE(rows));
}

static void a_hundred_thousand_members_are_joined(void **state)
{
    CLEANUP_STRBUF struct strbuf group = STRBUF_INIT, users = STRBUF_INIT;
    strbuf_adds(&group, "[{\"dn\": \"cn=all,dc=x\", \"cn\": [\"all\"], \"member\": [\"u0\"");
    strbuf_adds(&users, "[{\"dn\": \"uid=u0,dc=x\", \"uid\": [\"u0\"]}");
    for (int i = 1; i < 100000; i++) {
        strbuf_addf(&group, ", \"u%d\"", i);
        strbuf_addf(&users, ", {\"dn\": \"uid=u%d,dc=x\", \"uid\": [\"u%d\"]}", i, i);
    }
    strbuf_adds(&group, "]}]");
    strbuf_adds(&users, "]");
    CLEANUP(json_free) struct json *doc = parse(RFC2307("cn", "uid", "}}"));
    struct ldap_entries g = entries(group.data), u = entries(users.data);
    struct ldap_sync_groups made = {0};
    struct ldap_sync s = {0};
    assert_int_equal(ldap_sync_parse(doc, "/", &s, NULL), 0);
    ldap_sync_make(&s, &g, &u, NULL, NULL, &made);
    assert_int_equal(made.n, 1);
    assert_null(made.list[0]->wrong);
    assert_int_equal(json_count(made.list[0]->users), 100000);
    ldap_sync_groups_done(&made);
    ldap_sync_done(&s);
    ldap_entries_done(&g);
    ldap_entries_done(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configurations_are_judged),
        cmocka_unit_test(files_are_of_the_folder_and_queries_have_defaults),
        cmocka_unit_test(rfc2307_has_members_in_groups),
        cmocka_unit_test(active_directory_has_them_in_users),
        cmocka_unit_test(a_hostile_directory_makes_no_group),
        cmocka_unit_test(a_hundred_thousand_members_are_joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
