/* SPDX-License-Identifier: Apache-2.0 */
/* Admission: the ordered list of plug-ins that may change or refuse a write, after authorization
 * and before the store.
 *
 * First every plug-in's 'admit', which may change the object, in the order of the table; then, if
 * one changed it, the object is brought into the shape of its schema again; then every plug-in's
 * 'validate', which sees the final object; then the caller validates the object as a whole.  So a
 * plug-in judges in 'validate' what a later mutation must not get around. A plug-in named as one of
 * Kubernetes or OpenShift does what that one does.  A new plug-in is a row in
 * admission.c.  Webhooks are asked between the phases, and at the end (webhooks.h).
 *
 * The allocation of addresses and ports is no plug-in: it belongs to each attempt to store a
 * Service (alloc.h). Everything runs on the loop's thread. */
#pragma once

#include "apiserver/request/request.h"

/* The operations of writes, as bits. */
enum {
    ADMIT_CREATE = 1 << 0,
    ADMIT_UPDATE = 1 << 1,
    ADMIT_DELETE = 1 << 2,
};

struct admission_plugin {
    const char *name;
    const char *also; /* A second name in configurations; NULL: none. */
    bool off;         /* It runs only when the configuration turns it on. */
    bool own;         /* OpenShift's lists do not have it: they cannot leave it out. */
    bool counts;      /* Each attempt to store an object counts it; it has no function here. */
    const char *const
        *kinds;     /* "GROUP/PLURAL" ("/pods" of the core group), NULL at the end; NULL: all. */
    unsigned verbs; /* Bits ADMIT_... of the operations that it handles. */
    /* It is skipped for system:masters, and for all users of a server without authorization. */
    bool exempts_masters;
    /* 'validate' gets the objects of views as they are stored: its kinds include the views of
     * these. */
    bool judges_stored;
    const char *required; /* The reason why it cannot be disabled; NULL: it can. */
    /* Each may be NULL.  'old' is NULL at a creation; 'obj' is NULL, too, at a deletion.
     * Negative: refused, and the outcome is filled.  'admit' returns 1 when it changed 'obj'. */
    int (*admit)(struct request *q, struct json *obj, const struct json *old,
                 struct outcome *outcome);
    int (*validate)(struct request *q, const struct json *obj, const struct json *old,
                    struct outcome *outcome);
    /* Whether the creation of 'obj' lacks an object that a controller is about to make; may be
     * NULL. */
    bool (*awaits)(const struct request *q, const struct json *obj);
    /* Whether the user may enter the containers of 'pod'; -EACCES. */
    int (*enter)(const struct request *q, const struct json *pod, struct outcome *outcome);
};

struct admission;
/* Makes the list of plug-ins that the configuration enables, and logs their names. */
struct admission *admission_new(struct apiserver *a);
struct admission *admission_free(struct admission *ad);
/* The i-th plug-in in the default order; NULL: there are no more. */
const struct admission_plugin *admission_plugin_at(size_t i);
/* The plug-in with this name, or with this second name; NULL: there is none. */
const struct admission_plugin *admission_plugin_find(const char *name);
/* The plug-ins that run, in their order: how many, and the i-th. */
size_t admission_count(const struct admission *ad);
const struct admission_plugin *admission_running(const struct admission *ad, size_t i);
bool admission_is_enabled(const struct admission *ad, const char *name);

/* The first phase alone: the plug-ins that change the object.  Returns 1 when one did. */
int admission_admit(struct request *q, struct json *obj, const struct json *old,
                    struct outcome *outcome);
/* The second phase alone: the plug-ins that judge the object. */
int admission_validate(struct request *q, const struct json *obj, const struct json *old,
                       struct outcome *outcome);
/* Runs the plug-ins for a write of 'obj' in place of 'old' (NULL: created), or a deletion (both
 * NULL).  Negative: refused, and the outcome is filled. */
int admission_run(struct request *q, struct json *obj, const struct json *old,
                  struct outcome *outcome);
/* Whether a plug-in asks the creation of 'obj' to wait for an object that a controller is about to
 * make. Changes nothing. */
bool admission_awaits(const struct request *q, const struct json *obj);
/* Whether the pod is a mirror pod: a node's picture of a pod that it runs without the API. */
bool admission_is_mirror(const struct json *pod);
/* Whether the user may enter the pod's containers (exec, attach, port-forward).  -EACCES:
 * 'outcome' has the 403. */
int admission_check_entry(const struct request *q, const struct json *pod, struct outcome *outcome);
/* The namespace of the request as the cache has it, borrowed until an object is next looked up in
 * the server's table of parsed objects (parsed.h); NULL: there is none. */
const struct json *admission_namespace(const struct request *q);
/* Fills the outcome with a 403 about the request's object; returns -EACCES. */
int admission_refuse(const struct request *q, const struct json *obj, const char *why,
                     struct outcome *outcome);
/* Fills the outcome with a 403 that names the field; returns -EACCES. */
int admission_refuse_field(const struct request *q, const struct json *obj, const char *field,
                           const char *why, struct outcome *outcome);
