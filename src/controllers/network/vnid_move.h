/* SPDX-License-Identifier: Apache-2.0 */
/* Plans how a project moves to another network: the next step of a NetNamespace with an
 * administrator's request. Pure.
 *
 * The nodes learn of a change one after the other, so a project moves in three writes with a
 * pause after each:
 *
 *     prepare   NET_NEXT_ID is written: its pods accept packets with both ids, and send with
 *               the old one
 *     switch    netid becomes the new id, NET_PREVIOUS_ID the old one: its pods send with the
 *               new one
 *     finish    NET_PREVIOUS_ID is removed, and then the request: its pods accept the new id
 *               only
 *
 * Pods that may reach each other before and after the move may do so at any moment in between,
 * if no node is further behind than a pause. Pods that may reach each other neither before nor
 * after cannot in between. Projects that move from one network to the same other network do each
 * step together, because they may reach each other all the time. The whole state is in the object:
 * a master that starts in the middle of a move continues it. */
#pragma once

#include "api/kinds/netnamespace.h"

struct vnid_state {
    uint32_t id;
    bool has_next, has_previous; /* Never both. */
    uint32_t other;              /* The next or the previous id. */
    const char *request;         /* NULL: none; belongs to the object, like 'refused'. */
    const char *refused;
    uint64_t since_ms; /* The time at which the last step was seen; the caller fills it in. */
};
/* Reads the state of a NetNamespace; -EINVAL: it has no usable netid. An invalid annotation
 * counts as absent. 'since_ms' is 0. */
int vnid_state_read(const struct json *nn, struct vnid_state *ret);
/* Whether both states have the same effect on nodes. */
bool vnid_state_same_step(const struct vnid_state *a, const struct vnid_state *b);

/* Called for each project; returns whether to continue. */
typedef bool vnid_each_fn(void *arg, const char *project, const struct vnid_state *s);

/* The other projects as the planner sees them, and the settings; 'ctx' is the argument of the
 * functions. */
struct vnid_view {
    /* The id that 'project' has or is about to have; false: there is no such NetNamespace. */
    bool (*id_of)(void *ctx, const char *project, uint32_t *ret);
    /* The number of projects that have the id or are about to have it; a project that moves counts
     * for both its ids. */
    unsigned (*users)(void *ctx, uint32_t id);
    /* Calls 'fn' for each project that moves or has a request. A step that was planned, and is
     * perhaps not written yet, counts as done. */
    void (*each)(void *ctx, vnid_each_fn *fn, void *arg);
    void *ctx;
    uint64_t now_ms;   /* Of the clock of 'since_ms'. */
    uint64_t pause_ms; /* Least time between two steps of a project. */
    bool fixed;        /* The plug-in does not let projects move. */
};

enum vnid_move_step {
    VNID_MOVE_NONE, /* There is no request. */
    /* Try again later: the pause is not over, other projects come first, or the request is
     * refused. */
    VNID_MOVE_WAIT,
    /* The project needs an id of its own: allocate one, and call again with it as 'fresh'. */
    VNID_MOVE_ALLOCATE,
    VNID_MOVE_PREPARE,
    VNID_MOVE_CANCEL, /* Undo prepare: no pod sends with the next id yet. */
    VNID_MOVE_SWITCH,
    VNID_MOVE_FINISH,
    VNID_MOVE_DONE,   /* The request is fulfilled: remove it. */
    VNID_MOVE_REFUSE, /* Write the reason to NET_CHANGE_REFUSED. */
};
struct vnid_move {
    enum vnid_move_step step;
    uint64_t wait_ms; /* Time to wait, for VNID_MOVE_WAIT. */
    uint32_t to;      /* For VNID_MOVE_PREPARE. */
    /* Why the request is refused: for VNID_MOVE_REFUSE, and for VNID_MOVE_WAIT while the refusal
     * is in the object; otherwise "". */
    char reason[200];
};
/* Plans the next step. 'fresh' is an id that was allocated for this project after
 * VNID_MOVE_ALLOCATE; 0: none. */
void vnid_move_plan(const char *project, const struct vnid_state *s, uint32_t fresh,
                    const struct vnid_view *view, struct vnid_move *ret);
/* The owned NetNamespace after the step; NULL: the step writes nothing. */
struct json *vnid_move_apply(const struct json *nn, const struct vnid_state *s,
                             const struct vnid_move *m);
/* The owned NetNamespace without request and refusal, when the request is abandoned. */
struct json *vnid_move_give_up(const struct json *nn);
