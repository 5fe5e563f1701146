/* SPDX-License-Identifier: Apache-2.0 */
/* RoleBindingRestriction (authorization.openshift.io/v1). */
#include "api/kind_util.h"
#include "api/kinds.h"
#include "api/label_selector.h"
#include "base/mem.h"

#define USERS "userrestriction"
#define GROUPS "grouprestriction"
#define ACCOUNTS "serviceaccountrestriction"

static const char *const members[] = {USERS, GROUPS, ACCOUNTS};

/* Whether the restriction has this member. */
static bool has(const struct json *obj, const char *member)
{
    return json_is(json_path(obj, "spec", member, NULL), JSON_OBJECT);
}

struct json *kind_role_binding_restriction_cell_type(const struct json *obj, int64_t now_ms)
{
    return json_string(has(obj, USERS)      ? "User"
                       : has(obj, GROUPS)   ? "Group"
                       : has(obj, ACCOUNTS) ? "ServiceAccount"
                                            : "<none>");
}

static void add(struct strbuf *b, const char *prefix, const char *text)
{
    strbuf_addf(b, "%s%s%s", b->size ? ", " : "", prefix, text);
}

static void add_names(struct strbuf *b, const char *prefix, const struct json *list)
{
    const struct json *item;
    JSON_FOREACH (item, list) {
        const char *s = json_get_string(item);
        add(b, prefix, s ? s : "");
    }
}

static void add_labels(struct strbuf *b, const struct json *list)
{
    const struct json *item;
    JSON_FOREACH (item, list) {
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        label_selector_write(item, &text);
        add(b, "Label(", strbuf_cstr(&text));
        strbuf_addc(b, ')');
    }
}

struct json *kind_role_binding_restriction_cell_subjects(const struct json *obj, int64_t now_ms)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *users = json_path(obj, "spec", USERS, NULL), *item;
    const struct json *groups = json_path(obj, "spec", GROUPS, NULL);
    const struct json *accounts = json_path(obj, "spec", ACCOUNTS, NULL);
    add_names(&b, "", json_get(users, "users"));
    add_names(&b, "Group ", json_get(users, "groups"));
    add_labels(&b, json_get(users, "labels"));
    add_names(&b, "", json_get(groups, "groups"));
    add_labels(&b, json_get(groups, "labels"));
    JSON_FOREACH (item, json_get(accounts, "serviceaccounts")) {
        CLEANUP_FREE char *name =
            xasprintf("%s/%s", json_get_text(item, "namespace"), json_get_text(item, "name"));
        add(&b, "", *name == '/' ? name + 1 : name);
    }
    add_names(&b, "", json_get(accounts, "namespaces"));
    return json_string(strbuf_cstr(&b));
}

/* A member has to name something. */
static void check_member(struct api_causes *c, const struct json *spec, const char *member)
{
    static const char *const lists[] = {"users", "groups", "serviceaccounts", "namespaces",
                                        "labels"};
    const struct json *v = json_get(spec, member);
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        n += json_count(json_get(v, lists[i]));
    }
    if (n == 0) {
        api_required(c, API_FIELD("spec.%s", member), "must name at least one subject");
    }
    const struct json *labels = json_get(v, "labels");
    for (size_t i = 0; i < json_count(labels); i++) {
        label_selector_check(c, API_FIELD("spec.%s.labels[%zu]", member, i), json_at(labels, i));
    }
}

void kind_role_binding_restriction_validate(const struct json *obj, const struct json *old,
                                            struct api_causes *c)
{
    const struct json *spec = json_get(obj, "spec");
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
        if (has(obj, members[i])) {
            n++;
            check_member(c, spec, members[i]);
        }
    }
    if (n != 1) {
        api_invalid(c, "spec", spec, "must specify exactly one of " USERS ", " GROUPS ", or %s",
                    ACCOUNTS);
    }
}
