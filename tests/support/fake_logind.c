/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_logind.h"

#include "base/mem.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#define SERVICE "org.freedesktop.login1"
#define OBJECT "/org/freedesktop/login1"
#define MANAGER SERVICE ".Manager"

struct fake_logind {
    sd_bus *bus;
    uint64_t max_us;
    int lock_fd; /* Its own end of the lock. */
    char *lock;
};

static void must(int r)
{
    if (r < 0) {
        abort();
    }
}

static int on_inhibit(sd_bus_message *m, void *ctx, sd_bus_error *error)
{
    struct fake_logind *g = ctx;
    const char *what, *who, *why, *mode;
    int fds[2];
    must(sd_bus_message_read(m, "ssss", &what, &who, &why, &mode));
    must(pipe2(fds, O_CLOEXEC | O_NONBLOCK));
    free(g->lock);
    g->lock = xasprintf("%s %s %s", what, mode, who);
    fd_close(g->lock_fd);
    g->lock_fd = fds[0];
    int r = sd_bus_reply_method_return(m, "h", fds[1]);
    close(fds[1]);
    return r;
}

static int get_max(sd_bus *bus, const char *path, const char *interface, const char *property,
                   sd_bus_message *reply, void *ctx, sd_bus_error *error)
{
    const struct fake_logind *g = ctx;
    return sd_bus_message_append(reply, "t", g->max_us);
}

static const sd_bus_vtable vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("Inhibit", "ssss", "h", on_inhibit, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_PROPERTY("InhibitDelayMaxUSec", "t", get_max, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_SIGNAL("PrepareForShutdown", "b", 0),
    SD_BUS_VTABLE_END,
};

struct fake_logind *fake_logind_new(uint64_t max_us)
{
    struct fake_logind *g = NEW(struct fake_logind);
    g->max_us = max_us;
    g->lock_fd = -1;
    g->lock = xstrdup("");
    must(sd_bus_open_system(&g->bus));
    must(sd_bus_add_object_vtable(g->bus, NULL, OBJECT, MANAGER, vtable, g));
    must(sd_bus_request_name(g->bus, SERVICE, 0));
    return g;
}

struct fake_logind *fake_logind_free(struct fake_logind *g)
{
    if (g) {
        sd_bus_flush_close_unref(g->bus);
        fd_close(g->lock_fd);
        free(g->lock);
        free(g);
    }
    return NULL;
}

void fake_logind_process(struct fake_logind *g)
{
    while (sd_bus_process(g->bus, NULL) > 0) {
    }
}

void fake_logind_announce(struct fake_logind *g, bool begins)
{
    must(sd_bus_emit_signal(g->bus, OBJECT, MANAGER, "PrepareForShutdown", "b", (int) begins));
}

bool fake_logind_is_held(const struct fake_logind *g)
{
    struct pollfd p = {.fd = g->lock_fd, .events = POLLIN};
    return g->lock_fd >= 0 && poll(&p, 1, 0) == 0;
}

const char *fake_logind_lock(const struct fake_logind *g)
{
    return g->lock;
}
