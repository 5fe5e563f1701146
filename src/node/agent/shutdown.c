/* SPDX-License-Identifier: Apache-2.0 */
#include "node/agent/shutdown.h"

#include "net/loop/notify.h"
#include "node/agent/report.h"

#include <stdio.h>
#include <unistd.h>

LOG_MODULE("node");

#define STOP_MS 10000     /* The longest time that requests under way may take at the end. */
#define STOP_TELL_MS 1000 /* The longest time that the last writes to the API server may take. */
#define STOP_STEP_MS 10

void agent_stop_step(void *ctx)
{
    struct agent *a = ctx;
    uint64_t t = loop_now_ms(a->loop) - a->stop_began;
    bool busy = (a->pods && pods_busy(a->pods) > 0) ||
                (a->host_sync && host_sync_busy(a->host_sync)) ||
                (a->host_proxy && host_proxy_busy(a->host_proxy));
    bool telling =
        a->registration && a->registered && !a->master_lost &&
        (!registration_is_current(a->registration) || recorder_waiting(a->recorder) > 0) &&
        t < STOP_TELL_MS;
    if (t < STOP_MS && (busy || telling)) {
        loop_timer_arm(a->stop_timer, STOP_STEP_MS);
        return;
    }
    if (busy) {
        /* Threads still use memory that would be freed here; the kernel frees it when the process
         * ends. */
        log_warn("stopped with requests under way", "requests=%zu",
                 a->pods ? pods_busy(a->pods) : 0);
        _exit(a->status);
    }
    loop_stop(a->loop);
}

void agent_stop(struct agent *a, int status, const char *reason, const char *message)
{
    if (a->phase == AGENT_STOPPING) {
        return;
    }
    a->phase = AGENT_STOPPING;
    a->status = status;
    if (a->conf.dir) {
        cni_conf_remove(&a->conf);
    }
    if (a->cni_server) {
        cni_server_close(a->cni_server);
    }
    if (a->registration) {
        registration_set_ready(a->registration, false, reason, message);
    }
    a->stop_began = loop_now_ms(a->loop);
    loop_timer_arm(a->stop_timer, 0);
}

void agent_fatal(struct agent *a, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (a->phase != AGENT_STOPPING) {
        log_error("cannot go on", "node=%s reason=\"%s\"", a->cfg->node_name, text);
        agent_report_node(a, EVENT_WARNING, "TenetFailed", text);
    }
    agent_stop(a, 1, "TenetFailed", text);
}

void agent_on_term(void *ctx)
{
    struct agent *a = ctx;
    if (a->phase == AGENT_STOPPING) {
        a->stop_began = 0; /* The second signal: end now. */
        return;
    }
    log_info("stopping; packets flow on", "node=%s", a->cfg->node_name);
    notify_manager("STOPPING=1\nSTATUS=stops; packets flow on");
    agent_stop(a, 0, "TenetStopped", "the node's agent was stopped");
}
