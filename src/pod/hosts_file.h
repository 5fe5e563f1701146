/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a pod's /etc/hosts, as a kubelet writes it (Kubernetes' pkg/kubelet/kubelet_pods.go).
 * Pure. */
#pragma once

#include "runtime/runtime_spec.h"
#include "wire/json.h"

/* Whether the kubelet makes /etc/hosts of a container: one that mounts a volume there has its own. */
bool pod_has_hosts_file(const struct json *container);
/* The text of /etc/hosts, with the pod's short name and, when it has a subdomain, its name
 * HOSTNAME.SUBDOMAIN.NAMESPACE.svc.DOMAIN.  'node_hosts' is the text of the node's file (NULL: none),
 * which a pod with the node's network gets instead of its own names.  Aliases follow; a text in them
 * that is not one word is left out.  The caller owns the result. */
char *pod_hosts_file(const struct json *pod, struct runtime_texts pod_ips,
                     const char *cluster_domain, const char *node_hosts);
