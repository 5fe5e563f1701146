/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds that say who may what: each case changes one field of a valid object, and says of which field the cause
 * must come, or that there must be none. */
#include "api/kind.h"
#include "api/patch/patch.h"
#include "api/schema.h"
#include "api/table/table.h"
#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define CSR "certificatesigningrequests"
#define REVIEW "subjectaccessreviews"
#define TOKEN "oauthaccesstokens"
#define CODE "oauthauthorizetokens"
#define CLIENT "oauthclients"
#define ALLOWED "oauthclientauthorizations"
#define TOKEN_NAME "sha256~AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"

static const struct {
    const char *plural, *text;
} samples[] = {
    {CSR,
     "{'metadata':{'name':'n'},'spec':{'request':'QUFB','signerName':'example.com/a','usages':["
     "'client auth'],'expirationSeconds':600},'status':{'conditions':[{'type':'Approved',"
     "'status':'True'},{'type':'Other','status':'Unknown'}],'certificate':'QQ=='}}"},
    {"clusterroles", "{'metadata':{'name':'r'},'rules':[{'verbs':['get'],'apiGroups':[''],"
                     "'resources':['pods'],'resourceNames':['a']},{'verbs':['get'],"
                     "'nonResourceURLs':['/healthz']}],'aggregationRule':{'clusterRoleSelectors':[{"
                     "'matchLabels':{'a':'b'}}]}}"},
    {"roles", "{'metadata':{'name':'r','namespace':'red'},'rules':[{'verbs':['get'],'apiGroups':["
              "''],'resources':['pods']}]}"},
    {"clusterrolebindings",
     "{'metadata':{'name':'b'},'roleRef':{'apiGroup':'rbac.authorization.k8s.io','kind':"
     "'ClusterRole','name':'admin'},'subjects':[{'kind':'User','apiGroup':"
     "'rbac.authorization.k8s.io','name':'jane'},{'kind':'ServiceAccount','namespace':'red',"
     "'name':'default'},{'kind':'Group','apiGroup':'rbac.authorization.k8s.io','name':'g'}]}"},
    {"rolebindings", "{'metadata':{'name':'b','namespace':'red'},'roleRef':{'apiGroup':"
                     "'rbac.authorization.k8s.io','kind':'Role','name':'r'},'subjects':[{'kind':"
                     "'User','apiGroup':'rbac.authorization.k8s.io','name':'jane'}]}"},
    {"secrets", "{'metadata':{'name':'s','namespace':'red'},'type':'Opaque','data':{'a':'QUFB'}}"},
    {"serviceaccounts", "{'metadata':{'name':'s','namespace':'red'},'secrets':[{'name':'a'}],"
                        "'imagePullSecrets':[{'name':'b'}],'automountServiceAccountToken':true}"},
    {"configmaps", "{'metadata':{'name':'c','namespace':'red'},'data':{'a.b_c-D':'1'},"
                   "'binaryData':{'e':'QUFB'}}"},
    {REVIEW,
     "{'metadata':{'name':'x'},'spec':{'user':'jane','groups':['g'],'uid':'1','extra':{'k':['v']},"
     "'resourceAttributes':{'namespace':'red','verb':'get','resource':'pods'}}}"},
    {"localsubjectaccessreviews",
     "{'metadata':{'name':'x','namespace':'red'},'spec':{'user':'jane',"
     "'resourceAttributes':{'namespace':'red','verb':'get'}}}"},
    {"selfsubjectaccessreviews",
     "{'metadata':{'name':'x'},'spec':{'nonResourceAttributes':{'path':'/healthz','verb':'get'}}}"},
    {"selfsubjectrulesreviews", "{'metadata':{'name':'x'},'spec':{'namespace':'red'}}"},
    {"users", "{'metadata':{'name':'jane'},'fullName':'Jane','identities':['ldap:jane']}"},
    {"identities", "{'metadata':{'name':'ldap:jane'},'providerName':'ldap','providerUserName':"
                   "'jane','user':{'name':'jane','uid':'1'},'extra':{'email':'j@example.com'}}"},
    {"groups", "{'metadata':{'name':'dev'},'users':['jane','joe']}"},
    {"useridentitymappings", "{'metadata':{'name':'ldap:jane'},'identity':{'name':'ldap:jane'},"
                             "'user':{'name':'jane'}}"},
    {"tokenreviews", "{'metadata':{'name':'x'},'spec':{'token':'t','audiences':['a']}}"},
    {CLIENT, "{'metadata':{'name':'shop'},'secret':'s','redirectURIs':['https://shop/back'],"
             "'grantMethod':'prompt','scopeRestrictions':[{'literals':['user:info']},"
             "{'clusterRole':{'roleNames':['view'],'namespaces':['*'],'allowEscalation':false}}],"
             "'accessTokenMaxAgeSeconds':0,'accessTokenInactivityTimeoutSeconds':300}"},
    {TOKEN, "{'metadata':{'name':'" TOKEN_NAME "'},'clientName':'shop','expiresIn':86400,"
            "'scopes':['user:info','role:view:red:!'],'redirectURI':'https://shop/back','userName':"
            "'jane','userUID':'1','inactivityTimeoutSeconds':600}"},
    {CODE, "{'metadata':{'name':'" TOKEN_NAME "'},'clientName':'system:serviceaccount:red:default',"
           "'expiresIn':300,'scopes':['user:full'],'redirectURI':'https://shop/back','userName':"
           "'jane','userUID':'1','codeChallenge':'01234567890123456789012345678901234567890-~',"
           "'codeChallengeMethod':'S256'}"},
    {ALLOWED, "{'metadata':{'name':'jane:shop'},'clientName':'shop','userName':'jane',"
              "'userUID':'1','scopes':['user:info']}"},
};

static struct json *parse(const char *text)
{
    CLEANUP_FREE char *p = xstrdup(text);
    struct json *v = NULL;
    struct err e = {0};
    for (char *q = p; *q; q++) {
        *q = *q == '\'' ? '"' : *q;
    }
    if (json_parse(p, strlen(p), &v, &e) < 0) {
        fail_msg("%s: %s", text, e.text);
    }
    return v;
}

static const struct api_kind *kind_of(const char *plural)
{
    for (size_t i = 0; api_kinds[i]; i++) {
        if (streq(api_kinds[i]->plural, plural)) {
            return api_kinds[i];
        }
    }
    fail_msg("no kind %s", plural);
    return NULL;
}

static struct json *sample(const char *plural)
{
    for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
        if (streq(samples[i].plural, plural)) {
            return parse(samples[i].text);
        }
    }
    fail_msg("no sample of %s", plural);
    return NULL;
}

struct row {
    const char *plural, *patch;
    const char *field; /* The only one with a cause, or the first of several; NULL: none has. */
    const char *says;
};

static void check_row(const struct row *row, const struct json *old)
{
    struct json *obj = old ? json_clone(old) : sample(row->plural);
    CLEANUP(json_free) struct json *patch = parse(row->patch);
    CLEANUP(api_causes_done) struct api_causes c = {0};
    api_patch_merge(&obj, patch);
    api_validate_object(kind_of(row->plural), obj, old, &c);
    json_free(obj);
    const char *field = c.n ? c.list[0].field : NULL;
    if (!streq_null(field, row->field) && (field || row->field)) {
        fail_msg("%s with %s: %s: %s", row->plural, row->patch, field ? field : "no cause",
                 c.n ? c.list[0].message : "");
    }
    if (row->says && !strstr(c.list[0].message, row->says)) {
        fail_msg("%s with %s: %s", row->plural, row->patch, c.list[0].message);
    }
}

static void a_good_object_of_each_kind_passes(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
        check_row(&(struct row){samples[i].plural, "{}", NULL, NULL}, NULL);
    }
}

static void requests_for_certificates(void **state)
{
    static const struct row rows[] = {
        {CSR, "{'spec':{'request':null}}", "spec.request", NULL},
        {CSR, "{'spec':{'request':'%'}}", "spec.request", "type byte"},
        {CSR, "{'spec':{'usages':[]}}", "spec.usages", "must be provided"},
        {CSR, "{'spec':{'usages':null}}", "spec.usages", "must be provided"},
        {CSR, "{'spec':{'usages':['client auth','any thing']}}", "spec.usages[1]", NULL},
        {CSR, "{'spec':{'signerName':null}}", "spec.signerName", NULL},
        {CSR, "{'spec':{'signerName':'a'}}", "spec.signerName", "domain and path"},
        {CSR, "{'spec':{'signerName':'a.b/'}}", "spec.signerName", "domain and path"},
        {CSR, "{'spec':{'signerName':'A_/b'}}", "spec.signerName", "DNS subdomain"},
        {CSR, "{'spec':{'signerName':'/b'}}", "spec.signerName", "DNS subdomain"},
        {CSR, "{'spec':{'signerName':'a/..'}}", "spec.signerName", NULL},
        {CSR, "{'spec':{'expirationSeconds':599}}", "spec.expirationSeconds", NULL},
        {CSR, "{'spec':{'expirationSeconds':2147483647}}", NULL, NULL},
        {CSR, "{'spec':{'expirationSeconds':null}}", NULL, NULL},
        {CSR, "{'status':7}", "status", NULL},
        {CSR, "{'status':{'certificate':7}}", "status.certificate", NULL},
        {CSR, "{'status':{'conditions':'a'}}", "status.conditions", NULL},
        {CSR, "{'status':{'conditions':'a string longer than a list'}}", "status.conditions", NULL},
        {CSR, "{'status':{'conditions':[7]}}", "status.conditions[0]", NULL},
        {CSR, "{'status':{'conditions':[{'status':'True'}]}}", "status.conditions[0].type", NULL},
        {CSR, "{'status':{'conditions':[{'type':'Approved','status':'False'}]}}",
         "status.conditions[0].status", NULL},
        {CSR, "{'status':{'conditions':[{'type':'Denied','status':'Unknown'}]}}",
         "status.conditions[0].status", NULL},
        {CSR, "{'status':{'conditions':[{'type':'Failed','status':'False'}]}}", NULL, NULL},
        {CSR,
         "{'status':{'conditions':[{'type':'A','status':'True'},{'type':'A','status':'True'}]}}",
         "status.conditions[1]", "Duplicate"},
        {CSR,
         "{'status':{'conditions':[{'type':'Approved','status':'True'},{'type':'Denied','status':"
         "'True'}]}}",
         "status.conditions", "exclusive"},
    };
    static const struct row changes[] = {
        {CSR, "{}", NULL, NULL},
        {CSR, "{'status':{'conditions':[{'type':'Approved','status':'True','reason':'r'}]}}", NULL,
         NULL},
        {CSR, "{'status':{'conditions':[]}}", "status.conditions", "may not remove"},
        {CSR, "{'status':{'conditions':[{'type':'Other','status':'True'}]}}", "status.conditions",
         "Approved"},
    };
    CLEANUP(json_free) struct json *old = sample(CSR);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        check_row(&rows[i], NULL);
    }
    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        check_row(&changes[i], old);
    }
    /* What is no list is one mistake, whatever is in it. */
    CLEANUP(json_free) struct json *no_list = sample(CSR);
    CLEANUP(api_causes_done) struct api_causes c = {0};
    json_set(json_get(no_list, "status"), "conditions", parse("{'a':{'type':'A'},'b':7}"));
    api_validate_object(kind_of(CSR), no_list, NULL, &c);
    assert_int_equal(c.n, 1);
    /* As large as it may be, and one more. */
    for (size_t more = 0; more < 2; more++) {
        size_t n = (64 << 10) + 4 * more;
        CLEANUP_FREE char *text = xcalloc(1, n + 1);
        memset(text, 'A', n);
        CLEANUP_FREE char *patch = xasprintf("{'spec':{'request':'%s'}}", text);
        check_row(&(struct row){CSR, patch, more ? "spec.request" : NULL, NULL}, NULL);
    }
}

/* Who made it, what was asked for, and the verdict change by their own ways only. */
static void parts_of_a_request_are_written_apart(void **state)
{
    const struct api_kind *k = kind_of(CSR);
    CLEANUP(json_free) struct json *old = sample(CSR);
    CLEANUP(json_free) struct json *new = sample(CSR);
    k->prepare(new, NULL);
    assert_int_equal(json_count(json_get(new, "status")), 0);
    json_set_string(json_get(new, "spec"), "signerName", "example.com/other");
    k->prepare(new, old);
    assert_true(json_equal(json_get(new, "spec"), json_get(old, "spec")));
    static const struct {
        const char *subresource, *status, *want;
    } rows[] = {
        /* The verdict is approval's ... */
        {"approval", "{'conditions':[{'type':'Denied','status':'True'}],'certificate':'x'}",
         "{'conditions':[{'type':'Denied','status':'True'}],'certificate':'QQ=='}"},
        {"approval", "{}", "{'conditions':[],'certificate':'QQ=='}"},
        /* ... the certificate and the others status'. */
        {"status",
         "{'conditions':[{'type':'Denied','status':'True'},{'type':'New'}],'certificate':'x'}",
         "{'conditions':[{'type':'Approved','status':'True'},{'type':'New'}],'certificate':'x'}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free) struct json *out = sample(CSR);
        CLEANUP(json_free) struct json *given = json_object();
        CLEANUP(json_free) struct json *want = parse(rows[i].want);
        json_set(given, "status", parse(rows[i].status));
        k->merge_part(rows[i].subresource, out, given);
        if (!json_equal(json_get(out, "status"), want)) {
            CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
            json_write(json_get(out, "status"), 0, &b);
            fail_msg("%s %s: %s", rows[i].subresource, rows[i].status, strbuf_cstr(&b));
        }
    }
}

static void roles(void **state)
{
    static const struct row rows[] = {
        {"clusterroles", "{'aggregationRule':null}", NULL, NULL},
        {"clusterroles", "{'aggregationRule':7}", "aggregationRule", NULL},
        {"clusterroles", "{'aggregationRule':{'clusterRoleSelectors':[]}}",
         "aggregationRule.clusterRoleSelectors", "at least one"},
        {"clusterroles", "{'aggregationRule':{'clusterRoleSelectors':[{},7]}}",
         "aggregationRule.clusterRoleSelectors[1]", NULL},
        {"roles", "{'rules':null}", NULL, NULL},
        {"roles", "{'rules':'all'}", "rules", NULL},
        {"roles", "{'rules':[7]}", "rules[0]", "object"},
        {"roles", "{'rules':[{'apiGroups':[''],'resources':['pods']}]}", "rules[0].verbs",
         "Required value"},
        {"roles", "{'rules':[{'verbs':'get','apiGroups':[''],'resources':['pods']}]}",
         "rules[0].verbs", NULL},
        {"roles", "{'rules':[{'verbs':['get',7],'apiGroups':[''],'resources':['pods']}]}",
         "rules[0].verbs[1]", "string"},
        {"roles", "{'rules':[{'verbs':['get'],'resources':['pods']}]}", "rules[0].apiGroups",
         "api group"},
        {"roles", "{'rules':[{'verbs':['get'],'apiGroups':['']}]}", "rules[0].resources",
         "resource"},
        {"roles", "{'rules':[{'verbs':['get'],'nonResourceURLs':['/x']}]}",
         "rules[0].nonResourceURLs", "namespaced"},
        {"clusterroles", "{'rules':[{'verbs':['get'],'nonResourceURLs':['/x'],'apiGroups':['']}]}",
         "rules[0].nonResourceURLs", "both"},
        {"clusterroles",
         "{'rules':[{'verbs':['get'],'nonResourceURLs':['/x'],'resources':['pods']}]}",
         "rules[0].nonResourceURLs", "both"},
        {"clusterroles",
         "{'rules':[{'verbs':['get'],'nonResourceURLs':['/x'],'resourceNames':['a']}]}",
         "rules[0].nonResourceURLs", "both"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        check_row(&rows[i], NULL);
    }
    for (size_t more = 0; more < 2; more++) {
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        strbuf_adds(&b, "{'rules':[");
        for (size_t i = 0; i < 4096 + more; i++) {
            strbuf_addf(&b, "%s{'verbs':['get'],'apiGroups':[''],'resources':['pods']}",
                        i ? "," : "");
        }
        strbuf_adds(&b, "]}");
        check_row(&(struct row){"roles", strbuf_cstr(&b), more ? "rules" : NULL, NULL}, NULL);
    }
}

#define GROUP "'apiGroup':'rbac.authorization.k8s.io'"

static void bindings(void **state)
{
    static const struct row rows[] = {
        {"rolebindings", "{'roleRef':{'kind':'ClusterRole'}}", NULL, NULL},
        {"rolebindings", "{'roleRef':{'kind':'User'}}", "roleRef.kind", NULL},
        {"clusterrolebindings", "{'roleRef':{'kind':'Role'}}", "roleRef.kind", NULL},
        {"rolebindings", "{'roleRef':{'apiGroup':''}}", "roleRef.apiGroup", NULL},
        {"rolebindings", "{'roleRef':{'name':null}}", "roleRef.name", NULL},
        {"rolebindings", "{'roleRef':{'name':'a/b'}}", "roleRef.name", NULL},
        {"rolebindings", "{'subjects':null}", NULL, NULL},
        {"rolebindings", "{'subjects':'a'}", "subjects", NULL},
        {"rolebindings", "{'subjects':['a']}", "subjects[0]", "object"},
        {"rolebindings", "{'subjects':[{'kind':'User'," GROUP "}]}", "subjects[0].name", NULL},
        {"rolebindings", "{'subjects':[{'kind':'Node'," GROUP ",'name':'a'}]}", "subjects[0].kind",
         NULL},
        {"rolebindings", "{'subjects':[{'kind':'User','apiGroup':'','name':'a'}]}",
         "subjects[0].apiGroup", "rbac.authorization.k8s.io"},
        {"rolebindings", "{'subjects':[{'kind':'Group','name':'a'}]}", "subjects[0].apiGroup",
         NULL},
        {"rolebindings",
         "{'subjects':[{'kind':'ServiceAccount'," GROUP ",'name':'a','namespace':'n'}]}",
         "subjects[0].apiGroup", NULL},
        {"rolebindings", "{'subjects':[{'kind':'ServiceAccount','name':'a'}]}", NULL, NULL},
        {"clusterrolebindings", "{'subjects':[{'kind':'ServiceAccount','name':'a'}]}",
         "subjects[0].namespace", NULL},
        {"rolebindings", "{'subjects':[{'kind':'ServiceAccount','name':'A b','namespace':'n'}]}",
         "subjects[0].name", NULL},
        {"rolebindings", "{'subjects':[{'kind':'User'," GROUP ",'name':'A b'}]}", NULL, NULL},
    };
    static const struct row changes[] = {
        {"rolebindings", "{'subjects':[]}", NULL, NULL},
        {"rolebindings", "{'roleRef':{'name':'other'}}", "roleRef", "cannot change"},
    };
    CLEANUP(json_free) struct json *old = sample("rolebindings");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        check_row(&rows[i], NULL);
    }
    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        check_row(&changes[i], old);
    }
    CLEANUP(json_free)
    struct json *b =
        parse("{'roleRef':{'kind':'Role','name':'r'},'subjects':[{'kind':'User','name':"
              "'a'},{'kind':'Group','name':'b'},{'kind':'ServiceAccount','name':'c'},"
              "{'kind':'User','apiGroup':'x','name':'d'}]}");
    CLEANUP(json_free)
    struct json *want = parse(
        "{'roleRef':{'kind':'Role','name':'r'," GROUP "},'subjects':[{'kind':'User','name':"
        "'a'," GROUP "},{'kind':'Group','name':'b'," GROUP "},{'kind':'ServiceAccount','name':"
        "'c'},{'kind':'User','apiGroup':'x','name':'d'}]}");
    api_schema_default(api_kind_schema(kind_of("rolebindings")), b);
    kind_of("rolebindings")->defaults(b);
    assert_true(json_equal(b, want));
}

static void secrets_and_accounts(void **state)
{
    static const struct row rows[] = {
        {"secrets", "{'data':null}", NULL, NULL},
        {"secrets", "{'data':7}", "data", NULL},
        {"secrets", "{'data':{'a':'%'}}", "data.a", "must be base64"},
        {"secrets", "{'data':{'a':7}}", "data.a", "type string"},
        {"secrets", "{'data':{'':'QQ=='}}", "data[]", "valid config key"},
        {"secrets", "{'data':{'.':'QQ=='}}", "data[.]", "must not be '.'"},
        {"secrets", "{'data':{'..a':'QQ=='}}", "data[..a]", "must not start with '..'"},
        {"secrets", "{'data':{'.a':'QQ=='}}", NULL, NULL},
        {"secrets", "{'data':{'a/b':'QQ=='}}", "data[a/b]", "valid config key"},
        {"secrets", "{'stringData':{'a':7}}", "stringData.a", "type string"},
        {"secrets", "{'type':null}", NULL, NULL},
        {"secrets", "{'type':7}", "type", NULL},
        {"secrets", "{'immutable':7}", "immutable", NULL},
        {"secrets", "{'type':'kubernetes.io/tls','data':{'tls.crt':'QQ=='}}", "data[tls.key]",
         NULL},
        {"secrets", "{'type':'kubernetes.io/tls','data':{'tls.key':'QQ=='}}", "data[tls.crt]",
         NULL},
        {"secrets", "{'type':'kubernetes.io/tls','data':{'tls.crt':'QQ==','tls.key':'QQ=='}}", NULL,
         NULL},
        {"secrets", "{'type':'kubernetes.io/ssh-auth'}", "data[ssh-privatekey]", NULL},
        {"secrets", "{'type':'kubernetes.io/ssh-auth','data':{'ssh-privatekey':''}}",
         "data[ssh-privatekey]", NULL},
        {"secrets", "{'type':'kubernetes.io/ssh-auth','data':{'ssh-privatekey':'QQ=='}}", NULL,
         NULL},
        {"secrets", "{'type':'kubernetes.io/dockercfg'}", "data[.dockercfg]", NULL},
        {"secrets", "{'type':'kubernetes.io/dockercfg','data':{'.dockercfg':'e30='}}", NULL, NULL},
        {"secrets", "{'type':'kubernetes.io/dockercfg','data':{'.dockercfg':'bnVsbA=='}}", NULL,
         NULL},
        {"secrets", "{'type':'kubernetes.io/dockercfg','data':{'.dockercfg':'W10='}}",
         "data[.dockercfg]", "must be a JSON object"},
        {"secrets", "{'type':'kubernetes.io/dockercfg','data':{'.dockercfg':'ew=='}}",
         "data[.dockercfg]", "must be JSON"},
        {"secrets", "{'type':'kubernetes.io/dockerconfigjson','data':{'.dockerconfigjson':'NQ=='}}",
         "data[.dockerconfigjson]", "must be a JSON object"},
        {"secrets", "{'type':'kubernetes.io/dockerconfigjson','data':{'.dockerconfigjson':''}}",
         "data[.dockerconfigjson]", "must be JSON"},
        {"secrets", "{'type':'kubernetes.io/dockerconfigjson'}", "data[.dockerconfigjson]", NULL},
        {"secrets", "{'type':'kubernetes.io/basic-auth'}", "data[username]", NULL},
        {"secrets", "{'type':'kubernetes.io/basic-auth','data':{'username':'QQ=='}}", NULL, NULL},
        {"secrets", "{'type':'kubernetes.io/basic-auth','data':{'password':'QQ=='}}", NULL, NULL},
        {"secrets", "{'type':'kubernetes.io/service-account-token'}",
         "metadata.annotations[kubernetes.io/service-account.name]", NULL},
        {"secrets",
         "{'type':'kubernetes.io/service-account-token','metadata':{'annotations':{"
         "'kubernetes.io/service-account.name':'a'}}}",
         NULL, NULL},
        {"serviceaccounts", "{'secrets':7}", "secrets", NULL},
        {"serviceaccounts", "{'secrets':[{},7]}", "secrets[1]", NULL},
        {"serviceaccounts", "{'imagePullSecrets':[{'name':7}]}", "imagePullSecrets[0].name", NULL},
        {"serviceaccounts", "{'automountServiceAccountToken':'no'}", "automountServiceAccountToken",
         NULL},
        {"configmaps", "{'data':{'a b':'1'}}", "data[a b]", "alphanumeric"},
        {"configmaps", "{'data':{'':'1'}}", "data[]", "alphanumeric"},
        {"configmaps", "{'data':{'.':'1'}}", "data[.]", "must not be"},
        {"configmaps", "{'data':{'..a':'1'}}", "data[..a]", "start with"},
        {"configmaps", "{'data':{'e':'1'}}", "binaryData[e]", "duplicate"},
    };
    static const struct row changes[] = {
        {"secrets", "{'type':'other'}", "type", "immutable"},
        {"secrets", "{'data':{'a':'QQ=='}}", NULL, NULL},
        {"configmaps", "{'data':{'a':'1'}}", NULL, NULL},
    };
    static const struct row frozen[] = {
        {"secrets", "{'metadata':{'labels':{'a':'b'}}}", NULL, NULL},
        {"secrets", "{'data':{'a':'QQ=='}}", "data", "immutable"},
        {"secrets", "{'data':{'c':'QQ=='}}", "data", "immutable"},
        {"secrets", "{'data':null}", "data", "immutable"},
        {"secrets", "{'immutable':null}", "immutable", "immutable"},
        {"secrets", "{'immutable':false}", "immutable", "immutable"},
        {"configmaps", "{'metadata':{'labels':{'a':'b'}}}", NULL, NULL},
        {"configmaps", "{'data':{'a':'1'}}", "data", "immutable"},
        {"configmaps", "{'data':null}", "data", "immutable"},
        {"configmaps", "{'binaryData':{'e':'QQ=='}}", "binaryData", "immutable"},
        {"configmaps", "{'immutable':false}", "immutable", "immutable"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        check_row(&rows[i], NULL);
    }
    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        CLEANUP(json_free) struct json *old = sample(changes[i].plural);
        check_row(&changes[i], old);
    }
    for (size_t i = 0; i < ARRAY_SIZE(frozen); i++) {
        CLEANUP(json_free) struct json *old = sample(frozen[i].plural);
        json_set(old, "immutable", json_bool(true));
        check_row(&frozen[i], old);
    }
}

/* Keys and values of at most 253 bytes and one MiB. */
static void secrets_and_config_maps_are_bounded(void **state)
{
    static const char *const plurals[] = {"secrets", "configmaps"};
    for (size_t i = 0; i < ARRAY_SIZE(plurals); i++) {
        for (size_t more = 0; more < 2; more++) {
            char key[256] = {0};
            memset(key, 'k', 253 + more);
            CLEANUP_FREE char *patch = xasprintf("{'data':{'%s':'QQ=='}}", key);
            CLEANUP_FREE char *field = xasprintf("data[%.*s]", i ? 80 : 60, key);
            check_row(&(struct row){plurals[i], patch, more ? field : NULL, NULL}, NULL);
        }
        /* Of a secret the bytes count, of a ConfigMap keys and texts. */
        for (size_t more = 0; more < 2; more++) {
            size_t mib = 1 << 20, n = i ? mib - 1 - 4 - 1 - 7 - 1 + more : (mib - 1) / 3 * 4;
            CLEANUP_FREE char *text = xcalloc(1, n + 1);
            memset(text, 'A', n);
            CLEANUP_FREE char *patch =
                i ? xasprintf("{'data':{'a':'%s'}}", text)
                  : xasprintf("{'data':{'a':'%s','b':'%s'}}", text, more ? "AAA=" : "AA==");
            check_row(&(struct row){plurals[i], patch, !more ? NULL : i ? "" : "data", NULL}, NULL);
        }
    }
}

static void texts_of_a_secret_become_its_data(void **state)
{
    static const struct {
        const char *given, *want;
    } rows[] = {
        {"{'stringData':{'a':'AAA'}}", "{'data':{'a':'QUFB'}}"},
        {"{'data':{'a':'QQ==','b':'Qg=='},'stringData':{'a':'AAA'}}",
         "{'data':{'a':'QUFB','b':'Qg=='}}"},
        {"{'data':null,'stringData':{'a':'AAA'}}", "{'data':{'a':'QUFB'}}"},
        {"{'data':null}", "{}"},
        {"{'stringData':null}", "{}"},
        {"{'data':{'a':'QQ=='}}", "{'data':{'a':'QQ=='}}"},
        /* For validation to refuse. */
        {"{'data':7,'stringData':{'a':'AAA'}}", "{'data':7,'stringData':{'a':'AAA'}}"},
        {"{'stringData':{'a':'AAA','b':7}}", "{'stringData':{'a':'AAA','b':7}}"},
        {"{'stringData':'a'}", "{'stringData':'a'}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free) struct json *obj = parse(rows[i].given), *want = parse(rows[i].want);
        kind_of("secrets")->prepare(obj, NULL);
        if (!json_equal(obj, want)) {
            fail_msg("%s", rows[i].given);
        }
    }
}

static void reviews(void **state)
{
    static const struct row rows[] = {
        {REVIEW, "{'spec':{'resourceAttributes':null}}", "spec.resourceAttributes", "exactly one"},
        {REVIEW, "{'spec':{'nonResourceAttributes':{'path':'/'}}}", "spec.nonResourceAttributes",
         "combination"},
        {REVIEW, "{'spec':{'resourceAttributes':{'verb':7}}}", "spec.resourceAttributes.verb",
         NULL},
        {REVIEW, "{'spec':{'resourceAttributes':7}}", "spec.resourceAttributes", NULL},
        {REVIEW, "{'spec':{'user':null}}", NULL, NULL},
        {REVIEW, "{'spec':{'groups':null}}", NULL, NULL},
        {REVIEW, "{'spec':{'user':null,'groups':null}}", "spec.user", "at least one"},
        {REVIEW, "{'spec':{'user':null,'groups':[]}}", "spec.user", "at least one"},
        {REVIEW, "{'spec':{'user':7}}", "spec.user", NULL},
        {REVIEW, "{'spec':{'uid':7}}", "spec.uid", NULL},
        {REVIEW, "{'spec':{'groups':['g',7]}}", "spec.groups[1]", NULL},
        {REVIEW, "{'spec':{'extra':7}}", "spec.extra", NULL},
        {REVIEW, "{'spec':{'extra':{'k':7}}}", "spec.extra.k", NULL},
        {"localsubjectaccessreviews", "{'spec':{'resourceAttributes':{'namespace':'blue'}}}",
         "spec.resourceAttributes.namespace", "must match"},
        {"localsubjectaccessreviews", "{'spec':{'resourceAttributes':{'namespace':null}}}",
         "spec.resourceAttributes.namespace", "must match"},
        {"localsubjectaccessreviews",
         "{'spec':{'resourceAttributes':null,'nonResourceAttributes':{'path':'/'}}}",
         "spec.nonResourceAttributes", "disallowed"},
        {"selfsubjectaccessreviews", "{'spec':{'nonResourceAttributes':{'path':7}}}",
         "spec.nonResourceAttributes.path", NULL},
        {"selfsubjectaccessreviews", "{'spec':{'nonResourceAttributes':null}}",
         "spec.resourceAttributes", "exactly one"},
        {"selfsubjectrulesreviews", "{'spec':{'namespace':null}}", "spec.namespace", NULL},
        {"tokenreviews", "{'spec':{'token':null}}", "spec.token", NULL},
        {"tokenreviews", "{'spec':{'audiences':'a'}}", "spec.audiences", NULL},
        {"tokenreviews", "{'spec':{'audiences':['a',7]}}", "spec.audiences[1]", NULL},
        {"tokenreviews", "{'spec':{'audiences':null}}", NULL, NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        check_row(&rows[i], NULL);
    }
}

static void cells_show_what_kubectl_users_expect(void **state)
{
    static const struct {
        const char *plural, *column, *patch, *want;
    } rows[] = {
        {CSR, "SignerName", "{}", "\"example.com/a\""},
        {CSR, "Requestor", "{'spec':{'username':'jane'}}", "\"jane\""},
        {CSR, "RequestedDuration", "{}", "\"10m\""},
        {CSR, "RequestedDuration", "{'spec':{'expirationSeconds':null}}", "\"<none>\""},
        {CSR, "Condition", "{}", "\"Approved,Other,Issued\""},
        {CSR, "Condition", "{'status':null}", "\"Pending\""},
        {"clusterroles", "Created At", "{'metadata':{'creationTimestamp':'2026-01-02T03:04:05Z'}}",
         "\"2026-01-02T03:04:05Z\""},
        {"clusterrolebindings", "Role", "{}", "\"ClusterRole/admin\""},
        {"clusterrolebindings", "Users", "{}", "\"jane\""},
        {"clusterrolebindings", "Groups", "{}", "\"g\""},
        {"clusterrolebindings", "ServiceAccounts", "{}", "\"red/default\""},
        {"clusterrolebindings", "Users",
         "{'subjects':[{'kind':'User','name':'a'},{'kind':'User'},{'kind':'User','name':'b'}]}",
         "\"a, b\""},
        {"secrets", "Type", "{}", "\"Opaque\""},
        {"secrets", "Data", "{'data':{'b':'QQ=='}}", "2"},
        {"serviceaccounts", "Secrets", "{}", "1"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct api_kind *k = kind_of(rows[i].plural);
        struct json *obj = sample(rows[i].plural);
        CLEANUP(json_free) struct json *patch = parse(rows[i].patch);
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        api_patch_merge(&obj, patch);
        for (size_t c = 0; c < k->n_columns; c++) {
            if (streq(k->columns[c].name, rows[i].column)) {
                CLEANUP(json_free) struct json *v = api_column_cell(&k->columns[c], obj, 0);
                json_write(v, 0, &b);
            }
        }
        json_free(obj);
        if (!streq(strbuf_cstr(&b), rows[i].want)) {
            fail_msg("%s of %s is %s", rows[i].column, rows[i].plural, strbuf_cstr(&b));
        }
    }
}

/* ---- users ---- */

static void names_of_users_and_groups(void **state)
{
    static const struct {
        const char *name, *says; /* NULL: it is a name. */
    } rows[] = {
        {"jane", NULL},
        {"Jane Doe@example.com", NULL},
        {"j\xc3\xbcrgen", NULL},
        {".", "may not be '.' or '..'"},
        {"..", "may not be '.' or '..'"},
        {"a/b", "may not contain '/'"},
        {"a%b", "may not contain '%'"},
        {"~", "may not equal \"~\""},
        {"a:b", "may not contain \":\""},
        {":", "may not contain \":\""},
        {"system:masters", "may not contain \":\""},
        {"system:cluster-admins", "may not contain \":\""},
        {"system:authenticated:oauth", "may not contain \":\""},
    };
    static const char *const plurals[] = {"users", "groups"};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        for (size_t k = 0; k < ARRAY_SIZE(plurals); k++) {
            CLEANUP_FREE char *patch = xasprintf("{'metadata':{'name':'%s'}}", rows[i].name);
            check_row(&(struct row){plurals[k], patch, rows[i].says ? "metadata.name" : NULL,
                                    rows[i].says},
                      NULL);
        }
    }
    static const struct row encoded[] = {
        {"users", "{'metadata':{'name':'b64:YTpi'}}", NULL, NULL},
        {"users", "{'metadata':{'name':'b64:'}}", "metadata.name", "base64"},
        {"users", "{'metadata':{'name':'b64:?'}}", "metadata.name", "base64"},
        {"users", "{'metadata':{'name':'b64:YTpi:'}}", "metadata.name", "may not contain"},
        {"groups", "{'metadata':{'name':'b64:YTpi'}}", "metadata.name", "may not contain"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(encoded); i++) {
        check_row(&encoded[i], NULL);
    }
}

static void users_identities_and_groups(void **state)
{
    static const struct row rows[] = {
        {"users", "{'identities':null}", NULL, NULL},
        {"users", "{'identities':['a']}", "identities[0]", "<providerName>:<providerUserName>"},
        {"users", "{'identities':['a:b','']}", "identities[1]", "<providerUserName>"},
        {"users", "{'identities':['a:b:c']}", "identities[0]", "<providerUserName>"},
        {"users", "{'identities':[':b']}", "identities[0]", "non-empty providerName"},
        {"users", "{'identities':['a:']}", "identities[0]", "non-empty providerUserName"},
        {"users", "{'identities':['a:b64:YTpi']}", NULL, NULL},
        {"users", "{'groups':[]}", NULL, NULL},
        {"users", "{'groups':['dev']}", "groups", "Forbidden"},
        {"groups", "{'users':null}", NULL, NULL},
        {"groups", "{'users':['jane','']}", "users[1]", "may not be empty"},
        {"groups", "{'users':['system:admin']}", "users[0]", "may not contain \":\""},
        {"groups", "{'users':['system:serviceaccount:red:default']}", "users[0]", NULL},
        {"groups", "{'users':['~']}", "users[0]", "may not equal"},
        {"groups", "{'users':['a/b']}", "users[0]", "may not contain '/'"},
        {"identities", "{'user':null}", NULL, NULL},
        {"identities", "{'user':{'name':null,'uid':null}}", NULL, NULL},
        {"identities", "{'user':{'uid':null}}", "user.uid", "Required value"},
        {"identities", "{'user':{'name':null}}", "user.uid",
         "may not be set if user.name is empty"},
        {"identities", "{'user':{'name':'a:b'}}", "user.name", "may not contain"},
        {"identities", "{'metadata':{'name':'ldap:joe'}}", "metadata.name", "ldap:jane"},
        {"identities", "{'metadata':{'name':'other:jane'}}", "metadata.name", "ldap:jane"},
        {"identities", "{'providerName':'a:b'}", "providerName", "may not contain"},
        {"identities", "{'providerName':'a/b'}", "providerName", "may not contain"},
        {"identities", "{'providerName':''}", "providerName", "Required value"},
        {"identities", "{'providerUserName':'~'}", "providerUserName", "may not equal"},
        {"identities", "{'providerUserName':''}", "providerUserName", "Required value"},
        {"useridentitymappings", "{'identity':null}", "identity.name", "Required value"},
        {"useridentitymappings", "{'identity':{'name':'a:b'}}", "identity.name",
         "must match metadata.name"},
        {"useridentitymappings", "{'user':null}", "user.name", "Required value"},
        {"useridentitymappings", "{'metadata':{'name':'jane'},'identity':{'name':'jane'}}",
         "metadata.name", "<providerName>:<providerUserName>"},
    };
    static const struct row changes[] = {
        {"identities", "{'user':null}", NULL, NULL},
        {"identities", "{'extra':{'name':'J'}}", NULL, NULL},
        {"identities", "{'providerName':'x'}", "providerName", "may not change providerName"},
        {"identities", "{'providerUserName':'x'}", "providerUserName",
         "may not change providerUserName"},
    };
    CLEANUP(json_free) struct json *old = sample("identities");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        check_row(&rows[i], NULL);
    }
    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        check_row(&changes[i], old);
    }
}

/* The server computes the name of an identity, and takes nothing but names from a mapping. */
static void names_that_the_server_computes(void **state)
{
    CLEANUP(json_free)
    struct json *o = parse("{'metadata':{},'providerName':'a','providerUserName':'b'}");
    kind_of("identities")->prepare(o, NULL);
    assert_string_equal(json_path_string(o, "metadata", "name", NULL), "a:b");
    CLEANUP(json_free)
    struct json *m = parse("{'metadata':{},'identity':{'uid':'1','name':'a:b','kind':'x'},"
                           "'user':{'kind':'y','uid':'2','name':'jane','namespace':'z'}}");
    kind_of("useridentitymappings")->prepare(m, NULL);
    CLEANUP(json_free)
    struct json *want =
        parse("{'metadata':{'name':'a:b'},'identity':{'name':'a:b'},'user':{'name':'jane'}}");
    assert_true(json_equal(m, want));
    CLEANUP(json_free) struct json *odd = parse("{'metadata':{},'identity':7,'user':['a']}");
    kind_of("useridentitymappings")->prepare(odd, NULL);
    CLEANUP(json_free) struct json *half = parse("{'metadata':{},'user':{'uid':'2'}}");
    kind_of("useridentitymappings")->prepare(half, NULL);
    assert_int_equal(json_count(json_get(half, "user")), 0);
}

static void clients_of_the_oauth_server(void **state)
{
    static const struct row rows[] = {
        {CLIENT, "{'grantMethod':null}", "grantMethod", NULL},
        {CLIENT, "{'grantMethod':'deny'}", "grantMethod", NULL},
        {CLIENT, "{'grantMethod':'auto'}", NULL, NULL},
        {CLIENT, "{'additionalSecrets':['']}", "additionalSecrets[0]", NULL},
        {CLIENT, "{'redirectURIs':['']}", "redirectURIs[0]", NULL},
        {CLIENT, "{'redirectURIs':['https://a/b#c']}", "redirectURIs[0]", "fragment"},
        {CLIENT, "{'redirectURIs':['https://a/./b']}", "redirectURIs[0]", "segment of ."},
        {CLIENT, "{'redirectURIs':['https://a','https://a/b/..']}", "redirectURIs[1]",
         "segment of .."},
        {CLIENT, "{'redirectURIs':['https://a/%2E./b']}", "redirectURIs[0]", "segment of .."},
        {CLIENT, "{'redirectURIs':['https://a/b c']}", "redirectURIs[0]", "blanks"},
        {CLIENT, "{'redirectURIs':['https://a\\\\b/']}", "redirectURIs[0]", "backslashes"},
        {CLIENT, "{'redirectURIs':['https://a/.../b?x=/../','https://a/.b','http://127.0.0.1/x']}",
         NULL, NULL},
        {CLIENT, "{'scopeRestrictions':[{}]}", "scopeRestrictions[0]", "exactly one of"},
        {CLIENT,
         "{'scopeRestrictions':[{'literals':['a'],'clusterRole':{'roleNames':['a'],'namespaces':"
         "['b'],'allowEscalation':true}}]}",
         "scopeRestrictions[0]", "exactly one of"},
        {CLIENT,
         "{'scopeRestrictions':[{'clusterRole':{'roleNames':[],'namespaces':['b'],"
         "'allowEscalation':true}}]}",
         "scopeRestrictions[0].clusterRole.roleNames", NULL},
        {CLIENT,
         "{'scopeRestrictions':[{'clusterRole':{'roleNames':['a'],'namespaces':[],"
         "'allowEscalation':true}}]}",
         "scopeRestrictions[0].clusterRole.namespaces", NULL},
        {CLIENT, "{'accessTokenMaxAgeSeconds':-1}", "accessTokenMaxAgeSeconds", NULL},
        {CLIENT, "{'accessTokenInactivityTimeoutSeconds':-1}",
         "accessTokenInactivityTimeoutSeconds", NULL},
        {CLIENT, "{'accessTokenInactivityTimeoutSeconds':299}",
         "accessTokenInactivityTimeoutSeconds", "minimum valid"},
        {CLIENT, "{'accessTokenInactivityTimeoutSeconds':0}", NULL, NULL},
        {CLIENT, "{'metadata':{'name':'a:b'}}", "metadata.name", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        check_row(&rows[i], NULL);
    }
}

static void tokens_codes_and_authorizations(void **state)
{
    static const struct row rows[] = {
        {TOKEN, "{'metadata':{'name':'sha256~short'}}", "metadata.name", "43 characters"},
        {TOKEN, "{'clientName':null}", "clientName", NULL},
        {TOKEN, "{'clientName':'a/b'}", "clientName", NULL},
        {TOKEN, "{'clientName':'system:serviceaccount:A:b'}", "clientName", NULL},
        {TOKEN, "{'userName':null}", "userName", NULL},
        {TOKEN, "{'userName':'system:admin'}", "userName", NULL},
        {TOKEN, "{'userUID':null}", "userUID", NULL},
        {TOKEN, "{'scopes':null}", "scopes", "may not be empty"},
        {TOKEN, "{'scopes':[]}", "scopes", "may not be empty"},
        {TOKEN, "{'scopes':['user:info','user:root']}", "scopes[1]", "must be user:info"},
        {TOKEN, "{'scopes':['user:info user:full']}", "scopes[0]", "printable"},
        {TOKEN, "{'scopes':['']}", "scopes[0]", NULL},
        {TOKEN, "{'redirectURI':null}", "redirectURI", "may not be empty"},
        {TOKEN, "{'redirectURI':'https://a/#b'}", "redirectURI", "fragment"},
        {TOKEN, "{'expiresIn':-1}", "expiresIn", NULL},
        {TOKEN, "{'inactivityTimeoutSeconds':-1}", "inactivityTimeoutSeconds", NULL},
        {CODE, "{'metadata':{'name':'code'}}", "metadata.name", NULL},
        {CODE, "{'expiresIn':0}", "expiresIn", "greater than zero"},
        {CODE, "{'codeChallenge':'short'}", "codeChallenge", "43-128"},
        {CODE, "{'codeChallenge':null}", "codeChallenge", NULL},
        {CODE, "{'codeChallengeMethod':null}", "codeChallengeMethod", NULL},
        {CODE, "{'codeChallengeMethod':'S512'}", "codeChallengeMethod", NULL},
        {CODE, "{'codeChallenge':null,'codeChallengeMethod':null}", NULL, NULL},
        {ALLOWED, "{'metadata':{'name':'jane:other'}}", "metadata.name", "<userName>:<clientName>"},
        {ALLOWED, "{'metadata':{'name':'jane'}}", "metadata.name", NULL},
        {ALLOWED, "{'scopes':['x']}", "scopes[0]", NULL},
        {ALLOWED, "{'userUID':null}", "userUID", NULL},
    };
    static const struct {
        const char *plural, *patch, *field;
    } changes[] = {
        {TOKEN, "{'metadata':{'labels':{'a':'b'}}}", NULL},
        {TOKEN, "{'inactivityTimeoutSeconds':601}", NULL},
        {TOKEN, "{'inactivityTimeoutSeconds':0}", NULL},
        {TOKEN, "{'inactivityTimeoutSeconds':599}", "inactivityTimeoutSeconds"},
        {TOKEN, "{'scopes':['user:full']}", "scopes"},
        {TOKEN, "{'expiresIn':0}", "expiresIn"},
        {TOKEN, "{'userName':'joe'}", "userName"},
        {TOKEN, "{'userUID':'2'}", "userUID"},
        {TOKEN, "{'refreshToken':'x'}", "refreshToken"},
        {CODE, "{'scopes':['user:info']}", "scopes"},
        {CODE, "{'state':'x'}", "state"},
        {ALLOWED, "{'scopes':['user:full']}", NULL},
        {ALLOWED, "{'userUID':'2'}", "userUID"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        check_row(&rows[i], NULL);
    }
    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        CLEANUP(json_free) struct json *old = sample(changes[i].plural);
        check_row(&(struct row){changes[i].plural, changes[i].patch, changes[i].field, NULL}, old);
    }
    /* A token that inactivity does not end stays such a token. */
    CLEANUP(json_free) struct json *lasting = sample(TOKEN);
    json_remove(lasting, "inactivityTimeoutSeconds");
    check_row(&(struct row){TOKEN, "{'inactivityTimeoutSeconds':600}", "inactivityTimeoutSeconds",
                            "non-timing-out"},
              lasting);
}

static void an_authorization_is_named_by_user_and_client(void **state)
{
    CLEANUP(json_free)
    struct json *o = parse("{'metadata':{},'userName':'jane','clientName':'shop'}");
    kind_of(ALLOWED)->prepare(o, NULL);
    assert_string_equal(json_path_string(o, "metadata", "name", NULL), "jane:shop");
}

/* What is stored for an object of OpenShift's form, and what that shows again. */
static void check_view(const char *plural, const char *sent, const char *stored, const char *shown)
{
    const struct api_kind *k = api_kind_find("authorization.openshift.io", "v1", plural);
    CLEANUP(json_free) struct json *obj = parse(sent);
    CLEANUP(json_free) struct json *want = parse(stored);
    CLEANUP(json_free) struct json *again = parse(shown);
    k->view->store(obj);
    if (!json_equal(obj, want)) {
        CLEANUP_FREE char *text = json_to_text(obj);
        fail_msg("%s is stored as %s", sent, text);
    }
    k->view->show(obj);
    if (!json_equal(obj, again)) {
        CLEANUP_FREE char *text = json_to_text(obj);
        fail_msg("%s is shown as %s", stored, text);
    }
}

#define REF "'roleRef':{'apiGroup':'rbac.authorization.k8s.io','kind':'ClusterRole','name':'view'}"
#define RBAC_GROUP "'apiGroup':'rbac.authorization.k8s.io'"
static void openshifts_form_of_roles_and_bindings(void **state)
{
    check_view("roles", "{'rules':[{'verbs':['get'],'apiGroups':null,'resources':['pods']}]}",
               "{'rules':[{'verbs':['get'],'resources':['pods'],'apiGroups':['']}]}",
               "{'rules':[{'verbs':['get'],'resources':['pods'],'apiGroups':['']}]}");
    /* Admission sees objects before their types are checked. */
    check_view("roles", "{'rules':[null,'x',{'verbs':'get','resources':['pods']}]}",
               "{'rules':[{'apiGroups':['']},{'apiGroups':['']},"
               "{'resources':['pods'],'apiGroups':['']}]}",
               "{'rules':[{'apiGroups':[''],'resources':[]},{'apiGroups':[''],'resources':[]},"
               "{'resources':['pods'],'apiGroups':['']}]}");
    /* Lists of names win, even empty ones; what is no list does not. */
    check_view("rolebindings",
               "{'metadata':{},'userNames':[],'subjects':[{'kind':'User','name':'joe'}],"
               "'roleRef':{'name':'view'}}",
               "{'metadata':{},'subjects':[]," REF "}",
               "{'metadata':{},'userNames':[],'groupNames':[],'subjects':[],"
               "'roleRef':{'name':'view'}}");
    check_view(
        "rolebindings",
        "{'metadata':{'namespace':'red'},'userNames':'joe','subjects':[{'kind':"
        "'ServiceAccount','name':'robot'}],'roleRef':{'name':'view'}}",
        "{'metadata':{'namespace':'red'},'subjects':[{'kind':'ServiceAccount','name':'robot',"
        "'namespace':'red'}]," REF "}",
        "{'metadata':{'namespace':'red'},'userNames':['system:serviceaccount:red:robot'],"
        "'groupNames':[],'subjects':[{'kind':'ServiceAccount','namespace':'red',"
        "'name':'robot'}],'roleRef':{'name':'view'}}");
    /* A name that only resembles an account's is a user's. */
    check_view(
        "clusterrolebindings",
        "{'metadata':{},'userNames':['system:serviceaccount:red:a:b','system:serviceaccount::a'],"
        "'roleRef':{'name':'view'}}",
        "{'metadata':{},'subjects':[{'kind':'User'," RBAC_GROUP
        ",'name':'system:serviceaccount:red:a:b'},{'kind':'User'," RBAC_GROUP
        ",'name':'system:serviceaccount::a'}]," REF "}",
        "{'metadata':{},'userNames':['system:serviceaccount:red:a:b',"
        "'system:serviceaccount::a'],'groupNames':[],'subjects':[{'kind':'SystemUser','name':"
        "'system:serviceaccount:red:a:b'},{'kind':'SystemUser','name':"
        "'system:serviceaccount::a'}],'roleRef':{'name':'view'}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_object_of_each_kind_passes),
        cmocka_unit_test(requests_for_certificates),
        cmocka_unit_test(parts_of_a_request_are_written_apart),
        cmocka_unit_test(roles),
        cmocka_unit_test(bindings),
        cmocka_unit_test(names_of_users_and_groups),
        cmocka_unit_test(users_identities_and_groups),
        cmocka_unit_test(names_that_the_server_computes),
        cmocka_unit_test(secrets_and_accounts),
        cmocka_unit_test(secrets_and_config_maps_are_bounded),
        cmocka_unit_test(texts_of_a_secret_become_its_data),
        cmocka_unit_test(clients_of_the_oauth_server),
        cmocka_unit_test(tokens_codes_and_authorizations),
        cmocka_unit_test(an_authorization_is_named_by_user_and_client),
        cmocka_unit_test(openshifts_form_of_roles_and_bindings),
        cmocka_unit_test(reviews),
        cmocka_unit_test(cells_show_what_kubectl_users_expect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
