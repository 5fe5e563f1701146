/* SPDX-License-Identifier: Apache-2.0 */
/* CNI, the Container Network Interface (specification versions 0.3.1, 0.4.0, 1.0.0 and
 * 1.1.0): requests of a runtime to a plug-in, the plug-in's answers, and the form in which
 * tenet-cni exchanges both with the agent.
 *
 * A request is the CNI_* environment and the network configuration on standard input; it is
 * validated here, completely, by the plug-in and again by the agent.  Between them goes one
 * line of JSON with the request, and back one line: a digit (the plug-in's exit status), a
 * blank and what it prints.  Pure; a 'struct cni_request' owns its parts.  A failure is a
 * 'struct cni_error' as in the specification: the code, a short text and a longer one that names
 * the variable or field. */
#pragma once

#include "base/ip.h"
#include "wire/cni_runtime.h"
#include "wire/json.h"

#define CNI_MAX_INPUT (256u * 1024) /* Bytes of a configuration, and of a request line. */
#define CNI_MAX_REPLY (256u * 1024)
#define CNI_DEFAULT_SOCKET "/run/tenet/node/cni.sock"

enum cni_version { CNI_0_3_1, CNI_0_4_0, CNI_1_0_0, CNI_1_1_0, CNI_N_VERSIONS };
extern const char *const cni_versions[CNI_N_VERSIONS];

/* Specification, "Error": 1-99 are the specification's, from 100 ours. */
enum cni_code {
    CNI_INCOMPATIBLE_VERSION = 1,
    CNI_UNSUPPORTED_FIELD = 2,
    CNI_UNKNOWN_CONTAINER = 3,
    CNI_INVALID_ENVIRONMENT = 4,
    CNI_IO_FAILURE = 5,
    CNI_DECODE_FAILURE = 6,
    CNI_INVALID_CONFIG = 7,
    CNI_TRY_AGAIN = 11,
    CNI_NOT_AVAILABLE = 50, /* STATUS: no ADD would succeed now. */
    /* STATUS: as above, and attached containers may have limited connectivity. */
    CNI_LIMITED = 51,
    CNI_NO_ADDRESS = 100,    /* The node's subnet is full. */
    CNI_NO_VNID = 101,       /* The pod's project has no VNID (yet). */
    CNI_ATTACH_FAILED = 102, /* The kernel or the switch refused. */
    CNI_DETACH_FAILED = 103,
    CNI_CHECK_FAILED = 104, /* CHECK found a difference. */
    CNI_PORT_TAKEN = 105,   /* Another pod has a host port that the pod requests. */
    CNI_INVALID_POD = 106,  /* The pod's object requests an impossible setting. */
};

struct cni_error {
    enum cni_code code;
    /* Version of the request, as far as it could be read; else the newest. */
    enum cni_version version;
    char msg[128];
    char details[640];
};
/* Fills code and texts of '*e'; returns -EINVAL. */
int cni_fail(struct cni_error *e, enum cni_code code, const char *msg, const char *details, ...)
    PRINTF_LIKE(4, 5);
/* Appends the error as a JSON object. */
void cni_error_write(const struct cni_error *e, struct strbuf *out);

enum cni_command { CNI_ADD, CNI_DEL, CNI_CHECK, CNI_GC, CNI_STATUS, CNI_VERSION };
const char *cni_command_name(enum cni_command c);

struct cni_config {
    enum cni_version version;
    char *name;
    char *socket; /* Path of the agent's socket. */
    /* Project of containers whose runtime names no pod; NULL: they are refused. */
    char *project;
    struct json *dns;         /* "dns" as configured, to be returned; NULL: none. */
    struct json *prev_result; /* NULL: none. */
    struct json *valid; /* GC: "cni.dev/valid-attachments", a list of {"containerID", "ifname"}. */
    struct cni_runtime runtime; /* "runtimeConfig" */
    /* "chained": later plug-ins of the chain do this part. */
    bool chained_portmap, chained_bandwidth;
};

struct cni_request {
    enum cni_command command;       /* Not CNI_VERSION. */
    char *container_id, *ifname;    /* GC, STATUS: "". */
    char *netns;                    /* Absolute path; NULL (not ADD, CHECK): none given. */
    char *pod_namespace, *pod_name; /* NULL (not ADD, CHECK): not given. */
    struct cni_config config;
};
void cni_request_done(struct cni_request *r);
static inline UNUSED void cni_request_donep(struct cni_request *r)
{
    cni_request_done(r);
}

/* The environment variables; NULL: not set. */
struct cni_env {
    const char *command, *container_id, *netns, *ifname, *args;
};
int cni_command_parse(const char *name, enum cni_command *ret, struct cni_error *e);
/* Validates a request of a runtime; 'env->command' must not be VERSION. */
int cni_request_read(const struct cni_env *env, const char *config, size_t size,
                     struct cni_request *ret, struct cni_error *e);
/* Answer to VERSION, whose input is 'config' (empty: none given). */
int cni_version_answer(const char *config, size_t size, struct strbuf *out, struct cni_error *e);

/* The line from plug-in to agent, without its line end. */
void cni_request_write(const struct cni_request *r, struct strbuf *out);
int cni_request_parse(const char *line, size_t size, struct cni_request *ret, struct cni_error *e);

/* The result of ADD. */
struct cni_result {
    const char *host_if;
    const struct mac *host_mac; /* NULL: not told. */
    const char *ifname, *netns;
    struct mac mac;
    struct ip4_prefix address; /* "10.128.0.2/23" */
    uint32_t gateway;
    uint32_t mtu;           /* In the result from version 1.1.0 on. */
    const struct json *dns; /* NULL: none. */
};
/* Appends 'r' in the format of the specification's version. */
void cni_result_write(const struct cni_result *r, enum cni_version v, struct strbuf *out);
/* Whether GC's list 'valid' names the attachment. */
bool cni_is_valid_attachment(const struct json *valid, const char *container_id,
                             const char *ifname);
/* CHECK: 'prev' must contain the parts of 'r'; additional parts (of other plug-ins in the chain)
 * are accepted. */
int cni_result_check(const struct cni_result *r, const struct json *prev, struct cni_error *e);
