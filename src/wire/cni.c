/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/cni.h"

#include "base/map.h"
#include "base/mem.h"

#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/un.h>

#define MAX_CONTAINER_ID 255
#define MAX_NAME 253

const char *const cni_versions[CNI_N_VERSIONS] = {"0.3.1", "0.4.0", "1.0.0", "1.1.0"};

#define BAD_ENV "invalid environment variable"
#define BAD_CONFIG "invalid network configuration"
#define VALID "cni.dev/valid-attachments"
#define UNSUPPORTED "unsupported field in network configuration"

int cni_fail(struct cni_error *e, enum cni_code code, const char *msg, const char *details, ...)
{
    e->code = code;
    snprintf(e->msg, sizeof e->msg, "%s", msg);
    va_list ap;
    va_start(ap, details);
    vsnprintf(e->details, sizeof e->details, details, ap);
    va_end(ap);
    return -EINVAL;
}

void cni_error_write(const struct cni_error *e, struct strbuf *out)
{
    strbuf_addf(out, "{\"cniVersion\":\"%s\",\"code\":%d,\"msg\":", cni_versions[e->version],
                (int) e->code);
    json_write_string(e->msg, strlen(e->msg), out);
    strbuf_adds(out, ",\"details\":");
    json_write_string(e->details, strlen(e->details), out);
    strbuf_addc(out, '}');
}

static const char *const command_names[] = {
    [CNI_ADD] = "ADD", [CNI_DEL] = "DEL",       [CNI_CHECK] = "CHECK",
    [CNI_GC] = "GC",   [CNI_STATUS] = "STATUS", [CNI_VERSION] = "VERSION"};

/* Commands about one container. */
static bool is_of_container(enum cni_command c)
{
    return c == CNI_ADD || c == CNI_DEL || c == CNI_CHECK;
}

const char *cni_command_name(enum cni_command c)
{
    return command_names[c];
}

int cni_command_parse(const char *name, enum cni_command *ret, struct cni_error *e)
{
    e->version = CNI_1_1_0;
    if (!name || !*name) {
        return cni_fail(e, CNI_INVALID_ENVIRONMENT, BAD_ENV, "CNI_COMMAND is not set");
    }
    for (size_t i = 0; i < ARRAY_SIZE(command_names); i++) {
        if (streq(name, command_names[i])) {
            *ret = (enum cni_command) i;
            return 0;
        }
    }
    return cni_fail(e, CNI_INVALID_ENVIRONMENT, BAD_ENV,
                    "CNI_COMMAND: \"%.40s\" is not ADD, DEL, CHECK, GC, STATUS or VERSION", name);
}

void cni_request_done(struct cni_request *r)
{
    free(r->container_id);
    free(r->ifname);
    free(r->netns);
    free(r->pod_namespace);
    free(r->pod_name);
    free(r->config.name);
    free(r->config.socket);
    free(r->config.project);
    json_free(r->config.dns);
    json_free(r->config.prev_result);
    json_free(r->config.valid);
    cni_runtime_done(&r->config.runtime);
    *r = (struct cni_request){0};
}

/* ---- environment ---- */

static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Specification, "Parameters": alphanumeric, then alphanumeric, '_', '.' or '-'. */
static bool is_cni_name(const char *s)
{
    if (!is_alnum(*s)) {
        return false;
    }
    for (; *s; s++) {
        if (!is_alnum(*s) && !strchr("_.-", *s)) {
            return false;
        }
    }
    return true;
}

static int check_container_id(const char *s, struct cni_error *e)
{
    if (!s || !*s) {
        return cni_fail(e, CNI_INVALID_ENVIRONMENT, BAD_ENV, "CNI_CONTAINERID is not set");
    }
    if (strlen(s) > MAX_CONTAINER_ID) {
        return cni_fail(e, CNI_INVALID_ENVIRONMENT, BAD_ENV,
                        "CNI_CONTAINERID: %zu characters are more than %d", strlen(s),
                        MAX_CONTAINER_ID);
    }
    if (!is_cni_name(s)) {
        return cni_fail(e, CNI_INVALID_ENVIRONMENT, BAD_ENV,
                        "CNI_CONTAINERID: \"%s\" must begin with a letter or digit and hold only "
                        "letters, digits, '_', '.' and '-'",
                        s);
    }
    return 0;
}

static int check_ifname(const char *s, struct cni_error *e)
{
    if (!s || !*s) {
        return cni_fail(e, CNI_INVALID_ENVIRONMENT, BAD_ENV, "CNI_IFNAME is not set");
    }
    const char *why = NULL;
    if (strlen(s) >= IF_NAMESIZE) {
        why = "is longer than 15 characters";
    } else if (streq(s, ".") || streq(s, "..")) {
        why = "is not a name";
    } else if (streq(s, "lo")) {
        why = "is the loopback's name";
    } else {
        for (const char *p = s; *p; p++) {
            if (*p <= ' ' || *p > '~' || *p == '/' || *p == ':' || *p == '%') {
                why = "holds a character that interface names cannot have";
                break;
            }
        }
    }
    return why ? cni_fail(e, CNI_INVALID_ENVIRONMENT, BAD_ENV, "CNI_IFNAME: \"%.40s\" %s", s, why)
               : 0;
}

static int check_netns(const char *s, enum cni_command command, struct cni_error *e)
{
    if (!s) {
        return command == CNI_DEL
                   ? 0
                   : cni_fail(e, CNI_INVALID_ENVIRONMENT, BAD_ENV,
                              "CNI_NETNS is not set, and %s needs it", command_names[command]);
    }
    if (*s != '/' || strlen(s) >= PATH_MAX) {
        return cni_fail(e, CNI_INVALID_ENVIRONMENT, BAD_ENV,
                        "CNI_NETNS: \"%.200s\" is not an absolute path", s);
    }
    for (const char *p = s; *p; p++) {
        if ((unsigned char) *p < ' ' || *p == 127) {
            return cni_fail(e, CNI_INVALID_ENVIRONMENT, BAD_ENV,
                            "CNI_NETNS: the path holds a control character");
        }
    }
    return 0;
}

/* Names of projects and pods, as Kubernetes allows them: they go into logs and OVS's database. */
static bool is_name(const char *s)
{
    size_t n = strlen(s);
    bool ok = n > 0 && n <= MAX_NAME && is_alnum(s[0]) && is_alnum(s[n - 1]);
    for (const char *p = s; ok && *p; p++) {
        ok = (*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9') || *p == '-' || *p == '.';
    }
    return ok;
}

static int check_pod(const char *key, const char *s, enum cni_command command, struct cni_error *e)
{
    if (!s || !*s) {
        return command == CNI_DEL ? 0
                                  : cni_fail(e, CNI_INVALID_ENVIRONMENT, BAD_ENV,
                                             "CNI_ARGS: %s is missing, and %s needs it", key,
                                             command_names[command]);
    }
    return is_name(s)
               ? 0
               : cni_fail(e, CNI_INVALID_ENVIRONMENT, BAD_ENV,
                          "CNI_ARGS: %s: \"%.253s\" is not a name (lower-case letters, digits, '-' "
                          "and '.')",
                          key, s);
}

/* Two values for one key are ambiguous: the agent could use another one than the runtime. */
static int check_repeated(struct smap *seen, const char *key, struct cni_error *e)
{
    static char mark;
    if (smap_get(seen, key)) {
        return cni_fail(e, CNI_INVALID_ENVIRONMENT, BAD_ENV, "CNI_ARGS: \"%.100s\" is given twice",
                        key);
    }
    smap_set(seen, key, &mark);
    return 0;
}

static int parse_each_arg(const char *args, struct smap *seen, struct cni_request *r,
                          struct cni_error *e)
{
    bool ignore_unknown = false;
    CLEANUP_FREE char *unknown = NULL;
    for (const char *p = args; p && *p;) {
        size_t n = strcspn(p, ";");
        const char *eq = memchr(p, '=', n);
        if (!eq || eq == p) {
            return cni_fail(e, CNI_INVALID_ENVIRONMENT, BAD_ENV,
                            "CNI_ARGS: \"%.*s\" is not KEY=VALUE", (int) MIN(n, 100), p);
        }
        CLEANUP_FREE char *key = xstrndup(p, (size_t) (eq - p));
        if (check_repeated(seen, key, e) < 0) {
            return -EINVAL;
        }
        char *value = xstrndup(eq + 1, n - (size_t) (eq + 1 - p));
        char **slot = streq(key, "K8S_POD_NAMESPACE") ? &r->pod_namespace
                      : streq(key, "K8S_POD_NAME")    ? &r->pod_name
                                                      : NULL;
        if (slot) {
            free(*slot);
            *slot = value;
        } else if (streq(key, "IgnoreUnknown")) {
            ignore_unknown = streq(value, "1") || strcasecmp(value, "true") == 0;
            free(value);
        } else {
            free(value);
            if (!unknown && !streq(key, "K8S_POD_INFRA_CONTAINER_ID") &&
                !streq(key, "K8S_POD_UID")) {
                unknown = TAKE(key);
            }
        }
        p += n + (p[n] == ';');
    }
    if (unknown && !ignore_unknown) {
        return cni_fail(e, CNI_INVALID_ENVIRONMENT, BAD_ENV,
                        "CNI_ARGS: unknown key \"%.100s\" (and IgnoreUnknown is not set)", unknown);
    }
    return 0;
}

static int parse_args(const char *args, struct cni_request *r, struct cni_error *e)
{
    struct smap seen;
    smap_init(&seen, NULL);
    int err = parse_each_arg(args, &seen, r, e);
    smap_done(&seen);
    return err;
}

/* ---- network configuration ---- */

static int unsupported(struct cni_error *e, const char *key, const struct json *v)
{
    CLEANUP_FREE char *text = json_to_text(v);
    return cni_fail(e, CNI_UNSUPPORTED_FIELD, UNSUPPORTED, "%.100s: %.200s", key, text);
}

static int parse_version(const struct json *conf, enum cni_version *ret, struct cni_error *e)
{
    const struct json *v = json_get(conf, "cniVersion");
    if (v && !json_is(v, JSON_STRING)) {
        return cni_fail(e, CNI_INVALID_CONFIG, BAD_CONFIG, "cniVersion: is not a string");
    }
    const char *s = json_get_string(v);
    for (size_t i = 0; s && i < CNI_N_VERSIONS; i++) {
        if (streq(s, cni_versions[i])) {
            *ret = (enum cni_version) i;
            return 0;
        }
    }
    return cni_fail(e, CNI_INCOMPATIBLE_VERSION, "incompatible CNI version",
                    "cniVersion: \"%.40s\" is not supported; 0.3.1, 0.4.0, 1.0.0 and 1.1.0 are",
                    s ? s : "");
}

static int parse_runtime(const struct json *v, struct cni_runtime *ret, struct cni_error *e)
{
    struct err why = {0};
    int r = v ? cni_runtime_parse(v, ret, &why) : 0;
    if (r == -ENOTSUP) {
        return cni_fail(e, CNI_UNSUPPORTED_FIELD, UNSUPPORTED, "runtimeConfig.%s", why.text);
    }
    return r < 0 ? cni_fail(e, CNI_INVALID_CONFIG, BAD_CONFIG, "runtimeConfig%s%s",
                            json_is(v, JSON_OBJECT) ? "." : ": ", why.text)
                 : 0;
}

static int parse_chained(const struct json *list, struct cni_config *c, struct cni_error *e)
{
    const struct json *item;
    JSON_FOREACH (item, list) {
        const char *s = json_get_string(item);
        if (s && streq(s, "portmap")) {
            c->chained_portmap = true;
        } else if (s && streq(s, "bandwidth")) {
            c->chained_bandwidth = true;
        } else {
            return cni_fail(e, CNI_INVALID_CONFIG, BAD_CONFIG,
                            "chained: \"%.100s\" is neither portmap nor bandwidth", s ? s : "");
        }
    }
    return 0;
}

static int check_fields(const struct json *conf, struct cni_error *e)
{
    static const struct {
        const char *key;
        enum json_type type;
    } known[] = {
        {"cniVersion", JSON_STRING},    {"name", JSON_STRING},         {"type", JSON_STRING},
        {"cniVersions", JSON_ARRAY},    {"disableCheck", JSON_BOOL},   {"disableGC", JSON_BOOL},
        {"socket", JSON_STRING},        {"dns", JSON_OBJECT},          {"args", JSON_OBJECT},
        {"project", JSON_STRING},       {"capabilities", JSON_OBJECT}, {"prevResult", JSON_OBJECT},
        {"runtimeConfig", JSON_OBJECT}, {"chained", JSON_ARRAY},
    };
    for (size_t i = 0; i < json_count(conf); i++) {
        const char *key = json_key_at(conf, i);
        const struct json *v = json_at(conf, i);
        size_t k = 0;
        while (k < ARRAY_SIZE(known) && !streq(known[k].key, key)) {
            k++;
        }
        if (k < ARRAY_SIZE(known)) {
            static const char *const articles[] = {[JSON_STRING] = "a string",
                                                   [JSON_OBJECT] = "an object",
                                                   [JSON_ARRAY] = "a list",
                                                   [JSON_BOOL] = "true or false"};
            if (!json_is(v, known[k].type)) {
                return cni_fail(e, CNI_INVALID_CONFIG, BAD_CONFIG, "%s: is not %s", key,
                                articles[known[k].type]);
            }
        } else if (streq(key, "ipam") && json_is(v, JSON_OBJECT) && json_count(v) == 0) {
            continue;                   /* Some tools write "ipam": {} for none. */
        } else if (!strchr(key, '/')) { /* "cni.dev/..." keys belong to the runtime. */
            return unsupported(e, key, v);
        }
    }
    return 0;
}

static int check_dns(const struct json *dns, struct cni_error *e)
{
    for (size_t i = 0; i < json_count(dns); i++) {
        const char *key = json_key_at(dns, i);
        const struct json *v = json_at(dns, i);
        if (streq(key, "domain")) {
            if (!json_is(v, JSON_STRING)) {
                return cni_fail(e, CNI_INVALID_CONFIG, BAD_CONFIG, "dns.domain: is not a string");
            }
            continue;
        }
        if (!streq(key, "nameservers") && !streq(key, "search") && !streq(key, "options")) {
            return cni_fail(e, CNI_INVALID_CONFIG, BAD_CONFIG, "dns.%.100s: no such field", key);
        }
        bool ok = json_is(v, JSON_ARRAY);
        for (size_t k = 0; ok && k < json_count(v); k++) {
            ok = json_is(json_at(v, k), JSON_STRING);
        }
        if (!ok) {
            return cni_fail(e, CNI_INVALID_CONFIG, BAD_CONFIG, "dns.%s: is not a list of strings",
                            key);
        }
    }
    return 0;
}

static int check_socket(const char *s, struct cni_error *e)
{
    if (*s != '/') {
        return cni_fail(e, CNI_INVALID_CONFIG, BAD_CONFIG,
                        "socket: \"%.100s\" is not an absolute path", s);
    }
    if (strlen(s) >= sizeof(((struct sockaddr_un *) 0)->sun_path)) {
        return cni_fail(e, CNI_INVALID_CONFIG, BAD_CONFIG,
                        "socket: a path of %zu characters is too long for a unix socket",
                        strlen(s));
    }
    return 0;
}

/* A malformed list must not count as an empty one: all pods would be removed. */
static int check_valid(const struct json *list, struct cni_error *e)
{
    if (!json_is(list, JSON_ARRAY)) {
        return cni_fail(e, CNI_INVALID_CONFIG, BAD_CONFIG, VALID ": %s, and GC needs it",
                        list ? "is not a list" : "is missing");
    }
    const struct json *item;
    size_t i = 0;
    JSON_FOREACH (item, list) {
        const char *id = json_path_string(item, "containerID", NULL);
        const char *ifname = json_path_string(item, "ifname", NULL);
        if (!id || !*id || !ifname || !*ifname) {
            return cni_fail(e, CNI_INVALID_CONFIG, BAD_CONFIG,
                            VALID "[%zu].%s: is missing, or not a string", i,
                            id && *id ? "ifname" : "containerID");
        }
        i++;
    }
    return 0;
}

bool cni_is_valid_attachment(const struct json *valid, const char *container_id, const char *ifname)
{
    const struct json *item;
    JSON_FOREACH (item, valid) {
        const char *id = json_path_string(item, "containerID", NULL);
        const char *name = json_path_string(item, "ifname", NULL);
        if (id && name && streq(id, container_id) && streq(name, ifname)) {
            return true;
        }
    }
    return false;
}

/* Moves the parts that it keeps out of 'conf'. */
static int parse_config(struct json *conf, enum cni_command command, struct cni_config *c,
                        struct cni_error *e)
{
    if (!json_is(conf, JSON_OBJECT)) {
        return cni_fail(e, CNI_INVALID_CONFIG, BAD_CONFIG, "it is not a JSON object");
    }
    int r = parse_version(conf, &c->version, e);
    if (r < 0) {
        return r;
    }
    e->version = c->version;
    if (command == CNI_CHECK && c->version < CNI_0_4_0) {
        return cni_fail(e, CNI_INCOMPATIBLE_VERSION, "incompatible CNI version",
                        "cniVersion: %s has no CHECK; 0.4.0 and later have",
                        cni_versions[c->version]);
    }
    if ((command == CNI_GC || command == CNI_STATUS) && c->version < CNI_1_1_0) {
        return cni_fail(e, CNI_INCOMPATIBLE_VERSION, "incompatible CNI version",
                        "cniVersion: %s has no %s; 1.1.0 has", cni_versions[c->version],
                        command_names[command]);
    }
    r = check_fields(conf, e);
    if (r < 0) {
        return r;
    }
    const char *name = json_path_string(conf, "name", NULL);
    if (!name || !*name) {
        return cni_fail(e, CNI_INVALID_CONFIG, BAD_CONFIG, "name: is missing");
    }
    if (strlen(name) > MAX_NAME || !is_cni_name(name)) {
        return cni_fail(e, CNI_INVALID_CONFIG, BAD_CONFIG,
                        "name: \"%.253s\" must begin with a letter or digit and hold only letters, "
                        "digits, '_', '.' and '-'",
                        name);
    }
    const char *type = json_path_string(conf, "type", NULL);
    if (!type || !*type) {
        return cni_fail(e, CNI_INVALID_CONFIG, BAD_CONFIG, "type: is missing");
    }
    const char *socket = json_path_string(conf, "socket", NULL);
    socket = socket ? socket : CNI_DEFAULT_SOCKET;
    const char *project = json_path_string(conf, "project", NULL);
    if (project && !is_name(project)) {
        return cni_fail(
            e, CNI_INVALID_CONFIG, BAD_CONFIG,
            "project: \"%.253s\" is not a name (lower-case letters, digits, '-' and '.')", project);
    }
    r = check_socket(socket, e);
    if (r == 0) {
        r = check_dns(json_get(conf, "dns"), e);
    }
    if (r == 0) {
        r = parse_chained(json_get(conf, "chained"), c, e);
    }
    if (r < 0) {
        return r;
    }
    if (command == CNI_GC && (r = check_valid(json_get(conf, VALID), e)) < 0) {
        return r;
    }
    const struct json *prev = json_get(conf, "prevResult");
    if (command == CNI_CHECK && !prev) {
        return cni_fail(e, CNI_INVALID_CONFIG, BAD_CONFIG,
                        "prevResult: is missing, and CHECK needs it");
    }
    if (command == CNI_ADD && prev) {
        return cni_fail(e, CNI_INVALID_CONFIG, BAD_CONFIG,
                        "prevResult: must not be there on ADD: tenet-cni makes the interface and "
                        "is the first of a chain");
    }
    /* A DEL with invalid ports or limits, which it does not need, must still succeed. */
    if (command == CNI_ADD &&
        (r = parse_runtime(json_get(conf, "runtimeConfig"), &c->runtime, e)) < 0) {
        return r;
    }
    c->name = xstrdup(name);
    c->socket = xstrdup(socket);
    c->project = project ? xstrdup(project) : NULL;
    c->runtime.by_engine = project != NULL;
    c->dns = json_take(conf, "dns");
    c->prev_result = json_take(conf, "prevResult");
    c->valid = json_take(conf, VALID);
    return 0;
}

/* ---- requests ---- */

/* 'r' has the strings; 'conf' is the configuration. */
static int validate(struct cni_request *r, struct json *conf, struct cni_error *e)
{
    int err = parse_config(conf, r->command, &r->config, e);
    if (err == 0 && !is_of_container(r->command)) {
        free(r->container_id);
        free(r->ifname);
        r->container_id = xstrdup("");
        r->ifname = xstrdup("");
        return 0;
    }
    if (err == 0) {
        err = check_container_id(r->container_id, e);
    }
    if (err == 0) {
        err = check_ifname(r->ifname, e);
    }
    if (err == 0) {
        err = check_netns(r->netns, r->command, e);
    }
    if (err == 0 && r->config.project && (!r->pod_namespace || !*r->pod_namespace)) {
        free(r->pod_namespace);
        r->pod_namespace = xstrdup(r->config.project);
        if (!r->pod_name || !is_name(r->pod_name)) { /* Container names of podman contain '_'. */
            free(r->pod_name);
            r->pod_name = xstrdup(r->container_id);
        }
    }
    if (err == 0) {
        err = check_pod("K8S_POD_NAMESPACE", r->pod_namespace, r->command, e);
    }
    if (err == 0) {
        err = check_pod("K8S_POD_NAME", r->pod_name, r->command, e);
    }
    return err;
}

static char *dup_or_null(const char *s)
{
    return s && *s ? xstrdup(s) : NULL;
}

int cni_request_read(const struct cni_env *env, const char *config, size_t size,
                     struct cni_request *ret, struct cni_error *e)
{
    CLEANUP(cni_request_done) struct cni_request r = {0};
    int err = cni_command_parse(env->command, &r.command, e);
    if (err < 0) {
        return err;
    }
    CLEANUP(json_free) struct json *conf = NULL;
    struct err je = {0};
    if (json_parse(config, size, &conf, &je) < 0) {
        return cni_fail(e, CNI_DECODE_FAILURE, "cannot read the network configuration",
                        "standard input: %s", je.text);
    }
    r.container_id = dup_or_null(env->container_id);
    r.ifname = dup_or_null(env->ifname);
    r.netns = dup_or_null(env->netns);
    /* The configuration's version first: errors are written in it. */
    struct cni_error args_error = *e;
    int args_err = parse_args(env->args, &r, &args_error);
    err = validate(&r, conf, e);
    if (args_err < 0 && (err == 0 || e->code == CNI_INVALID_ENVIRONMENT)) {
        args_error.version = e->version;
        *e = args_error;
        err = args_err;
    }
    if (err == 0) {
        *ret = r;
        r = (struct cni_request){0};
    }
    return err;
}

int cni_version_answer(const char *config, size_t size, struct strbuf *out, struct cni_error *e)
{
    e->version = CNI_1_1_0;
    CLEANUP(json_free) struct json *conf = NULL;
    struct err je = {0};
    if (size > 0 && json_parse(config, size, &conf, &je) < 0) {
        return cni_fail(e, CNI_DECODE_FAILURE, "cannot read the network configuration",
                        "standard input: %s", je.text);
    }
    const struct json *v = json_get(conf, "cniVersion");
    if (size > 0 && (!json_is(conf, JSON_OBJECT) || (v && !json_is(v, JSON_STRING)))) {
        return cni_fail(e, CNI_INVALID_CONFIG, BAD_CONFIG, "%s",
                        v ? "cniVersion: is not a string" : "it is not a JSON object");
    }
    /* The answer is in the requested version, even an unsupported one: VERSION exists for that. */
    const char *version = v ? json_get_string(v) : cni_versions[CNI_N_VERSIONS - 1];
    strbuf_adds(out, "{\"cniVersion\":");
    json_write_string(version, strlen(version), out);
    strbuf_adds(out, ",\"supportedVersions\":[");
    for (size_t i = 0; i < CNI_N_VERSIONS; i++) {
        strbuf_addf(out, "%s\"%s\"", i ? "," : "", cni_versions[i]);
    }
    strbuf_adds(out, "]}");
    return 0;
}

void cni_request_write(const struct cni_request *r, struct strbuf *out)
{
    CLEANUP(json_free) struct json *v = json_object();
    json_set_string(v, "command", command_names[r->command]);
    json_set_string(v, "containerID", r->container_id);
    json_set_string(v, "ifname", r->ifname);
    json_set_string(v, "netns", r->netns);
    json_set_string(v, "podNamespace", r->pod_namespace);
    json_set_string(v, "podName", r->pod_name);
    struct json *conf = json_ensure_object(v, "config");
    json_set_string(conf, "cniVersion", cni_versions[r->config.version]);
    json_set_string(conf, "name", r->config.name);
    json_set_string(conf, "type", "tenet-cni");
    json_set_string(conf, "socket", r->config.socket);
    if (r->config.project) {
        json_set_string(conf, "project", r->config.project);
    }
    if (r->config.dns) {
        json_set(conf, "dns", json_clone(r->config.dns));
    }
    if (r->config.prev_result && r->command == CNI_CHECK) {
        json_set(conf, "prevResult", json_clone(r->config.prev_result));
    }
    struct json *runtime = cni_runtime_to_json(&r->config.runtime);
    if (runtime) {
        json_set(conf, "runtimeConfig", runtime);
    }
    struct json *chained = json_array();
    if (r->config.chained_portmap) {
        json_append(chained, json_string("portmap"));
    }
    if (r->config.chained_bandwidth) {
        json_append(chained, json_string("bandwidth"));
    }
    json_set(conf, "chained", chained);
    if (r->config.valid) {
        json_set(conf, VALID, json_clone(r->config.valid));
    }
    json_write(v, 0, out);
}

static char *take_string(const struct json *v, const char *key)
{
    return dup_or_null(json_path_string(v, key, NULL));
}

int cni_request_parse(const char *line, size_t size, struct cni_request *ret, struct cni_error *e)
{
    CLEANUP(cni_request_done) struct cni_request r = {0};
    CLEANUP(json_free) struct json *v = NULL;
    struct err je = {0};
    e->version = CNI_1_1_0;
    if (json_parse(line, size, &v, &je) < 0) {
        return cni_fail(e, CNI_DECODE_FAILURE, "cannot read the request", "request: %s", je.text);
    }
    int err = cni_command_parse(json_path_string(v, "command", NULL), &r.command, e);
    if (err < 0) {
        return err;
    }
    if (r.command == CNI_VERSION) {
        return cni_fail(e, CNI_INVALID_ENVIRONMENT, BAD_ENV,
                        "CNI_COMMAND: VERSION is answered by the plug-in");
    }
    r.container_id = take_string(v, "containerID");
    r.ifname = take_string(v, "ifname");
    r.netns = take_string(v, "netns");
    r.pod_namespace = take_string(v, "podNamespace");
    r.pod_name = take_string(v, "podName");
    err = validate(&r, json_get(v, "config"), e);
    if (err == 0) {
        *ret = r;
        r = (struct cni_request){0};
    }
    return err;
}

/* ---- results ---- */

static void add_field(struct strbuf *out, const char *key, const char *value)
{
    strbuf_addf(out, ",\"%s\":", key);
    json_write_string(value, strlen(value), out);
}

void cni_result_write(const struct cni_result *r, enum cni_version v, struct strbuf *out)
{
    strbuf_addf(out, "{\"cniVersion\":\"%s\",\"interfaces\":[{\"name\":", cni_versions[v]);
    json_write_string(r->host_if, strlen(r->host_if), out);
    if (r->host_mac) {
        add_field(out, "mac", MAC_TEXT(*r->host_mac));
    }
    strbuf_addf(out, "},{\"mac\":\"%s\"", MAC_TEXT(r->mac));
    add_field(out, "name", r->ifname);
    add_field(out, "sandbox", r->netns);
    if (v >= CNI_1_1_0) {
        strbuf_addf(out, ",\"mtu\":%u", r->mtu);
    }
    strbuf_addf(out,
                "}],\"ips\":[{%s\"address\":\"%s\",\"gateway\":\"%s\",\"interface\":1}],"
                "\"routes\":[{\"dst\":\"0.0.0.0/0\",\"gw\":\"%s\"}],\"dns\":",
                v < CNI_1_0_0 ? "\"version\":\"4\"," : "", PREFIX_TEXT(r->address),
                IP4_TEXT(r->gateway), IP4_TEXT(r->gateway));
    if (r->dns) {
        json_write(r->dns, 0, out);
    } else {
        strbuf_adds(out, "{}");
    }
    strbuf_addc(out, '}');
}

#define BAD_PREV "the previous result is not what is there"

int cni_result_check(const struct cni_result *r, const struct json *prev, struct cni_error *e)
{
    const struct json *interfaces = json_get(prev, "interfaces"), *ips = json_get(prev, "ips");
    if (!json_is(interfaces, JSON_ARRAY) || !json_is(ips, JSON_ARRAY)) {
        return cni_fail(e, CNI_INVALID_CONFIG, BAD_CONFIG, "prevResult.%s: is not a list",
                        json_is(interfaces, JSON_ARRAY) ? "ips" : "interfaces");
    }
    const struct json *found = NULL, *item;
    JSON_FOREACH (item, interfaces) {
        const char *sandbox = json_path_string(item, "sandbox", NULL);
        const char *name = json_path_string(item, "name", NULL);
        if (sandbox && *sandbox && name && streq(name, r->ifname)) {
            found = item;
        }
    }
    if (!found) {
        return cni_fail(e, CNI_CHECK_FAILED, BAD_PREV, "prevResult.interfaces: %s is not in it",
                        r->ifname);
    }
    const char *sandbox = json_path_string(found, "sandbox", NULL);
    const char *mac = json_path_string(found, "mac", NULL);
    if (!streq(sandbox, r->netns)) {
        return cni_fail(e, CNI_CHECK_FAILED, BAD_PREV,
                        "prevResult.interfaces: %s is in sandbox \"%.200s\", not in %.200s",
                        r->ifname, sandbox, r->netns);
    }
    struct mac m;
    if (mac && *mac && (mac_parse(mac, &m) < 0 || !mac_equal(m, r->mac))) {
        return cni_fail(e, CNI_CHECK_FAILED, BAD_PREV,
                        "prevResult.interfaces: %s has the MAC \"%.40s\", not %s", r->ifname, mac,
                        MAC_TEXT(r->mac));
    }
    JSON_FOREACH (item, ips) {
        struct ip4_prefix a;
        const char *s = json_path_string(item, "address", NULL);
        if (s && prefix_parse_host(s, &a, NULL) == 0 && prefix_equal(a, r->address)) {
            return 0;
        }
    }
    return cni_fail(e, CNI_CHECK_FAILED, BAD_PREV, "prevResult.ips: %s is not in it",
                    PREFIX_TEXT(r->address));
}
