/* SPDX-License-Identifier: Apache-2.0 */
/* What instances.c (the controller, readiness, deletion) and instantiate.c (creation) share.
 * One thread. */
#pragma once

#include "base/map.h"
#include "client/discovery.h"
#include "controller/controller.h"

#define TEMPLATES "template.openshift.io/v1"

struct instances {
    struct controller_env env;
    struct informer *objects; /* TemplateInstances. */
    struct smap running;      /* Key to 'struct instance'. */
    struct smap owners;       /* The instance's uid to its key. */
    struct discovery *kinds;  /* NULL: not read yet. */
    struct discovery_call *asking;
    struct smap waiting; /* Keys that wait for 'asking'. */
};

/* Where an object of the template is created. */
struct target {
    char *path;     /* Of the collection. */
    char *resource; /* "deployments.apps", for messages. */
    char *plural;
};

/* Work on one TemplateInstance that takes several requests.  It stays between attempts, so that
 * generated values do. */
struct instance {
    struct instances *c;
    struct json *obj; /* The TemplateInstance as it was last read or written. */
    uint64_t version; /* The copy has to have this resourceVersion before it is believed. */
    void (*step)(struct instance *in, struct work *w);
    size_t at;             /* The object that the step is at. */
    struct api_client *as; /* Requests in the name of the requester; NULL: none yet. */
    struct json *template; /* With the values of the Secret. */
    struct json *objects;  /* The processed objects, with their label; NULL: none yet. */
    struct target *targets;
    size_t n_targets;
    struct json *refs;  /* status.objects; those without a uid may not exist. */
    struct strbuf text; /* What is wrong, a line for each object. */
    bool asked;         /* The kinds of the server were read for it. */
    bool ends;          /* The instance is being deleted. */
};

#define INSTANCE_MAX_TEXT 4096

/* ---- instances.c ---- */

/* Whether the error may be gone at the next attempt. */
bool instance_may_retry(int error);
/* The kind, from the server's discovery.  NULL: it is not known; '*ret_waits': the work was ended
 * until the server was asked. */
const struct api_kind *instance_kind(struct instance *in, struct work *w, const char *api_version,
                                     const char *kind, bool *ret_waits);
/* The client for requests in the requester's name; NULL: 'e' says why there is none. */
struct api_client *instance_as(struct instance *in, struct err *e);
/* Begins a step at its first object. */
void instance_go(struct instance *in, struct work *w,
                 void (*step)(struct instance *in, struct work *w));
/* Ends the instantiation with in->text; what was created is deleted before. */
void instance_fail(struct instance *in, struct work *w);
/* Writes the status with these conditions, and with in->refs ('refs' false: without objects). */
void instance_write_status(struct instance *in, struct work *w, bool refs, work_answer_fn *done);
/* Notes an answer that is the TemplateInstance. */
void instance_note(struct instance *in, const struct json *obj);
struct instance *instance_of(struct instances *c, const struct work *w);
void instance_set_ready(struct instance *in, const char *status, const char *reason,
                        const char *message);
/* Deletes what in->refs names, the last one first. */
void instance_undo(struct instance *in, struct work *w);
/* Waits for the objects to become ready. */
void instance_check(struct instance *in, struct work *w);

/* ---- instantiate.c ---- */

/* The first step: reads the Secret. */
void instantiate(struct instance *in, struct work *w);
