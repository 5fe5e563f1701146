/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/resolv.h"

#include "base/mem.h"
#include "base/str.h"
#include "net/loop/process.h"
#include "wire/dns.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <unistd.h>

#define FILE_MAX 65536

int dns_endpoint_parse(const char *s, union dns_endpoint *ret, struct err *e)
{
    char host[DNS_ENDPOINT_TEXT];
    const char *port = NULL, *end = s + strlen(s), *begin = s;
    uint64_t number = DNS_PORT;
    union dns_endpoint a = {0};
    if (*s == '[') {
        begin = s + 1;
        end = strchr(s, ']');
        port = end && end[1] == ':' ? end + 2 : NULL;
        if (!end || (end[1] && !port)) {
            return err_set(e, -EINVAL, "\"%.100s\" is not an address of a name server", s);
        }
    } else if (strchr(s, ':') && strchr(s, ':') == strrchr(s, ':')) {
        end = strchr(s, ':');
        port = end + 1;
    }
    size_t size = (size_t) (end - begin);
    if (size >= sizeof host || (port && (str_to_u64(port, UINT16_MAX, &number) < 0 || !number))) {
        return err_set(e, -EINVAL, "\"%.100s\" is not an address of a name server", s);
    }
    memcpy(host, begin, size);
    host[size] = '\0';
    if (inet_pton(AF_INET, host, &a.v4.sin_addr) == 1) {
        a.v4.sin_family = AF_INET;
        a.v4.sin_port = htons((uint16_t) number);
    } else if (inet_pton(AF_INET6, host, &a.v6.sin6_addr) == 1) {
        a.v6.sin6_family = AF_INET6;
        a.v6.sin6_port = htons((uint16_t) number);
    } else {
        return err_set(e, -EINVAL, "\"%.100s\" is not an address of a name server", s);
    }
    *ret = a;
    return 0;
}

socklen_t dns_endpoint_size(const union dns_endpoint *a)
{
    return a->any.sa_family == AF_INET ? sizeof a->v4 : sizeof a->v6;
}

bool dns_endpoint_equal(const union dns_endpoint *a, const union dns_endpoint *b)
{
    if (a->any.sa_family != b->any.sa_family) {
        return false;
    }
    return a->any.sa_family == AF_INET
               ? a->v4.sin_port == b->v4.sin_port && a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr
               : a->v6.sin6_port == b->v6.sin6_port &&
                     IN6_ARE_ADDR_EQUAL(&a->v6.sin6_addr, &b->v6.sin6_addr);
}

void dns_endpoint_format(const union dns_endpoint *a, char out[DNS_ENDPOINT_TEXT])
{
    char host[INET6_ADDRSTRLEN];
    if (a->any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &a->v4.sin_addr, host, sizeof host);
        snprintf(out, DNS_ENDPOINT_TEXT, "%s:%u", host, ntohs(a->v4.sin_port));
    } else {
        inet_ntop(AF_INET6, &a->v6.sin6_addr, host, sizeof host);
        snprintf(out, DNS_ENDPOINT_TEXT, "[%s]:%u", host, ntohs(a->v6.sin6_port));
    }
}

/* Adds a server unless it is in the list. */
static void add_server(struct dns_servers *s, const union dns_endpoint *a)
{
    for (size_t i = 0; i < s->n; i++) {
        if (dns_endpoint_equal(&s->at[i], a)) {
            return;
        }
    }
    if (s->n < DNS_SERVERS_MAX) {
        s->at[s->n++] = *a;
    }
}

int dns_servers_parse(const char *list, struct dns_servers *ret, struct err *e)
{
    struct dns_servers out = {0};
    for (const char *p = list + strspn(list, ", \t"); *p; p += strspn(p, ", \t")) {
        size_t n = strcspn(p, ", \t");
        CLEANUP_FREE char *word = xstrndup(p, n);
        union dns_endpoint a;
        int r = dns_endpoint_parse(word, &a, e);
        if (r < 0) {
            return r;
        }
        add_server(&out, &a);
        p += n;
    }
    *ret = out;
    return 0;
}

void dns_servers_read(const char *text, size_t size, struct dns_servers *ret)
{
    static const char keyword[] = "nameserver";
    struct dns_servers out = {0};
    for (size_t at = 0; at < size;) {
        const char *line = text + at, *end = memchr(line, '\n', size - at);
        size_t n = end ? (size_t) (end - line) : size - at;
        at += n + 1;
        CLEANUP_FREE char *s = xstrndup(line, n);
        char *word = s + strspn(s, " \t");
        if (!str_has_prefix(word, keyword) || !strspn(word + sizeof keyword - 1, " \t")) {
            continue;
        }
        word += sizeof keyword - 1;
        word += strspn(word, " \t");
        word[strcspn(word, " \t\r#;%")] = '\0'; /* The zone index of an IPv6 address is dropped. */
        union dns_endpoint a;
        if (!strpbrk(word, "[]") && dns_endpoint_parse(word, &a, NULL) == 0) {
            add_server(&out, &a);
        }
    }
    *ret = out;
}

int dns_servers_load(const char *path, struct dns_servers *ret, struct err *e)
{
    CLEANUP(fd_close) int fd = -1;
    int r = file_open(path, &fd, e);
    if (r < 0) {
        return r;
    }
    CLEANUP_FREE char *text = xmalloc(FILE_MAX);
    ssize_t n = read(fd, text, FILE_MAX);
    if (n < 0) {
        return err_sys(e, -errno, "read %s", path);
    }
    dns_servers_read(text, (size_t) n, ret);
    return 0;
}
