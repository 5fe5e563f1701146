/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/security/default_roles.h"

#include "api/kind.h"
#include "base/mem.h"
#include "controller/obj.h"
#include "controllers/security/default_roles_priv.h"
#include "controllers/security/default_sccs.h"
#include "pod/scc.h"

#define RBAC_GROUP "rbac.authorization.k8s.io"
#define OPENSHIFT_AUTHORIZATION "authorization.openshift.io"
#define RBAC_VERSION RBAC_GROUP "/v1"
#define LABEL_DEFAULT "kubernetes.io/bootstrapping"
#define AGGREGATE RBAC_GROUP "/aggregate-to-"
#define SYSTEM_NAMESPACE "kube-system"
#define AUTHENTICATION_READER AUTHENTICATION_CONFIG "-reader"
#define SHARED_VIEWER "shared-resource-viewer"

#define SCC_REVIEWS \
    "podsecuritypolicyreviews podsecuritypolicyselfsubjectreviews podsecuritypolicysubjectreviews"
/* The roles that give the use of one of the default constraints. */
#define SCC_ROLE_PREFIX "system:openshift:scc:"
#define WRITE "create delete deletecollection patch update"
#define ALL READ " " WRITE

/* Resources in projects beyond the kinds whose descriptions (api/kinds) name the role: their
 * subresources, and kinds that are not compiled in yet.  The order of the groups is that of the
 * rules. */
static const struct {
    const char *group, *resources;
} project_groups[] = {
    {"core", "replicationcontrollers/scale"},
    {"apps", "deployments/rollback deployments/scale replicasets/scale statefulsets/scale"},
    {"apps.openshift.io", "deploymentconfigs/scale"},
    {"autoscaling", ""},
    {"batch", ""},
    {"policy", ""},
    {"networking.k8s.io", ""},
    {"extensions", "deployments/scale replicasets/scale"},
    {"discovery.k8s.io", ""},
    {"coordination.k8s.io", ""},
    {"events.k8s.io", ""},
    {"build.openshift.io", "buildconfigs builds"},
    {"image.openshift.io", "imagestreams imagestreammappings imagestreamtags"},
    {"quota.openshift.io", ""},
    {"route.openshift.io", ""},
    {"template.openshift.io", ""},
};

static const struct role roles[] = {
    {"cluster-admin", NULL, NULL, {{"*", "*", "*"}, {"*", .urls = "*"}}},
    {"admin", NULL, "admin", {{0}}},
    {"edit", "admin", "edit", {{0}}},
    {"view", "edit", "view", {{0}}},
    {"system:aggregate-to-admin",
     "admin",
     NULL,
     {{"create", "authorization.k8s.io", "localsubjectaccessreviews"},
      /* The plug-in RBACEscalation refuses roles and bindings beyond the rights of their author. */
      {ALL, OPENSHIFT_AUTHORIZATION " " RBAC_GROUP, "rolebindings roles"},
      {"create", OPENSHIFT_AUTHORIZATION,
       "localresourceaccessreviews localsubjectaccessreviews subjectrulesreviews"},
      {READ, OPENSHIFT_AUTHORIZATION, "policies policybindings rolebindingrestrictions"},
      {"create", SCC_GROUP, SCC_REVIEWS},
      /* A project's administrator may change only its display name and
       * description: api/kinds/kind_namespace.c checks that. */
      {"get delete patch update", "project.openshift.io", "projects"}}},
    {"system:aggregate-to-edit",
     "edit",
     NULL,
     {{ALL, "core", "secrets"},
      {"get create", "core", "pods/attach pods/exec pods/portforward pods/proxy services/proxy"},
      {"create", "core", "pods/eviction serviceaccounts/token"},
      {"impersonate", "core", "serviceaccounts"},
      {"create", "apps.openshift.io", "deploymentconfigs/instantiate deploymentconfigs/rollback"},
      {"create", "route.openshift.io", "routes/custom-host"}},
     .project_verbs = WRITE,
     .project_role = "edit"},
    {"system:aggregate-to-view",
     "view",
     NULL,
     {{READ, "core",
       "bindings namespaces namespaces/status persistentvolumeclaims/status pods/log pods/status "
       "replicationcontrollers/status resourcequotas/status services/status"},
      {READ, "apps.openshift.io", "deploymentconfigs/log deploymentconfigs/status"},
      {READ, "apps", "daemonsets/status deployments/status replicasets/status statefulsets/status"},
      {READ, "autoscaling", "horizontalpodautoscalers/status"},
      {READ, "batch", "cronjobs/status jobs/status"},
      {READ, "extensions", "daemonsets/status deployments/status replicasets/status"},
      {READ, "policy", "poddisruptionbudgets/status"},
      {READ, "route.openshift.io", "routes/status"},
      {"get", "project.openshift.io", "projects"}},
     .project_verbs = READ,
     .project_role = "view"},
    {"basic-user",
     NULL,
     NULL,
     {{"get", "user.openshift.io", "users", "~"},
      {"list", "project.openshift.io", "projectrequests"},
      {"list watch", "project.openshift.io", "projects"},
      {"create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"},
      {"create", OPENSHIFT_AUTHORIZATION, "selfsubjectrulesreviews"},
      {"delete get list watch", "oauth.openshift.io", "useroauthaccesstokens"}}},
    {"cluster-reader",
     NULL,
     NULL,
     {{READ, "core",
       "bindings componentstatuses namespaces namespaces/status nodes nodes/status "
       "persistentvolumes pods/log pods/status replicationcontrollers/status "
       "resourcequotas/status services/status"},
      {READ, "apps.openshift.io", "deploymentconfigs/log deploymentconfigs/status"},
      {READ, "route.openshift.io", "routes/status"},
      {READ, "network.openshift.io",
       "clusternetworks egressnetworkpolicies hostsubnets netnamespaces"},
      {READ, "policy.networking.k8s.io", "adminnetworkpolicies baselineadminnetworkpolicies"},
      {READ, "metrics.k8s.io", "nodes pods"},
      {READ, OPENSHIFT_AUTHORIZATION " " RBAC_GROUP,
       "clusterrolebindings clusterroles rolebindings roles"},
      {READ, OPENSHIFT_AUTHORIZATION,
       "clusterpolicies clusterpolicybindings policies policybindings rolebindingrestrictions"},
      {"create", OPENSHIFT_AUTHORIZATION,
       "localresourceaccessreviews localsubjectaccessreviews resourceaccessreviews "
       "selfsubjectrulesreviews subjectaccessreviews subjectrulesreviews"},
      {READ, "certificates.k8s.io", "certificatesigningrequests"},
      {READ, "apiextensions.k8s.io", "customresourcedefinitions"},
      {READ, SCC_GROUP, SCC_PLURAL},
      {READ, "storage.k8s.io",
       "csidrivers csinodes csistoragecapacities storageclasses volumeattachments"},
      {READ, "user.openshift.io", "groups identities useridentitymappings users"},
      /* Clients have secrets; tokens and codes have names that are hashes. */
      {READ, "oauth.openshift.io", "oauthclientauthorizations"},
      {"create", "authorization.k8s.io",
       "localsubjectaccessreviews selfsubjectaccessreviews selfsubjectrulesreviews "
       "subjectaccessreviews"},
      {"create", SCC_GROUP, SCC_REVIEWS},
      {"get", .urls = "*"}},
     .project_verbs = READ,
     .project_role = "view"},
    {"cluster-status", NULL, NULL, {{"get", .urls = "/healthz /healthz/* /version"}}},
    {"self-provisioner", NULL, NULL, {{"create", "project.openshift.io", "projectrequests"}}},
    {"sudoer",
     NULL,
     NULL,
     {{"impersonate", "core", "users", "system:admin"},
      {"impersonate", "core", "groups", "system:masters"}}},
    {"system:aggregated-metrics-reader", "view", NULL, {{READ, "metrics.k8s.io", "nodes pods"}}},
    {"system:auth-delegator",
     NULL,
     NULL,
     {{"create", "authentication.k8s.io", "tokenreviews"},
      {"create", "authorization.k8s.io", "subjectaccessreviews"}}},
    {"system:basic-user",
     NULL,
     NULL,
     {{"create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"},
      {"create", "authentication.k8s.io", "selfsubjectreviews"}}},
    {"system:certificates.k8s.io:certificatesigningrequests:nodeclient",
     NULL,
     NULL,
     {{"create", "certificates.k8s.io", "certificatesigningrequests/nodeclient"}}},
    {"system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
     NULL,
     NULL,
     {{"create", "certificates.k8s.io", "certificatesigningrequests/selfnodeclient"}}},
    {"system:certificates.k8s.io:kube-apiserver-client-approver",
     NULL,
     NULL,
     {{"approve", "certificates.k8s.io", "signers", "kubernetes.io/kube-apiserver-client"}}},
    {"system:certificates.k8s.io:kube-apiserver-client-kubelet-approver",
     NULL,
     NULL,
     {{"approve", "certificates.k8s.io", "signers",
       "kubernetes.io/kube-apiserver-client-kubelet"}}},
    {"system:certificates.k8s.io:kubelet-serving-approver",
     NULL,
     NULL,
     {{"approve", "certificates.k8s.io", "signers", "kubernetes.io/kubelet-serving"}}},
    /* Of the deployer pods in a project (project_roles.c). */
    {"system:deployer",
     NULL,
     NULL,
     {{"get list patch update watch", "core", "replicationcontrollers"},
      {"get update", "core", "replicationcontrollers/scale"},
      {"create get list watch", "core", "pods"},
      {"get", "core", "pods/log"},
      {"create update", "image.openshift.io", "imagestreamtags"},
      {"create list patch update", "core", "events"}}},
    {"system:discovery",
     NULL,
     NULL,
     {{"get",
       .urls =
           "/api /api/* /apis /apis/* /healthz /livez /oapi /oapi/* /openapi /openapi/* /readyz "
           "/version /version/"}}},
    {"system:kube-scheduler",
     NULL,
     NULL,
     {{"create patch update", "core events.k8s.io", "events"},
      {"create", "coordination.k8s.io", "leases"},
      {"get update", "coordination.k8s.io", "leases", "kube-scheduler"},
      {READ, "core",
       "namespaces nodes persistentvolumeclaims persistentvolumes replicationcontrollers services"},
      {"delete get list watch", "core", "pods"},
      {"create", "core", "bindings pods/binding"},
      {"patch update", "core", "pods/status"},
      {"patch update", "core", "persistentvolumeclaims persistentvolumes"},
      {READ, "apps", "replicasets statefulsets"},
      {READ, "policy", "poddisruptionbudgets"},
      {READ, "storage.k8s.io",
       "csidrivers csinodes csistoragecapacities storageclasses volumeattachments "
       "volumeattributesclasses"},
      {READ, "resource.k8s.io", "deviceclasses resourceclaims resourceslices"},
      {"patch update", "resource.k8s.io", "resourceclaims resourceclaims/status"},
      {"create", "authentication.k8s.io", "tokenreviews"},
      {"create", "authorization.k8s.io", "subjectaccessreviews"}}},
    {"system:monitoring",
     NULL,
     NULL,
     {{"get", .urls = "/healthz /healthz/* /livez /livez/* /metrics /metrics/* /readyz "
                      "/readyz/*"}}},
    {"system:node-admin",
     NULL,
     NULL,
     {{READ, "core", "nodes"},
      {"proxy", "core", "nodes"},
      {"*", "core",
       "nodes/configz nodes/healthz nodes/log nodes/metrics nodes/pods nodes/proxy nodes/stats"}}},
    {"system:node-bootstrapper",
     NULL,
     NULL,
     {{"create " READ, "certificates.k8s.io", "certificatesigningrequests"}}},
    {"system:oauth-token-deleter",
     NULL,
     NULL,
     {{"delete", "oauth.openshift.io", "oauthaccesstokens oauthauthorizetokens"}}},
    {"system:public-info-viewer",
     NULL,
     NULL,
     {{"get", .urls = "/healthz /livez /readyz /version /version/"}}},
    /* A router of any kind.  Certificates in secrets are read by a right in their namespace. */
    {"system:router",
     NULL,
     NULL,
     {{READ, "route.openshift.io", "routes"},
      {"patch update", "route.openshift.io", "routes/status"},
      {READ, "core", "endpoints services"},
      {READ, "discovery.k8s.io", "endpointslices"},
      {"create", "authentication.k8s.io", "tokenreviews"},
      {"create", "authorization.k8s.io", "subjectaccessreviews"}}},
    {"system:scope-impersonation",
     NULL,
     NULL,
     {{"impersonate", "authentication.k8s.io", "userextras/scopes.authorization.openshift.io"}}},
    {"system:sdn-manager",
     NULL,
     NULL,
     {{"get list watch create update patch delete", "network.openshift.io",
       "hostsubnets netnamespaces"},
      {"get create update", "network.openshift.io", "clusternetworks"},
      {READ, "core", "namespaces nodes pods"},
      {"update patch", "core", "nodes/status"},
      {"update", "core", "namespaces/finalize"},
      {"get create update", "coordination.k8s.io", "leases"},
      {"create patch update", "core", "events"},
      {"create patch update", "events.k8s.io", "events"}}},
    {"system:sdn-reader",
     NULL,
     NULL,
     {{READ, "network.openshift.io",
       "clusternetworks egressnetworkpolicies hostsubnets netnamespaces"},
      {READ, "core", "endpoints namespaces services"},
      {READ, "discovery.k8s.io", "endpointslices"},
      {READ, "networking.k8s.io", "networkpolicies"},
      {READ, "policy.networking.k8s.io", "adminnetworkpolicies baselineadminnetworkpolicies"}}},
    /* NetworkPolicies may select any pod, so a node that enforces them must read all pods. */
    {"system:sdn-policy-reader", NULL, NULL, {{READ, "core", "nodes pods"}}},
    {"system:service-account-issuer-discovery",
     NULL,
     NULL,
     {{"get", .urls = "/.well-known/openid-configuration /.well-known/openid-configuration/ "
                      "/openid/v1/jwks /openid/v1/jwks/"}}},
};

/* Rules that earlier versions granted and that were withdrawn.  At start a rule that is exactly one
 * of these lines is removed from its role; lines are never removed from this list. */
static const struct {
    const char *role;
    struct rule rule;
} withdrawn[] = {
    /* Labels of a project decide which policies of other projects and of the
     * administrator apply to it. */
    {"system:aggregate-to-admin", {"get delete patch update", "core", "namespaces"}},
    {"admin", {"get delete patch update", "core", "namespaces"}},
};

struct binding {
    const char *name, *role;
    const char *groups, *users;
    bool policies; /* Only where NetworkPolicies are enforced. */
};
#define CSR "system:certificates.k8s.io:certificatesigningrequests:"
static const struct binding bindings[] = {
    {"basic-users", "basic-user", "system:authenticated"},
    {"cluster-admin", "cluster-admin", "system:masters"},
    {"cluster-admins", "cluster-admin", "system:cluster-admins", "system:admin"},
    {"cluster-readers", "cluster-reader", "system:cluster-readers"},
    {"cluster-status-binding", "cluster-status", "system:authenticated system:unauthenticated"},
    {"self-provisioners", "self-provisioner", "system:authenticated:oauth"},
    {"system:basic-user", "system:basic-user", "system:authenticated"},
    {"system:discovery", "system:discovery", "system:authenticated"},
    {"system:kube-controller-manager", "system:kube-controller-manager", NULL,
     "system:kube-controller-manager"},
    {"system:kube-scheduler", "system:kube-scheduler", NULL, "system:kube-scheduler"},
    {"system:monitoring", "system:monitoring", "system:monitoring"},
    {"system:node-admins", "system:node-admin", "system:node-admins",
     "system:openshift-node-admin"},
    {"system:node-proxier", "system:node-proxier", NULL, "system:kube-proxy"},
    {"system:oauth-token-deleters", "system:oauth-token-deleter", "system:authenticated"},
    {"system:public-info-viewer", "system:public-info-viewer",
     "system:authenticated system:unauthenticated"},
    {"system:routers", "system:router", "system:routers"},
    {"system:scope-impersonation", "system:scope-impersonation", "system:authenticated"},
    {"system:sdn-policy-readers", "system:sdn-policy-reader", "system:nodes", .policies = true},
    {"system:sdn-readers", "system:sdn-reader", "system:nodes"},
    {"system:service-account-issuer-discovery", "system:service-account-issuer-discovery",
     "system:serviceaccounts"},
    {"system:volume-scheduler", "system:volume-scheduler", NULL, "system:kube-scheduler"},
    {"tenet:node-autoapprove-bootstrap", CSR "nodeclient", "system:bootstrappers"},
    {"tenet:node-autoapprove-certificate-rotation", CSR "selfnodeclient", "system:nodes"},
    {"tenet:node-bootstrapper", "system:node-bootstrapper", "system:bootstrappers"},
};

/* ---- conversion to objects ---- */

static struct json *words(const char *s)
{
    struct json *list = json_array();
    while (s && *s) {
        size_t n = strcspn(s, " ");
        json_append(list,
                    n == 4 && strncmp(s, "core", 4) == 0 ? json_string("") : json_string_n(s, n));
        s += n + (s[n] == ' ');
    }
    return list;
}

static void set_words(struct json *o, const char *key, const char *s)
{
    if (s) {
        json_set(o, key, words(s));
    }
}

static struct json *default_object(const char *kind, const char *name)
{
    struct json *o = obj_new(RBAC_VERSION, kind, NULL, name);
    obj_set_annotation(o, ANNOTATION_AUTOUPDATE, "true");
    json_set_string(json_ensure_object(json_get(o, "metadata"), "labels"), LABEL_DEFAULT,
                    "rbac-defaults");
    return o;
}

static struct json *rule_object(const struct rule *r)
{
    struct json *o = json_object();
    set_words(o, "verbs", r->verbs);
    set_words(o, "apiGroups", r->groups);
    set_words(o, "resources", r->resources);
    set_words(o, "resourceNames", r->names);
    set_words(o, "nonResourceURLs", r->urls);
    return o;
}

static bool is_for_role(const struct api_kind *k, const char *role)
{
    bool found = false;
    for (size_t i = 0; k->roles && k->roles[i]; i++) {
        found |= streq(k->roles[i], role);
    }
    return found;
}

/* The list with 's' inserted before the first word that follows it in the alphabet, unless it has
 * it: a kind may have several versions. */
static struct json *with_word(const struct json *list, const char *s)
{
    struct json *out = json_array();
    const struct json *item;
    bool done = false;
    JSON_FOREACH (item, list) {
        int order = strcmp(s, json_get_string(item));
        if (!done && order < 0) {
            json_append(out, json_string(s));
        }
        done |= order <= 0;
        json_append(out, json_clone(item));
    }
    if (!done) {
        json_append(out, json_string(s));
    }
    return out;
}

static void add_project_rules(struct json *rules, const struct role *r)
{
    for (size_t i = 0; r->project_role && i < ARRAY_SIZE(project_groups); i++) {
        const struct rule rule = {r->project_verbs, project_groups[i].group,
                                  project_groups[i].resources};
        struct json *o = rule_object(&rule);
        const char *group = json_get_string(json_at(json_get(o, "apiGroups"), 0));
        for (size_t k = 0; api_kinds[k]; k++) {
            if (streq(api_kinds[k]->group, group) && is_for_role(api_kinds[k], r->project_role)) {
                json_set(o, "resources", with_word(json_get(o, "resources"), api_kinds[k]->plural));
            }
        }
        /* Some groups have only kinds that members read. */
        if (json_count(json_get(o, "resources"))) {
            json_append(rules, o);
        } else {
            json_free(o);
        }
    }
}

static struct json *role_object(const struct role *r)
{
    struct json *o = default_object("ClusterRole", r->name);
    if (r->aggregates) {
        CLEANUP_FREE char *label = xasprintf(AGGREGATE "%s", r->aggregates);
        json_set_string(json_path(o, "metadata", "labels", NULL), label, "true");
    }
    if (r->gathers) {
        CLEANUP_FREE char *label = xasprintf(AGGREGATE "%s", r->gathers);
        struct json *selector = json_object();
        json_set_string(json_ensure_object(selector, "matchLabels"), label, "true");
        json_append(
            json_ensure_array(json_ensure_object(o, "aggregationRule"), "clusterRoleSelectors"),
            selector);
        return o; /* The aggregation controller sets the rules. */
    }
    struct json *list = json_ensure_array(o, "rules");
    add_project_rules(list, r);
    for (size_t i = 0; i < MAX_RULES && r->rules[i].verbs; i++) {
        json_append(list, rule_object(&r->rules[i]));
    }
    return o;
}

static void add_subjects(struct json *list, const char *kind, const char *names)
{
    CLEANUP(json_free) struct json *all = words(names);
    const struct json *name;
    JSON_FOREACH (name, all) {
        struct json *s = json_append(list, json_object());
        json_set_string(s, "kind", kind);
        json_set_string(s, "apiGroup", RBAC_GROUP);
        json_set_string(s, "name", json_get_string(name));
    }
}

static void set_role(struct json *binding, const char *kind, const char *name)
{
    struct json *ref = json_ensure_object(binding, "roleRef");
    json_set_string(ref, "apiGroup", RBAC_GROUP);
    json_set_string(ref, "kind", kind);
    json_set_string(ref, "name", name);
}

/* The binding of a controller's role to its service account. */
static struct json *controller_binding(const struct role *r)
{
    struct json *o = default_object("ClusterRoleBinding", r->name);
    set_role(o, "ClusterRole", r->name);
    struct json *s = json_append(json_ensure_array(o, "subjects"), json_object());
    json_set_string(s, "kind", "ServiceAccount");
    json_set_string(s, "name", r->name + sizeof CONTROLLER_PREFIX - 1);
    json_set_string(s, "namespace", SYSTEM_NAMESPACE);
    return o;
}

static struct json *binding_object(const struct binding *b)
{
    struct json *o = default_object("ClusterRoleBinding", b->name);
    set_role(o, "ClusterRole", b->role);
    struct json *list = json_ensure_array(o, "subjects");
    add_subjects(list, "Group", b->groups);
    add_subjects(list, "User", b->users);
    return o;
}

struct json *default_namespaces(void)
{
    static const char *const names[] = {"kube-system", "kube-public", "kube-node-lease",
                                        SHARED_NAMESPACE};
    struct json *list = json_array();
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        json_append(list, obj_new("v1", "Namespace", NULL, names[i]));
    }
    return list;
}

struct json *default_cluster_roles(void)
{
    struct json *list = json_array();
    for (size_t i = 0; i < ARRAY_SIZE(roles); i++) {
        json_append(list, role_object(&roles[i]));
    }
    for (size_t i = 0; i < n_component_roles; i++) {
        json_append(list, role_object(&component_roles[i]));
    }
    for (size_t i = 0; default_scc_names[i]; i++) {
        CLEANUP_FREE char *name = xasprintf(SCC_ROLE_PREFIX "%s", default_scc_names[i]);
        const struct role use = {
            name, NULL, NULL, {{"use", SCC_GROUP, SCC_PLURAL, default_scc_names[i]}}};
        json_append(list, role_object(&use));
    }
    return list;
}

struct json *default_cluster_role_bindings(enum sdn_plugin plugin)
{
    struct json *list = json_array();
    for (size_t i = 0; i < ARRAY_SIZE(bindings); i++) {
        if (!bindings[i].policies || plugin == SDN_NETWORKPOLICY) {
            json_append(list, binding_object(&bindings[i]));
        }
    }
    for (size_t i = 0; i < n_component_roles; i++) {
        if (str_has_prefix(component_roles[i].name, CONTROLLER_PREFIX)) {
            json_append(list, controller_binding(&component_roles[i]));
        }
    }
    return list;
}

/* An object of kube-system about the ConfigMap that says how the API server knows its clients. */
static struct json *authentication_object(const char *kind, const char *name)
{
    struct json *o = default_object(kind, name);
    json_set_string(json_get(o, "metadata"), "namespace", SYSTEM_NAMESPACE);
    return o;
}

struct json *default_system_roles(void)
{
    static const struct rule read = {READ, "core", "configmaps", AUTHENTICATION_CONFIG};
    struct json *list = json_array();
    struct json *o = json_append(list, authentication_object("Role", AUTHENTICATION_READER));
    json_append(json_ensure_array(o, "rules"), rule_object(&read));
    return list;
}

struct json *default_system_role_bindings(void)
{
    struct json *list = json_array();
    struct json *o =
        json_append(list, authentication_object("RoleBinding", "system::" AUTHENTICATION_READER));
    set_role(o, "Role", AUTHENTICATION_READER);
    add_subjects(json_ensure_array(o, "subjects"), "User",
                 "system:kube-controller-manager system:kube-scheduler");
    return list;
}

/* As in OpenShift, which lets everybody read the image streams there as well. */
struct json *default_shared_roles(void)
{
    static const struct rule read = {READ, "template.openshift.io", "templates"};
    struct json *list = json_array();
    struct json *o = json_append(list, default_object("Role", SHARED_VIEWER));
    json_set_string(json_get(o, "metadata"), "namespace", SHARED_NAMESPACE);
    json_append(json_ensure_array(o, "rules"), rule_object(&read));
    return list;
}

struct json *default_shared_role_bindings(void)
{
    struct json *list = json_array();
    struct json *o = json_append(list, default_object("RoleBinding", SHARED_VIEWER "s"));
    json_set_string(json_get(o, "metadata"), "namespace", SHARED_NAMESPACE);
    set_role(o, "Role", SHARED_VIEWER);
    add_subjects(json_ensure_array(o, "subjects"), "Group", "system:authenticated");
    return list;
}

/* ---- missing and withdrawn rules ---- */

/* The index in 'role' of a withdrawn rule; the number of its rules: there is none. */
static size_t find_withdrawn(const struct json *role)
{
    const struct json *rules = json_get(role, "rules");
    for (size_t i = 0; i < ARRAY_SIZE(withdrawn); i++) {
        CLEANUP(json_free) struct json *rule = rule_object(&withdrawn[i].rule);
        for (size_t k = 0; streq(withdrawn[i].role, obj_name(role)) && k < json_count(rules); k++) {
            if (json_equal(json_at(rules, k), rule)) {
                return k;
            }
        }
    }
    return json_count(rules);
}

static bool remove_withdrawn(struct json *role)
{
    struct json *rules = json_get(role, "rules");
    size_t had = json_count(rules), at;
    while ((at = find_withdrawn(role)) < json_count(rules)) {
        json_remove_at(rules, at);
    }
    return json_count(rules) < had;
}

static bool is_left_alone(const struct json *have)
{
    return streq_null(obj_annotation(have, ANNOTATION_AUTOUPDATE), "false");
}

bool default_keeps_withdrawn(const struct json *have)
{
    return is_left_alone(have) && find_withdrawn(have) < json_count(json_get(have, "rules"));
}

/* Adds the elements of want[key] that out[key] does not have. */
static bool add_missing(struct json *out, const struct json *want, const char *key)
{
    const struct json *item, *other;
    bool changed = false;
    JSON_FOREACH (item, json_get(want, key)) {
        bool there = false;
        JSON_FOREACH (other, json_get(out, key)) {
            there = there || json_equal(item, other);
        }
        if (!there) {
            json_append(json_ensure_array(out, key), json_clone(item));
            changed = true;
        }
    }
    return changed;
}

struct json *default_reconciled(const struct json *want, const struct json *have)
{
    if (is_left_alone(have)) {
        return NULL;
    }
    CLEANUP(json_free) struct json *out = json_clone(have);
    const struct json *labels = json_path(want, "metadata", "labels", NULL);
    const struct json *aggregation = json_get(want, "aggregationRule");
    bool changed = remove_withdrawn(out);
    changed |= add_missing(out, want, "rules");
    changed |= add_missing(out, want, "subjects");
    for (size_t i = 0; i < json_count(labels); i++) {
        struct json *mine = json_ensure_object(json_ensure_object(out, "metadata"), "labels");
        const char *key = json_key_at(labels, i);
        if (!json_get(mine, key)) {
            json_set(mine, key, json_clone(json_at(labels, i)));
            changed = true;
        }
    }
    if (aggregation && !json_get(out, "aggregationRule")) {
        json_set(out, "aggregationRule", json_clone(aggregation));
        changed = true;
    }
    return changed ? TAKE(out) : NULL;
}
