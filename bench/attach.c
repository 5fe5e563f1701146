/* SPDX-License-Identifier: Apache-2.0 */
/* Latency of CNI ADD and DEL: tenet-cni beside Debian's bridge + host-local, executed as a runtime
 * executes them, in turn, in one run.
 *
 * The cluster is a lab of its own with one node; the peer works in a network namespace of its own:
 * - in turn, the order changing from round to round, the machine resting 60 ms before each call, so
 *   that no call pays for what an earlier one left to the kernel;
 * - without rest, in alternating blocks of one side, so that each pays for its own leftovers.  Our
 *   DEL answers before the kernel has removed the links, which the first way hides.
 * Then 200 pods, 16 at a time, from the start of the first ADD to the end of the last one.
 *
 * usage: bench_attach [--datapath ovs|ebpf] [ROUNDS]     (ovs, 100; as root) */
#include "measure.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"
#include "net/kernel/netns.h"
#include "net/loop/process.h"
#include "wire/json.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PEER "/usr/lib/cni/bridge"
#define REST_MS 60
#define BLOCK 10
#define BLOCK_REST_MS 200
#define CROWD 200
#define CROWD_AT_ONCE 16
#define CROWD_ROUNDS 3

static uint64_t rest_ms;

extern char **environ;

enum { ADD, DEL, N_OPS };

struct side {
    const char *title, *program;
    int ns; /* Namespace of the "host" it works in. */
    char *conf;
    char sandbox[64];
    double *ms[N_OPS];
};

static char lab[32], peer_ns[48], data_dir[64], tenet[PATH_MAX + 32], plugin[PATH_MAX + 32];
static struct side sides[2];

static void die(const char *what, const char *text)
{
    fprintf(stderr, "attach: %s: %s\n", what, text);
    exit(1);
}

static char *lab_run(const char *const *args)
{
    const char *argv[16] = {tenet, "lab", "--name", lab};
    size_t n = 4;
    while (*args) {
        argv[n++] = *args++;
    }
    struct process_spec s = PROCESS_SPEC_INIT;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT, text = STRBUF_INIT;
    struct err e = {0};
    int status = 0;
    s.argv = argv;
    int r = process_run(&s, 180000, &out, &text, &status, &e);
    if (r < 0 || status) {
        die("tenet lab", r < 0 ? e.text : strbuf_cstr(&text));
    }
    return strbuf_steal(&out);
}

static void crowd_sandboxes(bool make);

static void clean_up(void)
{
    static bool done;
    if (done) {
        return;
    }
    done = true;
    for (size_t i = 0; i < 2; i++) {
        netns_delete(sides[i].sandbox, NULL);
    }
    crowd_sandboxes(false);
    netns_delete(peer_ns, NULL);
    dir_remove(data_dir, NULL);
    const char *const argv[] = {tenet, "lab", "--name", lab, "down", NULL};
    struct process_spec s = PROCESS_SPEC_INIT;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT, text = STRBUF_INIT;
    int status;
    s.argv = argv;
    process_run(&s, 120000, &out, &text, &status, NULL);
}

static void on_signal(int signo)
{
    exit(128 + signo);
}

/* The file in 'dir' that ends with ".conf". */
static char *read_conf(const char *dir)
{
    DIR *d = opendir(dir);
    char *text = NULL;
    for (struct dirent *entry; d && !text && (entry = readdir(d));) {
        if (str_has_suffix(entry->d_name, ".conf")) {
            CLEANUP_FREE char *path = xasprintf("%s/%s", dir, entry->d_name);
            CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
            if (file_read(path, 65536, &b, NULL) == 0) {
                text = strbuf_steal(&b);
            }
        }
    }
    if (d) {
        closedir(d);
    }
    if (!text) {
        die(dir, "no CNI configuration");
    }
    return text;
}

static void set_up(const char *datapath)
{
    struct err e = {0};
    snprintf(lab, sizeof lab, "bench%d", (int) getpid());
    snprintf(peer_ns, sizeof peer_ns, "tenet-%s-peer", lab);
    snprintf(data_dir, sizeof data_dir, "/tmp/tenet-%s", lab);
    char self[PATH_MAX] = "";
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash = n > 0 ? strrchr(self, '/') : NULL;
    if (!slash) {
        die("/proc/self/exe", strerror(errno));
    }
    *slash = '\0';
    snprintf(plugin, sizeof plugin, "%s/../src/cni/tenet-cni", self);
    snprintf(tenet, sizeof tenet, "%s/../src/cli/tenet", self);
    if (access(PEER, X_OK) < 0) {
        die(PEER, "not there; install containernetworking-plugins");
    }
    atexit(clean_up);
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);

    free(lab_run((const char *const[]){"up", "--no-containers", "--nodes", "1", "--datapath",
                                       datapath, NULL}));
    CLEANUP_FREE char *text = lab_run((const char *const[]){"status", "-o", "json", NULL});
    CLEANUP(json_free) struct json *status = NULL;
    if (json_parse(text, strlen(text), &status, &e) < 0) {
        die("tenet lab status", e.text);
    }
    const struct json *node = json_at(json_get(status, "nodes"), 0);
    const char *conf_dir = json_path_string(node, "cniConfDir", NULL);
    CLEANUP_FREE char *node_ns = xasprintf("tenet-%s-node1", lab);
    sides[0] = (struct side){.title = "tenet-cni", .program = plugin};
    sides[1] = (struct side){.title = "bridge+host-local", .program = PEER};
    sides[0].conf = read_conf(conf_dir ? conf_dir : "");
    sides[1].conf = xasprintf(
        "{\"cniVersion\":\"1.0.0\",\"name\":\"bench\",\"type\":\"bridge\",\"bridge\":\"cni0\","
        "\"isGateway\":true,\"mtu\":1450,\"ipam\":{\"type\":\"host-local\",\"dataDir\":\"%s\","
        "\"ranges\":[[{\"subnet\":\"10.77.0.0/23\"}]],\"routes\":[{\"dst\":\"0.0.0.0/0\"}]}}",
        data_dir);
    if (netns_create(peer_ns, &e) < 0 || netns_open(peer_ns, &sides[1].ns, &e) < 0 ||
        netns_open(node_ns, &sides[0].ns, &e) < 0) {
        die("network namespace", e.text);
    }
}

struct process {
    pid_t pid;
    int in, out;
};

/* Pipes to and from a plug-in that is about to be executed. */
static void make_pipes(struct process *p, int ret_child[2])
{
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0) {
        die("pipe", strerror(errno));
    }
    ret_child[0] = in[0];
    ret_child[1] = out[1];
    p->in = in[1];
    p->out = out[0];
}

/* Executes the plug-in, in the calling thread's network namespace. */
static void start(struct process *p, const struct side *s, const char *command, unsigned id,
                  const char *sandbox, const int child[2])
{
    char env[5][256];
    snprintf(env[0], sizeof env[0], "CNI_COMMAND=%s", command);
    snprintf(env[1], sizeof env[1], "CNI_CONTAINERID=%s-%u", lab, id);
    snprintf(env[2], sizeof env[2], "CNI_NETNS=/run/netns/%s", sandbox);
    snprintf(env[3], sizeof env[3],
             "CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=p%u", id);
    snprintf(env[4], sizeof env[4], "PATH=%s", "/usr/sbin:/usr/bin:/sbin:/bin");
    char *envp[] = {env[0],
                    env[1],
                    env[2],
                    env[3],
                    env[4],
                    (char[]){"CNI_IFNAME=eth0"},
                    (char[]){"CNI_PATH=/usr/lib/cni"},
                    NULL};
    char *argv[] = {(char *) (uintptr_t) s->program, NULL};
    posix_spawn_file_actions_t fa;
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_adddup2(&fa, child[0], 0);
    posix_spawn_file_actions_adddup2(&fa, child[1], 1);
    int r = posix_spawn(&p->pid, s->program, &fa, NULL, argv, envp);
    posix_spawn_file_actions_destroy(&fa);
    if (r) {
        die(s->program, strerror(r));
    }
    close(child[0]);
    close(child[1]);
    size_t size = strlen(s->conf);
    if (write(p->in, s->conf, size) != (ssize_t) size) {
        die(s->title, "did not read its configuration");
    }
    close(p->in);
}

/* Reads what the plug-in says to its end; 'status' NULL: and waits for that. */
static void finish(struct process *p, const struct side *s, const char *command, const int *status)
{
    char answer[8192];
    size_t got = 0;
    int own = -1;
    for (ssize_t n; (n = read(p->out, answer + got, sizeof answer - 1 - got)) > 0;) {
        got += (size_t) n;
    }
    close(p->out);
    answer[got] = '\0';
    if (!status) {
        waitpid(p->pid, &own, 0);
        status = &own;
    }
    if (*status != 0 || (streq(command, "ADD") && !strstr(answer, "\"ips\""))) {
        die(s->title, answer);
    }
}

/* Milliseconds from the plug-in's start to its end. */
static double call(struct side *s, const char *command, unsigned round)
{
    struct process p;
    struct err e = {0};
    int child[2], back;
    if (netns_enter(s->ns, &back, &e) < 0) {
        die("set up", e.text);
    }
    make_pipes(&p, child);
    usleep((useconds_t) rest_ms * 1000);
    uint64_t begin = time_mono_ns();
    start(&p, s, command, round, s->sandbox, child);
    finish(&p, s, command, NULL);
    uint64_t end = time_mono_ns();
    netns_leave(back);
    return (double) (end - begin) / 1e6;
}

static const char *const commands[] = {"ADD", "DEL"};

static void sandboxes(size_t from, size_t to, bool make)
{
    for (size_t i = from; i < to; i++) {
        struct err e = {0};
        if (!make) {
            netns_delete(sides[i].sandbox, NULL);
            continue;
        }
        snprintf(sides[i].sandbox, sizeof sides[i].sandbox, "tenet-%s-s%zu", lab, i);
        if (netns_create(sides[i].sandbox, &e) < 0) {
            die("sandbox", e.text);
        }
    }
}

/* Each call by itself: the machine rests before it. */
static void measure_in_turn(unsigned rounds)
{
    rest_ms = REST_MS;
    for (unsigned round = 0; round < rounds; round++) {
        sandboxes(0, 2, true);
        for (size_t op = 0; op < N_OPS; op++) {
            for (size_t k = 0; k < 2; k++) {
                struct side *s = &sides[(k + round) % 2];
                s->ms[op][round] = call(s, commands[op], round);
            }
        }
        sandboxes(0, 2, false);
    }
}

/* Without rest, in alternating blocks of one side: each pays for what it left behind itself. */
static void measure_in_blocks(unsigned rounds)
{
    for (unsigned begin = 0, block = 0; begin < rounds; begin += BLOCK, block++) {
        for (size_t k = 0; k < 2; k++) {
            size_t i = (k + block) % 2;
            usleep(BLOCK_REST_MS * 1000);
            rest_ms = 0;
            for (unsigned round = begin; round < MIN(begin + BLOCK, rounds); round++) {
                sandboxes(i, i + 1, true);
                for (size_t op = 0; op < N_OPS; op++) {
                    sides[i].ms[op][round] = call(&sides[i], commands[op], round);
                }
                sandboxes(i, i + 1, false);
            }
        }
    }
}

static void crowd_sandbox(size_t i, char ret[64])
{
    snprintf(ret, 64, "tenet-%s-c%zu", lab, i);
}

/* Seconds for one call for each of the crowd. */
static double call_crowd(const struct side *s, const char *command)
{
    struct process running[CROWD_AT_ONCE] = {0};
    struct err e = {0};
    unsigned started = 0, ended = 0;
    int back;
    if (netns_enter(s->ns, &back, &e) < 0) {
        die("set up", e.text);
    }
    uint64_t begin = time_mono_ns();
    while (ended < CROWD) {
        for (size_t i = 0; i < CROWD_AT_ONCE && started < CROWD; i++) {
            if (running[i].pid == 0) {
                char sandbox[64];
                int child[2];
                crowd_sandbox(started, sandbox);
                make_pipes(&running[i], child);
                start(&running[i], s, command, started++, sandbox, child);
            }
        }
        int status;
        pid_t pid = wait(&status);
        for (size_t i = 0; i < CROWD_AT_ONCE; i++) {
            if (running[i].pid == pid) {
                finish(&running[i], s, command, &status);
                running[i].pid = 0;
                ended++;
            }
        }
    }
    uint64_t end = time_mono_ns();
    netns_leave(back);
    return (double) (end - begin) / 1e9;
}

static void crowd_sandboxes(bool make)
{
    for (size_t i = 0; i < CROWD; i++) {
        char name[64];
        struct err e = {0};
        crowd_sandbox(i, name);
        if (!make) {
            netns_delete(name, NULL);
        } else if (netns_create(name, &e) < 0) {
            die("sandbox", e.text);
        }
    }
}

static void measure_crowd(void)
{
    double seconds[2][CROWD_ROUNDS];
    for (size_t round = 0; round < CROWD_ROUNDS; round++) {
        for (size_t k = 0; k < 2; k++) {
            size_t i = (k + round) % 2;
            crowd_sandboxes(true);
            usleep(BLOCK_REST_MS * 1000);
            seconds[i][round] = call_crowd(&sides[i], commands[ADD]);
            call_crowd(&sides[i], commands[DEL]);
            crowd_sandboxes(false);
        }
    }
    printf("%d pods, %d at a time, to the last ADD's end: median of %d rounds\n", CROWD,
           CROWD_AT_ONCE, CROWD_ROUNDS);
    double median[2];
    for (size_t i = 0; i < 2; i++) {
        median[i] = measure_quantile(seconds[i], CROWD_ROUNDS, 0.5);
        printf("%-20s %8.2f s\n", sides[i].title, median[i]);
    }
    printf("%-20s %8.2f\n", "ratio", median[0] / median[1]);
    measure_result("200 pods, 16 at a time", median[0], "s", sides[1].title, median[1]);
}

/* 'how' is for the reader of the table, 'when' for the names of the measures. */
static void print_table(const char *how, const char *when, unsigned rounds)
{
    static const char *const ops[N_OPS] = {"ADD", "DEL"};
    double p50[2][N_OPS], p99[2][N_OPS];
    printf("CNI latency in ms, %u rounds, %s\n%-20s %8s %8s %8s %8s\n", rounds, how, "", "ADD p50",
           "ADD p99", "DEL p50", "DEL p99");
    for (size_t i = 0; i < 2; i++) {
        printf("%-20s", sides[i].title);
        for (size_t op = 0; op < N_OPS; op++) {
            p50[i][op] = measure_quantile(sides[i].ms[op], rounds, 0.5);
            p99[i][op] = measure_quantile(sides[i].ms[op], rounds, 0.99);
            printf(" %8.2f %8.2f", p50[i][op], p99[i][op]);
        }
        putchar('\n');
    }
    printf("%-20s %8.2f %17.2f\n", "ratio of p50", p50[0][ADD] / p50[1][ADD],
           p50[0][DEL] / p50[1][DEL]);
    for (size_t op = 0; op < N_OPS; op++) {
        CLEANUP_FREE char *median = xasprintf("%s p50, %s", ops[op], when);
        CLEANUP_FREE char *slow = xasprintf("%s p99, %s", ops[op], when);
        measure_result(median, p50[0][op], "ms", sides[1].title, p50[1][op]);
        measure_result(slow, p99[0][op], "ms", sides[1].title, p99[1][op]);
    }
}

int main(int argc, char **argv)
{
    uint64_t rounds = 100;
    const char *datapath = "ovs";
    if (argc > 2 && streq(argv[1], "--datapath")) {
        datapath = argv[2];
        argc -= 2;
        argv += 2;
    }
    if (argc > 2 || (argc == 2 && (str_to_u64(argv[1], 400, &rounds) < 0 || rounds == 0))) {
        fputs("usage: bench_attach [--datapath ovs|ebpf] [ROUNDS]   (1-400)\n", stderr);
        return 2;
    }
    if (geteuid() != 0) {
        die("bench_attach", "needs root");
    }
    set_up(datapath);
    for (size_t i = 0; i < 2; i++) {
        for (size_t op = 0; op < N_OPS; op++) {
            sides[i].ms[op] = xcalloc(rounds, sizeof(double));
        }
    }
    measure_in_turn((unsigned) rounds);
    print_table("in turn, resting before each call", "rested", (unsigned) rounds);
    measure_in_blocks((unsigned) rounds);
    print_table("without rest, each side in blocks of its own", "without rest", (unsigned) rounds);
    measure_crowd();
    for (size_t i = 0; i < 2; i++) {
        free(sides[i].conf);
        free(sides[i].ms[ADD]);
        free(sides[i].ms[DEL]);
    }
    return 0;
}
