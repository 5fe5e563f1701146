/* SPDX-License-Identifier: Apache-2.0 */
#include "peer.h"

#include "base/mem.h"
#include "net/loop/sock.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int peer_free_port(void)
{
    int fd = -1;
    if (sock_listen_tcp("127.0.0.1:0", &fd, NULL) < 0) {
        exit(1);
    }
    int port = sock_local_port(fd);
    fd_close(fd);
    return port;
}

pid_t peer_etcd_start(const char *dir, int port)
{
    CLEANUP_FREE char *data = xasprintf("--data-dir=%s/etcd", dir);
    CLEANUP_FREE char *listen = xasprintf("--listen-client-urls=http://127.0.0.1:%d", port);
    CLEANUP_FREE char *advertise = xasprintf("--advertise-client-urls=http://127.0.0.1:%d", port);
    CLEANUP_FREE char *peer = xasprintf("http://127.0.0.1:%d", peer_free_port());
    CLEANUP_FREE char *peer_listen = xasprintf("--listen-peer-urls=%s", peer);
    CLEANUP_FREE char *peer_advertise = xasprintf("--initial-advertise-peer-urls=%s", peer);
    CLEANUP_FREE char *cluster = xasprintf("--initial-cluster=default=%s", peer);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int null = open("/dev/null", O_RDWR);
        dup2(null, 1);
        dup2(null, 2);
        execlp("etcd", "etcd", data, listen, advertise, peer_listen, peer_advertise, cluster, NULL);
        _exit(127);
    }
    for (int i = 0; i < 500; i++) {
        int fd = -1;
        struct pollfd p = {.events = POLLOUT};
        if (waitpid(pid, NULL, WNOHANG) != 0) {
            return 0;
        }
        bool up = sock_connect_tcp("127.0.0.1", (uint16_t) port, &fd, NULL) == 0 &&
                  (p.fd = fd, poll(&p, 1, 1000) == 1) && sock_connect_result(fd) == 0;
        fd_close(fd);
        if (up) {
            return pid;
        }
        poll(NULL, 0, 20);
    }
    return pid;
}

void peer_remove_tree(const char *dir)
{
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            CLEANUP_FREE char *path = xasprintf("%s/%s", dir, e->d_name);
            if (unlink(path) < 0) {
                peer_remove_tree(path);
            }
        }
    }
    if (d) {
        closedir(d);
    }
    rmdir(dir);
}
