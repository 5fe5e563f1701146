/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ip.h"

#include "base/str.h"

#include <stdio.h>

int ip4_parse(const char *s, uint32_t *ret)
{
    uint32_t addr = 0;
    for (int i = 0; i < 4; i++) {
        if (i && *s++ != '.') {
            return -EINVAL;
        }
        if (*s < '0' || *s > '9' || (*s == '0' && s[1] >= '0' && s[1] <= '9')) {
            return -EINVAL;
        }
        unsigned v = 0;
        for (int n = 0; *s >= '0' && *s <= '9'; s++, n++) {
            v = v * 10 + (unsigned) (*s - '0');
            if (n == 3 || v > 255) {
                return -EINVAL;
            }
        }
        addr = addr << 8 | v;
    }
    if (*s) {
        return -EINVAL;
    }
    *ret = addr;
    return 0;
}

void ip4_format(uint32_t addr, char out[IP4_TEXT_SIZE])
{
    snprintf(out, IP4_TEXT_SIZE, "%u.%u.%u.%u", addr >> 24, addr >> 16 & 0xff, addr >> 8 & 0xff,
             addr & 0xff);
}

const char *ip4_text_(uint32_t addr, char *out)
{
    ip4_format(addr, out);
    return out;
}

const char *prefix_text_(struct ip4_prefix p, char *out)
{
    snprintf(out, PREFIX_TEXT_SIZE, "%u.%u.%u.%u/%u", p.addr >> 24, p.addr >> 16 & 0xff,
             p.addr >> 8 & 0xff, p.addr & 0xff, p.len);
    return out;
}

const char *mac_text_(struct mac m, char *out)
{
    snprintf(out, MAC_TEXT_SIZE, "%02x:%02x:%02x:%02x:%02x:%02x", m.b[0], m.b[1], m.b[2], m.b[3],
             m.b[4], m.b[5]);
    return out;
}

int prefix_parse_host(const char *s, struct ip4_prefix *ret, struct err *e)
{
    const char *slash = strchr(s, '/');
    char addr[IP4_TEXT_SIZE];
    struct ip4_prefix p;
    if (!slash || (size_t) (slash - s) >= sizeof addr) {
        return err_set(e, -EINVAL, "\"%.40s\" is not an IPv4 CIDR such as 10.128.0.0/14", s);
    }
    memcpy(addr, s, (size_t) (slash - s));
    addr[slash - s] = '\0';
    uint64_t len;
    if (ip4_parse(addr, &p.addr) < 0 || (slash[1] == '0' && slash[2]) ||
        str_to_u64(slash + 1, 32, &len) < 0) {
        return err_set(e, -EINVAL, "\"%.40s\" is not an IPv4 CIDR such as 10.128.0.0/14", s);
    }
    p.len = (uint8_t) len;
    *ret = p;
    return 0;
}

int prefix_parse(const char *s, struct ip4_prefix *ret, struct err *e)
{
    struct ip4_prefix p;
    int r = prefix_parse_host(s, &p, e);
    if (r < 0) {
        return r;
    }
    if (p.addr & ~prefix_mask(p.len)) {
        struct ip4_prefix canonical = {p.addr & prefix_mask(p.len), p.len};
        return err_set(e, -EINVAL, "\"%.40s\" has bits set below its length; did you mean %s", s,
                       PREFIX_TEXT(canonical));
    }
    *ret = p;
    return 0;
}

int mac_parse(const char *s, struct mac *ret)
{
    struct mac m;
    for (int i = 0; i < 6; i++) {
        if (i && *s++ != ':') {
            return -EINVAL;
        }
        unsigned v = 0;
        for (int j = 0; j < 2; j++, s++) {
            char c = *s;
            if (c >= '0' && c <= '9') {
                v = v * 16 + (unsigned) (c - '0');
            } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
                v = v * 16 + (unsigned) ((c | 0x20) - 'a' + 10);
            } else {
                return -EINVAL;
            }
        }
        m.b[i] = (uint8_t) v;
    }
    if (*s) {
        return -EINVAL;
    }
    *ret = m;
    return 0;
}

struct mac mac_from_ip4(uint32_t a)
{
    return (struct mac){
        {0x0a, 0x58, (uint8_t) (a >> 24), (uint8_t) (a >> 16), (uint8_t) (a >> 8), (uint8_t) a}};
}
