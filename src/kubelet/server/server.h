/* SPDX-License-Identifier: Apache-2.0 */
/* The kubelet's HTTPS server (port 10250): logs, exec, attach, port-forward, and what the node knows.
 *
 * A client has a certificate by the cluster's authority, or a token that the API server knows
 * (TokenReview).  The API server decides by SubjectAccessReview on nodes/proxy, stats, metrics, log,
 * healthz, pods or configz, with the verb of the method; answers are kept for a short time.  For the
 * last three nodes/proxy is enough, as in Kubernetes; docs/kubelet.md has the table.  One rule
 * is the node's own: processes in containers (exec, attach, run, portForward) are begun for the API
 * server alone, which has asked who wants it and what it is; with 'get' of nodes/proxy, which
 * monitoring has, one could otherwise be root in every container.
 *
 * What the server tells comes from 'struct kubelet_server_ops', which the agent implements; streams
 * are made by the runtime.  /healthz is also on 127.0.0.1 without TLS, if asked for.
 *
 * Everything runs on the loop's thread. */
#pragma once

#include "client/client.h"
#include "net/http/http.h"
#include "runtime/runtime.h"

/* The user and group of the API server's client certificate, as in OpenShift. */
#define KUBELET_MASTER_USER "system:openshift-node-admin"
#define KUBELET_MASTER_GROUP "system:node-admins"

/* A container of a pod, as the agent knows it.  Texts are borrowed for the call. */
struct kubelet_container {
    const char *id; /* The runtime's; NULL: it has none yet. */
    bool running;
    bool tty, stdin, stdin_once; /* Of its spec. */
    const char *log_path;        /* The file of its log: ".../ATTEMPT.log"; NULL: none. */
    const char
        *waiting; /* The reason why it does not run yet: "ContainerCreating"; NULL: it ran. */
};

/* The texts of /metrics, /metrics/resource, /metrics/cadvisor and /metrics/probes. */
enum kubelet_metrics {
    KUBELET_METRICS_OWN,
    KUBELET_METRICS_RESOURCE,
    KUBELET_METRICS_CADVISOR,
    KUBELET_METRICS_PROBES,
};

struct kubelet_server_ops {
    /* Finds a container of the pod; 'uid' NULL: whatever the pod's is; 'previous': the attempt before
     * the last.  Fills '*ret' only on success.  -ENOENT with the text for the client: there is no such
     * pod, container or attempt. */
    int (*find_container)(void *ctx, const char *namespace, const char *pod, const char *uid,
                          const char *container, bool previous, struct kubelet_container *ret,
                          struct err *e);
    /* The id of the pod's ready sandbox, borrowed.  -ENOENT with the text: there is none. */
    int (*find_sandbox)(void *ctx, const char *namespace, const char *pod, const char *uid,
                        const char **ret_id, struct err *e);
    /* A PodList of the pods of this node; owned by the caller. */
    struct json *(*pods)(void *ctx);
    /* The same of the pods of which the runtime has running containers. */
    struct json *(*running_pods)(void *ctx);
    /* The problem, borrowed; NULL: none. */
    const char *(*healthz)(void *ctx);
    /* Appends Prometheus' text. */
    void (*metrics)(void *ctx, enum kubelet_metrics which, struct strbuf *out);
    /* A Summary (/stats/summary); owned by the caller. */
    struct json *(*stats)(void *ctx, bool only_cpu_and_memory);
    /* The configuration (/configz); owned by the caller. */
    struct json *(*config)(void *ctx);
};

struct kubelet_server_config {
    const char *address;     /* "0.0.0.0:10250"; port 0: chosen by the kernel. */
    const char *healthz;     /* "127.0.0.1:10248"; NULL: no such listener. */
    const char *node;        /* The node's name. */
    const char *client_ca;   /* File of the cluster's authority; NULL: no client certificates. */
    const char *cert, *key;  /* Files of the serving certificate. */
    const char *log_dir;     /* "/var/log": what /logs/ shows; NULL: nothing. */
    bool always_allow;       /* Every authenticated client may do everything but run processes. */
    struct api_client *api;  /* For reviews; borrowed. */
    struct runtime *runtime; /* Borrowed. */
    /* The name in the certificate of the API server; NULL: KUBELET_MASTER_USER. */
    const char *master;
};

struct kubelet_server;
/* Serves at once.  Strings are copied, 'ops' is borrowed. */
int kubelet_server_new(struct loop *l, const struct kubelet_server_config *cfg,
                       const struct kubelet_server_ops *ops, void *ctx, struct kubelet_server **ret,
                       struct err *e);
/* The port of the HTTPS listener, for status.daemonEndpoints.kubeletEndpoint.Port. */
int kubelet_server_port(const struct kubelet_server *s);
/* Reads the certificate files again, for connections from now on. */
int kubelet_server_reload(struct kubelet_server *s, struct err *e);
/* Ends all streams and connections. */
struct kubelet_server *kubelet_server_free(struct kubelet_server *s);
DEFINE_CLEANUP(struct kubelet_server *, kubelet_server_free)
