/* SPDX-License-Identifier: Apache-2.0 */
/* How a project moves to another network: the next step of a NetNamespace that an administrator's request
 * is about.  Pure.
 *
 * Nodes learn of a change one after the other, so a project moves in three writes with a pause after each:
 *
 *     prepare   NET_NEXT_ID is written: its pods take packets of both ids, and send with the old one
 *     switch    netid becomes the new id, the old one NET_PREVIOUS_ID: they send with the new one
 *     finish    NET_PREVIOUS_ID goes, then the request: they take packets of the new one only
 *
 * So what may reach each other before and after may do so at any moment, as long as a node is not further
 * behind than a pause; and what may in neither case may not in between.  Projects that go from the same
 * network to the same network go in step, as they may reach each other all the way.  All is in the object:
 * a master that is started in the middle goes on there. */
#pragma once

#include "api/kinds/netnamespace.h"

struct vnid_state {
    uint32_t id;
    bool has_next, has_previous; /* Not both. */
    uint32_t other;              /* The next or the previous one. */
    const char *request;         /* NULL: none; belongs to the object, as 'refused'. */
    const char *refused;
    uint64_t since_ms; /* When the last step was seen: the caller's to fill in. */
};
/* Of a NetNamespace; -EINVAL: it has no usable netid.  An annotation that is none counts as absent. */
int vnid_state_read(const struct json *nn, struct vnid_state *ret);
/* Whether nodes make the same of both. */
bool vnid_state_same_step(const struct vnid_state *a, const struct vnid_state *b);

/* Hears of a project; returns whether to go on. */
typedef bool vnid_each_fn(void *arg, const char *project, const struct vnid_state *s);

/* What is known about others; 'ctx' is theirs. */
struct vnid_view {
    /* The id that 'project' has or is about to have; false: there is no such NetNamespace. */
    bool (*id_of)(void *ctx, const char *project, uint32_t *ret);
    /* Projects that have the id or are about to; a project that moves counts for both its ids. */
    unsigned (*users)(void *ctx, uint32_t id);
    /* Tells of all projects that move or have a request; a step that was decided counts as done. */
    void (*each)(void *ctx, vnid_each_fn *fn, void *arg);
    void *ctx;
    uint64_t now_ms, pause_ms;
    bool fixed; /* The plug-in does not let projects move. */
};

enum vnid_move_step {
    VNID_MOVE_NONE, /* Nothing is asked for. */
    VNID_MOVE_WAIT, /* It is not time, others come first, or the request is refused: look again. */
    VNID_MOVE_ALLOCATE, /* An id of its own is needed: allocate and ask again with it in 'fresh'. */
    VNID_MOVE_PREPARE,
    VNID_MOVE_CANCEL, /* Back from prepare: nobody sends with the next id yet. */
    VNID_MOVE_SWITCH,
    VNID_MOVE_FINISH,
    VNID_MOVE_DONE,   /* The request is fulfilled: it goes. */
    VNID_MOVE_REFUSE, /* NET_CHANGE_REFUSED gets the reason. */
};
struct vnid_move {
    enum vnid_move_step step;
    uint64_t wait_ms; /* VNID_MOVE_WAIT: how long. */
    uint32_t to;      /* VNID_MOVE_PREPARE */
    char reason[200]; /* VNID_MOVE_REFUSE, and VNID_MOVE_WAIT after it; "" otherwise. */
};
/* 'fresh' is an id that was allocated for this project, 0: none. */
void vnid_move_plan(const char *project, const struct vnid_state *s, uint32_t fresh,
                    const struct vnid_view *view, struct vnid_move *ret);
/* Owned NetNamespace as it is after the step; NULL when the step writes nothing. */
struct json *vnid_move_apply(const struct json *nn, const struct vnid_state *s,
                             const struct vnid_move *m);
/* Owned NetNamespace without request and refusal: it is given up. */
struct json *vnid_move_give_up(const struct json *nn);
