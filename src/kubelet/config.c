/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/config.h"

#include "api/kind.h"
#include "api/quantity.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"
#include "kubelet/openshift_keys.h"
#include "net/loop/config_file.h"

#define DURATION_MIN_MS INT64_C(100)
#define DURATION_MAX_MS (24 * INT64_C(3600000))

static int check_node_name(const char *v, struct err *e)
{
    const char *why = api_check_dns_subdomain(v);
    return why ? err_set(e, -EINVAL, "\"%s\": %s", v, why) : 0;
}

static int check_address(const char *v, struct err *e)
{
    uint32_t ip;
    return ip4_parse(v, &ip) < 0 ? err_set(e, -EINVAL, "\"%s\" is not an IPv4 address", v) : 0;
}

static int check_endpoint(const char *v, struct err *e)
{
    return str_has_prefix(v, "unix:///") ? 0
                                         : err_set(e, -EINVAL,
                                                   "\"%s\" is not a unix socket such as "
                                                   "unix:///run/containerd/containerd.sock",
                                                   v);
}

static int check_absolute(const char *v, struct err *e)
{
    return *v == '/' ? 0 : err_set(e, -EINVAL, "\"%s\" is not an absolute path", v);
}

static int check_listen(const char *v, struct err *e)
{
    char host[OPTION_HOST_SIZE];
    uint64_t port;
    return streq(v, "none") || option_split_endpoint(v, host, &port) == 0
               ? 0
               : err_set(e, -EINVAL, "\"%s\" is neither ADDRESS:PORT nor none", v);
}

static int check_server(const char *v, struct err *e)
{
    return str_has_prefix(v, "https://") || str_has_prefix(v, "http://")
               ? 0
               : err_set(e, -EINVAL, "\"%s\" is not a URL such as https://10.0.0.1:8443", v);
}

static int check_quantity(const char *v, struct err *e)
{
    int64_t n;
    int r = api_quantity_value(v, 0, &n, e);
    return r < 0    ? err_prefix(e, "\"%s\"", v)
           : n <= 0 ? err_set(e, -EINVAL, "\"%s\" is not more than 0", v)
                    : 0;
}

static int check_reserved(const char *v, struct err *e)
{
    const char *eq = strchr(v, '=');
    int64_t n;
    if (!eq) {
        return err_set(e, -EINVAL, "\"%s\" is not NAME=QUANTITY", v);
    }
    return api_quantity_value(eq + 1, 0, &n, e);
}

static int check_threshold(const char *v, struct err *e)
{
    return evict_read_threshold(v, NULL, e);
}

static int check_reclaim(const char *v, struct err *e)
{
    return evict_read_reclaim(v, NULL, e);
}

static int check_grace(const char *v, struct err *e)
{
    return evict_read_grace(v, NULL, e);
}

static int check_duration(const char *v, struct err *e)
{
    int64_t ns;
    return time_parse_duration(v, &ns) < 0 || ns < 0
               ? err_set(e, -EINVAL, "\"%s\" is not a duration such as 5m or 1m30s", v)
               : 0;
}

int kubelet_config_duration(const char *text, uint64_t *ret_ms, struct err *e)
{
    uint64_t s;
    int64_t ns = 0;
    if (str_to_u64(text, DURATION_MAX_MS / 1000, &s) == 0) {
        ns = (int64_t) s * 1000000000;
    } else if (time_parse_duration(text, &ns) < 0) {
        ns = 0;
    }
    if (ns < DURATION_MIN_MS * 1000000 || ns > DURATION_MAX_MS * 1000000) {
        return err_set(e, -EINVAL, "\"%.40s\" is not a time such as 20s, of 100ms to 24h", text);
    }
    *ret_ms = (uint64_t) (ns / 1000000);
    return 0;
}

static int check_interval(const char *v, struct err *e)
{
    uint64_t ms;
    return kubelet_config_duration(v, &ms, e);
}

/* fileCheckIntervalSeconds of OpenShift's node-config.yaml, where 0 stands for the default. */
static int set_file_check_seconds(void *config, const char *v, struct err *e)
{
    struct kubelet_config *c = config;
    uint64_t ms;
    if (streq(v, "0")) {
        return 0;
    }
    int r = kubelet_config_duration(v, &ms, e);
    if (r == 0) {
        free(c->file_check);
        c->file_check = xstrdup(v);
    }
    return r;
}

/* Adds one header, so that the flag can be repeated: values have commas. */
static int set_header(void *config, const char *v, struct err *e)
{
    struct kubelet_config *c = config;
    const char *colon = strchr(v, ':');
    size_t n = 0;
    if (!colon || colon == v || strpbrk(v, "\r\n")) {
        return err_set(e, -EINVAL, "a header is not NAME: VALUE"); /* It may be a secret. */
    }
    while (c->manifest_headers && c->manifest_headers[n]) {
        n++;
    }
    c->manifest_headers = xreallocarray(c->manifest_headers, n + 2, sizeof *c->manifest_headers);
    c->manifest_headers[n] = xstrdup(v);
    c->manifest_headers[n + 1] = NULL;
    return 0;
}

static int read_headers(void *config, const struct json *v, struct err *e)
{
    if (!json_is(v, JSON_ARRAY)) {
        return err_set(e, -EINVAL, "must be a list of headers such as \"Accept: text/yaml\"");
    }
    for (size_t i = 0; i < json_count(v); i++) {
        const char *text = json_get_string(json_at(v, i));
        int r = text ? set_header(config, text, e) : err_set(e, -EINVAL, "must be a string");
        if (r < 0) {
            return err_prefix(e, "[%zu]", i);
        }
    }
    return 0;
}

static int set_arguments(void *config, const char *v, struct err *e)
{
    return err_set(e, -EINVAL, "must be an object: {\"max-pods\": [\"40\"]}");
}

#define MEMBER(name) OPTION_MEMBER(struct kubelet_config, name)

static const struct option_row rows[] = {
    {.path = "nodeName",
     .flag = "node-name",
     .arg = "NAME",
     .type = OPTION_TEXT,
     MEMBER(node_name),
     .check = check_node_name,
     .unset = "the host's name",
     .example = "node1",
     .help = "name of this host's Node"},
    {.path = "nodeIP",
     .flag = "node-ip",
     .arg = "ADDRESS",
     .type = OPTION_TEXT,
     MEMBER(node_ip),
     .check = check_address,
     .unset = "the address of the link that has the default route",
     .example = "192.0.2.11",
     .help = "address of this host, which its Node shows"},
    {.path = "masterKubeConfig",
     .flag = "master-kubeconfig",
     .arg = "FILE",
     .type = OPTION_FILE,
     MEMBER(kubeconfig),
     .unset = "$KUBECONFIG, then ~/.kube/config",
     .example = "/etc/tenet/node.kubeconfig",
     .shown = true,
     .help = "kubeconfig of the master, with the node's own certificate"},
    {.path = "masterServers",
     .flag = "master-servers",
     .arg = "URL,...",
     .type = OPTION_LIST,
     .items = "URLs",
     MEMBER(servers),
     .check = check_server,
     .unset = "none",
     .example = "https://192.0.2.2:8443",
     .help = "more masters of the cluster, used when the one of the kubeconfig does not answer"},
    {.path = "runtime",
     .flag = "runtime",
     .arg = "KIND",
     .type = OPTION_CHOICE,
     .choices = "cri",
     MEMBER(runtime_kind),
     .dflt = "cri",
     .help = "kind of the container runtime"},
    {.path = "containerRuntimeEndpoint",
     .flag = "container-runtime-endpoint",
     .arg = "URL",
     .type = OPTION_TEXT,
     MEMBER(runtime_endpoint),
     .check = check_endpoint,
     .dflt = "unix:///run/containerd/containerd.sock",
     .help = "socket of the container runtime (CRI v1): containerd 1.6 or later, or CRI-O"},
    {.path = "rootDir",
     .flag = "root-dir",
     .arg = "DIR",
     .type = OPTION_FILE,
     MEMBER(root_dir),
     .check = check_absolute,
     .dflt = ROOT_DIR_DEFAULT,
     .help = "directory of the pods' volumes and files"},
    {.path = "podLogsDir",
     .flag = "pod-logs-dir",
     .arg = "DIR",
     .type = OPTION_FILE,
     MEMBER(log_dir),
     .check = check_absolute,
     .dflt = "/var/log/pods",
     .help = "directory of the containers' logs"},
    {.path = "serverAddress",
     .flag = "server-address",
     .arg = "ADDRESS:PORT",
     .type = OPTION_TEXT,
     MEMBER(server_address),
     .check = check_listen,
     .dflt = "0.0.0.0:10250",
     .help =
         "address of the kubelet's HTTPS server, which logs, exec, attach and port-forward need; "
         "`none`: no server"},
    {.path = "healthzAddress",
     .flag = "healthz-address",
     .arg = "ADDRESS:PORT",
     .type = OPTION_TEXT,
     MEMBER(healthz_address),
     .check = check_listen,
     .dflt = "127.0.0.1:10248",
     .help = "address of /healthz in plain HTTP; `none`: there is none"},
    {.path = "tlsCertFile",
     .flag = "tls-cert-file",
     .arg = "FILE",
     .type = OPTION_FILE,
     MEMBER(tls_cert),
     .unset = "the cluster is asked for a certificate",
     .example = "/etc/tenet/kubelet.crt",
     .help = "certificate of the kubelet's server"},
    {.path = "tlsPrivateKeyFile",
     .flag = "tls-private-key-file",
     .arg = "FILE",
     .type = OPTION_FILE,
     MEMBER(tls_key),
     .unset = "its own, beside the certificate from the cluster",
     .example = "/etc/tenet/kubelet.key",
     .help = "key of that certificate"},
    {.path = "clusterDNS",
     .flag = "cluster-dns",
     .arg = "ADDRESS,...",
     .type = OPTION_LIST,
     .items = "addresses",
     MEMBER(cluster_dns),
     .check = check_address,
     .unset = "pods get the servers of `resolvConf`",
     .example = "10.128.0.1",
     .help = "name servers of pods whose dnsPolicy is ClusterFirst"},
    {.path = "clusterDomain",
     .flag = "cluster-domain",
     .arg = "DOMAIN",
     .type = OPTION_TEXT,
     MEMBER(cluster_domain),
     .check = check_node_name,
     .dflt = "cluster.local",
     .help = "domain of the cluster's names"},
    {.path = "resolvConf",
     .flag = "resolv-conf",
     .arg = "FILE",
     .type = OPTION_FILE,
     MEMBER(resolv_conf),
     .dflt = "/etc/resolv.conf",
     .help = "name servers of pods whose dnsPolicy is Default"},
    {.path = "cgroupDriver",
     .flag = "cgroup-driver",
     .arg = "NAME",
     .type = OPTION_CHOICE,
     .choices = "cgroupfs systemd",
     MEMBER(cgroup_driver),
     .dflt = "cgroupfs",
     .help = "how control groups are made; the same as the runtime's"},
    {.path = "cgroupRoot",
     .flag = "cgroup-root",
     .arg = "PATH",
     .type = OPTION_TEXT,
     MEMBER(cgroup_root),
     .check = check_absolute,
     .dflt = "/",
     .help = "control group in which kubepods is",
     .detail = "Several nodes on one machine need one each."},
    {.path = "seccompDir",
     .flag = "seccomp-dir",
     .arg = "DIR",
     .type = OPTION_FILE,
     MEMBER(seccomp_dir),
     .check = check_absolute,
     .dflt = ROOT_DIR_DEFAULT "/seccomp",
     .help = "directory of seccomp profiles of the type Localhost"},
    {.path = "localVolumesMargin",
     .flag = "local-volumes-margin",
     .arg = "QUANTITY",
     .type = OPTION_TEXT,
     MEMBER(local_margin),
     .check = check_quantity,
     .dflt = "1Gi",
     .help = "what volumes of the class local leave free on the file system of rootDir"},
    {.path = "recyclePathPrefixes",
     .flag = "recycle-path-prefixes",
     .arg = "DIR,...",
     .type = OPTION_LIST,
     .items = "directories",
     MEMBER(recycle_prefixes),
     .check = check_absolute,
     .unset = "none: no hostPath volume is emptied",
     .example = "/srv/volumes",
     .help =
         "directories below which released hostPath volumes with the policy Recycle are emptied"},
    {.path = "allowedUnsafeSysctls",
     .flag = "allowed-unsafe-sysctls",
     .arg = "NAME,...",
     .type = OPTION_TEXTS,
     .items = "names",
     MEMBER(allowed_sysctls),
     .unset = "only safe ones",
     .example = "kernel.msg*",
     .help = "sysctls that pods may set beside the safe ones; `*` at the end stands for any rest"},
    {.path = "maxPods",
     .flag = "max-pods",
     .arg = "N",
     .type = OPTION_NUMBER,
     MEMBER(max_pods),
     .min = 1,
     .max = 10000,
     .dflt = "110",
     .help = "most pods of the node"},
    {.path = "maxParallelImagePulls",
     .flag = "max-parallel-image-pulls",
     .arg = "N",
     .type = OPTION_NUMBER,
     MEMBER(parallel_pulls),
     .min = 1,
     .max = 100,
     .dflt = "4",
     .help = "images that are pulled at once"},
    {.path = "containerLogMaxSize",
     .flag = "container-log-max-size",
     .arg = "QUANTITY",
     .type = OPTION_TEXT,
     MEMBER(log_max_size),
     .check = check_quantity,
     .dflt = "10Mi",
     .help = "size of a container's log at which it is rotated"},
    {.path = "containerLogMaxFiles",
     .flag = "container-log-max-files",
     .arg = "N",
     .type = OPTION_NUMBER,
     MEMBER(log_max_files),
     .min = 2,
     .max = 1000,
     .dflt = "5",
     .help = "files of a container's log that are kept"},
    {.path = "podPidsLimit",
     .flag = "pod-max-pids",
     .arg = "N",
     .type = OPTION_NUMBER,
     MEMBER(pod_pids_limit),
     .min = 0,
     .max = 4194304,
     .dflt = "0",
     .help = "most processes of a pod; 0: no limit"},
    {.path = "kubeReserved",
     .flag = "kube-reserved",
     .arg = "NAME=QUANTITY,...",
     .type = OPTION_LIST,
     .items = "amounts",
     MEMBER(kube_reserved),
     .check = check_reserved,
     .unset = "nothing",
     .example = "cpu=100m,memory=256Mi",
     .help = "resources of the node's own agents, which pods do not get"},
    {.path = "systemReserved",
     .flag = "system-reserved",
     .arg = "NAME=QUANTITY,...",
     .type = OPTION_LIST,
     .items = "amounts",
     MEMBER(system_reserved),
     .check = check_reserved,
     .unset = "nothing",
     .example = "cpu=100m,memory=256Mi",
     .help = "resources of the host's other processes, which pods do not get"},
    {.path = "evictionHard",
     .flag = "eviction-hard",
     .arg = "SIGNAL<AMOUNT,...",
     .type = OPTION_LIST,
     .items = "thresholds",
     MEMBER(eviction_hard),
     .check = check_threshold,
     .dflt = "memory.available<100Mi,nodefs.available<10%,nodefs.inodesFree<5%,"
             "imagefs.available<15%,imagefs.inodesFree<5%,pid.available<10%",
     .help = "what has to be left on the node, else pods are evicted at once",
     .detail = "An amount is a quantity or a share of the capacity."},
    {.path = "evictionSoft",
     .flag = "eviction-soft",
     .arg = "SIGNAL<AMOUNT,...",
     .type = OPTION_LIST,
     .items = "thresholds",
     MEMBER(eviction_soft),
     .check = check_threshold,
     .unset = "none",
     .example = "memory.available<300Mi",
     .help = "what has to be left on the node, else pods are evicted after a grace"},
    {.path = "evictionSoftGracePeriod",
     .flag = "eviction-soft-grace-period",
     .arg = "SIGNAL=DURATION,...",
     .type = OPTION_LIST,
     .items = "durations",
     MEMBER(eviction_soft_grace),
     .check = check_grace,
     .unset = "no grace",
     .example = "memory.available=1m30s",
     .help = "how long a soft threshold holds before a pod is evicted"},
    {.path = "evictionMinimumReclaim",
     .flag = "eviction-minimum-reclaim",
     .arg = "SIGNAL=AMOUNT,...",
     .type = OPTION_LIST,
     .items = "amounts",
     MEMBER(eviction_reclaim),
     .check = check_reclaim,
     .unset = "nothing",
     .example = "nodefs.available=500Mi",
     .help = "how far above its threshold eviction brings a signal"},
    {.path = "evictionPressureTransitionPeriod",
     .flag = "eviction-pressure-transition-period",
     .arg = "DURATION",
     .type = OPTION_TEXT,
     MEMBER(eviction_transition),
     .check = check_duration,
     .dflt = "5m",
     .help = "how long a condition of pressure stays after its cause"},
    {.path = "evictionMaxPodGracePeriod",
     .flag = "eviction-max-pod-grace-period",
     .arg = "SECONDS",
     .type = OPTION_NUMBER,
     MEMBER(eviction_max_grace_s),
     .min = 0,
     .max = 86400,
     .dflt = "0",
     .help = "longest grace of a pod that is evicted by a soft threshold"},
    {.path = "shutdownGracePeriod",
     .flag = "shutdown-grace-period",
     .arg = "DURATION",
     .type = OPTION_TEXT,
     MEMBER(shutdown_grace),
     .check = check_duration,
     .dflt = "0s",
     .help = "how long the host's shutdown waits at most for pods to end; 0s: not at all"},
    {.path = "shutdownGracePeriodCriticalPods",
     .flag = "shutdown-grace-period-critical-pods",
     .arg = "DURATION",
     .type = OPTION_TEXT,
     MEMBER(shutdown_grace_critical),
     .check = check_duration,
     .dflt = "0s",
     .help = "the part of shutdownGracePeriod in which critical pods end, after all others"},
    {.path = "imageGCHighThresholdPercent",
     .flag = "image-gc-high-threshold",
     .arg = "PERCENT",
     .type = OPTION_NUMBER,
     MEMBER(image_gc_high),
     .min = 0,
     .max = 100,
     .dflt = "85",
     .help = "use of the images' file system above which unused images are removed"},
    {.path = "imageGCLowThresholdPercent",
     .flag = "image-gc-low-threshold",
     .arg = "PERCENT",
     .type = OPTION_NUMBER,
     MEMBER(image_gc_low),
     .min = 0,
     .max = 100,
     .dflt = "80",
     .help = "use of that file system to which they are removed"},
    {.path = "imageMinimumGCAge",
     .flag = "minimum-image-ttl-duration",
     .arg = "DURATION",
     .type = OPTION_TEXT,
     MEMBER(image_min_age),
     .check = check_duration,
     .dflt = "2m",
     .help = "how long an unused image is kept at least"},
    {.path = "podInfraContainerImage",
     .flag = "pod-infra-container-image",
     .arg = "IMAGE",
     .type = OPTION_TEXT,
     MEMBER(pause_image),
     .unset = "images of the name pause, and those that the runtime pins",
     .example = "registry.k8s.io/pause:3.9",
     .help = "image of the sandboxes, which is never removed; the runtime is told its own way"},
    {.path = "registerNode",
     .flag = "register-node",
     .arg = "BOOL",
     .type = OPTION_BOOL,
     .choices = "true false",
     MEMBER(register_node),
     .dflt = "true",
     .help = "whether the kubelet creates its Node when there is none"},
    {.path = "nodeLease",
     .flag = "node-lease",
     .arg = "BOOL",
     .type = OPTION_BOOL,
     .choices = "true false",
     MEMBER(node_lease),
     .dflt = "true",
     .help = "whether the kubelet renews the node's lease, by which masters see that it lives"},
    {.path = "podManifestPath",
     .flag = "pod-manifest-path",
     .arg = "PATH",
     .type = OPTION_FILE,
     MEMBER(manifest_path),
     .unset = "none",
     .example = "/etc/tenet/manifests",
     .help = "file or directory with manifests of static pods",
     .detail = "Each file has one Pod in YAML or JSON; those whose names begin with a dot are left "
               "out."},
    {.path = "fileCheckFrequency",
     .flag = "file-check-frequency",
     .arg = "TIME",
     .type = OPTION_TEXT,
     MEMBER(file_check),
     .check = check_interval,
     .dflt = "20s",
     .help = "how often `podManifestPath` is read, also when no change of it is seen"},
    {.path = "podManifestURL",
     .flag = "manifest-url",
     .arg = "URL",
     .type = OPTION_TEXT,
     MEMBER(manifest_url),
     .check = check_server,
     .unset = "none",
     .example = "https://manifests.example.com/node1.yaml",
     .help = "address of a Pod or a List of Pods, which are run as static pods"},
    {.path = "podManifestURLHeader",
     .flag = "manifest-url-header",
     .arg = "NAME:VALUE",
     .type = OPTION_TEXTS,
     MEMBER(manifest_headers),
     .set = set_header,
     .read = read_headers,
     .unset = "none",
     .example = "Accept: application/yaml",
     .yaml = " [\"Accept: application/yaml\"]",
     .help = "header of the requests to `podManifestURL`; the flag may be repeated"},
    {.path = "httpCheckFrequency",
     .flag = "http-check-frequency",
     .arg = "TIME",
     .type = OPTION_TEXT,
     MEMBER(http_check),
     .check = check_interval,
     .dflt = "20s",
     .help = "how often `podManifestURL` is read"},
    {.path = "podManifestConfig.path",
     .type = OPTION_FILE,
     MEMBER(manifest_path),
     .unset = "none",
     .example = "/etc/tenet/manifests",
     .help = "the same as `podManifestPath`, as in OpenShift's node-config.yaml"},
    {.path = "podManifestConfig.fileCheckIntervalSeconds",
     .type = OPTION_NUMBER,
     .set = set_file_check_seconds,
     .unset = "`fileCheckFrequency`",
     .example = "20",
     .help = "the same as `fileCheckFrequency` in seconds"},
    {.path = "kubeletArguments",
     .type = OPTION_TEXTS,
     .set = set_arguments,
     .unset = "none",
     .example = "40",
     .yaml = " {max-pods: [\"40\"]}",
     .help = "flags of the kubelet with lists of their values, as in OpenShift's node-config.yaml",
     .detail = "A flag of Kubernetes' kubelet that this one does not have is warned of; another "
               "one is an error."},
    /* Flags of "openshift start node", for scripts that have them. */
    {.flag = "hostname",
     .arg = "NAME",
     .type = OPTION_TEXT,
     MEMBER(node_name),
     .check = check_node_name,
     .help = "OpenShift's flag: the same as --node-name"},
    {.flag = "volume-dir",
     .arg = "DIR",
     .type = OPTION_FILE,
     MEMBER(root_dir),
     .check = check_absolute,
     .help = "OpenShift's flag: the same as --root-dir"},
    {.path = "logFormat",
     .flag = "log-format",
     .arg = "FORMAT",
     .type = OPTION_CHOICE,
     .choices = "text json",
     MEMBER(log_format),
     .unset = "$TENET_LOG_FORMAT, or text",
     .example = "json",
     .help = "text, or json: an object a line, whose members docs/logs.md lists",
     .detail = "Read again at SIGHUP."},
    {.path = "logLevel",
     .flag = "log-level",
     .arg = "LEVEL",
     .type = OPTION_TEXT,
     MEMBER(log_level),
     .unset = "$TENET_LOG, else info",
     .example = "info,pods=debug",
     .help = "details of the log: error, warn, info or debug, also for a module"},
};

const struct option_table kubelet_options = {
    .kind = "KubeletConfiguration",
    .rows = rows,
    .n = ARRAY_SIZE(rows),
    .any_scalar = true,
    .other_kind = "NodeConfig",
    .alias = kubelet_alias,
    .idle = kubelet_idle,
    .arguments = "kubeletArguments",
    .findings = offsetof(struct kubelet_config, findings),
};

void kubelet_config_init(struct kubelet_config *c)
{
    *c = (struct kubelet_config){0};
    options_init(&kubelet_options, c);
}

void kubelet_config_done(struct kubelet_config *c)
{
    options_done(&kubelet_options, c);
}

static int read_document(void *config, const struct json *doc, const char *dir, struct err *e)
{
    return options_read(&kubelet_options, config, doc, dir, e);
}

int kubelet_config_load(struct kubelet_config *c, const char *path, struct err *e)
{
    return config_file_load(path, read_document, c, e);
}

int kubelet_config_finish(struct kubelet_config *c, struct err *e)
{
    if (!c->node_name) {
        char name[CONFIG_HOST_NAME_SIZE];
        config_file_host_name(name);
        int r = options_set_path(&kubelet_options, c, "nodeName", name, e);
        if (r < 0) {
            return err_prefix(e, "the host's name cannot be the node's");
        }
    }
    if (c->image_gc_low >= c->image_gc_high) {
        return err_set(
            e, -EINVAL,
            "imageGCLowThresholdPercent %u must be less than imageGCHighThresholdPercent "
            "%u",
            c->image_gc_low, c->image_gc_high);
    }
    int64_t all_ns = 0, critical_ns = 0;
    time_parse_duration(c->shutdown_grace, &all_ns);
    time_parse_duration(c->shutdown_grace_critical, &critical_ns);
    if (critical_ns > all_ns) {
        return err_set(
            e, -EINVAL,
            "shutdownGracePeriodCriticalPods %s is a part of shutdownGracePeriod, and must "
            "not be more than its %s",
            c->shutdown_grace_critical, c->shutdown_grace);
    }
    if (!c->tls_cert != !c->tls_key) {
        return err_set(e, -EINVAL, "tlsCertFile and tlsPrivateKeyFile: both or neither");
    }
    return 0;
}

int64_t kubelet_config_reserved(const char *list, const char *name)
{
    int64_t n = 0;
    size_t size = strlen(name);
    for (const char *p = list; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        if (strncmp(p, name, size) == 0 && p[size] == '=') {
            CLEANUP_FREE char *text = xstrndup(p + size + 1, strcspn(p + size + 1, ","));
            if (api_quantity_value(text, streq(name, "cpu") ? -3 : 0, &n, NULL) == 0) {
                return n;
            }
        }
    }
    return 0;
}

/* Reads each item of a list with commas into 'amounts'. */
static void read_amounts(const char *list,
                         int (*read)(const char *item, struct evict_amount *amounts, struct err *e),
                         struct evict_amount *amounts)
{
    for (const char *p = list; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        CLEANUP_FREE char *item = xstrndup(p, strcspn(p, ","));
        read(item, amounts, NULL);
    }
}

void kubelet_config_eviction(const struct kubelet_config *c, struct evict_settings *ret)
{
    const char *p = c->eviction_soft_grace;
    *ret = (struct evict_settings){.max_grace_s = c->eviction_max_grace_s};
    read_amounts(c->eviction_hard, evict_read_threshold, ret->hard);
    read_amounts(c->eviction_soft, evict_read_threshold, ret->soft);
    read_amounts(c->eviction_reclaim, evict_read_reclaim, ret->reclaim);
    for (; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        CLEANUP_FREE char *item = xstrndup(p, strcspn(p, ","));
        evict_read_grace(item, ret->soft_grace_ns, NULL);
    }
    time_parse_duration(c->eviction_transition, &ret->transition_ns);
}
