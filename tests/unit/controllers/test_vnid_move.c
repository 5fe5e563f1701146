/* SPDX-License-Identifier: Apache-2.0 */
/* Projects that move between networks: the plan's cases, and clusters in which nodes hear of every
 * change at another time.  There, whatever may reach each other before and after a command may do
 * so at every moment, and whatever may in neither case may at none. */
#include "controller/obj.h"
#include "controllers/network/vnid_move.h"
#include "controllers/network/vnid_plan.h"
#include "sdn/vnid_alloc.h"

#include "json_text.h"

#define PAUSE 12 /* Ticks; nodes are up to PAUSE - 1 behind. */
#define N_PROJECTS 7
#define N_NODES 3
#define HISTORY 64
#define BATCHES 400

/* ---- a world ---- */

struct seen {
    uint64_t at;
    struct vnid_state state; /* Without texts. */
};

struct project {
    char name[16];
    struct json *nn;
    uint64_t since;
    bool holds, holds_other;
    uint32_t id, other; /* Held in the allocator. */
    struct seen history[HISTORY];
    size_t n_history;
    size_t view[N_NODES]; /* What each node has seen, an index into it. */
};

struct world {
    struct vnid_alloc *alloc;
    struct project projects[N_PROJECTS]; /* The first one is "default". */
    uint64_t now;
    uint32_t random;
};

static uint32_t below(struct world *w, uint32_t n)
{
    w->random = w->random * 1664525u + 1013904223u;
    return (w->random >> 8) % n;
}

static struct vnid_state state_of(const struct project *p)
{
    struct vnid_state s;
    assert_int_equal(vnid_state_read(p->nn, &s), 0);
    s.since_ms = p->since;
    return s;
}

static void release(struct world *w, struct project *p)
{
    if (p->holds) {
        (void) vnid_alloc_release(w->alloc, p->id);
    }
    if (p->holds_other) {
        (void) vnid_alloc_release(w->alloc, p->other);
    }
    p->holds = p->holds_other = false;
}

/* The object is written: the master's accounts follow, the nodes will. */
static void set_object(struct world *w, struct project *p, struct json *nn)
{
    json_free(p->nn);
    p->nn = nn;
    struct vnid_state s = state_of(p);
    (void) vnid_alloc_share(w->alloc, s.id);
    if (s.has_next || s.has_previous) {
        (void) vnid_alloc_share(w->alloc, s.other);
    }
    release(w, p);
    p->holds = true;
    p->id = s.id;
    p->holds_other = s.has_next || s.has_previous;
    p->other = p->holds_other ? s.other : 0;
    if (!p->n_history || !vnid_state_same_step(&p->history[p->n_history - 1].state, &s)) {
        p->since = w->now;
    }
    if (p->n_history == HISTORY) { /* All nodes are far beyond these. */
        memmove(p->history, p->history + HISTORY / 2, sizeof p->history / 2);
        p->n_history /= 2;
        for (size_t n = 0; n < N_NODES; n++) {
            assert_true(p->view[n] >= HISTORY / 2);
            p->view[n] -= HISTORY / 2;
        }
    }
    s.request = s.refused = NULL;
    p->history[p->n_history++] = (struct seen){w->now, s};
}

static bool id_of(void *ctx, const char *project, uint32_t *ret)
{
    struct world *w = ctx;
    for (size_t i = 0; i < N_PROJECTS; i++) {
        if (streq(w->projects[i].name, project)) {
            struct vnid_state s = state_of(&w->projects[i]);
            *ret = s.has_next ? s.other : s.id;
            return true;
        }
    }
    return false;
}

static unsigned users(void *ctx, uint32_t id)
{
    return vnid_alloc_users(((struct world *) ctx)->alloc, id);
}

static void each(void *ctx, vnid_each_fn *fn, void *arg)
{
    struct world *w = ctx;
    for (size_t i = 0; i < N_PROJECTS; i++) {
        struct vnid_state s = state_of(&w->projects[i]);
        if ((s.request || s.has_next || s.has_previous) && !fn(arg, w->projects[i].name, &s)) {
            return;
        }
    }
}

static void master_works_on(struct world *w, struct project *p)
{
    struct vnid_view view = {.id_of = id_of,
                             .users = users,
                             .each = each,
                             .ctx = w,
                             .now_ms = w->now,
                             .pause_ms = PAUSE};
    struct vnid_state s = state_of(p);
    struct vnid_move m;
    vnid_move_plan(p->name, &s, 0, &view, &m);
    if (m.step == VNID_MOVE_ALLOCATE) {
        assert_int_equal(vnid_alloc_allocate(w->alloc, &p->other), 0);
        p->holds_other = true;
        vnid_move_plan(p->name, &s, p->other, &view, &m);
    }
    struct json *o = vnid_move_apply(p->nn, &s, &m);
    if (o) {
        set_object(w, p, o);
    }
}

/* All that it knows but the objects is lost. */
static void master_restarts(struct world *w)
{
    vnid_alloc_free(w->alloc);
    w->alloc = vnid_alloc_new();
    for (size_t i = 0; i < N_PROJECTS; i++) {
        struct project *p = &w->projects[i];
        struct vnid_state s = state_of(p);
        (void) vnid_alloc_share(w->alloc, s.id);
        p->holds_other = s.has_next || s.has_previous;
        if (p->holds_other) {
            (void) vnid_alloc_share(w->alloc, s.other);
        }
        p->since = w->now;
        vnid_alloc_seek(w->alloc, s.id);
    }
}

static void nodes_hear(struct world *w)
{
    for (size_t i = 0; i < N_PROJECTS; i++) {
        struct project *p = &w->projects[i];
        for (size_t n = 0; n < N_NODES; n++) {
            /* What is older than the longest delay is known; the rest perhaps. */
            while (p->view[n] + 1 < p->n_history &&
                   (p->history[p->view[n] + 1].at + PAUSE - 1 <= w->now || below(w, 4) == 0)) {
                p->view[n]++;
            }
        }
    }
}

static bool may_reach(const struct vnid_state *from, const struct vnid_state *to)
{
    return sdn_vnid_may_reach(from->id, to->id) ||
           ((to->has_next || to->has_previous) && sdn_vnid_may_reach(from->id, to->other));
}

struct matrix {
    bool may[N_PROJECTS][N_PROJECTS];
};

static struct matrix matrix_of(const struct world *w)
{
    struct matrix m;
    for (size_t a = 0; a < N_PROJECTS; a++) {
        for (size_t b = 0; b < N_PROJECTS; b++) {
            struct vnid_state s = state_of(&w->projects[a]), t = state_of(&w->projects[b]);
            m.may[a][b] = sdn_vnid_may_reach(s.id, t.id);
        }
    }
    return m;
}

/* Notes which pairs of projects met, and which did not, on some pair of nodes at this moment. */
static void observe(const struct world *w, struct matrix *met, struct matrix *missed)
{
    for (size_t a = 0; a < N_PROJECTS; a++) {
        for (size_t b = 0; b < N_PROJECTS; b++) {
            for (size_t n = 0; n < N_NODES * N_NODES; n++) {
                const struct project *p = &w->projects[a], *q = &w->projects[b];
                const struct vnid_state *from = &p->history[p->view[n / N_NODES]].state;
                const struct vnid_state *to = &q->history[q->view[n % N_NODES]].state;
                *(may_reach(from, to) ? &met->may[a][b] : &missed->may[a][b]) = true;
            }
        }
    }
}

static void assert_kept(const struct world *w, const struct matrix *before,
                        const struct matrix *after, const struct matrix *met,
                        const struct matrix *missed, const char *command)
{
    for (size_t a = 0; a < N_PROJECTS; a++) {
        for (size_t b = 0; b < N_PROJECTS; b++) {
            if (before->may[a][b] && after->may[a][b] && missed->may[a][b]) {
                fail_msg("%s: %s lost %s for a moment", command, w->projects[a].name,
                         w->projects[b].name);
            }
            if (!before->may[a][b] && !after->may[a][b] && met->may[a][b]) {
                fail_msg("%s: %s met %s for a moment", command, w->projects[a].name,
                         w->projects[b].name);
            }
        }
    }
}

static void assert_accounts(const struct world *w)
{
    uint32_t different = 0;
    for (size_t a = 0; a < N_PROJECTS; a++) {
        struct vnid_state s = state_of(&w->projects[a]);
        unsigned n = 0;
        bool first = true;
        for (size_t b = 0; b < N_PROJECTS; b++) {
            struct vnid_state t = state_of(&w->projects[b]);
            n += s.id == t.id;
            first &= b >= a || s.id != t.id;
        }
        assert_int_equal(vnid_alloc_users(w->alloc, s.id), s.id ? n : 0);
        different += s.id && first;
    }
    assert_int_equal(vnid_alloc_in_use(w->alloc), different);
}

static bool at_rest(const struct world *w)
{
    for (size_t i = 0; i < N_PROJECTS; i++) {
        const struct project *p = &w->projects[i];
        struct vnid_state s = state_of(p);
        if (s.request || s.has_next || s.has_previous) {
            return false;
        }
        for (size_t n = 0; n < N_NODES; n++) {
            if (p->view[n] + 1 < p->n_history) {
                return false;
            }
        }
    }
    return true;
}

/* One command for some projects; their requests come within a part of the pause. */
static void run_command(struct world *w)
{
    static const char *const words[] = {"join:", "isolate", "global"};
    char command[128], text[64];
    uint64_t due[N_PROJECTS];
    bool picked[N_PROJECTS];
    uint32_t kind = below(w, 3), target = below(w, N_PROJECTS);
    snprintf(text, sizeof text, "%s%s", words[kind], kind ? "" : w->projects[target].name);
    snprintf(command, sizeof command, "%s at %llu", text, (unsigned long long) w->now);
    for (size_t i = 0; i < N_PROJECTS; i++) {
        picked[i] = i > 0 && below(w, 3) == 0 && !(kind == 0 && i == target);
        due[i] = w->now + below(w, PAUSE / 2);
    }
    struct matrix before = matrix_of(w), met = {0}, missed = {0};
    uint64_t end = w->now + 40 * PAUSE, restart = w->now + below(w, 8 * PAUSE);
    do {
        for (size_t i = 0; i < N_PROJECTS; i++) {
            if (picked[i] && due[i] == w->now) {
                struct json *o = json_clone(w->projects[i].nn);
                obj_set_annotation(o, NET_CHANGE, text);
                set_object(w, &w->projects[i], o);
            }
        }
        if (w->now == restart && below(w, 2)) {
            master_restarts(w);
        }
        for (size_t k = 0; k < N_PROJECTS; k++) {
            master_works_on(w, &w->projects[below(w, N_PROJECTS)]);
        }
        nodes_hear(w);
        observe(w, &met, &missed);
        w->now++;
        assert_true(w->now < end);
    } while (w->now < due[0] + PAUSE || !at_rest(w));
    struct matrix after = matrix_of(w);
    assert_kept(w, &before, &after, &met, &missed, command);
    assert_accounts(w);
    for (size_t i = 0; i < N_PROJECTS; i++) {
        struct vnid_state s = state_of(&w->projects[i]);
        if (picked[i] && kind == 0) {
            assert_int_equal(s.id, state_of(&w->projects[target]).id);
        } else if (picked[i] && kind == 1) {
            assert_int_equal(vnid_alloc_users(w->alloc, s.id), 1);
        } else if (picked[i]) {
            assert_int_equal(s.id, SDN_VNID_GLOBAL);
        }
    }
}

static void commands_never_cut_off_nor_open_for_a_moment(void **state)
{
    for (uint32_t seed = 1; seed <= 10; seed++) {
        struct world w = {.alloc = vnid_alloc_new(), .random = seed, .now = 1000};
        for (size_t i = 0; i < N_PROJECTS; i++) {
            struct project *p = &w.projects[i];
            uint32_t id = SDN_VNID_GLOBAL;
            snprintf(p->name, sizeof p->name, i ? "p%zu" : "default", i);
            if (i > 0) {
                assert_int_equal(vnid_alloc_allocate(w.alloc, &id), 0);
                p->holds = true;
                p->id = id;
            }
            set_object(&w, p, vnid_plan_create(p->name, id));
        }
        for (unsigned i = 0; i < BATCHES; i++) {
            run_command(&w);
        }
        for (size_t i = 0; i < N_PROJECTS; i++) {
            json_free(w.projects[i].nn);
        }
        vnid_alloc_free(w.alloc);
    }
}

/* ---- cases ---- */

struct others {
    const char *project; /* The one that is known beside ours; NULL: none. */
    struct vnid_state s;
    unsigned users; /* Of any id. */
};

static bool known(void *ctx, const char *project, uint32_t *ret)
{
    const struct others *o = ctx;
    if (!streq_null(o->project, project)) {
        return false;
    }
    *ret = o->s.has_next ? o->s.other : o->s.id;
    return true;
}

static unsigned count(void *ctx, uint32_t id)
{
    return ((const struct others *) ctx)->users;
}

static void tell(void *ctx, vnid_each_fn *fn, void *arg)
{
    const struct others *o = ctx;
    if (o->project) {
        fn(arg, o->project, &o->s);
    }
}

static struct vnid_move plan(const char *project, const char *nn, uint32_t fresh, struct others *o,
                             bool fixed)
{
    struct vnid_view v = {.id_of = known,
                          .users = count,
                          .each = tell,
                          .ctx = o,
                          .now_ms = 1000,
                          .pause_ms = 100,
                          .fixed = fixed};
    CLEANUP(json_free) struct json *object = from(nn);
    struct vnid_state s;
    struct vnid_move m;
    assert_int_equal(vnid_state_read(object, &s), 0);
    s.since_ms = 880; /* Its own pause is over. */
    vnid_move_plan(project, &s, fresh, &v, &m);
    return m;
}

#define NN(annotations) "{'metadata':{'annotations':{" annotations "}},'netid':20}"
#define ASKS(text) "'pod.network.openshift.io/multitenant.change-network':'" text "'"

static void requests_come_to_steps(void **state)
{
    static const struct {
        const char *nn;
        const char *project;
        unsigned users;
        enum vnid_move_step step;
        const char *reason; /* Part of it; "": none. */
    } cases[] = {
        {NN(""), "red", 1, VNID_MOVE_NONE, ""},
        {NN(ASKS("join:blue")), "red", 1, VNID_MOVE_PREPARE, ""},
        {NN(ASKS("join:red")), "red", 1, VNID_MOVE_DONE, ""},
        {NN(ASKS("join:gone")), "red", 1, VNID_MOVE_REFUSE, "netid not found for project \"gone\""},
        {NN(ASKS("isolate")), "red", 1, VNID_MOVE_DONE, ""},
        {NN(ASKS("isolate:")), "red", 1, VNID_MOVE_DONE, ""},
        {NN(ASKS("isolate")), "red", 2, VNID_MOVE_ALLOCATE, ""},
        {NN(ASKS("global")), "red", 1, VNID_MOVE_PREPARE, ""},
        {NN(ASKS("global:")), "red", 1, VNID_MOVE_PREPARE, ""},
        {NN(ASKS("join")), "red", 1, VNID_MOVE_REFUSE, "join:PROJECT, isolate or global"},
        {NN(ASKS("join:")), "red", 1, VNID_MOVE_REFUSE, "join:PROJECT, isolate or global"},
        {NN(ASKS("")), "red", 1, VNID_MOVE_REFUSE, "join:PROJECT, isolate or global"},
        {NN(ASKS("split")), "red", 1, VNID_MOVE_REFUSE, "invalid request \"split\""},
        {NN(ASKS("isolate")), "default", 2, VNID_MOVE_REFUSE, "\"default\" is forbidden"},
        {NN(ASKS("join:blue")), "default", 2, VNID_MOVE_REFUSE, "\"default\" is forbidden"},
        /* In the middle; the pause is over. */
        {NN(ASKS("global") ",'tenet.io/next-netid':'0'"), "red", 1, VNID_MOVE_SWITCH, ""},
        {NN(ASKS("join:blue") ",'tenet.io/next-netid':'30'"), "red", 2, VNID_MOVE_SWITCH, ""},
        {NN(ASKS("isolate") ",'tenet.io/next-netid':'77'"), "red", 1, VNID_MOVE_SWITCH, ""},
        {NN("'tenet.io/next-netid':'30'"), "red", 2, VNID_MOVE_CANCEL, ""},
        {NN(ASKS("join:gone") ",'tenet.io/next-netid':'30'"), "red", 1, VNID_MOVE_CANCEL, ""},
        {NN(ASKS("global") ",'tenet.io/next-netid':'30'"), "red", 2, VNID_MOVE_CANCEL, ""},
        {NN(ASKS("x") ",'tenet.io/previous-netid':'30'"), "red", 2, VNID_MOVE_FINISH, ""},
        {NN("'tenet.io/previous-netid':'30'"), "red", 2, VNID_MOVE_FINISH, ""},
        /* Texts that are no ids. */
        {NN("'tenet.io/next-netid':'x','tenet.io/previous-netid':''"), "red", 1, VNID_MOVE_NONE,
         ""},
        {NN("'tenet.io/change-refused':'x'"), "red", 1, VNID_MOVE_DONE, ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct others o = {.project = "blue", .s = {.id = 30}, .users = cases[i].users};
        struct vnid_move m = plan(cases[i].project, cases[i].nn, 0, &o, false);
        if (m.step != cases[i].step || !strstr(m.reason, cases[i].reason) ||
            !*m.reason != !*cases[i].reason) {
            fail_msg("case %zu: step %d, \"%s\"", i, (int) m.step, m.reason);
        }
    }
}

static void a_refusal_is_told_once(void **state)
{
    struct others o = {.users = 1};
    struct vnid_move m = plan("red", NN(ASKS("join:gone")), 0, &o, false);
    assert_int_equal(m.step, VNID_MOVE_REFUSE);
    CLEANUP(json_free) struct json *nn = from(NN(ASKS("join:gone")));
    obj_set_annotation(nn, NET_CHANGE_REFUSED, m.reason);
    CLEANUP_FREE char *text = json_to_text(nn);
    m = plan("red", text, 0, &o, false);
    assert_int_equal(m.step, VNID_MOVE_WAIT);
    assert_true(m.wait_ms > 0);
}

static void a_plugin_that_knows_no_joining_refuses(void **state)
{
    struct others o = {.project = "blue", .s = {.id = 30}, .users = 1};
    struct vnid_move m = plan("red", NN(ASKS("join:blue")), 0, &o, true);
    assert_int_equal(m.step, VNID_MOVE_REFUSE);
    assert_non_null(strstr(m.reason, "plug-in"));
    /* One that began under another plug-in goes back before, and to its end after, the switch. */
    m = plan("red", NN(ASKS("join:blue") ",'tenet.io/next-netid':'30'"), 0, &o, true);
    assert_int_equal(m.step, VNID_MOVE_CANCEL);
    m = plan("red", NN(ASKS("join:blue") ",'tenet.io/previous-netid':'30'"), 0, &o, true);
    assert_int_equal(m.step, VNID_MOVE_FINISH);
}

static void others_come_first(void **state)
{
    static const struct {
        struct vnid_state blue;
        const char *red;
        enum vnid_move_step step;
    } cases[] = {
        /* blue leaves what red is to enter, or enters what red is to leave. */
        {{.id = 30, .has_next = true, .other = 40}, NN(ASKS("global")), VNID_MOVE_PREPARE},
        {{.id = 0, .has_next = true, .other = 40}, NN(ASKS("global")), VNID_MOVE_WAIT},
        {{.id = 40, .has_previous = true, .other = 0}, NN(ASKS("global")), VNID_MOVE_WAIT},
        {{.id = 30, .has_next = true, .other = 20}, NN(ASKS("global")), VNID_MOVE_WAIT},
        {{.id = 20, .has_previous = true, .other = 30}, NN(ASKS("global")), VNID_MOVE_WAIT},
        /* Both go the same way: in step. */
        {{.id = 20, .has_next = true, .other = 0, .since_ms = 950},
         NN(ASKS("global") ",'tenet.io/next-netid':'0'"),
         VNID_MOVE_WAIT},
        {{.id = 20, .has_next = true, .other = 0, .since_ms = 900},
         NN(ASKS("global") ",'tenet.io/next-netid':'0'"),
         VNID_MOVE_SWITCH},
        {{.id = 20, .request = "global"},
         NN(ASKS("global") ",'tenet.io/next-netid':'0'"),
         VNID_MOVE_WAIT},
        {{.id = 20, .request = "join:gone"},
         NN(ASKS("global") ",'tenet.io/next-netid':'0'"),
         VNID_MOVE_SWITCH},
        {{.id = 20, .has_next = true, .other = 20, .since_ms = 900},
         "{'metadata':{'annotations':{'tenet.io/previous-netid':'20'}},'netid':20}",
         VNID_MOVE_WAIT},
        {{.id = 20, .has_previous = true, .other = 30, .since_ms = 950},
         "{'metadata':{'annotations':{'tenet.io/previous-netid':'30'}},'netid':20}",
         VNID_MOVE_WAIT},
        {{.id = 20, .has_previous = true, .other = 30, .since_ms = 900},
         "{'metadata':{'annotations':{'tenet.io/previous-netid':'30'}},'netid':20}",
         VNID_MOVE_FINISH},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct others o = {.project = "blue", .s = cases[i].blue, .users = 2};
        struct vnid_move m = plan("red", cases[i].red, 0, &o, false);
        if (m.step != cases[i].step || (m.step == VNID_MOVE_WAIT && !m.wait_ms)) {
            fail_msg("case %zu: step %d", i, (int) m.step);
        }
    }
}

static void steps_write_what_nodes_read(void **state)
{
    struct others o = {.project = "blue", .s = {.id = 30}, .users = 2};
    static const char *const stages[] = {
        NN(ASKS("join:blue")),
        NN(ASKS("join:blue") ",'tenet.io/next-netid':'30'"),
        "{'metadata':{'annotations':{" ASKS(
            "join:blue") ",'tenet.io/previous-netid':'20'}},'netid':30}",
        "{'metadata':{'annotations':{" ASKS("join:blue") "}},'netid':30}",
        "{'metadata':{'annotations':{}},'netid':30}",
    };
    for (size_t i = 0; i + 1 < ARRAY_SIZE(stages); i++) {
        struct vnid_move m = plan("red", stages[i], 0, &o, false);
        CLEANUP(json_free) struct json *nn = from(stages[i]);
        struct vnid_state s;
        assert_int_equal(vnid_state_read(nn, &s), 0);
        CLEANUP(json_free) struct json *next = vnid_move_apply(nn, &s, &m);
        assert_non_null(next);
        assert_json(next, stages[i + 1]);
    }
    CLEANUP(json_free)
    struct json *refused = from(NN(ASKS("join:x") ",'tenet.io/change-refused':'y','a':'b'"));
    CLEANUP(json_free) struct json *o2 = vnid_move_give_up(refused);
    assert_json(o2, NN("'a':'b'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_come_to_steps),
        cmocka_unit_test(a_refusal_is_told_once),
        cmocka_unit_test(a_plugin_that_knows_no_joining_refuses),
        cmocka_unit_test(others_come_first),
        cmocka_unit_test(steps_write_what_nodes_read),
        cmocka_unit_test(commands_never_cut_off_nor_open_for_a_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
