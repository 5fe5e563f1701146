/* SPDX-License-Identifier: Apache-2.0 */
/* DeploymentConfig (apps.openshift.io/v1): the rules beyond its description, in the words of
 * openshift-apiserver. */
#include "api/kind_util.h"
#include "api/kinds.h"
#include "api/kinds/template.h"
#include "base/mem.h"

#define IMAGE_TAG "ImageStreamTag"
/* Each ReplicationController of a DeploymentConfig has a copy of it in an annotation. */
#define SIZE_MAX_BYTES ((size_t) 512 << 10)
#define DEFAULT_TIMEOUT_S 600

static const struct json *template_of(const struct json *obj)
{
    return json_path(obj, "spec", "template", NULL);
}

static bool is_type(const struct json *obj, const char *type)
{
    return streq(json_get_text(obj, "type"), type);
}

/* ---- cells ---- */

/* "config,image(ruby:2.3)", as oc prints them. */
struct json *kind_deployment_config_cell_triggers(const struct json *obj, int64_t now_ms)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *t;
    JSON_FOREACH (t, json_path(obj, "spec", "triggers", NULL)) {
        const char *comma = b.size ? "," : "";
        const struct json *from = json_path(t, "imageChangeParams", "from", NULL);
        if (is_type(t, "ConfigChange")) {
            strbuf_addf(&b, "%sconfig", comma);
        } else if (is_type(t, "ImageChange")) {
            strbuf_addf(&b, "%simage(%s)", comma, json_get_text(from, "name"));
        } else {
            strbuf_addf(&b, "%s%s", comma, json_get_text(t, "type"));
        }
    }
    return json_string(strbuf_cstr(&b));
}

/* ---- what the server decides ---- */

void kind_deployment_config_prepare(struct json *obj, const struct json *old)
{
    struct json *spec = template_prepare(obj, old), *t;
    if (!spec) {
        return;
    }
    (void) api_default_object(spec, "strategy");
    if (json_is(json_get(spec, "template"), JSON_OBJECT)) {
        (void) template_ensure(spec, "template");
    }
    /* A new object was never rolled out, also when it is a copy of another one. */
    JSON_FOREACH (t, old ? NULL : json_get(spec, "triggers")) {
        (void) json_remove(json_get(t, "imageChangeParams"), "lastTriggeredImage");
    }
}

bool kind_deployment_config_accept_status(struct json *obj, const struct json *wish)
{
    struct json *status = json_get(obj, "status");
    int64_t has = json_get_int_or(json_get(status, "latestVersion"), 0);
    if (!json_is(status, JSON_OBJECT) ||
        json_get_int_or(json_get(wish, "latestVersion"), 0) != has + 1) {
        return false;
    }
    struct json *details = json_object();
    json_set_string(details, "message", "manual change");
    json_set_string(json_append(json_ensure_array(details, "causes"), json_object()), "type",
                    "Manual");
    json_set(status, "details", details);
    json_set_int(status, "latestVersion", has + 1);
    return true;
}

/* ---- defaults ---- */

static void default_hook(struct json *hook, const char *only_container)
{
    struct json *exec = json_get(hook, "execNewPod"), *tag;
    if (json_is(exec, JSON_OBJECT) && only_container) {
        api_default_string(exec, "containerName", only_container);
    }
    JSON_FOREACH (tag, json_get(hook, "tagImages")) {
        struct json *to = json_get(tag, "to");
        if (only_container && json_is(tag, JSON_OBJECT)) {
            api_default_string(tag, "containerName", only_container);
        }
        if (json_is(to, JSON_OBJECT)) {
            api_default_string(to, "kind", IMAGE_TAG);
        }
    }
}

static void default_hooks(struct json *params, const char *only_container)
{
    static const char *const hooks[] = {"pre", "mid", "post"};
    for (size_t i = 0; i < ARRAY_SIZE(hooks); i++) {
        default_hook(json_get(params, hooks[i]), only_container);
    }
}

static bool is_zero(const struct json *share)
{
    const char *s = json_get_string(share);
    return s ? strspn(s, "0%") == strlen(s) : json_get_int_or(share, 0) == 0;
}

static bool is_absent(const struct json *v)
{
    return !v || json_is(v, JSON_NULL);
}

/* Sets the absent one of maxUnavailable and maxSurge, so that at least one of them allows a change. */
static void default_shares(struct json *rolling)
{
    const struct json *missing = json_get(rolling, "maxUnavailable");
    const struct json *surge = json_get(rolling, "maxSurge");
    bool no_missing = is_absent(missing), no_surge = is_absent(surge);
    if (no_missing && (no_surge || is_zero(surge))) {
        json_set_string(rolling, "maxUnavailable", "25%");
    }
    if (no_surge && (no_missing || is_zero(missing))) {
        json_set_string(rolling, "maxSurge", "25%");
    }
}

static void default_strategy(struct json *strategy, const char *only_container)
{
    bool recreate = is_type(strategy, "Recreate"), rolling = is_type(strategy, "Rolling");
    struct json *params = recreate  ? api_default_object(strategy, "recreateParams")
                          : rolling ? api_default_object(strategy, "rollingParams")
                                    : NULL;
    if (params) {
        api_default_int(params, "timeoutSeconds", DEFAULT_TIMEOUT_S);
    }
    params = json_get(strategy, "rollingParams");
    if (json_is(params, JSON_OBJECT)) {
        api_default_int(params, "updatePeriodSeconds", 1);
        api_default_int(params, "intervalSeconds", 1);
        default_shares(params);
    }
    default_hooks(params, only_container);
    default_hooks(json_get(strategy, "recreateParams"), only_container);
}

static void default_triggers(struct json *spec, const char *ns)
{
    struct json *list = json_get(spec, "triggers"), *t;
    if (is_absent(list)) {
        list = json_array();
        json_set_string(json_append(list, json_object()), "type", "ConfigChange");
        json_set(spec, "triggers", list);
    }
    JSON_FOREACH (t, list) {
        struct json *from = json_path(t, "imageChangeParams", "from", NULL);
        if (json_is(from, JSON_OBJECT)) {
            api_default_string(from, "kind", IMAGE_TAG);
            api_default_string(from, "namespace", ns);
        }
    }
}

void kind_deployment_config_defaults(struct json *obj)
{
    struct json *spec = json_get(obj, "spec"), *template = json_get(spec, "template");
    const struct json *labels = json_path(template, "metadata", "labels", NULL);
    const struct json *containers = json_path(template, "spec", "containers", NULL);
    const char *ns = json_path_string(obj, "metadata", "namespace", NULL);
    if (!json_is(spec, JSON_OBJECT)) {
        return;
    }
    if (json_is(labels, JSON_OBJECT) && json_count(json_get(spec, "selector")) == 0) {
        json_set(spec, "selector", json_clone(labels));
    }
    default_triggers(spec, ns ? ns : "");
    if (json_is(json_get(spec, "strategy"), JSON_OBJECT)) {
        default_strategy(json_get(spec, "strategy"),
                         json_count(containers) == 1
                             ? json_path_string(json_at(containers, 0), "name", NULL)
                             : NULL);
    }
    template_default(template);
}

/* ---- validation: triggers ---- */

/* The rule of a part of an image stream's name or of a tag. */
static bool is_tag_name(const char *s)
{
    static const char rule[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.-";
    const char *colon = strchr(s, ':');
    return colon && colon != s && colon[1] && !strchr(colon + 1, ':') &&
           strspn(colon + 1, rule) == strlen(colon + 1);
}

static const char *check_stream_name(const char *s)
{
    static const char rule[] = "0123456789abcdefghijklmnopqrstuvwxyz_.-";
    size_t n = strcspn(s, ":");
    if (strspn(s, rule) < n || strchr("_.-", *s) || strchr("_.-", s[n - 1])) {
        return "must match \"[a-z0-9]+(?:(?:(?:[._]|__|[-]*)[a-z0-9]+)+)?\"";
    }
    return NULL;
}

static void check_image_change(struct api_causes *c, const char *field, const struct json *params)
{
    const struct json *from = json_get(params, "from"), *name = json_get(from, "name");
    const struct json *ns = json_get(from, "namespace");
    const char *s = json_get_text(from, "name"), *why;
    if (!*s) {
        api_required(c, API_FIELD("%s.from", field), "");
    } else {
        if (!streq(json_get_text(from, "kind"), IMAGE_TAG)) {
            api_invalid(c, API_FIELD("%s.from.kind", field), json_get(from, "kind"),
                        "kind must be an ImageStreamTag");
        }
        if (!is_tag_name(s)) {
            api_invalid(c, API_FIELD("%s.from.name", field), name,
                        "must be in the form of <name>:<tag>");
        } else if ((why = check_stream_name(s))) {
            api_invalid(c, API_FIELD("%s.from.name", field), name, "%s", why);
        }
        if (json_string_size(ns) && api_check_dns_subdomain(json_get_string(ns))) {
            api_invalid(c, API_FIELD("%s.from.namespace", field), ns,
                        "namespace must be a valid subdomain");
        }
    }
    if (json_count(json_get(params, "containerNames")) == 0) {
        api_required(c, API_FIELD("%s.containerNames", field), "");
    }
}

static void check_triggers(struct api_causes *c, const struct json *triggers)
{
    const struct json *t;
    JSON_FOREACH (t, triggers) {
        const struct json *params = json_get(t, "imageChangeParams");
        const char *field = API_FIELD("spec.triggers[%zu]", t_i);
        if (!*json_get_text(t, "type")) {
            api_required(c, API_FIELD("%s.type", field), "");
        } else if (is_type(t, "ImageChange") && !params) {
            api_required(c, API_FIELD("%s.imageChangeParams", field), "");
        } else if (is_type(t, "ImageChange")) {
            check_image_change(c, API_FIELD("%s.imageChangeParams", field), params);
        }
    }
}

/* ---- validation: the strategy ---- */

static void check_env(struct api_causes *c, const char *field, const struct json *env)
{
    static const char letters[] = "_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const struct json *v;
    JSON_FOREACH (v, env) {
        const char *s = json_get_text(v, "name");
        if ((*s >= '0' && *s <= '9') || strspn(s, letters) != strlen(s)) {
            api_invalid(c, API_FIELD("%s[%zu].name", field, v_i), json_get(v, "name"),
                        "a valid C identifier must start with alphabetic character or '_', "
                        "followed by a string of alphanumeric characters or '_' (e.g. 'my_name', "
                        " or 'MY_NAME',  or 'MyName', regex used for validation is "
                        "'[A-Za-z_][A-Za-z0-9_]*')");
        }
    }
}

static void check_exec(struct api_causes *c, const char *field, const struct json *exec)
{
    const struct json *v;
    if (json_count(json_get(exec, "command")) == 0) {
        api_required(c, API_FIELD("%s.command", field), "");
    }
    if (!*json_get_text(exec, "containerName")) {
        api_required(c, API_FIELD("%s.containerName", field), "");
    }
    check_env(c, API_FIELD("%s.env", field), json_get(exec, "env"));
    JSON_FOREACH (v, json_get(exec, "volumes")) {
        if (json_string_size(v) == 0) {
            api_invalid(c, API_FIELD("%s.volumes[%zu]", field, v_i), v, "must not be empty");
        }
    }
}

static bool has_container(const struct json *pod, const char *name)
{
    static const char *const lists[] = {"containers", "initContainers"};
    const struct json *ct;
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        JSON_FOREACH (ct, json_get(pod, lists[i])) {
            if (streq(json_get_text(ct, "name"), name)) {
                return true;
            }
        }
    }
    return false;
}

static void check_tags(struct api_causes *c, const char *field, const struct json *tags,
                       const struct json *pod)
{
    const struct json *tag;
    JSON_FOREACH (tag, tags) {
        const char *name = json_get_text(tag, "containerName");
        const struct json *to = json_get(tag, "to");
        const char *at = API_FIELD("%s[%zu]", field, tag_i);
        if (!*name) {
            api_required(c, API_FIELD("%s.containerName", at), "a containerName is required");
        } else if (!has_container(pod, name)) {
            api_invalid(c, API_FIELD("%s.containerName", at), json_get(tag, "containerName"),
                        "no container \"%s\" found", name);
        }
        if (!streq(json_get_text(to, "kind"), IMAGE_TAG)) {
            api_invalid(c, API_FIELD("%s.to.kind", at), json_get(to, "kind"),
                        "Must be 'ImageStreamTag'");
        }
        if (!*json_get_text(to, "name")) {
            api_required(c, API_FIELD("%s.to.name", at), "a destination tag name is required");
        }
    }
}

static void check_hook(struct api_causes *c, const char *field, const struct json *hook,
                       const struct json *pod)
{
    static const char *const policies[] = {"Abort", "Ignore", "Retry", NULL};
    const struct json *exec = json_get(hook, "execNewPod"), *tags = json_get(hook, "tagImages");
    if (!*json_get_text(hook, "failurePolicy")) {
        api_required(c, API_FIELD("%s.failurePolicy", field), "");
    } else {
        (void) api_field_enum(c, API_FIELD("%s.failurePolicy", field),
                              json_get(hook, "failurePolicy"), true, policies);
    }
    if (exec && json_count(tags)) {
        CLEANUP(json_free) struct json *text = json_string("<hook>");
        api_invalid(c, field, text, "only one of 'execNewPod' or 'tagImages' may be specified");
    } else if (exec) {
        check_exec(c, API_FIELD("%s.execNewPod", field), exec);
    } else if (json_count(tags)) {
        check_tags(c, API_FIELD("%s.tagImages", field), tags, pod);
    } else {
        CLEANUP(json_free) struct json *text = json_string("<empty>");
        api_invalid(c, field, text, "One of execNewPod or tagImages must be specified");
    }
}

static void check_hooks(struct api_causes *c, const char *field, const struct json *params,
                        const struct json *pod)
{
    static const char *const hooks[] = {"pre", "mid", "post"};
    for (size_t i = 0; i < ARRAY_SIZE(hooks); i++) {
        const struct json *hook = json_get(params, hooks[i]);
        if (hook) {
            check_hook(c, API_FIELD("%s.%s", field, hooks[i]), hook, pod);
        }
    }
}

static void check_positive(struct api_causes *c, const char *field, const struct json *params,
                           const char *key)
{
    const struct json *v = json_get(params, key);
    if (json_get_int_or(v, 1) < 1) {
        api_invalid(c, API_FIELD("%s.%s", field, key), v, "must be >0");
    }
}

static void check_share(struct api_causes *c, const char *field, const struct json *v)
{
    const char *s = json_get_string(v);
    size_t digits = s ? strspn(s, "0123456789") : 0;
    if (s && (digits == 0 || !streq(s + digits, "%"))) {
        api_invalid(c, field, v, "value should be int(5) or percentage(5%%)");
    } else if (!s && json_get_int_or(v, 0) < 0) {
        api_invalid(c, field, v, "must be non-negative");
    }
}

static void check_rolling(struct api_causes *c, const char *field, const struct json *params,
                          const struct json *pod)
{
    static const char *const seconds[] = {"intervalSeconds", "updatePeriodSeconds",
                                          "timeoutSeconds"};
    const struct json *missing = json_get(params, "maxUnavailable");
    const char *percent = json_get_string(missing);
    for (size_t i = 0; i < ARRAY_SIZE(seconds); i++) {
        check_positive(c, field, params, seconds[i]);
    }
    check_share(c, API_FIELD("%s.maxUnavailable", field), missing);
    check_share(c, API_FIELD("%s.maxSurge", field), json_get(params, "maxSurge"));
    if (is_zero(missing) && is_zero(json_get(params, "maxSurge"))) {
        api_invalid(c, API_FIELD("%s.maxUnavailable", field), missing,
                    "cannot be 0 when maxSurge is 0 as well");
    }
    if (percent && str_has_suffix(percent, "%")) {
        size_t zeros = strspn(percent, "0"), digits = strlen(percent) - 1 - zeros;
        if (digits > 3 || (digits == 3 && strcmp(percent + zeros, "100%") != 0)) {
            api_invalid(c, API_FIELD("%s.maxUnavailable", field), missing,
                        "should not be more than 100%%");
        }
    }
    check_hooks(c, field, params, pod);
}

static void check_recreate(struct api_causes *c, const char *field, const struct json *params,
                           const struct json *pod)
{
    check_positive(c, field, params, "timeoutSeconds");
    check_hooks(c, field, params, pod);
}

/* The timeout of the strategy; -1: none is set. */
static int64_t timeout_of(const struct json *strategy)
{
    const struct json *rolling = json_path(strategy, "rollingParams", "timeoutSeconds", NULL);
    return json_get_int_or(
        rolling ? rolling : json_path(strategy, "recreateParams", "timeoutSeconds", NULL), -1);
}

static void check_strategy(struct api_causes *c, const struct json *strategy,
                           const struct json *pod)
{
    const struct json *rolling = json_get(strategy, "rollingParams");
    const struct json *recreate = json_get(strategy, "recreateParams");
    const struct json *custom = json_get(strategy, "customParams");
    const struct json *deadline = json_get(strategy, "activeDeadlineSeconds");
    bool is_custom = is_type(strategy, "Custom");
    check_env(c, "spec.strategy.customParams.environment", json_get(custom, "environment"));
    if (is_custom && !custom) {
        api_required(c, "spec.strategy.customParams", "");
    } else if (!is_custom && !is_type(strategy, "Recreate") && !is_type(strategy, "Rolling")) {
        api_invalid(c, "spec.strategy.type", json_get(strategy, "type"),
                    "unsupported strategy type, use \"Custom\" instead and specify your own "
                    "strategy");
    }
    if (rolling && !is_type(strategy, "Recreate")) {
        check_rolling(c, "spec.strategy.rollingParams", rolling, pod);
    }
    if (recreate && !is_type(strategy, "Rolling")) {
        check_recreate(c, "spec.strategy.recreateParams", recreate, pod);
    }
    api_validate_labels(c, "spec.strategy.labels", json_get(strategy, "labels"));
    api_validate_annotations(c, "spec.strategy.annotations", json_get(strategy, "annotations"));
    if (deadline && timeout_of(strategy) >= 0 &&
        json_get_int_or(deadline, 0) <= timeout_of(strategy)) {
        api_invalid(c, "spec.strategy.activeDeadlineSeconds", deadline,
                    "activeDeadlineSeconds must be greater than timeoutSeconds");
    }
}

static void check_min_ready(struct api_causes *c, const struct json *spec)
{
    const struct json *strategy = json_get(spec, "strategy"),
                      *v = json_get(spec, "minReadySeconds");
    int64_t min_ready = json_get_int_or(v, 0), timeout = timeout_of(strategy);
    int64_t deadline = json_get_int_or(json_get(strategy, "activeDeadlineSeconds"), INT64_MAX);
    timeout = timeout < 0 ? DEFAULT_TIMEOUT_S : timeout;
    if (timeout > 0 && min_ready >= timeout) {
        api_invalid(c, "spec.minReadySeconds", v,
                    "must be less than the deployment timeout (%llds)", (long long) timeout);
    }
    if (min_ready >= deadline) {
        api_invalid(c, "spec.minReadySeconds", v,
                    "must be less than activeDeadlineSeconds (%llds - used by the deployer pod)",
                    (long long) deadline);
    }
}

/* ---- validation: the template ---- */

static bool is_named_by_trigger(const struct json *triggers, const char *container)
{
    const struct json *t, *name;
    JSON_FOREACH (t, triggers) {
        JSON_FOREACH (name, is_type(t, "ImageChange")
                                ? json_path(t, "imageChangeParams", "containerNames", NULL)
                                : NULL) {
            if (streq_null(json_get_string(name), container)) {
                return true;
            }
        }
    }
    return false;
}

/* A container without an image passes if a trigger will give it one. */
static void check_template(struct api_causes *c, const struct json *obj, const struct json *old)
{
    const struct json *template = template_of(obj);
    const struct json *triggers = json_path(obj, "spec", "triggers", NULL);
    CLEANUP(json_free) struct json *filled = json_clone(template);
    struct json *ct;
    JSON_FOREACH (ct, json_path(filled, "spec", "containers", NULL)) {
        if (!*json_get_text(ct, "image") &&
            is_named_by_trigger(triggers, json_get_text(ct, "name"))) {
            json_set_string(ct, "image", "unset");
        }
    }
    if (!template_of(old) || !json_equal(template_of(old), template) ||
        !json_equal(json_path(old, "spec", "triggers", NULL), triggers)) {
        template_check(c, "spec.template", filled, NULL, "ReplicationController");
    }
}

static void check_selector(struct api_causes *c, const struct json *spec)
{
    const struct json *selector = json_get(spec, "selector");
    const struct json *labels = json_path(spec, "template", "metadata", "labels", NULL);
    bool selected = true;
    for (size_t i = 0; i < json_count(selector); i++) {
        const struct json *has = json_get(labels, json_key_at(selector, i));
        selected &= has && json_equal(has, json_at(selector, i));
    }
    if (json_count(selector) == 0) {
        api_invalid(c, "spec.selector", selector, "selector cannot be empty");
    } else if (!selected) {
        api_invalid(c, "spec.template.metadata.labels", labels,
                    "`selector` does not match template `labels`");
    }
}

static void check_size(struct api_causes *c, const struct json *obj)
{
    CLEANUP_FREE char *text = json_to_text(obj);
    size_t size = strlen(text);
    if (size > SIZE_MAX_BYTES) {
        api_forbidden(
            c, "spec",
            "the object has %zu bytes, and may have %zu: each ReplicationController of it "
            "has a copy",
            size, SIZE_MAX_BYTES);
    }
}

/* ---- validation: the status ---- */

static void check_grows(struct api_causes *c, const struct json *obj, const struct json *old,
                        const char *key)
{
    const struct json *v = json_path(obj, "status", key, NULL);
    if (json_get_int_or(v, 0) < json_get_int_or(json_path(old, "status", key, NULL), 0)) {
        api_invalid(c, API_FIELD("status.%s", key), v, "%s cannot be decremented", key);
    }
}

static void check_status(struct api_causes *c, const struct json *obj, const struct json *old)
{
    check_grows(c, obj, old, "latestVersion");
    check_grows(c, obj, old, "observedGeneration");
}

void kind_deployment_config_validate(const struct json *obj, const struct json *old,
                                     struct api_causes *c)
{
    const struct json *spec = json_get(obj, "spec"), *template = template_of(obj);
    check_triggers(c, json_get(spec, "triggers"));
    check_min_ready(c, spec);
    if (!template) {
        api_required(c, "spec.template", "");
    } else {
        check_strategy(c, json_get(spec, "strategy"), json_get(template, "spec"));
        check_template(c, obj, old);
        check_selector(c, spec);
    }
    check_size(c, obj);
    check_status(c, obj, old);
}

void kind_deployment_config_validate_part(const char *subresource, const struct json *obj,
                                          const struct json *old, struct api_causes *c)
{
    if (streq(subresource, "status")) {
        check_status(c, obj, old);
    } else if (!streq(subresource, "instantiate")) {
        kind_deployment_config_validate(obj, old, c);
    }
}
