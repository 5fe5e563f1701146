/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/stream/options.h"

#include "api/kind_util.h"
#include "base/timeutil.h"

static void check_log(const struct request *q, struct api_causes *causes)
{
    const char *seconds = http_query(q->x, "sinceSeconds"), *time = http_query(q->x, "sinceTime");
    if (seconds && *seconds && time && *time) {
        api_forbidden(causes, "", "at most one of `sinceTime` or `sinceSeconds` may be specified");
    }
}

static void check_rollout_log(const struct request *q, struct api_causes *causes)
{
    const char *version = http_query(q->x, "version");
    check_log(q, causes);
    if (version && *version && request_flag(q, "previous")) {
        CLEANUP(json_free) struct json *v = json_bool(true);
        api_invalid(causes, "previous", v, "cannot use previous when a version is specified");
    }
}

static void check_streams(const struct request *q, struct api_causes *causes)
{
    static const char *const names[] = {"stdin", "stdout", "stderr"};
    bool any = false;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        any |= request_flag(q, names[i]);
    }
    if (!any) {
        api_invalid(causes, "", NULL, "you must specify at least 1 of stdin, stdout, stderr");
    } else if (request_flag(q, "tty") && request_flag(q, "stderr")) {
        api_invalid(causes, "stderr", NULL, "tty and stderr cannot both be true");
    }
}

static void check_exec(const struct request *q, struct api_causes *causes)
{
    const char *command = http_query(q->x, "command");
    if (!command || !*command) {
        api_invalid(causes, "command", NULL, "you must specify a command");
        return;
    }
    check_streams(q, causes);
}

static const struct stream_option log_rows[] = {
    {"container", NULL, STREAM_TEXT, 0},
    {"follow", "follow", STREAM_BOOL, 0},
    {"previous", "previous", STREAM_BOOL, 0},
    {"timestamps", "timestamps", STREAM_BOOL, 0},
    {"insecureSkipTLSVerifyBackend", NULL, STREAM_BOOL, 0},
    {"sinceSeconds", "sinceSeconds", STREAM_COUNT, 1},
    {"sinceTime", "sinceTime", STREAM_TIME, 0},
    {"tailLines", "tailLines", STREAM_COUNT, 0},
    {"limitBytes", "limitBytes", STREAM_COUNT, 1},
};
/* Of a DeploymentConfig: which rollout is meant is for the API server alone. */
static const struct stream_option rollout_log_rows[] = {
    {"container", NULL, STREAM_TEXT, 0},
    {"follow", "follow", STREAM_BOOL, 0},
    {"previous", NULL, STREAM_BOOL, 0},
    {"nowait", NULL, STREAM_BOOL, 0},
    {"timestamps", "timestamps", STREAM_BOOL, 0},
    {"version", NULL, STREAM_COUNT, 1},
    {"sinceSeconds", "sinceSeconds", STREAM_COUNT, 1},
    {"sinceTime", "sinceTime", STREAM_TIME, 0},
    {"tailLines", "tailLines", STREAM_COUNT, 0},
    {"limitBytes", "limitBytes", STREAM_COUNT, 1},
};
static const struct stream_option exec_rows[] = {
    {"container", NULL, STREAM_TEXT, 0}, {"command", "command", STREAM_TEXTS, 0},
    {"stdin", "input", STREAM_BOOL, 0},  {"stdout", "output", STREAM_BOOL, 0},
    {"stderr", "error", STREAM_BOOL, 0}, {"tty", "tty", STREAM_BOOL, 0},
};
static const struct stream_option attach_rows[] = {
    {"container", NULL, STREAM_TEXT, 0},  {"stdin", "input", STREAM_BOOL, 0},
    {"stdout", "output", STREAM_BOOL, 0}, {"stderr", "error", STREAM_BOOL, 0},
    {"tty", "tty", STREAM_BOOL, 0},
};
static const struct stream_option forward_rows[] = {
    {"ports", "port", STREAM_PORTS, 1},
};

#define OPTIONS(kind, rows, check)          \
    {                                       \
        kind, rows, ARRAY_SIZE(rows), check \
    }
const struct stream_options stream_log_options = OPTIONS("PodLogOptions", log_rows, check_log);
const struct stream_options stream_rollout_log_options =
    OPTIONS("DeploymentLogOptions", rollout_log_rows, check_rollout_log);
const struct stream_options stream_exec_options = OPTIONS("PodExecOptions", exec_rows, check_exec);
const struct stream_options stream_attach_options =
    OPTIONS("PodAttachOptions", attach_rows, check_streams);
const struct stream_options stream_forward_options =
    OPTIONS("PodPortForwardOptions", forward_rows, NULL);

static void add(struct strbuf *query, const char *name, const char *value)
{
    strbuf_addf(query, "%s%s=", query->size && strchr(query->data, '?') ? "&" : "?", name);
    http_escape(value, query);
}

static int add_ports(const struct stream_option *o, const char *value, struct strbuf *query)
{
    while (*value) {
        size_t n = strcspn(value, ",");
        CLEANUP_FREE char *text = xstrndup(value, n);
        uint64_t port;
        if (str_to_u64(text, UINT16_MAX, &port) < 0 || !port) {
            return -EINVAL;
        }
        add(query, o->node, text);
        value += n + (value[n] == ',');
    }
    return 0;
}

static int add_value(const struct stream_option *o, const struct request *q, const char *value,
                     struct strbuf *query, struct api_causes *causes)
{
    int64_t number, time;
    switch (o->type) {
    case STREAM_BOOL:
        if (request_flag(q, o->name) && o->node) {
            add(query, o->node, "1");
        }
        return 0;
    case STREAM_COUNT:
        if (!*value) {
            return 0;
        }
        if (str_to_i64(value, INT64_MIN, INT64_MAX, &number) < 0) {
            return -EINVAL;
        }
        if (number < o->min) {
            CLEANUP(json_free) struct json *v = json_int(number);
            api_invalid(causes, o->name, v, "must be greater than %s",
                        o->min ? "0" : "or equal to 0");
        }
        break;
    case STREAM_TIME:
        if (!*value) {
            return 0;
        }
        if (time_parse(value, &time) < 0) {
            return -EINVAL;
        }
        break;
    case STREAM_PORTS:
        return add_ports(o, value, query);
    case STREAM_TEXT:
    case STREAM_TEXTS:
        break;
    }
    if (o->node) {
        add(query, o->node, value);
    }
    return 0;
}

int stream_options_read(const struct stream_options *o, const struct request *q,
                        struct strbuf *query, struct outcome *outcome)
{
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    for (size_t i = 0; i < o->n; i++) {
        const struct stream_option *row = &o->rows[i];
        const char *name, *value;
        bool several = row->type == STREAM_TEXTS || row->type == STREAM_PORTS, found = false;
        for (size_t k = 0; http_query_at(q->x, k, &name, &value); k++) {
            if (!streq(name, row->name) || (found && !several)) {
                continue;
            }
            found = true;
            if (add_value(row, q, value, query, &causes) < 0) {
                outcome_error(outcome, 400, "BadRequest", "%s: Invalid value: \"%.60s\"", name,
                              value);
                return -EINVAL;
            }
        }
    }
    if (o->check && !causes.n) {
        o->check(q, &causes);
    }
    if (causes.n) {
        outcome_invalid_options(outcome, o->kind, &causes);
        return -EINVAL;
    }
    return 0;
}
