/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/filter.h"

struct security {
    struct apiserver *server;
    struct user_info *trusted;
};

struct security *security_new(struct apiserver *a, const struct apiserver_security *cfg)
{
    struct security *s = NEW(struct security);
    s->server = a;
    s->trusted = user_new("system:admin");
    user_add_group(s->trusted, GROUP_MASTERS);
    user_add_group(s->trusted, GROUP_AUTHENTICATED);
    return s;
}

struct security *security_free(struct security *s)
{
    if (s) {
        user_unref(s->trusted);
        free(s);
    }
    return NULL;
}

bool filter_request(struct request *q)
{
    struct http_exchange *x = q->x;
    attributes_parse(&q->attributes, http_method(x), http_path(x), request_flag(q, "watch"),
                     http_query(x, "fieldSelector"));
    q->user = user_ref(q->server->security->trusted);
    return true;
}
