/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/verbs/project_request.h"

#include "api/typed.h"
#include "apiserver/cache/object.h"
#include "apiserver/request/filter.h"
#include "apiserver/request/respond.h"
#include "apiserver/verbs/fields.h"
#include "apiserver/verbs/write.h"
#include "base/log.h"
#include "base/random.h"
#include "base/timeutil.h"
#include "workload/template_process.h"

LOG_MODULE("apiserver");

#define PROJECT_GROUP "project.openshift.io"
/* The namespace, its block of user IDs and the fences of quotas have the other operations. */
#define MAX_OBJECTS 100

static const char default_template[] =
    "{\"kind\":\"Template\",\"apiVersion\":\"" TEMPLATE_VERSION "\","
    "\"metadata\":{\"name\":\"project-request\"},\"objects\":["
    "{\"kind\":\"Project\",\"apiVersion\":\"" PROJECT_GROUP "/v1\","
    "\"metadata\":{\"name\":\"${PROJECT_NAME}\",\"annotations\":{"
    "\"openshift.io/description\":\"${PROJECT_DESCRIPTION}\","
    "\"openshift.io/display-name\":\"${PROJECT_DISPLAYNAME}\","
    "\"openshift.io/requester\":\"${PROJECT_REQUESTING_USER}\"}}},"
    "{\"kind\":\"RoleBinding\",\"apiVersion\":\"rbac.authorization.k8s.io/v1\","
    "\"metadata\":{\"name\":\"admin\",\"namespace\":\"${PROJECT_NAME}\"},"
    "\"roleRef\":{\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"ClusterRole\","
    "\"name\":\"admin\"},"
    "\"subjects\":[{\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"User\","
    "\"name\":\"${PROJECT_ADMIN_USER}\"}]}],"
    "\"parameters\":[{\"name\":\"PROJECT_NAME\"},{\"name\":\"PROJECT_DISPLAYNAME\"},"
    "{\"name\":\"PROJECT_DESCRIPTION\"},{\"name\":\"PROJECT_ADMIN_USER\"},"
    "{\"name\":\"PROJECT_REQUESTING_USER\"}]}";

bool project_request_is_asked(const struct request *q)
{
    return q->kind == api_kind_find(PROJECT_GROUP, "v1", "projectrequests");
}

/* ---- the template ---- */

/* 500: the administrator of the cluster has to mend the template. */
static int refuse_template(const struct request *q, const char *why, struct outcome *outcome)
{
    static struct log_limit limit;
    const char *name = q->server->cfg.project_request_template;
    name = name ? name : "built-in";
    log_limited(&limit, LOG_ERROR, "project request failed", "template=%s error=\"%s\"", name, why);
    outcome_error(outcome, 500, "InternalError",
                  "Internal error occurred: the template of projects cannot be used: %s", why);
    return -EINVAL;
}

/* The template as a tree, owned; NULL: the outcome is filled. */
static struct json *find_template(const struct request *q, struct outcome *outcome)
{
    const char *name = q->server->cfg.project_request_template;
    struct json *t = NULL;
    if (!name) {
        (void) json_parse(default_template, sizeof default_template - 1, &t, NULL);
        return t;
    }
    const struct cache_kind *ck =
        cache_find(&q->server->cache, api_kind_find(TEMPLATE_GROUP, "v1", "templates"));
    struct object *o = keyset_get(&ck->objects, name);
    if (!o) {
        CLEANUP_FREE char *why = xasprintf("there is no Template %s", name);
        (void) refuse_template(q, why, outcome);
        return NULL;
    }
    return object_parse(o);
}

/* The objects of the template with the values of the request, owned; NULL: the outcome is filled.
 */
static struct json *expand(const struct request *q, const struct json *asked,
                           struct outcome *outcome)
{
    CLEANUP(json_free) struct json *template = find_template(q, outcome);
    CLEANUP(json_free) struct json *processed = NULL;
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    if (!template) {
        return NULL;
    }
    const char *const values[][2] = {
        {"PROJECT_NAME", json_path_string(asked, "metadata", "name", NULL)},
        {"PROJECT_DISPLAYNAME", json_get_text(asked, "displayName")},
        {"PROJECT_DESCRIPTION", json_get_text(asked, "description")},
        {"PROJECT_ADMIN_USER", q->user->name},
        {"PROJECT_REQUESTING_USER", q->user->name},
    };
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        (void) template_set_parameter(template, values[i][0], values[i][1]);
    }
    if (template_process(template, random_bytes, &processed, &causes) < 0) {
        (void) refuse_template(q, causes.list[0].message, outcome);
        return NULL;
    }
    return json_clone(json_get(processed, "objects"));
}

/* Kinds that a user's rights, or admission, make safe, and kinds that need an address. */
static bool is_refused(const struct api_kind *k, const struct json *obj)
{
    static const char *const kinds[] = {"/bindings",
                                        "/endpoints",
                                        "/events",
                                        "/persistentvolumeclaims",
                                        "/pods",
                                        "/services",
                                        "discovery.k8s.io/endpointslices",
                                        "template.openshift.io/templateinstances"};
    CLEANUP_FREE char *name = xasprintf("%s/%s", k->group, k->plural);
    bool found = !k->namespaced || k->create_only || k->composed || k->read_only || k->own;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        found |= streq(kinds[i], name);
    }
    return found || (streq(name, "/secrets") &&
                     streq(json_get_text(obj, "type"), "kubernetes.io/service-account-token"));
}

/* Checks types and brings 'obj' into the form of its kind.  NULL: it has that form; else the reason
 * why not, owned.  An unknown field is refused: a warning would reach the requester only. */
static char *conform(const struct api_kind *k, struct json *obj)
{
    CLEANUP(api_paths_done) struct api_paths unknown = {0};
    struct err e = {0};
    const struct api_schema *schema = api_kind_schema(k);
    api_schema_prune(schema, obj, &unknown);
    if (k->prune) {
        k->prune(obj, &unknown);
    }
    if (unknown.n) {
        return xasprintf("%.80s: unknown field \"%.200s\"", k->kind, unknown.list[0]);
    }
    if (!k->custom && api_typed_check(schema, obj, &e) < 0) {
        return xasprintf("%.80s: %s", k->kind, e.text);
    }
    object_conform(k, obj);
    object_prepare_create(k, obj, time_wall_ms());
    return NULL;
}

/* An object of the template, ready to be stored. */
struct part {
    struct cache_kind *ck;
    char *key;
    struct json *obj;
};

/* Turns an object of the template into a valid new object of the stored kind.  NULL: 'ret' is
 * filled; else the reason why the object cannot be used, owned. */
static char *prepare(const struct request *q, const char *project, const struct json *from,
                     struct part *ret)
{
    CLEANUP(json_free) struct json *obj = json_clone(from);
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    struct err e = {0};
    const char *kind = json_get_text(obj, "kind");
    const struct api_kind *k =
        api_registry_by_name(&q->server->cache.registry, json_get_text(obj, "apiVersion"), kind);
    if (!k) {
        return xasprintf("%.80s of %.80s is not known", kind, json_get_text(obj, "apiVersion"));
    }
    if (is_refused(k, obj)) {
        return xasprintf("%.80s cannot be made with a project", kind);
    }
    struct object_target target = {.kind = k, .namespace = project};
    if (object_check_target(obj, &target, &e) < 0) {
        return xasprintf("%.80s: %s", kind, e.text);
    }
    char *why = conform(k, obj);
    if (why) {
        return why;
    }
    api_validate_object(k, obj, NULL, &causes);
    if (causes.n) {
        return xasprintf("%.80s: %s: %s", kind, causes.list[0].field, causes.list[0].message);
    }
    if (k->view) {
        k->view->store(obj);
    }
    ret->ck = cache_find(&q->server->cache, k);
    ret->key = cache_key(project, json_path_string(obj, "metadata", "name", NULL));
    ret->obj = TAKE(obj);
    return NULL;
}

/* ---- the write ---- */

/* Adds the other objects of the project to the transaction.  Negative: the outcome is filled. */
static int add_objects(struct write *w, const char *project, struct outcome *outcome)
{
    const struct json *item;
    write_drop_others(w);
    JSON_FOREACH (item, json_get(w->body, "objects")) {
        struct part part = {0};
        CLEANUP_FREE char *why = prepare(w->q, project, item, &part);
        if (why) {
            return refuse_template(w->q, why, outcome);
        }
        CLEANUP_FREE char *key = part.key;
        CLEANUP(json_free) struct json *obj = part.obj;
        struct blob *value = NULL;
        quota_fill_status(w->server->quotas, part.ck, key, obj);
        if (object_encode(part.ck->kind, obj, &value) < 0) {
            return refuse_template(w->q, "an object is nested too deeply", outcome);
        }
        write_add_new(w, part.ck, key, value);
    }
    return 0;
}

/* Also called for another attempt: the project gets other user IDs then. */
static void attempt_store(struct write *w, struct outcome *outcome)
{
    CLEANUP(json_free) struct json *project = json_clone(json_get(w->body, "project"));
    if (project_limit_settle(w->q, &w->project_limit, w->key, outcome) < 0 ||
        write_settle(w, project, NULL, outcome) < 0 || add_objects(w, w->key, outcome) < 0) {
        return;
    }
    struct blob *value = write_encode(w->q, project, outcome);
    if (value && w->q->dry_run && keyset_get(&w->ck->objects, w->key)) {
        blob_unref(value);
        outcome_exists(outcome, w->q->kind, w->key);
        return;
    }
    write_send_new(w, value, outcome);
}

static void attempt_first(struct write *w, struct outcome *outcome)
{
    struct json *project = json_get(w->body, "project");
    if (write_check(w, project, NULL, outcome) == 0) {
        fields_record(w->q, NULL, project);
        w->attempt = attempt_store;
        attempt_store(w, outcome);
    }
}

static bool is_project(const struct json *obj)
{
    const char *version = json_get_text(obj, "apiVersion"), *kind = json_get_text(obj, "kind");
    return (streq(kind, "Project") && streq(version, PROJECT_GROUP "/v1")) ||
           (streq(kind, "Namespace") && streq(version, "v1"));
}

/* {"project": its one Project, "objects": the others}, owned; NULL: the outcome is filled. */
static struct json *divide(const struct request *q, const char *name, struct json *objects,
                           struct outcome *outcome)
{
    CLEANUP(json_free) struct json *ret = json_object();
    struct json *others = json_set(ret, "objects", json_array());
    size_t found = 0;
    struct json *item;
    JSON_FOREACH (item, objects) {
        if (is_project(item)) {
            found++;
            json_set(ret, "project", json_clone(item));
        } else {
            json_append(others, json_clone(item));
        }
    }
    struct json *project = json_get(ret, "project");
    if (found != 1 || !streq_null(json_path_string(project, "metadata", "name", NULL), name)) {
        (void) refuse_template(q, "it must contain exactly one Project, named ${PROJECT_NAME}",
                               outcome);
        return NULL;
    }
    if (json_count(others) > MAX_OBJECTS) {
        (void) refuse_template(q, "it has more than 100 objects", outcome);
        return NULL;
    }
    json_set_string(project, "kind", "Project");
    json_set_string(project, "apiVersion", PROJECT_GROUP "/v1");
    return TAKE(ret);
}

/* From here on the request is the creation of a Project. */
static void become_project(struct request *q)
{
    const struct api_kind *k = api_kind_find(PROJECT_GROUP, "v1", "projects");
    cache_kind_unref(q->ck);
    q->ck = cache_kind_ref(cache_find(&q->server->cache, k));
    q->kind = k;
    CLEANUP_FREE char *version = request_api_version(q);
    free(q->head);
    q->head = object_head_as(k, version);
}

/* ---- the request ---- */

/* Names that look like the system's own projects.  -EACCES: the outcome is filled. */
static int check_reserved(const char *name, struct outcome *outcome)
{
    static const char *const reserved[] = {"openshift", "kubernetes", "kube"};
    for (size_t i = 0; i < ARRAY_SIZE(reserved); i++) {
        size_t n = strlen(reserved[i]);
        if (strncmp(name, reserved[i], n) == 0 && (!name[n] || name[n] == '-')) {
            outcome_status(outcome, 403, "Forbidden", name,
                           "projectrequests." PROJECT_GROUP " \"%s\" is forbidden: cannot request "
                           "a project %s \"%s%s\"",
                           name, name[n] ? "starting with" : "with the name", reserved[i],
                           name[n] ? "-" : "");
            return -EACCES;
        }
    }
    return 0;
}

/* The request as a valid object, owned; NULL: the outcome is filled. */
static struct json *read_asked(struct request *q, struct outcome *outcome)
{
    CLEANUP(json_free) struct json *obj = NULL;
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    struct object_target target = {.kind = q->kind};
    struct err e = {0};
    if (write_begin(q, outcome) < 0 || write_read_body(q, &obj, outcome) < 0) {
        return NULL;
    }
    if (object_check_target(obj, &target, &e) < 0) {
        outcome_error(outcome, 400, "BadRequest", "%s", e.text);
        return NULL;
    }
    if (fields_prune(q, obj, false, outcome) < 0) {
        return NULL;
    }
    object_conform(q->kind, obj);
    api_validate_object(q->kind, obj, NULL, &causes);
    const char *name = json_path_string(obj, "metadata", "name", NULL);
    if (causes.n) {
        outcome_invalid(outcome, q->kind, name ? name : "", &causes);
        return NULL;
    }
    return check_reserved(name, outcome) < 0 ? NULL : TAKE(obj);
}

static void handle_probe(struct request *q, struct outcome *outcome)
{
    CLEANUP(outcome_done) struct outcome refused = {0};
    if (filter_may_create(q, &refused) < 0) {
        outcome_no_project(outcome, q);
        return;
    }
    outcome->type = OUTCOME_STATUS;
    outcome->code = 200;
}

void handle_project_request(struct request *q, struct outcome *outcome)
{
    if (q->verb == VERB_LIST) {
        handle_probe(q, outcome);
        return;
    }
    CLEANUP(json_free) struct json *asked = read_asked(q, outcome);
    CLEANUP(json_free) struct json *objects = asked ? expand(q, asked, outcome) : NULL;
    if (!objects) {
        return;
    }
    const char *name = json_path_string(asked, "metadata", "name", NULL);
    CLEANUP(json_free) struct json *body = divide(q, name, objects, outcome);
    if (!body) {
        return;
    }
    become_project(q);
    CLEANUP_FREE char *why = conform(q->kind, json_get(body, "project"));
    if (why) {
        (void) refuse_template(q, why, outcome);
        return;
    }
    struct write *w = write_new(q, q->ck, name, attempt_first);
    w->body = TAKE(body);
    outcome_take_over(outcome);
    write_try(w);
}
