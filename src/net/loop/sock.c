/* SPDX-License-Identifier: Apache-2.0 */
#include "net/loop/sock.h"

#include "base/ip.h"
#include "base/mem.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define ACTIVATION_FIRST_FD 3

static int host_parse(const char *host, uint32_t *ret)
{
    if (streq(host, "localhost")) {
        *ret = INADDR_LOOPBACK;
        return 0;
    }
    return ip4_parse(host, ret);
}

static struct sockaddr_in tcp_address(uint32_t addr, uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(addr)};
}

static int listen_parse(const char *address, struct sockaddr_in *ret, struct err *e)
{
    const char *colon = strrchr(address, ':');
    char host[64];
    uint64_t port;
    uint32_t addr;
    if (!colon || (size_t) (colon - address) >= sizeof host ||
        str_to_u64(colon + 1, UINT16_MAX, &port) < 0) {
        return err_set(e, -EINVAL, "listen on \"%s\": not HOST:PORT", address);
    }
    snprintf(host, sizeof host, "%.*s", (int) (colon - address), address);
    if (host_parse(host, &addr) < 0) {
        return err_set(e, -EINVAL, "listen on \"%s\": \"%s\" is not an IPv4 address", address,
                       host);
    }
    *ret = tcp_address(addr, (uint16_t) port);
    return 0;
}

int sock_listen_tcp(const char *address, int *ret_fd, struct err *e)
{
    struct sockaddr_in sa;
    int r = listen_parse(address, &sa, e);
    if (r < 0) {
        return r;
    }
    CLEANUP(fd_close) int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return err_sys(e, -errno, "listen on %s: socket", address);
    }
    int one = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) < 0 ||
        bind(fd, (struct sockaddr *) &sa, sizeof sa) < 0 || listen(fd, SOMAXCONN) < 0) {
        r = -errno;
        return r == -EADDRINUSE
                   ? err_set(e, r, "listen on %s: the port is taken by another program", address)
                   : err_sys(e, r, "listen on %s", address);
    }
    *ret_fd = fd_take(&fd);
    return 0;
}

static int unix_address(const char *path, struct sockaddr_un *ret, struct err *e)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof ret->sun_path) {
        return err_set(e, -ENAMETOOLONG, "socket path \"%s\": not 1 to %zu bytes long", path,
                       sizeof ret->sun_path - 1);
    }
    memcpy(ret->sun_path, path, n + 1);
    return 0;
}

static int unix_connect(const char *path, int *ret_fd, struct err *e)
{
    struct sockaddr_un sa;
    int r = unix_address(path, &sa, e);
    if (r < 0) {
        return r;
    }
    CLEANUP(fd_close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return err_sys(e, -errno, "connect to %s: socket", path);
    }
    if (connect(fd, (struct sockaddr *) &sa, sizeof sa) < 0) {
        return err_sys(e, -errno, "connect to %s", path);
    }
    *ret_fd = fd_take(&fd);
    return 0;
}

/* Removes the socket file of a program that has ended. */
static int remove_stale(const char *path, struct err *e)
{
    struct stat st;
    if (lstat(path, &st) < 0) {
        return errno == ENOENT ? 0 : err_sys(e, -errno, "listen on %s", path);
    }
    if (!S_ISSOCK(st.st_mode)) {
        return err_set(e, -EEXIST, "listen on %s: there is a file that is not a socket", path);
    }
    int fd = -1;
    int r = unix_connect(path, &fd, NULL);
    fd_close(fd);
    if (r == 0 || r == -EAGAIN) { /* -EAGAIN: its backlog is full. */
        return err_set(e, -EADDRINUSE, "listen on %s: another program serves it", path);
    }
    if (r != -ECONNREFUSED && r != -ENOENT) {
        return err_sys(e, r, "listen on %s", path);
    }
    if (unlink(path) < 0 && errno != ENOENT) {
        return err_sys(e, -errno, "remove the stale socket %s", path);
    }
    return 0;
}

int sock_listen_unix(const char *path, unsigned mode, int *ret_fd, struct err *e)
{
    struct sockaddr_un sa;
    int r = unix_address(path, &sa, e);
    if (r < 0 || (r = remove_stale(path, e)) < 0) {
        return r;
    }
    CLEANUP(fd_close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    /* bind creates the file with the mode of the socket, so that it is never open to others;
     * chmod then adds the bits that the umask removed. */
    if (fd < 0 || fchmod(fd, mode & 0777) < 0) {
        return err_sys(e, -errno, "listen on %s: socket", sa.sun_path);
    }
    if (bind(fd, (struct sockaddr *) &sa, sizeof sa) < 0) {
        return err_sys(e, -errno, "listen on %s", sa.sun_path);
    }
    if (chmod(sa.sun_path, mode & 0777) < 0 || listen(fd, SOMAXCONN) < 0) {
        r = err_sys(e, -errno, "listen on %s", sa.sun_path);
        unlink(sa.sun_path);
        return r;
    }
    *ret_fd = fd_take(&fd);
    return 0;
}

int sock_resolve(const char *host, char **ret, struct err *e)
{
    uint32_t addr;
    if (host_parse(host, &addr) < 0) {
        struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
        int r = getaddrinfo(host, NULL, &hints, &found);
        if (r != 0) {
            return err_set(e, -EHOSTUNREACH, "address of \"%s\": %s", host, gai_strerror(r));
        }
        addr = ntohl(((struct sockaddr_in *) (void *) found->ai_addr)->sin_addr.s_addr);
        freeaddrinfo(found);
    }
    *ret = xstrdup(IP4_TEXT(addr));
    return 0;
}

int sock_connect_unix(const char *path, int *ret_fd, struct err *e)
{
    return unix_connect(path, ret_fd, e);
}

int sock_connect_tcp(const char *host, uint16_t port, int *ret_fd, struct err *e)
{
    uint32_t addr;
    if (host_parse(host, &addr) < 0) {
        return err_set(e, -EINVAL, "connect to \"%s\": not an IPv4 address", host);
    }
    CLEANUP(fd_close) int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return err_sys(e, -errno, "connect to %s:%u: socket", host, port);
    }
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct sockaddr_in sa = tcp_address(addr, port);
    if (connect(fd, (struct sockaddr *) &sa, sizeof sa) < 0 && errno != EINPROGRESS) {
        return err_sys(e, -errno, "connect to %s:%u", host, port);
    }
    *ret_fd = fd_take(&fd);
    return 0;
}

int sock_connect_result(int fd)
{
    int so_error = 0;
    socklen_t n = sizeof so_error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &so_error, &n) < 0) {
        return -errno;
    }
    return -so_error;
}

int sock_local_port(int fd)
{
    struct sockaddr_in sa;
    socklen_t n = sizeof sa;
    if (getsockname(fd, (struct sockaddr *) &sa, &n) < 0) {
        return -errno;
    }
    return sa.sin_family == AF_INET ? ntohs(sa.sin_port) : -EAFNOSUPPORT;
}

int sock_activation_fds(void)
{
    const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
    uint64_t for_pid = 0, n = 0;
    if (!pid || !fds || str_to_u64(pid, INT32_MAX, &for_pid) < 0 || (pid_t) for_pid != getpid() ||
        str_to_u64(fds, 1024, &n) < 0) {
        n = 0;
    }
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    for (int fd = ACTIVATION_FIRST_FD; fd < ACTIVATION_FIRST_FD + (int) n; fd++) {
        int flags = fcntl(fd, F_GETFL);
        if (flags >= 0) {
            fcntl(fd, F_SETFL, flags | O_NONBLOCK);
            fcntl(fd, F_SETFD, FD_CLOEXEC);
        }
    }
    return (int) n;
}

bool sock_listens_at(int fd, const char *address)
{
    struct sockaddr_in wanted = {0}, sa = {0};
    socklen_t n = sizeof sa;
    int listens = 0;
    socklen_t n_listens = sizeof listens;
    return listen_parse(address, &wanted, NULL) == 0 &&
           getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n_listens) == 0 && listens &&
           getsockname(fd, (struct sockaddr *) &sa, &n) == 0 && sa.sin_family == AF_INET &&
           sa.sin_port == wanted.sin_port && sa.sin_addr.s_addr == wanted.sin_addr.s_addr;
}

int sock_peer_uid(int fd, unsigned *ret_uid)
{
    struct ucred cred;
    socklen_t n = sizeof cred;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0) {
        return -errno;
    }
    *ret_uid = cred.uid;
    return 0;
}
