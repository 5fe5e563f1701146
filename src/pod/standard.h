/* SPDX-License-Identifier: Apache-2.0 */
/* The Pod Security Standards of Kubernetes: which settings a pod may have at the levels privileged,
 * baseline and restricted, in each version of the standards, and the labels by which a namespace
 * asks for a level.
 *
 * Checks, their order, versions and words are those of k8s.io/pod-security-admission as of
 * Kubernetes 1.32, so that its users find the messages that they know.  The admission plug-in
 * PodSecurity acts upon the results (apiserver/admission/admit_pod_security.c).
 *
 * A "pod" here is any object with metadata and spec of a pod: a Pod, or a PodTemplateSpec.  Pure;
 * the caller owns all trees and buffers. */
#pragma once

#include "api/kind.h"

#define POD_STANDARD_PREFIX "pod-security.kubernetes.io/"

enum pod_level { POD_PRIVILEGED, POD_BASELINE, POD_RESTRICTED }; /* In order of strictness. */

#define POD_STANDARD_LATEST UINT64_MAX

/* A level in one version of the standards. */
struct pod_standard {
    enum pod_level level;
    uint64_t minor; /* N of v1.N; POD_STANDARD_LATEST: the newest checks there are. */
};

/* The standards that a namespace asks for: 'enforce' refuses pods, 'audit' writes into the audit
 * log, 'warn' answers with warnings. */
struct pod_policy {
    struct pod_standard enforce, audit, warn;
};

/* -EINVAL: it is no level, and '*ret' is restricted. */
int pod_level_parse(const char *text, enum pod_level *ret);
/* "latest" or "v1.N".  -EINVAL: neither, and '*ret' is the latest version. */
int pod_version_parse(const char *text, uint64_t *ret);

/* Reads the labels of a namespace (NULL: it has none).  Each label with a wrong value adds a cause.
 * The policy is complete even then: a wrong level enforces restricted, but neither audits nor
 * warns; a wrong version is the latest one. */
void pod_policy_read(const struct json *labels, struct pod_policy *ret, struct api_causes *c);
bool pod_standard_same(const struct pod_standard *a, const struct pod_standard *b);
/* Whether enforcing, auditing and warning are all privileged. */
bool pod_policy_is_privileged(const struct pod_policy *p);
/* "restricted:latest", "baseline:v1.25"; owned. */
char *pod_standard_text(const struct pod_standard *s);

/* Returns the number of checks that the pod violates, and appends what they say: to 'reasons' their
 * short texts, to 'details' these texts with the fields and containers.  Either may be NULL. */
size_t pod_standard_check(const struct pod_standard *s, const struct json *pod,
                          struct strbuf *reasons, struct strbuf *details);

/* ---- the table of checks ---- */

/* Appends to 'detail' how the pod violates the check, and returns the check's short text, which is
 * constant; NULL: the pod does not violate it. */
typedef const char *pod_check_fn(const struct json *pod, struct strbuf *detail);

struct pod_check {
    const char *id;
    enum pod_level level;
    uint64_t since; /* N of the first v1.N in which 'run' is the check. */
    pod_check_fn *run;
    const char *overrides; /* The check of baseline that it replaces; NULL: none. */
};
/* The i-th row in the order of evaluation: by level, then by id, then by version; NULL: there are
 * no more.  The last row of an id whose version has come is the one that counts. */
const struct pod_check *pod_check_at(size_t i);
