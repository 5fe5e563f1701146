/* SPDX-License-Identifier: Apache-2.0 */
/* The text of HAProxy's configuration. */
#include "base/mem.h"
#include "route/plan.h"

#define MS(v) ((unsigned long long) (v))
/* Mozilla's "intermediate" of TLS 1.2; TLS 1.3 has suites of its own. */
#define CIPHERS                                                                                \
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:" \
    "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"

static void write_global(const struct route_plan_options *o, const char *description,
                         struct strbuf *out)
{
    strbuf_addf(out,
                "# Made by tenet router, which replaces this file; changes to it are lost.\n"
                "global\n"
                "    description %s\n"
                "    stats socket %s/haproxy.sock mode 600 level admin expose-fd listeners\n"
                "    stats timeout 1d\n"
                "    hard-stop-after %llums\n"
                "    tune.bufsize 32768\n"
                "    tune.maxrewrite 8192\n"
                "    ssl-default-bind-options ssl-min-ver TLSv1.2\n"
                "    ssl-default-bind-ciphers %s\n"
                "    ssl-load-extra-files none\n",
                description, o->dir, MS(o->hard_stop_ms), o->ciphers ? o->ciphers : CIPHERS);
    if (o->max_connections) {
        strbuf_addf(out, "    maxconn %u\n", o->max_connections);
    }
    if (o->threads) {
        strbuf_addf(out, "    nbthread %u\n", o->threads);
    }
    if (o->syslog_address) {
        strbuf_addf(out, "    log %s local1 %s\n", o->syslog_address, o->log_level);
    }
}

static void write_defaults(const struct route_plan_options *o, struct strbuf *out)
{
    strbuf_addf(out,
                "defaults base\n"
                "    mode http\n"
                "    option redispatch\n"
                "    retries 3\n"
                "    timeout connect %llums\n"
                "    timeout client %llums\n"
                "    timeout client-fin %llums\n"
                "    timeout server %llums\n"
                "    timeout server-fin %llums\n"
                "    timeout http-request %llums\n"
                "    timeout http-keep-alive %llums\n"
                "    timeout tunnel %llums\n"
                "    timeout check 5s\n",
                MS(o->connect_ms), MS(o->client_ms), MS(o->client_fin_ms), MS(o->server_ms),
                MS(o->server_fin_ms), MS(o->request_ms), MS(o->keepalive_ms), MS(o->tunnel_ms));
    if (o->errorfile_503) {
        strbuf_addf(out, "    errorfile 503 %s\n", o->errorfile_503);
    }
    if (o->compression) {
        strbuf_addf(out, "    compression algo gzip\n    compression type %s\n",
                    o->compression_mime);
    }
    if (o->syslog_address) {
        strbuf_adds(out, "    log global\n    option dontlognull\n");
    }
}

static void write_log(const struct route_plan_options *o, struct strbuf *out)
{
    if (!o->syslog_address) {
        return;
    }
    if (!o->json_log) {
        strbuf_adds(out, "    option httplog\n");
        return;
    }
    strbuf_adds(out, "    log-format '{\"time\":\"%[date,utime(\"%Y-%m-%dT%H:%M:%SZ\")]\","
                     "\"client\":\"%ci\",\"host\":\"%[var(txn.host),json]\",\"method\":\"%HM\","
                     "\"path\":\"%[var(txn.path),json]\",\"status\":%ST,\"bytes\":%B,"
                     "\"backend\":\"%b\",\"server\":\"%s\",\"ms\":%Ta,\"state\":\"%ts\"}'\n");
}

static void write_lookup(const struct route_plan_options *o, enum route_plan_map map,
                         struct strbuf *out)
{
    strbuf_addf(out,
                "    http-request set-var(txn.host) req.hdr(host),field(1,:),lower\n"
                "    http-request set-var(txn.path) path\n"
                "    http-request set-var(txn.be) "
                "var(txn.host),concat(,txn.path,?),map_beg(%s/%s)\n",
                o->dir, route_plan_map_file(map));
    if (o->wildcards) {
        strbuf_addf(out,
                    "    http-request set-var(txn.be) "
                    "var(txn.host),field(2,.,0),concat(,txn.path,?),map_beg(%s/%s) "
                    "if !{ var(txn.be) -m found }\n",
                    o->dir, route_plan_map_file(map + 1));
    }
}

static void write_forwarding(const char *proto, struct strbuf *out)
{
    strbuf_addf(out,
                "    option forwardfor\n"
                "    http-request del-header Proxy\n"
                "    http-request set-header X-Forwarded-Host %%[req.hdr(host)]\n"
                "    http-request set-header X-Forwarded-Port %%[dst_port]\n"
                "    http-request set-header X-Forwarded-Proto %s\n"
                "    http-request add-header Forwarded "
                "for=%%[src];host=%%[req.hdr(host)];proto=%s\n"
                "    use_backend %%[var(txn.be)] if { var(txn.be) -m found }\n"
                "    default_backend unknown\n",
                proto, proto);
}

static void write_bind(const struct route_plan_options *o, uint16_t port, struct strbuf *out)
{
    strbuf_addf(out, "    bind %s:%u", o->address, port);
    if (o->proxy_protocol) {
        strbuf_adds(out, " accept-proxy");
    }
}

static void write_http(const struct route_plan_options *o, struct strbuf *out)
{
    strbuf_adds(out, "frontend http from base\n");
    write_bind(o, o->http_port, out);
    strbuf_adds(out, "\n");
    write_log(o, out);
    write_lookup(o, ROUTE_MAP_HTTP, out);
    strbuf_addf(out,
                "    http-request redirect scheme https code 302 if { var(txn.be) -m str %s }\n",
                ROUTE_PLAN_REDIRECT);
    write_forwarding("http", out);
}

static void write_sni(const struct route_plan_options *o, struct strbuf *out)
{
    strbuf_adds(out, "frontend tls from base\n    mode tcp\n");
    write_bind(o, o->https_port, out);
    strbuf_addf(out,
                "\n"
                "    tcp-request inspect-delay 5s\n"
                "    tcp-request content set-var(sess.be) req.ssl_sni,lower,map_str(%s/%s)\n",
                o->dir, route_plan_map_file(ROUTE_MAP_SNI));
    if (o->wildcards) {
        strbuf_addf(out,
                    "    tcp-request content set-var(sess.be) "
                    "req.ssl_sni,lower,field(2,.,0),map_str(%s/%s) "
                    "if !{ var(sess.be) -m found }\n",
                    o->dir, route_plan_map_file(ROUTE_MAP_SNI_WILDCARD));
    }
    strbuf_addf(out,
                "    tcp-request content accept if { req.ssl_hello_type 1 }\n"
                "    use_backend %%[var(sess.be)] if { var(sess.be) -m found }\n"
                "    default_backend terminate\n"
                "backend terminate from base\n"
                "    mode tcp\n"
                "    server self unix@%s/tls.sock send-proxy-v2\n",
                o->dir);
}

static void write_https(const struct route_plan_options *o, struct strbuf *out)
{
    strbuf_adds(out, "frontend https from base\n");
    if (o->passthrough) {
        strbuf_addf(out, "    bind unix@%s/tls.sock mode 600 accept-proxy", o->dir);
    } else {
        write_bind(o, o->https_port, out);
    }
    strbuf_addf(out, " ssl crt %s/default.pem crt-list %s/certs.list%s%s\n", o->dir, o->dir,
                o->strict_sni ? " strict-sni" : "",
                o->http2 ? " alpn h2,http/1.1" : " alpn http/1.1");
    write_log(o, out);
    write_lookup(o, ROUTE_MAP_HTTPS, out);
    strbuf_adds(out, "    http-request set-var(txn.tls) bool(true)\n");
    write_forwarding("https", out);
}

void route_plan_write_head(const struct route_plan_options *o, const char *description,
                           struct strbuf *out)
{
    write_global(o, description, out);
    write_defaults(o, out);
    write_http(o, out);
    if (o->passthrough) {
        write_sni(o, out);
    }
    write_https(o, out);
    strbuf_adds(out, "backend unknown from base\n");
}

void route_plan_write_backend(const char *name, const struct route_plan *shape,
                              const struct route_plan *p, struct strbuf *out)
{
    strbuf_addf(out, "backend %s from base\n%s", name, shape->shape);
    for (size_t i = 0; p && i < p->n_servers; i++) {
        strbuf_addf(out, "    server %s %s weight %u\n", p->servers[i].name, p->servers[i].args,
                    p->servers[i].weight);
    }
}

void route_plan_write_cert(const struct route_plan_options *o, const struct route_plan *p,
                           struct strbuf *out)
{
    strbuf_addf(out, "%s/certs/%s %s\n", o->dir, p->cert_file, p->cert_host);
}
