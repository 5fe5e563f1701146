/* SPDX-License-Identifier: Apache-2.0 */
#include "tracked_frames.h"

#include "base/macro.h"

#include <bpf/bpf.h>
#include <string.h>
#include <time.h>

enum { ETH = 14, ICMP = 1, TCP = 6, UDP = 17, SCTP = 132 };

static bool is_question(uint8_t type)
{
    return type == 8 || type == 13 || type == 15 || type == 17;
}

static bool is_reply(uint8_t type)
{
    return type == 0 || type == 14 || type == 16 || type == 18;
}

/* All of the header that has ports is there. */
static bool is_whole(const unsigned char *frame, size_t l4)
{
    size_t end = ETH + (size_t) (frame[16] << 8 | frame[17]);
    size_t own = frame[23] == UDP ? 8 : frame[23] == SCTP ? 12 : 20;
    if (frame[23] == TCP && l4 + 20 <= end) {
        own = 4 * (size_t) (frame[l4 + 12] >> 4);
        own = own < 20 ? SIZE_MAX - l4 : own;
    }
    return l4 + own <= end;
}

/* Of a packet between these ends; '*ret_from': which of the key's the first one is. */
static struct ebpf_tracked_key make_key(uint8_t proto, unsigned char ends[2][6], unsigned *ret_from)
{
    uint32_t addr[2];
    uint16_t port[2];
    for (unsigned i = 0; i < 2; i++) {
        memcpy(&addr[i], ends[i], 4);
        memcpy(&port[i], ends[i] + 4, 2);
    }
    unsigned from = addr[0] != addr[1] ? addr[0] > addr[1] : port[0] > port[1];
    *ret_from = from;
    return (struct ebpf_tracked_key){
        .addr = {addr[from], addr[!from]}, .port = {port[from], port[!from]}, .protocol = proto};
}

bool tracked_key_of(const unsigned char *frame, size_t size, struct ebpf_tracked_key *ret,
                    unsigned *ret_from)
{
    size_t l4 = ETH + 4 * (size_t) (frame[ETH] & 15);
    uint8_t proto = frame[23];
    unsigned char ends[2][6] = {{0}}; /* Address and port, as they are on the wire. */
    bool has_ports = proto == TCP || proto == UDP || proto == SCTP;
    bool later = (frame[20] & 0x1f) || frame[21];
    size_t end = ETH + (size_t) (frame[16] << 8 | frame[17]);
    memcpy(ends[0], frame + 26, 4);
    memcpy(ends[1], frame + 30, 4);
    if (has_ports || proto == ICMP) {
        if (later || l4 + 8 > MIN(size, end) || (has_ports && !is_whole(frame, l4))) {
            return false;
        }
        if (proto == ICMP && !is_question(frame[l4]) && !is_reply(frame[l4])) {
            return false;
        }
        memcpy(ends[0] + 4, frame + l4 + (has_ports ? 0 : 4), 2);
        memcpy(ends[1] + 4, frame + l4 + (has_ports ? 2 : 4), 2);
    }
    *ret = make_key(proto, ends, ret_from);
    return true;
}

bool tracked_may_begin(const unsigned char *frame, size_t size)
{
    struct ebpf_tracked_key key;
    unsigned from;
    size_t l4 = ETH + 4 * (size_t) (frame[ETH] & 15);
    if (!tracked_key_of(frame, size, &key, &from)) {
        return false;
    }
    if (key.protocol == ICMP) {
        return is_question(frame[l4]);
    }
    unsigned flags = key.protocol == TCP && l4 + 14 <= size ? frame[l4 + 13] : 0;
    return !(flags & 5) && (flags & 18) != 18;
}

static void clear(int fd, void *key)
{
    while (bpf_map_get_next_key(fd, NULL, key) == 0) {
        bpf_map_delete_elem(fd, key);
    }
}

void tracked_clear(const struct program *p)
{
    struct ebpf_tracked_key connection;
    struct ebpf_fragment_key fragment;
    clear(p->tracked, &connection);
    clear(p->fragments, &fragment);
    /* Their shares, too: these are all there is. */
    for (uint32_t i = 0, end = EBPF_SHARES_MAX; i < end; i += end - 1) {
        uint64_t none = 0;
        bpf_map_update_elem(p->shares, &i, &none, BPF_ANY);
    }
}

static bool put(const struct program *p, const struct ebpf_tracked_key *key, unsigned first,
                bool denied)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    struct ebpf_tracked t = {
        .seen_s = (uint32_t) now.tv_sec, .first = (uint8_t) first, .answered = 1, .denied = denied};
    return bpf_map_update_elem(p->tracked, key, &t, BPF_ANY) == 0;
}

bool tracked_put(const struct program *p, const unsigned char *frame, size_t size,
                 enum model_connection dir, bool denied)
{
    struct ebpf_tracked_key key;
    unsigned from;
    return tracked_key_of(frame, size, &key, &from) &&
           put(p, &key, dir == MODEL_ORIGINAL ? from : !from, denied);
}

bool tracked_put_quoted(const struct program *p, const unsigned char *frame, size_t size,
                        bool denied)
{
    size_t at = ETH + 4 * (size_t) (frame[ETH] & 15) + 8;
    const unsigned char *quote = frame + at;
    unsigned char ends[2][6] = {{0}};
    if (at + 20 > size || (quote[0] & 15) < 5 || (quote[6] & 0x1f) || quote[7] ||
        memcmp(quote + 12, frame + 30, 4) != 0) {
        return false;
    }
    size_t l4 = 4 * (size_t) (quote[0] & 15);
    uint8_t proto = quote[9];
    bool has_ports = proto == TCP || proto == UDP || proto == SCTP;
    if (at + l4 + 8 > size) {
        return false;
    }
    memcpy(ends[0], quote + 12, 4);
    memcpy(ends[1], quote + 16, 4);
    if (has_ports || proto == ICMP) {
        memcpy(ends[0] + 4, quote + l4 + (has_ports ? 0 : 4), 2);
        memcpy(ends[1] + 4, quote + l4 + (has_ports ? 2 : 4), 2);
    }
    unsigned from;
    struct ebpf_tracked_key key = make_key(proto, ends, &from);
    return put(p, &key, from, denied);
}
