/* SPDX-License-Identifier: Apache-2.0 */
#include "client/join.h"

#include "base/mem.h"
#include "base/timeutil.h"
#include "net/loop/loop.h"
#include "net/loop/sock.h"
#include "net/tls/tls.h"

#include <poll.h>

#define PIN_PREFIX ":sha256:"
#define BLANKS " \t\r\n"
#define HEX_DIGITS "0123456789abcdef"

void join_done(struct join *j)
{
    explicit_bzero(j, sizeof *j);
}

int join_read(const char *text, struct join *ret, struct err *e)
{
    struct join j = {0};
    text += strspn(text, BLANKS);
    size_t size = strcspn(text, BLANKS), token = JOIN_TOKEN_SIZE - 1;
    if (text[size + strspn(text + size, BLANKS)]) {
        return err_set(e, -EINVAL, "the join token has blanks within it");
    }
    if (size < token || (size > token && text[token] != ':')) {
        return err_set(e, -EINVAL,
                       "the join token does not begin with ID.SECRET (6 and 16 "
                       "letters of a-z and 0-9)");
    }
    memcpy(j.token, text, token);
    if (!join_token_is_token(j.token)) {
        join_done(&j);
        return err_set(e, -EINVAL,
                       "the join token does not begin with ID.SECRET (6 and 16 "
                       "letters of a-z and 0-9)");
    }
    if (size != token + strlen(PIN_PREFIX) + PKI_PIN_SIZE - 1 ||
        !str_has_prefix(text + token, PIN_PREFIX) ||
        strspn(text + token + strlen(PIN_PREFIX), HEX_DIGITS) != PKI_PIN_SIZE - 1) {
        join_done(&j);
        return err_set(e, -EINVAL,
                       "the join token does not end with " PIN_PREFIX
                       " and 64 hexadecimal digits, by which the master is known");
    }
    memcpy(j.pin, text + token + strlen(PIN_PREFIX), PKI_PIN_SIZE - 1);
    *ret = j;
    join_done(&j);
    return 0;
}

char *join_text(const char *token, const char *pin)
{
    return xasprintf("%s" PIN_PREFIX "%s", token, pin);
}

/* ---- the authority ---- */

/* Waits for events of LOOP_...; -ETIMEDOUT. */
static int wait_for(int fd, unsigned events, uint64_t until_ms)
{
    struct pollfd p = {.fd = fd,
                       .events = (short) ((events & LOOP_READ ? POLLIN : 0) |
                                          (events & LOOP_WRITE ? POLLOUT : 0))};
    for (;;) {
        uint64_t now = time_mono_ms();
        int n = now < until_ms ? poll(&p, 1, (int) MIN(until_ms - now, (uint64_t) INT32_MAX)) : 0;
        if (n > 0) {
            return 0;
        }
        if (n == 0 || errno != EINTR) {
            return n == 0 ? -ETIMEDOUT : -errno;
        }
    }
}

static int open_connection(const char *host, uint16_t port, uint64_t until_ms, int *ret,
                           struct err *e)
{
    CLEANUP_FREE char *address = NULL;
    CLEANUP(fd_close) int fd = -1;
    int r = sock_resolve(host, &address, e);
    if (r < 0 || (r = sock_connect_tcp(address, port, &fd, e)) < 0) {
        return r;
    }
    r = wait_for(fd, LOOP_WRITE, until_ms);
    r = r < 0 ? r : sock_connect_result(fd);
    if (r < 0) {
        return err_sys(e, r, "connect to %s:%u", address, port);
    }
    *ret = fd_take(&fd);
    return 0;
}

static int handshake(struct tls *c, int fd, uint64_t until_ms, struct err *e)
{
    int r;
    while ((r = tls_handshake(c, e)) == -EAGAIN) {
        r = wait_for(fd, tls_watch(c, LOOP_READ), until_ms);
        if (r < 0) {
            return err_sys(e, r, "TLS");
        }
    }
    return r;
}

int join_find_authority(const char *host, uint16_t port, const char *pin, uint64_t timeout_ms,
                        char **ret_pem, struct err *e)
{
    CLEANUP(tls_context_free) struct tls_context *t = NULL;
    CLEANUP(fd_close) int fd = -1;
    uint64_t until = time_mono_ms() + timeout_ms;
    /* The certificate is judged by the pin, and by the verified connection that follows. */
    struct tls_client_config insecure = {.insecure = true};
    int r = open_connection(host, port, until, &fd, e);
    if (r < 0 || (r = tls_client_new(&insecure, &t, e)) < 0) {
        return r;
    }
    struct tls *c = tls_connect(t, fd, host);
    r = handshake(c, fd, until, e);
    if (r == 0) {
        char *pem = tls_peer_authority(c, pin);
        tls_shutdown(c);
        if (pem) {
            *ret_pem = pem;
        } else {
            r = err_set(e, -EKEYREJECTED,
                        "%s:%u presents no authority with the hash of the join token: it is not "
                        "the master that printed the token, or its authority was made anew",
                        host, port);
        }
    }
    tls_free(c);
    return r;
}
