/* SPDX-License-Identifier: Apache-2.0 */
/* A TCP relay on the test's loop that can fail as networks do. */
#pragma once

#include "net/loop/loop.h"

struct proxy;

struct proxy *proxy_new(struct loop *l, int target_port);
struct proxy *proxy_free(struct proxy *p);
int proxy_port(const struct proxy *p);
/* Breaks all connections, and (while 'cut') every new one. */
void proxy_cut(struct proxy *p, bool cut);
/* Swallows what both sides send, without a sign. */
void proxy_stall(struct proxy *p, bool stall);
/* Drops the answers only. */
void proxy_mute(struct proxy *p, bool mute);
/* Breaks the connections once so many more bytes of answers have passed; new ones work. */
void proxy_cut_after(struct proxy *p, size_t bytes);
unsigned proxy_accepted(const struct proxy *p); /* Connections so far. */
