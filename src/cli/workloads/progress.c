/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/workloads/progress.h"

#include "cli/workloads/template.h"
#include "workload/deployment.h"

#include <inttypes.h>
#include <stdio.h>

const struct json *progress_condition(const struct json *object, const char *type)
{
    const struct json *c;
    JSON_FOREACH (c, json_path(object, "status", "conditions", NULL)) {
        if (streq(json_get_text(c, "type"), type)) {
            return c;
        }
    }
    return NULL;
}

static bool is_observed(const struct json *o)
{
    return number_at(o, "metadata", "generation", 0) <=
           number_at(o, "status", "observedGeneration", 0);
}

static const char *name_of(const struct json *o)
{
    return json_get_text(json_get(o, "metadata"), "name");
}

static int wrong_revision(struct err *e, int64_t want, int64_t have)
{
    return err_set(e, -EINVAL,
                   "desired revision (%" PRId64 ") is different from the running revision "
                   "(%" PRId64 ")",
                   want, have);
}

/* The numbers of the status that say how far replicas are. */
struct counts {
    int64_t wanted, all, updated, available;
};

static struct counts counts_of(const struct json *o)
{
    return (struct counts){number_at(o, "spec", "replicas", 1),
                           number_at(o, "status", "replicas", 0),
                           number_at(o, "status", "updatedReplicas", 0),
                           number_at(o, "status", "availableReplicas", 0)};
}

/* Returns false when a line about the replicas was written. */
static bool replicas_are_done(const struct counts *c, const char *what, struct strbuf *out)
{
    if (c->updated < c->wanted) {
        strbuf_addf(out,
                    "Waiting for %srollout to finish: %" PRId64 " out of %" PRId64
                    " new replicas have been updated...\n",
                    what, c->updated, c->wanted);
    } else if (c->all > c->updated) {
        strbuf_addf(out,
                    "Waiting for %srollout to finish: %" PRId64
                    " old replicas are pending termination...\n",
                    what, c->all - c->updated);
    } else if (c->available < c->updated) {
        strbuf_addf(out,
                    "Waiting for %srollout to finish: %" PRId64 " of %" PRId64
                    " updated replicas are available...\n",
                    what, c->available, c->updated);
    } else {
        return true;
    }
    return false;
}

static int of_deployment(const struct json *o, int64_t revision, struct strbuf *out, struct err *e)
{
    const char *name = name_of(o), *has = annotation_of(o, DEPLOYMENT_REVISION);
    int64_t now = 0;
    if (revision > 0 && (!has || str_to_i64(has, 0, INT64_MAX, &now) < 0 || now != revision)) {
        return wrong_revision(e, revision, now);
    }
    if (!is_observed(o)) {
        strbuf_adds(out, "Waiting for deployment spec update to be observed...\n");
        return 0;
    }
    if (streq(json_get_text(progress_condition(o, "Progressing"), "reason"),
              "ProgressDeadlineExceeded")) {
        return err_set(e, -EINVAL, "deployment \"%s\" exceeded its progress deadline", name);
    }
    struct counts c = counts_of(o);
    char what[300];
    (void) snprintf(what, sizeof(what), "deployment \"%s\" ", name);
    if (!replicas_are_done(&c, what, out)) {
        return 0;
    }
    strbuf_addf(out, "deployment \"%s\" successfully rolled out\n", name);
    return 1;
}

static int needs_rolling_update(const struct json *o, struct err *e)
{
    return streq(json_get_text(json_path(o, "spec", "updateStrategy", NULL), "type"),
                 "RollingUpdate")
               ? 0
               : err_set(e, -EINVAL,
                         "rollout status is only available for RollingUpdate strategy type");
}

static int of_daemon_set(const struct json *o, struct strbuf *out, struct err *e)
{
    const char *name = name_of(o);
    int64_t wanted = number_at(o, "status", "desiredNumberScheduled", 0);
    int64_t updated = number_at(o, "status", "updatedNumberScheduled", 0);
    int64_t available = number_at(o, "status", "numberAvailable", 0);
    if (needs_rolling_update(o, e) < 0) {
        return -EINVAL;
    }
    if (!is_observed(o)) {
        strbuf_adds(out, "Waiting for daemon set spec update to be observed...\n");
    } else if (updated < wanted) {
        strbuf_addf(out,
                    "Waiting for daemon set \"%s\" rollout to finish: %" PRId64 " out of %" PRId64
                    " new pods have been updated...\n",
                    name, updated, wanted);
    } else if (available < wanted) {
        strbuf_addf(out,
                    "Waiting for daemon set \"%s\" rollout to finish: %" PRId64 " of %" PRId64
                    " updated pods are available...\n",
                    name, available, wanted);
    } else {
        strbuf_addf(out, "daemon set \"%s\" successfully rolled out\n", name);
        return 1;
    }
    return 0;
}

static int of_stateful_set(const struct json *o, struct strbuf *out, struct err *e)
{
    int64_t wanted = number_at(o, "spec", "replicas", 1);
    int64_t ready = number_at(o, "status", "readyReplicas", 0);
    int64_t updated = number_at(o, "status", "updatedReplicas", 0);
    const struct json *partition =
        json_path(o, "spec", "updateStrategy", "rollingUpdate", "partition", NULL);
    int64_t last = wanted - json_get_int_or(partition, 0);
    const char *current = json_get_text(json_get(o, "status"), "currentRevision");
    const char *update = json_get_text(json_get(o, "status"), "updateRevision");
    if (needs_rolling_update(o, e) < 0) {
        return -EINVAL;
    }
    if (number_at(o, "status", "observedGeneration", 0) == 0 || !is_observed(o)) {
        strbuf_adds(out, "Waiting for statefulset spec update to be observed...\n");
    } else if (ready < wanted) {
        strbuf_addf(out, "Waiting for %" PRId64 " pods to be ready...\n", wanted - ready);
    } else if (partition) {
        if (updated < last) {
            strbuf_addf(out,
                        "Waiting for partitioned roll out to finish: %" PRId64 " out of %" PRId64
                        " new pods have been updated...\n",
                        updated, last);
            return 0;
        }
        strbuf_addf(out,
                    "partitioned roll out complete: %" PRId64 " new pods have been updated...\n",
                    updated);
        return 1;
    } else if (!streq(current, update)) {
        strbuf_addf(out,
                    "waiting for statefulset rolling update to complete %" PRId64
                    " pods at revision %s...\n",
                    updated, update);
    } else {
        strbuf_addf(out, "statefulset rolling update complete %" PRId64 " pods at revision %s...\n",
                    number_at(o, "status", "currentReplicas", 0), current);
        return 1;
    }
    return 0;
}

static bool has_image_trigger(const struct json *o)
{
    const struct json *t;
    JSON_FOREACH (t, json_path(o, "spec", "triggers", NULL)) {
        if (streq(json_get_text(t, "type"), "ImageChange")) {
            return true;
        }
    }
    return false;
}

/* A DeploymentConfig without a rollout so far. */
static int never_rolled_out(const struct json *o, struct strbuf *out)
{
    const char *name = name_of(o);
    if (has_image_trigger(o)) {
        strbuf_addf(out, "Deployment config \"%s\" waiting on image update\n", name);
        return 0;
    }
    if (json_count(json_path(o, "spec", "triggers", NULL)) == 0) {
        strbuf_addf(out,
                    "Deployment config \"%s\" waiting on manual update (use 'tenet rollout latest "
                    "%s')\n",
                    name, name);
        return 1;
    }
    strbuf_adds(out, "Waiting for latest deployment config spec to be observed by the controller "
                     "loop...\n");
    return 0;
}

static int of_dc(const struct json *o, int64_t revision, struct strbuf *out, struct err *e)
{
    int64_t latest = number_at(o, "status", "latestVersion", 0);
    const char *reason = json_get_text(progress_condition(o, "Progressing"), "reason");
    const char *name = name_of(o);
    if (latest == 0) {
        return never_rolled_out(o, out);
    }
    if (revision > 0 && revision != latest) {
        return wrong_revision(e, revision, latest);
    }
    if (streq(reason, "NewReplicationControllerAvailable")) {
        strbuf_addf(out, "replication controller \"%s-%" PRId64 "\" successfully rolled out\n",
                    name, latest);
        return 1;
    }
    if (streq(reason, "ProgressDeadlineExceeded")) {
        return err_set(e, -EINVAL,
                       "replication controller \"%s-%" PRId64 "\" has failed progressing", name,
                       latest);
    }
    if (streq(reason, "RolloutCancelled")) {
        return err_set(e, -EINVAL,
                       "rollout of replication controller \"%s-%" PRId64 "\" was cancelled", name,
                       latest);
    }
    struct counts c = counts_of(o);
    if (replicas_are_done(&c, "", out)) {
        strbuf_adds(out, "Waiting for latest deployment config spec to be observed by the "
                         "controller loop...\n");
    }
    return 0;
}

int progress_write(const struct api_kind *k, const struct json *object, int64_t revision,
                   struct strbuf *out, struct err *e)
{
    if (kind_is(k, "apps", "Deployment")) {
        return of_deployment(object, revision, out, e);
    }
    if (kind_is(k, "apps", "DaemonSet")) {
        return of_daemon_set(object, out, e);
    }
    if (kind_is(k, "apps", "StatefulSet")) {
        return of_stateful_set(object, out, e);
    }
    if (kind_is_dc(k)) {
        return of_dc(object, revision, out, e);
    }
    return err_set(e, -EINVAL, "no status viewer has been implemented for %s", k->kind);
}
