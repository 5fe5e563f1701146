/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/network/vnid_move.h"

#include "controller/obj.h"
#include "controllers/network/vnid_plan.h"
#include "sdn/network.h"

#include <stdio.h>

#define OTHERS_LOOK_MS 50
#define REFUSED_LOOK_MS 500
/* Number of pauses to wait for other projects whose objects cannot be written. */
#define PATIENCE 5

int vnid_state_read(const struct json *nn, struct vnid_state *ret)
{
    struct vnid_state s = {.request = obj_annotation(nn, NET_CHANGE),
                           .refused = obj_annotation(nn, NET_CHANGE_REFUSED)};
    if (netnamespace_vnid(nn, &s.id) < 0) {
        return -EINVAL;
    }
    const char *next = obj_annotation(nn, NET_NEXT_ID);
    const char *previous = obj_annotation(nn, NET_PREVIOUS_ID);
    s.has_previous = previous && net_id_parse(previous, &s.other) == 0;
    s.has_next = !s.has_previous && next && net_id_parse(next, &s.other) == 0;
    return *ret = s, 0;
}

bool vnid_state_same_step(const struct vnid_state *a, const struct vnid_state *b)
{
    return a->id == b->id && a->has_next == b->has_next && a->has_previous == b->has_previous &&
           (!(a->has_next || a->has_previous) || a->other == b->other);
}

static bool is_own(const struct vnid_view *v, uint32_t id)
{
    return id >= SDN_VNID_MIN && v->users(v->ctx, id) == 1;
}

enum goal { GOAL_NOTHING, GOAL_ID, GOAL_FRESH, GOAL_IMPOSSIBLE };

/* The goal of the request for a project whose id is 'now'. */
static enum goal find_goal(const char *project, const struct vnid_state *s,
                           const struct vnid_view *v, uint32_t now, uint32_t *ret_id,
                           char reason[200])
{
    enum net_change change;
    const char *target;
    struct err e = {0};
    if (!s->request) {
        return GOAL_NOTHING;
    }
    if (net_change_parse(s->request, &change, &target, &e) < 0) {
        snprintf(reason, 200, "invalid request \"%.60s\": %.100s", s->request, e.text);
        return GOAL_IMPOSSIBLE;
    }
    if (v->fixed) {
        snprintf(reason, 200,
                 "the cluster's network plug-in does not let projects change their network");
        return GOAL_IMPOSSIBLE;
    }
    if (change == NET_ISOLATE && !vnid_plan_is_global(project)) {
        *ret_id = now;
        return is_own(v, now) ? GOAL_ID : GOAL_FRESH;
    }
    if (change == NET_GLOBAL) {
        *ret_id = SDN_VNID_GLOBAL;
        return GOAL_ID;
    }
    if (change == NET_JOIN && streq(target, project)) {
        *ret_id = now;
        return GOAL_ID;
    }
    if (change == NET_JOIN && !v->id_of(v->ctx, target, ret_id)) {
        snprintf(reason, 200, "netid not found for project \"%s\"", target);
        return GOAL_IMPOSSIBLE;
    }
    if (vnid_plan_is_global(project) && (change == NET_ISOLATE || *ret_id != SDN_VNID_GLOBAL)) {
        snprintf(reason, 200, "network isolation for project \"%s\" is forbidden", project);
        return GOAL_IMPOSSIBLE;
    }
    return GOAL_ID;
}

static uint32_t from_of(const struct vnid_state *s)
{
    return s->has_previous ? s->other : s->id;
}

static uint32_t to_of(const struct vnid_state *s)
{
    return s->has_previous ? s->id : s->other;
}

static bool is_moving(const struct vnid_state *s)
{
    return s->has_next || s->has_previous;
}

static bool pause_is_over(const struct vnid_state *s, const struct vnid_view *v)
{
    return v->now_ms - s->since_ms >= v->pause_ms;
}

/* ---- other projects ---- */

struct others {
    const struct vnid_view *view;
    const char *project;
    uint32_t from, to;
    /* This project has done all steps but the last one; otherwise all but the last two. */
    bool switched;
    bool found;
};

/* Whether the other project leaves the network that this one is to enter, or enters the one
 * that this one is to leave.  One of them must finish first; otherwise pods could reach
 * each other that may not before or after. */
static bool is_in_the_way(void *arg, const char *project, const struct vnid_state *s)
{
    struct others *o = arg;
    o->found =
        is_moving(s) && !streq(project, o->project) && (from_of(s) == o->to || to_of(s) == o->from);
    return !o->found;
}

static bool wants_to_go(const char *project, const struct vnid_state *s, const struct vnid_view *v,
                        uint32_t to)
{
    char reason[200];
    uint32_t want = s->id;
    return find_goal(project, s, v, s->id, &want, reason) == GOAL_ID && want == to;
}

/* Whether the other project moves to the same network, could reach this
 * one before, and is behind it. */
static bool is_behind(void *arg, const char *project, const struct vnid_state *s)
{
    struct others *o = arg;
    if (streq(project, o->project)) {
        return true;
    }
    uint32_t from = is_moving(s) ? from_of(s) : s->id;
    if (from != o->from && o->from != SDN_VNID_GLOBAL) {
        return true;
    }
    if (!is_moving(s)) {
        o->found = wants_to_go(project, s, o->view, o->to);
    } else if (to_of(s) == o->to) {
        o->found = (o->switched && s->has_next) ||
                   (s->has_previous == o->switched && !pause_is_over(s, o->view));
    }
    return !o->found;
}

static bool ask_others(const char *project, const struct vnid_view *v, uint32_t from, uint32_t to,
                       bool switched, vnid_each_fn *fn)
{
    struct others o = {.view = v, .project = project, .from = from, .to = to, .switched = switched};
    v->each(v->ctx, fn, &o);
    return o.found;
}

/* ---- the plan ---- */

/* Sets 'step' if it is due. */
static void when_due(const char *project, const struct vnid_state *s, const struct vnid_view *v,
                     enum vnid_move_step step, struct vnid_move *ret)
{
    uint64_t passed = v->now_ms - s->since_ms;
    ret->step = VNID_MOVE_WAIT;
    if (!pause_is_over(s, v)) {
        ret->wait_ms = v->pause_ms - passed;
    } else if (passed < PATIENCE * v->pause_ms &&
               ask_others(project, v, from_of(s), to_of(s), s->has_previous, is_behind)) {
        ret->wait_ms = OTHERS_LOOK_MS;
    } else {
        ret->step = step;
    }
}

void vnid_move_plan(const char *project, const struct vnid_state *s, uint32_t fresh,
                    const struct vnid_view *view, struct vnid_move *ret)
{
    *ret = (struct vnid_move){.step = VNID_MOVE_NONE};
    if (s->has_previous) {
        when_due(project, s, view, VNID_MOVE_FINISH, ret);
        return;
    }
    uint32_t now = s->has_next && is_own(view, s->other) ? s->other : s->id, want = now;
    char reason[sizeof ret->reason] = "";
    enum goal goal = find_goal(project, s, view, now, &want, reason);
    if (s->has_next) {
        if (goal == GOAL_ID && want == s->other) {
            when_due(project, s, view, VNID_MOVE_SWITCH, ret);
        } else {
            ret->step = VNID_MOVE_CANCEL;
        }
        return;
    }
    switch (goal) {
    case GOAL_NOTHING:
        /* A refused request may be removed without a new message. */
        ret->step = s->refused ? VNID_MOVE_DONE : VNID_MOVE_NONE;
        return;
    case GOAL_IMPOSSIBLE:
        memcpy(ret->reason, reason, sizeof reason);
        ret->step = streq_null(s->refused, reason) ? VNID_MOVE_WAIT : VNID_MOVE_REFUSE;
        ret->wait_ms = REFUSED_LOOK_MS;
        return;
    case GOAL_FRESH:
        want = fresh;
        if (!fresh) {
            ret->step = VNID_MOVE_ALLOCATE;
            return;
        }
        break;
    case GOAL_ID:
        if (want == s->id) {
            ret->step = VNID_MOVE_DONE;
            return;
        }
        break;
    }
    if (ask_others(project, view, s->id, want, false, is_in_the_way)) {
        ret->step = VNID_MOVE_WAIT;
        ret->wait_ms = OTHERS_LOOK_MS;
    } else {
        ret->step = VNID_MOVE_PREPARE;
        ret->to = want;
    }
}

static void set_id_annotation(struct json *o, const char *key, uint32_t id)
{
    char text[16];
    snprintf(text, sizeof text, "%u", id);
    obj_set_annotation(o, key, text);
}

struct json *vnid_move_give_up(const struct json *nn)
{
    struct json *o = json_clone(nn);
    obj_remove_annotation(o, NET_CHANGE);
    obj_remove_annotation(o, NET_CHANGE_REFUSED);
    return o;
}

struct json *vnid_move_apply(const struct json *nn, const struct vnid_state *s,
                             const struct vnid_move *m)
{
    struct json *o = json_clone(nn);
    switch (m->step) {
    case VNID_MOVE_NONE:
    case VNID_MOVE_WAIT:
    case VNID_MOVE_ALLOCATE:
        return json_free(o);
    case VNID_MOVE_PREPARE:
        set_id_annotation(o, NET_NEXT_ID, m->to);
        obj_remove_annotation(o, NET_CHANGE_REFUSED);
        break;
    case VNID_MOVE_CANCEL:
        obj_remove_annotation(o, NET_NEXT_ID);
        break;
    case VNID_MOVE_SWITCH:
        json_set_int(o, "netid", s->other);
        obj_remove_annotation(o, NET_NEXT_ID);
        set_id_annotation(o, NET_PREVIOUS_ID, s->id);
        break;
    case VNID_MOVE_FINISH:
        obj_remove_annotation(o, NET_PREVIOUS_ID);
        break;
    case VNID_MOVE_DONE:
        obj_remove_annotation(o, NET_CHANGE);
        obj_remove_annotation(o, NET_CHANGE_REFUSED);
        break;
    case VNID_MOVE_REFUSE:
        obj_set_annotation(o, NET_CHANGE_REFUSED, m->reason);
        break;
    }
    return o;
}
