/* SPDX-License-Identifier: Apache-2.0 */
/* tenet scale and autoscale: how many pods a workload has. */
#include "base/mem.h"
#include "base/timeutil.h"
#include "cli/kubectl/target.h"
#include "cli/kubectl/watch.h"
#include "cli/workloads/template.h"

#include <inttypes.h>
#include <stdio.h>

#define ATTEMPTS 5 /* While other clients change the same object. */

/* ---- scale ---- */

struct scale {
    int64_t replicas, current; /* current -1: any. */
    const char *version;       /* NULL: any. */
    uint64_t timeout_ms;
};

enum { OPT_REPLICAS = OPT_FIRST_FREE, OPT_CURRENT, OPT_VERSION, OPT_TIMEOUT };

static const struct command_option scale_options[] = {
    {"replicas", OPT_REPLICAS, "N", "the number of pods; required"},
    {"current-replicas", OPT_CURRENT, "N", "fails when another number was asked for before"},
    {"resource-version", OPT_VERSION, "VERSION", "fails when the object has changed since"},
    {"timeout", OPT_TIMEOUT, "DURATION", "waits so long until there are as many pods",
     .detail = "Without it the command does not wait."},
    {0},
};

static int check_before(const struct scale *s, const struct json *scale)
{
    int64_t now = number_at(scale, "spec", "replicas", 0);
    const char *version = json_path_string(scale, "metadata", "resourceVersion", NULL);
    if (s->current >= 0 && now != s->current) {
        return session_error("Expected replicas to be %" PRId64 ", was %" PRId64, s->current, now);
    }
    if (s->version && !streq_null(version, s->version)) {
        return session_error("Expected resource version to be %s, was %s", s->version,
                             version ? version : "");
    }
    return 0;
}

static int on_scaled(void *ctx, const struct json *object, struct err *e)
{
    const struct scale *s = ctx;
    if (!object) {
        return err_set(e, -ENOENT, "the object was deleted");
    }
    return number_at(object, "spec", "replicas", 0) != s->replicas ||
           (number_at(object, "metadata", "generation", 0) <=
                number_at(object, "status", "observedGeneration", INT64_MAX) &&
            number_at(object, "status", "replicas", 0) == s->replicas);
}

static int wait_for_pods(struct targets *t, const struct target *g, struct scale *s)
{
    struct err e = {0};
    int r = watch_object(&t->s, g->kind, json_path_string(g->object, "metadata", "namespace", NULL),
                         target_name(g), time_mono_ms() + s->timeout_ms, on_scaled, s, &e);
    if (r == -ETIMEDOUT) {
        CLEANUP_FREE char *title = target_title(g);
        return session_error("timed out waiting for %s to be synced", title);
    }
    return r < 0 ? session_fail(&t->s, &e, NULL) : 0;
}

/* Writes the number into the subresource scale. */
static int put_scale(struct targets *t, const struct target *g, struct scale *s)
{
    CLEANUP_FREE char *path = target_path(g, "scale");
    CLEANUP_FREE char *query = xasprintf("%s%s", path, target_query(t));
    struct err e = {0};
    int r = 0;
    for (unsigned i = 0; i < ATTEMPTS; i++) {
        CLEANUP(json_free) struct json *scale = NULL;
        r = api_request_sync(t->s.client, "GET", path, NULL, NULL, NULL, &scale, &e);
        if (r < 0) {
            break;
        }
        if (check_before(s, scale) != 0) {
            return 1;
        }
        json_set_int(json_ensure_object(scale, "spec"), "replicas", s->replicas);
        r = t->dry_run == DRY_RUN_CLIENT
                ? 0
                : api_request_sync(t->s.client, "PUT", query, NULL, NULL, scale, NULL, &e);
        if (r != -ESTALE) {
            break;
        }
    }
    return r < 0 ? session_fail(&t->s, &e, NULL) : 0;
}

static int scale_one(struct targets *t, const struct target *g, struct scale *s)
{
    if (put_scale(t, g, s) != 0) {
        return 1;
    }
    if (s->timeout_ms && t->dry_run == DRY_RUN_NONE && wait_for_pods(t, g, s) != 0) {
        return 1;
    }
    return target_print(t, g->kind, g->object, "scaled");
}

static int run_scale(int argc, char **argv)
{
    CLEANUP_TARGETS struct targets t = {0};
    struct scale s = {.replicas = -1, .current = -1};
    int64_t timeout = 0;
    int opt;
    while ((opt = targets_getopt(&t, &cmd_scale, argc, argv)) != -1) {
        switch (opt) {
        case OPT_REPLICAS:
        case OPT_CURRENT:
            if (str_to_i64(optarg, opt == OPT_CURRENT ? -1 : 0, INT32_MAX,
                           opt == OPT_CURRENT ? &s.current : &s.replicas) < 0) {
                return command_usage(&cmd_scale, "\"%s\" is not a number of replicas", optarg);
            }
            break;
        case OPT_VERSION:
            s.version = optarg;
            break;
        case OPT_TIMEOUT:
            if (time_parse_duration(optarg, &timeout) < 0 || timeout < 0) {
                return command_usage(&cmd_scale, "--timeout \"%s\" is not a time such as 30s",
                                     optarg);
            }
            s.timeout_ms = (uint64_t) (timeout / NS_PER_MS);
            break;
        default:
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    if (s.replicas < 0) {
        return session_error("The --replicas=COUNT flag is required, and COUNT must be greater "
                             "than or equal to 0");
    }
    int status = targets_load(&t, NULL, argc - optind, argv + optind);
    for (size_t i = 0; i < t.n; i++) {
        status |= scale_one(&t, &t.list[i], &s);
    }
    if (t.n == 0 && status == 0) {
        return session_error("no objects passed to scale");
    }
    return status;
}

/* ---- autoscale ---- */

struct autoscale {
    int64_t min, max, cpu; /* -1: not given. */
    const char *name;
};

enum { OPT_MIN = OPT_FIRST_FREE, OPT_MAX, OPT_CPU, OPT_NAME };

static const struct command_option autoscale_options[] = {
    {"min", OPT_MIN, "N", "the lower limit of the number of pods; default: 1"},
    {"max", OPT_MAX, "N", "the upper limit; required"},
    {"cpu-percent", OPT_CPU, "PERCENT",
     "the wanted use of CPU time, in percent of the pods' requests; default: 80"},
    {"name", OPT_NAME, "NAME", "the name of the autoscaler; default: that of the object"},
    {0},
};

static int autoscale_one(struct targets *t, const struct target *g, const struct autoscale *a)
{
    CLEANUP(json_free) struct json *o = json_object();
    CLEANUP_FREE char *version = api_kind_api_version(g->kind);
    json_set_string(o, "apiVersion", "autoscaling/v1");
    json_set_string(o, "kind", "HorizontalPodAutoscaler");
    struct json *meta = json_ensure_object(o, "metadata");
    json_set_string(meta, "name", a->name ? a->name : target_name(g));
    struct json *spec = json_ensure_object(o, "spec");
    struct json *ref = json_ensure_object(spec, "scaleTargetRef");
    json_set_string(ref, "apiVersion", version);
    json_set_string(ref, "kind", g->kind->kind);
    json_set_string(ref, "name", target_name(g));
    if (a->min > 0) {
        json_set_int(spec, "minReplicas", a->min);
    }
    json_set_int(spec, "maxReplicas", a->max);
    if (a->cpu > 0) {
        json_set_int(spec, "targetCPUUtilizationPercentage", a->cpu);
    }
    return targets_create(t, api_kind_find("autoscaling", "v1", "horizontalpodautoscalers"), o,
                          "autoscaled");
}

static int run_autoscale(int argc, char **argv)
{
    CLEANUP_TARGETS struct targets t = {0};
    struct autoscale a = {-1, -1, -1, NULL};
    int opt;
    while ((opt = targets_getopt(&t, &cmd_autoscale, argc, argv)) != -1) {
        int64_t *number = opt == OPT_MIN   ? &a.min
                          : opt == OPT_MAX ? &a.max
                          : opt == OPT_CPU ? &a.cpu
                                           : NULL;
        if (number && str_to_i64(optarg, -1, INT32_MAX, number) < 0) {
            return command_usage(&cmd_autoscale, "\"%s\" is not a number", optarg);
        }
        if (opt == OPT_NAME) {
            a.name = optarg;
        } else if (!number) {
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    if (a.max < 1) {
        return session_error("--max=MAXPODS is required and must be at least 1, max: %" PRId64,
                             a.max);
    }
    if (a.max < a.min) {
        return session_error("--max=MAXPODS must be larger or equal to --min=MINPODS, max: %" PRId64
                             ", min: %" PRId64,
                             a.max, a.min);
    }
    int status = targets_load(&t, NULL, argc - optind, argv + optind);
    for (size_t i = 0; i < t.n; i++) {
        status |= autoscale_one(&t, &t.list[i], &a);
    }
    return status;
}

const struct command cmd_scale = {
    .name = "scale",
    .summary = "set the number of pods of workloads",
    .help = "usage: tenet scale KIND/NAME... --replicas N [OPTIONS]\n"
            "       tenet scale KIND (-l SEL | --all) --replicas N [OPTIONS]\n"
            "       tenet scale -f FILE --replicas N [OPTIONS]\n"
            "\n"
            "Sets the number of pods of Deployments, ReplicaSets, ReplicationControllers,\n"
            "StatefulSets, DeploymentConfigs and all other kinds with the subresource scale.\n",
    .options = scale_options,
    .shared = target_options,
    .complete = COMPLETE_KIND,
    .run = run_scale};
const struct command cmd_autoscale = {
    .name = "autoscale",
    .summary = "let the number of pods follow their load",
    .help = "usage: tenet autoscale KIND/NAME --max N [OPTIONS]\n"
            "\n"
            "Makes a HorizontalPodAutoscaler for a kind with the subresource scale.\n",
    .options = autoscale_options,
    .shared = target_options,
    .complete = COMPLETE_KIND,
    .run = run_autoscale};
