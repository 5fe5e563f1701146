/* SPDX-License-Identifier: Apache-2.0 */
/* Which security context constraints allow a pod: those that its user or its service account may
 * use are tried in their order, and the first that fits decides.
 *
 * The set follows the cache, and holds the constraints as they are read once (pod/scc.h), in their
 * order.  Admission, the check before a container is entered, and the reviews ask it.  Internal to
 * src/apiserver; everything runs on the loop's thread. */
#pragma once

#include "apiserver/access/security.h"
#include "pod/scc.h"

struct scc_set;
struct scc_set *scc_set_new(struct cache *c);
struct scc_set *scc_set_free(struct scc_set *set);
size_t scc_set_count(struct scc_set *set);

/* The settings of a pod that constraints may fill in. */
enum scc_mode {
    SCC_FILLS,           /* Unset settings: the pod is being created, or only a question. */
    SCC_FILLS_EPHEMERAL, /* Unset settings of ephemeral containers alone. */
    SCC_AS_IS,           /* Nothing: constraints that would change the pod do not fit. */
};

/* A question; everything is borrowed. */
struct scc_question {
    struct security *security;
    struct scc_set *set;
    const char *ns;
    const struct json *project; /* The namespace, for its values; NULL: there is none. */
    const struct user_info *user, *account; /* NULL: is not considered. */
    const struct json *pod;
    const char *path; /* Precedes the names of the pod's fields: "". */
    enum scc_mode mode;
    const char *first; /* The name of constraints that are tried before the others; NULL: none. */
    const char *only;  /* The name of the only constraints that are tried; NULL: all are. */
    bool lists;        /* The answer has a list of refusals. */
};

/* The answer; SCC_ANSWER_INIT before use. */
struct scc_answer {
    const struct scc *by; /* NULL: refused.  Borrowed, until the cache changes. */
    bool by_account;      /* The account may use it, but not the user. */
    struct json *spec;    /* The spec of the pod, filled in; owned. */
    struct strbuf text;   /* Why each of the constraints before does not fit: "ERROR, ERROR". */
    struct api_causes causes;
    /* An array of {"name": of the constraints, "reasons": [lines]}, one for each of the constraints
     * before; owned; NULL: the question does not ask for it. */
    struct json *refusals;
};
#define SCC_ANSWER_INIT     \
    {                       \
        .text = STRBUF_INIT \
    }
void scc_ask(const struct scc_question *q, struct scc_answer *ret);
void scc_answer_done(struct scc_answer *a);
static inline UNUSED void scc_answer_donep(struct scc_answer *a)
{
    scc_answer_done(a);
}

/* The service account of a pod in 'ns' by its name (NULL or "": "default"), with its groups;
 * owned. */
struct user_info *scc_account(const char *ns, const char *name);
