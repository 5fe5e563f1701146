/* SPDX-License-Identifier: Apache-2.0 */
/* The section "dnsConfig" of master-config.yaml; its rows are in master_options.c. */
#pragma once

#include <stdbool.h>

struct dns_config {
    char *bind_address; /* "none", "ADDRESS[:PORT]"; NULL: not given. */
    bool recursive, isolate;
    char *domain;      /* NULL: not given. */
    char *nameservers; /* Separated by commas; NULL: not given. */
};
