/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of a pod as a whole, and those of its name resolution. */
#include "api/kind_util.h"
#include "api/kinds/kind_pod.h"
#include "api/kinds/pod_priv.h"
#include "base/mem.h"

#define MAX_NAMESERVERS 3
#define MAX_SEARCHES 32
#define MAX_SEARCH_CHARS 2048

/* ---- name resolution ---- */

static void check_searches(struct api_causes *c, const char *field, const struct json *list)
{
    size_t chars = json_count(list) ? json_count(list) - 1 : 0; /* The spaces between domains. */
    for (size_t i = 0; i < json_count(list); i++) {
        const char *s = json_get_string(json_at(list, i));
        size_t n = strlen(s);
        CLEANUP_FREE char *name = xstrndup(s, n && s[n - 1] == '.' ? n - 1 : n);
        const char *wrong = api_check_dns_subdomain(name);
        chars += n;
        if (wrong) {
            api_invalid(c, API_FIELD("%s[%zu]", field, i), json_at(list, i), "%s", wrong);
        }
    }
    if (json_count(list) > MAX_SEARCHES) {
        api_invalid(c, field, list, "must not have more than %d search paths", MAX_SEARCHES);
    }
    if (chars > MAX_SEARCH_CHARS) {
        api_invalid(c, field, list,
                    "must not have more than %d characters (including spaces) in the search list",
                    MAX_SEARCH_CHARS);
    }
}

static void check_dns(const struct pod_rules *r, const char *field)
{
    const struct json *config = json_get(r->spec, "dnsConfig");
    const struct json *servers = json_get(config, "nameservers");
    const struct json *options = json_get(config, "options");
    const char *at = API_FIELD("%s.nameservers", field);
    bool none = streq(json_get_text(r->spec, "dnsPolicy"), "None");
    if (none && !config) {
        api_required(r->c, field, "must provide `dnsConfig` when `dnsPolicy` is None");
    } else if (none && json_count(servers) == 0) {
        api_required(r->c, at, "must provide at least one DNS nameserver when `dnsPolicy` is None");
    }
    if (json_count(servers) > MAX_NAMESERVERS) {
        api_invalid(r->c, at, servers, "must not have more than %d nameservers", MAX_NAMESERVERS);
    }
    check_searches(r->c, API_FIELD("%s.searches", field), json_get(config, "searches"));
    for (size_t i = 0; i < json_count(options); i++) {
        if (json_string_size(json_get(json_at(options, i), "name")) == 0) {
            api_required(r->c, API_FIELD("%s.options[%zu]", field, i), "must not be empty");
        }
    }
}

/* ---- the whole ---- */

static void by_name(struct smap *map, const struct json *list)
{
    for (size_t i = 0; i < json_count(list); i++) {
        smap_set(map, json_get_text(json_at(list, i), "name"), json_at(list, i));
    }
}

static void check_spec(struct pod_rules *r, const char *field, const struct json *annotations,
                       const char *annotations_field)
{
    struct smap volumes, claims;
    smap_init(&volumes, NULL);
    smap_init(&claims, NULL);
    by_name(&volumes, json_get(r->spec, "volumes"));
    by_name(&claims, json_get(r->spec, "resourceClaims"));
    r->volumes = &volumes;
    r->claims = &claims;
    pod_check_annotations(r, annotations_field, annotations);
    pod_check_volumes(r, API_FIELD("%s.volumes", field));
    pod_check_claims(r, API_FIELD("%s.resourceClaims", field));
    pod_check_containers(r, field);
    pod_check_security(r, field);
    pod_check_scheduling(r, field);
    check_dns(r, API_FIELD("%s.dnsConfig", field));
    pod_check_whole(r, API_FIELD("%s.resources", field));
    pod_check_overhead(r, API_FIELD("%s.overhead", field));
    smap_done(&volumes);
    smap_done(&claims);
}

void pod_validate_object(struct api_causes *c, const struct json *pod, bool is_new)
{
    struct pod_rules r = {.c = c,
                          .spec = json_get(pod, "spec"),
                          .pod_name = json_path_string(pod, "metadata", "name", NULL),
                          .is_pod = true};
    check_spec(&r, "spec", json_path(pod, "metadata", "annotations", NULL), "metadata.annotations");
    if (is_new) {
        pod_check_profiles(&r, "spec", json_path(pod, "metadata", "annotations", NULL));
    }
}

void pod_validate_annotations(struct api_causes *c, const struct json *pod)
{
    struct pod_rules r = {.c = c, .spec = json_get(pod, "spec"), .is_pod = true};
    pod_check_annotations(&r, "metadata.annotations",
                          json_path(pod, "metadata", "annotations", NULL));
}

void pod_validate_template(struct api_causes *c, const char *field, const struct json *template)
{
    struct pod_rules r = {.c = c, .spec = json_get(template, "spec")};
    const struct json *meta = json_get(template, "metadata");
    const char *annotations = API_FIELD("%s.annotations", field);
    api_validate_labels(c, API_FIELD("%s.labels", field), json_get(meta, "labels"));
    api_validate_annotations(c, annotations, json_get(meta, "annotations"));
    check_spec(&r, API_FIELD("%s.spec", field), json_get(meta, "annotations"), annotations);
    pod_check_profiles(&r, API_FIELD("%s.spec", field), json_get(meta, "annotations"));
    if (json_count(json_get(r.spec, "ephemeralContainers"))) {
        api_forbidden(c, API_FIELD("%s.spec.ephemeralContainers", field),
                      "ephemeral containers not allowed in pod template");
    }
}
