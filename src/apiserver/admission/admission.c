/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/admission/admission.h"

#include "apiserver/access/security.h"
#include "apiserver/admission/plugin_config.h"
#include "apiserver/admission/plugins.h"
#include "apiserver/cache/object.h"
#include "apiserver/request/metrics.h"
#include "base/log.h"
#include "base/timeutil.h"

LOG_MODULE("apiserver");

#define CSRS "certificates.k8s.io/certificatesigningrequests"
#define MIRROR "kubernetes.io/config.mirror"
#define RBAC "rbac.authorization.k8s.io/"

/* In the default order: rights of the namespace first, as in Kubernetes; then plug-ins that change
 * the object; then plug-ins that only judge it.  Webhooks are asked after the last one that changes
 * the object, and after the last one that judges it (webhooks.h).
 * The quotas are at the end, because they count the objects that all others accept: their rows
 * check what a pod must state, and each attempt to store any object counts it (quota.h). */
static const struct admission_plugin plugins[] = {
    {.name = "NamespaceLifecycle",
     .also = "OriginNamespaceLifecycle",
     .verbs = ADMIT_CREATE | ADMIT_DELETE,
     .required = "objects would be left behind in namespaces that are gone",
     .admit = namespace_admit},
    {.name = "LimitRanger",
     .kinds = (const char *const[]){"/limitranges", "/persistentvolumeclaims", "/pods", NULL},
     .verbs = ADMIT_CREATE | ADMIT_UPDATE,
     .admit = limits_admit,
     .validate = limits_validate},
    {.name = "ClusterResourceOverride",
     .off = true,
     .kinds = (const char *const[]){"/pods", NULL},
     .verbs = ADMIT_CREATE,
     .admit = override_admit},
    {.name = "CertificateRequestUser",
     .kinds = (const char *const[]){CSRS, NULL},
     .verbs = ADMIT_CREATE,
     .required = "a request could name another user as its author",
     .admit = certificate_admit_user},
    {.name = "TemplateInstanceRequester",
     .kinds = (const char *const[]){"template.openshift.io/templateinstances", NULL},
     .verbs = ADMIT_CREATE,
     .required = "a user could create objects in the name of another one",
     .admit = template_admit_requester},
    {.name = "ServiceAccount",
     .kinds = (const char *const[]){"/pods", NULL},
     .verbs = ADMIT_CREATE,
     .admit = service_account_admit,
     .validate = service_account_validate,
     .awaits = service_account_awaits},
    {.name = "SecurityContextConstraint",
     .verbs = ADMIT_CREATE | ADMIT_UPDATE,
     .required = "every user could take over the nodes by a privileged pod",
     .admit = scc_admit,
     .validate = scc_validate},
    {.name = "Priority",
     .kinds = (const char *const[]){"/pods", "scheduling.k8s.io/priorityclasses", NULL},
     .verbs = ADMIT_CREATE | ADMIT_UPDATE,
     .required = "users could put their pods before those of the system",
     .admit = priority_admit,
     .validate = priority_validate},
    {.name = "RuntimeClass",
     .kinds = (const char *const[]){"/pods", NULL},
     .verbs = ADMIT_CREATE,
     .admit = runtime_class_admit},
    {.name = "DefaultTolerationSeconds",
     .kinds = (const char *const[]){"/pods", NULL},
     .verbs = ADMIT_CREATE | ADMIT_UPDATE,
     .admit = tolerations_admit},
    {.name = "RunOnceDuration",
     .off = true,
     .kinds = (const char *const[]){"/pods", NULL},
     .verbs = ADMIT_CREATE,
     .admit = run_once_admit},
    {.name = "AlwaysPullImages",
     .off = true,
     .kinds = (const char *const[]){"/pods", NULL},
     .verbs = ADMIT_CREATE | ADMIT_UPDATE,
     .admit = pull_admit,
     .validate = pull_validate},
    {.name = "OriginPodNodeEnvironment",
     .kinds = (const char *const[]){"/pods", NULL},
     .verbs = ADMIT_CREATE,
     .required = "pods of a project could run on the nodes of another",
     .admit = node_selector_admit,
     .validate = node_selector_validate},
    {.name = "PodNodeConstraints",
     .verbs = ADMIT_CREATE | ADMIT_UPDATE,
     .exempts_masters = true,
     .validate = node_constraints_validate},
    {.name = "LimitPodHardAntiAffinityTopology",
     .off = true,
     .kinds = (const char *const[]){"/pods", NULL},
     .verbs = ADMIT_CREATE | ADMIT_UPDATE,
     .validate = anti_affinity_validate},
    {.name = "StorageObjectInUseProtection",
     .also = "PVCProtection",
     .kinds = (const char *const[]){"/persistentvolumeclaims", "/persistentvolumes", NULL},
     .verbs = ADMIT_CREATE,
     .admit = storage_protect_admit},
    {.name = "DefaultStorageClass",
     .kinds = (const char *const[]){"/persistentvolumeclaims", NULL},
     .verbs = ADMIT_CREATE,
     .admit = default_class_admit},
    {.name = "PersistentVolumeClaimResize",
     .kinds = (const char *const[]){"/persistentvolumeclaims", NULL},
     .verbs = ADMIT_UPDATE,
     .validate = claim_resize_validate},
    {.name = "TokenSecrets",
     .own = true,
     .kinds = (const char *const[]){"/secrets", NULL},
     .verbs = ADMIT_CREATE | ADMIT_UPDATE,
     .admit = secret_admit},
    {.name = "RouteHost",
     .kinds = (const char *const[]){"route.openshift.io/routes", NULL},
     .verbs = ADMIT_CREATE | ADMIT_UPDATE,
     .required = "a user could take the host names of others, and routes would have none",
     .admit = route_admit,
     .validate = route_validate},
    {.name = "route.openshift.io/IngressAdmission",
     .kinds = (const char *const[]){"networking.k8s.io/ingresses", NULL},
     .verbs = ADMIT_CREATE | ADMIT_UPDATE,
     .required = "a user could take host names by an Ingress that routes refuse",
     .validate = ingress_validate},
    {.name = "NodeRestriction",
     .kinds =
         (const char *const[]){"/nodes", "/persistentvolumeclaims", "/persistentvolumes", "/pods",
                               "coordination.k8s.io/leases", "storage.k8s.io/csinodes",
                               "storage.k8s.io/csistoragecapacities", NULL},
     .verbs = ADMIT_CREATE | ADMIT_UPDATE,
     .required = "one node could change other nodes and their pods",
     .validate = node_validate},
    {.name = "PodSecurity",
     .kinds =
         (const char *const[]){"/namespaces", "/pods", "/podtemplates", "/replicationcontrollers",
                               "apps/daemonsets", "apps/deployments", "apps/replicasets",
                               "apps/statefulsets", "batch/cronjobs", "batch/jobs",
                               "project.openshift.io/projects", NULL},
     .verbs = ADMIT_CREATE | ADMIT_UPDATE,
     .validate = pod_security_validate},
    {.name = "CertificateApproval",
     .kinds = (const char *const[]){CSRS, NULL},
     .verbs = ADMIT_UPDATE,
     .required = "certificates could be approved without a right to their signer",
     .validate = certificate_validate_approval},
    {.name = "CertificateSigning",
     .kinds = (const char *const[]){CSRS, NULL},
     .verbs = ADMIT_UPDATE,
     .required = "certificates could be signed without a right to their signer",
     .validate = certificate_validate_signing},
    {.name = "CertificateSubjectRestriction",
     .kinds = (const char *const[]){CSRS, NULL},
     .verbs = ADMIT_CREATE,
     .required = "certificates of system:masters and of other nodes could be requested",
     .validate = certificate_validate_subject},
    {.name = "OwnerReferencesPermissionEnforcement",
     .verbs = ADMIT_CREATE | ADMIT_UPDATE,
     .exempts_masters = true,
     .validate = owner_validate},
    {.name = "RBACEscalation",
     .kinds = (const char *const[]){RBAC "roles", RBAC "clusterroles", RBAC "rolebindings",
                                    RBAC "clusterrolebindings", NULL},
     .verbs = ADMIT_CREATE | ADMIT_UPDATE,
     .exempts_masters = true,
     .judges_stored = true,
     .required = "users could give themselves rights that they do not have",
     .validate = rbac_validate},
    {.name = "openshift.io/RestrictSubjectBindings",
     .kinds = (const char *const[]){RBAC "rolebindings", NULL},
     .verbs = ADMIT_CREATE | ADMIT_UPDATE,
     .exempts_masters = true,
     .judges_stored = true,
     .required = "a project could be opened to users whom its restrictions exclude",
     .validate = restriction_validate},
    {.name = "RestrictedEndpointsAdmission",
     .also = "openshift.io/RestrictedEndpointsAdmission",
     .kinds = (const char *const[]){"/endpoints", "discovery.k8s.io/endpointslices", NULL},
     .verbs = ADMIT_CREATE | ADMIT_UPDATE,
     .exempts_masters = true,
     .required = "endpoints could lead into other projects and to the nodes",
     .validate = endpoints_validate},
    {.name = "RestrictedNodePorts",
     .own = true,
     .kinds = (const char *const[]){"/services", NULL},
     .verbs = ADMIT_CREATE | ADMIT_UPDATE,
     .exempts_masters = true,
     .validate = node_ports_validate},
    {.name = "NetworkNumberProtection",
     .kinds = (const char *const[]){"network.openshift.io/hostsubnets",
                                    "network.openshift.io/netnamespaces", NULL},
     .verbs = ADMIT_CREATE | ADMIT_UPDATE,
     .required = "a subnet or VNID that is in use could be given out twice",
     .validate = integrity_check_number},
    {.name = "SCCExecRestrictions",
     .required = "users could enter pods with more rights than they have",
     .enter = scc_enter},
    {.name = "DenyEscalatingExec", .off = true, .enter = escalating_enter},
    {.name = "DenyExecOnPrivileged", .off = true, .enter = privileged_enter},
    {.name = "ProjectRequestLimit",
     .also = "project.openshift.io/ProjectRequestLimit",
     .off = true,
     .counts = true},
    {.name = "ResourceQuota",
     .kinds = (const char *const[]){"/pods", NULL},
     .verbs = ADMIT_CREATE,
     .validate = quota_validate},
    {.name = "ClusterResourceQuota",
     .also = "openshift.io/ClusterResourceQuota",
     .kinds = (const char *const[]){"/pods", NULL},
     .verbs = ADMIT_CREATE,
     .validate = cluster_quota_validate},
};

struct admission {
    bool enabled[ARRAY_SIZE(plugins)];
    const struct admission_plugin *order[ARRAY_SIZE(plugins)]; /* The plug-ins that run. */
    size_t n;
};

const struct admission_plugin *admission_plugin_at(size_t i)
{
    return i < ARRAY_SIZE(plugins) ? &plugins[i] : NULL;
}

/* ---- configuration ---- */

static bool is_named(const struct admission_plugin *p, const char *name)
{
    return streq(p->name, name) || streq_null(p->also, name);
}

static bool has_name(const char *const *names, const struct admission_plugin *p)
{
    while (names && *names && !is_named(p, *names)) {
        names++;
    }
    return names && *names;
}

const struct admission_plugin *admission_plugin_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(plugins); i++) {
        if (is_named(&plugins[i], name)) {
            return &plugins[i];
        }
    }
    return NULL;
}

static int check_known(const char *name, struct err *e)
{
    CLEANUP_STRBUF struct strbuf known = STRBUF_INIT;
    if (admission_plugin_find(name)) {
        return 0;
    }
    for (size_t i = 0; i < ARRAY_SIZE(plugins); i++) {
        strbuf_addf(&known, "%s%s", i ? ", " : "", plugins[i].name);
    }
    return err_set(e, -EINVAL, "admission plug-in \"%.80s\" is not known; there are %s", name,
                   known.data);
}

int admission_check_disabled(const char *const *names, struct err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && names && names[i]; i++) {
        r = check_known(names[i], e);
    }
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(plugins); i++) {
        if (plugins[i].required && has_name(names, &plugins[i])) {
            r = err_set(e, -EPERM, "admission plug-in \"%s\" cannot be disabled: without it %s",
                        plugins[i].name, plugins[i].required);
        }
    }
    return r;
}

/* Whether the plug-in runs: by the configuration of it, by the list of disabled ones, by the list
 * of all in order ('order' NULL: not given), or by default. */
static bool is_on(const struct apiserver_config *cfg, const struct admission_plugin *p,
                  const char *const *order)
{
    const struct json *on = cfg->admission ? json_get(cfg->admission->on, p->name) : NULL;
    bool listed = has_name(order, p);
    if (p->required) {
        return true;
    }
    if (has_name(cfg->admission_disabled, p) || (on && !json_get_bool(on, false))) {
        return false;
    }
    return order ? listed || p->own : on || !p->off;
}

static void add_plugin(struct admission *ad, size_t i)
{
    bool found = !ad->enabled[i];
    for (size_t k = 0; k < ad->n; k++) {
        found |= ad->order[k] == &plugins[i];
    }
    if (!found) {
        ad->order[ad->n++] = &plugins[i];
    }
}

/* Plug-ins that the list leaves out, and cannot leave out, run before the listed ones. */
static void add_in_order(struct admission *ad, const char *const *order)
{
    CLEANUP_STRBUF struct strbuf added = STRBUF_INIT;
    for (size_t i = 0; i < ARRAY_SIZE(plugins); i++) {
        if (!has_name(order, &plugins[i])) {
            if (ad->enabled[i]) {
                strbuf_addf(&added, "%s%s", added.size ? "," : "", plugins[i].name);
            }
            add_plugin(ad, i);
        }
    }
    for (size_t k = 0; order && order[k]; k++) {
        const struct admission_plugin *p = admission_plugin_find(order[k]);
        if (p) {
            add_plugin(ad, (size_t) (p - plugins));
        }
    }
    if (order) {
        log_warn("admission: plug-ins that pluginOrderOverride leaves out run before the others, "
                 "because no configuration can leave them out",
                 "plugins=%s", strbuf_cstr(&added));
    }
}

struct admission *admission_new(struct apiserver *a)
{
    struct admission *ad = NEW(struct admission);
    CLEANUP_STRBUF struct strbuf on = STRBUF_INIT;
    CLEANUP_STRBUF struct strbuf off = STRBUF_INIT;
    const char *const *order =
        a->cfg.admission ? (const char *const *) a->cfg.admission->order : NULL;
    for (size_t i = 0; i < ARRAY_SIZE(plugins); i++) {
        ad->enabled[i] = is_on(&a->cfg, &plugins[i], order);
        if (!ad->enabled[i]) {
            strbuf_addf(&off, "%s%s", off.size ? "," : "", plugins[i].name);
        }
    }
    add_in_order(ad, order);
    for (size_t i = 0; i < ad->n; i++) {
        strbuf_addf(&on, "%s%s", i ? "," : "", ad->order[i]->name);
    }
    log_info("admission", "plugins=%s disabled=%s", strbuf_cstr(&on), strbuf_cstr(&off));
    return ad;
}

struct admission *admission_free(struct admission *ad)
{
    free(ad);
    return NULL;
}

size_t admission_count(const struct admission *ad)
{
    return ad->n;
}

const struct admission_plugin *admission_running(const struct admission *ad, size_t i)
{
    return ad->order[i];
}

bool admission_is_enabled(const struct admission *ad, const char *name)
{
    const struct admission_plugin *p = admission_plugin_find(name);
    return p && ad->enabled[p - plugins];
}

/* ---- a write ---- */

static bool concerns_kind(const struct admission_plugin *p, const struct api_kind *k)
{
    k = p->judges_stored && k->view ? k->view->of : k;
    size_t n = strlen(k->group), i = 0;
    while (p->kinds && p->kinds[i] &&
           !(strncmp(p->kinds[i], k->group, n) == 0 && p->kinds[i][n] == '/' &&
             streq(p->kinds[i] + n + 1, k->plural))) {
        i++;
    }
    return !p->kinds || p->kinds[i];
}

/* The object as it is stored; owned. */
static struct json *stored_form(const struct api_kind *k, const struct json *obj)
{
    struct json *stored = obj ? json_clone(obj) : NULL;
    if (stored) {
        k->view->store(stored);
    }
    return stored;
}

static int validate_one(const struct admission_plugin *p, struct request *q, const struct json *obj,
                        const struct json *old, struct outcome *outcome)
{
    if (!p->judges_stored || !q->kind->view) {
        return p->validate(q, obj, old, outcome);
    }
    CLEANUP(json_free) struct json *now = stored_form(q->kind, obj);
    CLEANUP(json_free) struct json *before = stored_form(q->kind, old);
    return p->validate(q, now, before, outcome);
}

/* Runs one phase of one plug-in, and records its time. */
static int run_one(const struct admission_plugin *p, bool admits, struct request *q,
                   struct json *obj, const struct json *old, struct outcome *outcome)
{
    static const char *const verbs[] = {
        [ADMIT_CREATE] = "CREATE", [ADMIT_UPDATE] = "UPDATE", [ADMIT_DELETE] = "DELETE"};
    uint64_t begin_ns = time_mono_ns();
    int r = admits ? p->admit(q, obj, old, outcome) : validate_one(p, q, obj, old, outcome);
    metrics_count_admission(q->server->metrics,
                            &(struct admission_call){.name = p->name,
                                                     .type = admits ? "admit" : "validate",
                                                     .operation = verbs[old   ? ADMIT_UPDATE
                                                                        : obj ? ADMIT_CREATE
                                                                              : ADMIT_DELETE],
                                                     .rejected = r < 0},
                            time_mono_ns() - begin_ns);
    return r;
}

bool admission_awaits(const struct request *q, const struct json *obj)
{
    const struct admission *ad = q->server->admission;
    bool awaits = false;
    for (size_t i = 0; i < ad->n; i++) {
        const struct admission_plugin *p = ad->order[i];
        awaits |= p->awaits && concerns_kind(p, q->kind) && p->awaits(q, obj);
    }
    return awaits;
}

int admission_check_entry(const struct request *q, const struct json *pod, struct outcome *outcome)
{
    const struct admission *ad = q->server->admission;
    int r = 0;
    for (size_t i = 0; r == 0 && i < ad->n; i++) {
        r = ad->order[i]->enter ? ad->order[i]->enter(q, pod, outcome) : 0;
    }
    return r;
}

bool admission_is_mirror(const struct json *pod)
{
    return json_path(pod, "metadata", "annotations", MIRROR, NULL) != NULL;
}

static int run_phase(bool admits, struct request *q, struct json *obj, const struct json *old,
                     struct outcome *outcome)
{
    const struct admission *ad = q->server->admission;
    unsigned verb = old ? ADMIT_UPDATE : obj ? ADMIT_CREATE : ADMIT_DELETE;
    bool master = q->server->security->always_allow || user_in_group(q->user, GROUP_MASTERS);
    bool changed = false;
    for (size_t i = 0; i < ad->n; i++) {
        const struct admission_plugin *p = ad->order[i];
        if (!(p->verbs & verb) || (admits ? !p->admit : !p->validate) ||
            (p->exempts_masters && master) || !concerns_kind(p, q->kind)) {
            continue;
        }
        int r = run_one(p, admits, q, obj, old, outcome);
        if (r < 0) {
            return r;
        }
        changed |= r > 0;
    }
    return changed;
}

int admission_admit(struct request *q, struct json *obj, const struct json *old,
                    struct outcome *outcome)
{
    int r = run_phase(true, q, obj, old, outcome);
    if (r > 0) {
        object_conform(q->kind, obj);
    }
    return r;
}

int admission_validate(struct request *q, const struct json *obj, const struct json *old,
                       struct outcome *outcome)
{
    /* Only 'admit' of a plug-in gets an object that it may change. */
    return run_phase(false, q, (struct json *) obj, old, outcome);
}

int admission_run(struct request *q, struct json *obj, const struct json *old,
                  struct outcome *outcome)
{
    int r = admission_admit(q, obj, old, outcome);
    return r < 0 ? r : admission_validate(q, obj, old, outcome);
}

const struct json *admission_namespace(const struct request *q)
{
    const struct cache_kind *ck =
        cache_find(&q->server->cache, api_kind_find("", "v1", "namespaces"));
    return q->namespace ? parsed_get(&q->server->parsed, keyset_get(&ck->objects, q->namespace))
                        : NULL;
}

/* ---- refusing ---- */

static const char *name_in(const struct json *obj)
{
    return json_path_string(obj, "metadata", "name", NULL);
}

int admission_refuse(const struct request *q, const struct json *obj, const char *why,
                     struct outcome *outcome)
{
    const char *name = name_in(obj);
    outcome_status(outcome, 403, "Forbidden", name, "%s \"%s\" is forbidden: %s",
                   RESOURCE_TEXT(q->kind), name ? name : "", why);
    return -EACCES;
}

int admission_refuse_field(const struct request *q, const struct json *obj, const char *field,
                           const char *why, struct outcome *outcome)
{
    const char *name = name_in(obj);
    outcome_status(outcome, 403, "Forbidden", name, "%s \"%s\" is forbidden: %s: %s",
                   RESOURCE_TEXT(q->kind), name ? name : "", field, why);
    outcome_add_cause(outcome, "FieldValueForbidden", field, why);
    return -EACCES;
}
