/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that say how messages of Kubernetes' protobuf become JSON.  Internal to src/api. */
#pragma once

#include "base/macro.h"

enum proto_type {
    T_STRING,
    T_INT,
    T_BOOL,
    T_TIME,
    T_MESSAGE,
    T_MAP,       /* Of strings. */
    T_BYTES,     /* Base64 in JSON. */
    T_BYTES_MAP, /* Of bytes. */
    T_LIST_MAP,  /* Of messages whose field 1 is repeated strings. */
    T_INT_OR_STRING,
    T_IGNORED,
};

struct proto_message;
struct proto_field {
    uint32_t number;
    const char *name;
    enum proto_type type;
    bool repeated;
    const struct proto_message *message;
};
struct proto_message {
    const struct proto_field *fields;
    size_t n;
};
#define PROTO_MESSAGE(list)    \
    {                          \
        list, ARRAY_SIZE(list) \
    }

struct proto_kind {
    const char *kind;
    struct proto_message message;
};

extern const struct proto_message proto_meta;      /* ObjectMeta */
extern const struct proto_message proto_reference; /* ObjectReference */
/* Of secrets, service accounts, RBAC, certificates, reviews; ends with a NULL kind. */
extern const struct proto_kind proto_security_kinds[];
/* Of services and their endpoints; ends with a NULL kind. */
extern const struct proto_kind proto_service_kinds[];

/* What tables are made of. */
#define META                                         \
    {                                                \
        1, "metadata", T_MESSAGE, false, &proto_meta \
    }
#define MEMBER(number, name, message)              \
    {                                              \
        number, name, T_MESSAGE, false, &(message) \
    }
#define MEMBERS(number, name, message)            \
    {                                             \
        number, name, T_MESSAGE, true, &(message) \
    }
#define STRINGS(number, name)        \
    {                                \
        number, name, T_STRING, true \
    }
