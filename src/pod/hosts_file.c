/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/hosts_file.h"

#include "base/mem.h"

#define LABEL_MAX 63

static bool uses_node_network(const struct json *pod)
{
    return json_get_bool(json_path(pod, "spec", "hostNetwork", NULL), false);
}

/* The pod's short name (owned). */
static char *short_name(const struct json *pod)
{
    const char *own = json_get_text(json_get(pod, "spec"), "hostname");
    const char *name = *own ? own : json_get_text(json_get(pod, "metadata"), "name");
    size_t n = MIN(strlen(name), (size_t) LABEL_MAX);
    bool is_cut = name[n] != '\0';
    while (is_cut && n && (name[n - 1] == '-' || name[n - 1] == '.')) {
        n--;
    }
    return xstrndup(name, n);
}

/* The pod's name in DNS (owned); NULL: it has no subdomain. */
static char *full_name(const struct json *pod, const char *cluster_domain)
{
    const char *sub = json_get_text(json_get(pod, "spec"), "subdomain");
    CLEANUP_FREE char *host = short_name(pod);
    return *sub ? xasprintf("%s.%s.%s.svc.%s", host, sub,
                            json_get_text(json_get(pod, "metadata"), "namespace"), cluster_domain)
                : NULL;
}

bool pod_has_hosts_file(const struct json *container)
{
    const struct json *m;
    JSON_FOREACH (m, json_get(container, "volumeMounts")) {
        if (streq(json_get_text(m, "mountPath"), "/etc/hosts")) {
            return false;
        }
    }
    return true;
}

/* Whether the text can be one word of a line. */
static bool is_word(const char *s)
{
    return *s && !s[strcspn(s, " \t\r\n\v\f#")];
}

static void add_aliases(const struct json *aliases, struct strbuf *out)
{
    const struct json *a, *name;
    if (json_count(aliases)) {
        strbuf_adds(out, "\n# Entries added by HostAliases.\n");
    }
    JSON_FOREACH (a, aliases) {
        const char *ip = json_get_text(a, "ip");
        if (!is_word(ip)) {
            continue;
        }
        strbuf_adds(out, ip);
        JSON_FOREACH (name, json_get(a, "hostnames")) {
            const char *s = json_get_string(name);
            if (s && is_word(s)) {
                strbuf_addf(out, "\t%s", s);
            }
        }
        strbuf_addc(out, '\n');
    }
}

char *pod_hosts_file(const struct json *pod, struct runtime_texts pod_ips,
                     const char *cluster_domain, const char *node_hosts)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    CLEANUP_FREE char *host = short_name(pod);
    CLEANUP_FREE char *fqdn = full_name(pod, cluster_domain);
    if (uses_node_network(pod)) {
        strbuf_addf(&out, "# Kubernetes-managed hosts file (host network).\n%s",
                    node_hosts ? node_hosts : "127.0.0.1\tlocalhost\n");
        if (out.data[out.size - 1] != '\n') {
            strbuf_addc(&out, '\n');
        }
    } else {
        strbuf_adds(&out, "# Kubernetes-managed hosts file.\n"
                          "127.0.0.1\tlocalhost\n"
                          "::1\tlocalhost ip6-localhost ip6-loopback\n"
                          "fe00::0\tip6-localnet\n"
                          "fe00::0\tip6-mcastprefix\n"
                          "fe00::1\tip6-allnodes\n"
                          "fe00::2\tip6-allrouters\n");
        for (size_t i = 0; i < pod_ips.n; i++) {
            strbuf_addf(&out, "%s\t%s%s%s\n", pod_ips.v[i], fqdn ? fqdn : "", fqdn ? "\t" : "",
                        host);
        }
    }
    add_aliases(json_path(pod, "spec", "hostAliases", NULL), &out);
    return strbuf_steal(&out);
}
