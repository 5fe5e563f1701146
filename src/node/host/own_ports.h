/* SPDX-License-Identifier: Apache-2.0 */
/* The ports of this host that Tenet's own parts use, whether they listen at the moment or not: no
 * pod gets one as a host port. Pure, except that it reads the host's addresses from the kernel. */
#pragma once

#include "client/services.h"
#include "node/config.h"
#include "wire/cni_runtime.h"

struct own_ports {
    const struct node_config *config;
    const struct sdn_network *net;
    const struct services_watch *services; /* NULL: none are known. */
    const char *master;                    /* URL of the API's server. */
};
/* Names the part of Tenet that uses 'p' ("DNS of pods"); NULL: none. */
const char *own_ports_find(const struct own_ports *o, const struct cni_host_port *p);
