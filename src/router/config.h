/* SPDX-License-Identifier: Apache-2.0 */
/* Options of tenet router: flags, and OpenShift's environment variables with the same meaning.
 *
 * A flag overrides its variable.  The rows of router_options describe the flags; a variable that
 * this router does not act upon is an error or a warning, never silent.  Parsing asks nothing of
 * the system. */
#pragma once

#include "route/plan.h"
#include "wire/options.h"

struct router_config {
    char *kubeconfig, *dir, *haproxy, *listen, *log_level;
    char *name, *canonical_hostname, *route_labels, *namespace_labels, *project_labels, *namespace;
    char *allowed_domains, *denied_domains, *subdomain, *override_domains;
    bool override_hostname, wildcards, share_hosts, update_status;
    char *default_certificate, *service_ca;
    char *address, *balance, *tcp_balance, *cookie_name, *ciphers, *syslog_address, *syslog_level;
    char *log_format, *compression_mime, *errorfile_503;
    uint16_t http_port, https_port;
    uint32_t max_connections, threads;
    bool proxy_protocol, http2, strict_sni, compression, bind_after_sync;
    char *connect_timeout, *client_timeout, *client_fin_timeout, *server_timeout,
        *server_fin_timeout, *tunnel_timeout, *slowloris_timeout, *keepalive_timeout,
        *check_interval, *hard_stop_after, *reload_interval, *shutdown_timeout;
};
void router_config_init(struct router_config *c);
void router_config_done(struct router_config *c);
/* Reads the variables of 'env' ("K=V", NULL ends it).  -EINVAL names the variable; 'warn' is called
 * for each variable that has no effect. */
int router_config_read_env(struct router_config *c, const char *const *env,
                           void (*warn)(const char *name, const char *why), struct err *e);
/* Rules that join several options. */
int router_config_check(const struct router_config *c, struct err *e);
/* The options of the proxy; the texts stay those of 'c'.  'cookie_key' is borrowed. */
void router_config_plan_options(const struct router_config *c, const char *cookie_key,
                                struct route_plan_options *ret);
uint64_t router_config_time(const char *s);

extern const struct option_table router_options;
