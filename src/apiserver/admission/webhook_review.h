/* SPDX-License-Identifier: Apache-2.0 */
/* AdmissionReview (admission.k8s.io/v1): the question to a webhook, and its answer.
 *
 * The answer comes from another program, which may be hostile or broken: webhook_answer_read bounds
 * and checks everything in it.  Follows Kubernetes' VerifyAdmissionResponse and ToStatusErr.
 * Pure. */
#pragma once

#include "apiserver/admission/webhook_match.h"
#include "base/str.h"

#define WEBHOOK_MAX_ANSWER ((size_t) 4 << 20) /* Bytes of an answer. */
#define WEBHOOK_MAX_OBJECT ((size_t) 3 << 20) /* Bytes of a patched object. */
#define WEBHOOK_MAX_WARNINGS 64
#define WEBHOOK_MAX_ANNOTATIONS 16
#define WEBHOOK_MAX_TEXT 1024 /* Bytes of a message, and of the value of an annotation. */

struct webhook_review {
    const char *uid; /* The request's uid, to be repeated in the answer. */
    /* The kind and resource in the version that the webhook asked for, and as the client named
     * them. */
    const char *group, *version, *kind;
    const char *plural_group, *plural_version, *plural;
    const char *request_group, *request_version, *request_kind;
    const char *request_plural_group, *request_plural_version, *request_plural;
    const char *subresource;      /* "": none. */
    const char *name, *namespace; /* "": none. */
    enum webhook_operation operation;
    const struct json *user;                /* UserInfo. */
    const struct json *obj, *old, *options; /* NULL: null. */
    bool dry_run;
};
/* Appends the text of the AdmissionReview. */
void webhook_review_write(const struct webhook_review *r, struct strbuf *out);

/* A checked answer. */
struct webhook_answer {
    bool allowed;
    int code;                 /* HTTP status of a refusal, 400 to 599. */
    const char *reason;       /* Its reason, a constant; NULL: none. */
    char *message;            /* Of a refusal: "" when there is none. */
    struct json *patch;       /* JSON patch; NULL: none. */
    struct json *warnings;    /* Array of texts; NULL: none. */
    struct json *annotations; /* Object of texts; NULL: none. */
};
void webhook_answer_done(struct webhook_answer *a);
static inline UNUSED void webhook_answer_donep(struct webhook_answer *a)
{
    webhook_answer_done(a);
}
/* Reads the body of an answer to the review 'uid'.  'mutates': a patch is accepted.  -EPROTO: it is
 * not the answer; '*ret' is untouched. */
int webhook_answer_read(const char *body, size_t size, const char *uid, bool mutates,
                        struct webhook_answer *ret, struct err *e);

/* Applies the patch of a webhook to 'obj', of kind 'k': '*ret' is the new object (owned), in the
 * form of the kind's schema.  'subresource': the status of other writes stays as it is, and so does
 * managedFields.  -EINVAL: the patch does not apply, or changes what no webhook may change; -E2BIG:
 * the object is too large or too deep. */
int webhook_patch(const struct api_kind *k, const char *subresource, const struct json *obj,
                  const struct json *patch, struct json **ret, struct err *e);
