/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters are judged: an accepted redirect leads to the client's host, and nothing that is sent
 * to a client ends its header line. */
#include "oauth/redirect.h"
#include "oauth/request.h"

#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) ((x) ? (void) 0 : abort())

static void check_url(const char *url)
{
    for (; *url; url++) {
        CHECK((unsigned char) *url > 0x20 && *url != 0x7f);
    }
}

static void judge(const struct oauth_params *p)
{
    char *redirects[] = {(char *) "https://a.example/cb", (char *) "http://127.0.0.1/", NULL};
    struct oauth_client c = {.redirects = redirects};
    __attribute__((cleanup(oauth_authorization_donep))) struct oauth_authorization a = {0};
    __attribute__((cleanup(oauth_exchange_donep))) struct oauth_exchange x = {0};
    CLEANUP_STRBUF struct strbuf url = STRBUF_INIT;
    oauth_authorization_read(p, &c, &a);
    CHECK((a.fail == OAUTH_OK) == !a.why);
    CHECK(a.redirect || a.fail);
    if (a.redirect) {
        CHECK(str_has_prefix(a.redirect, "https://") || str_has_prefix(a.redirect, "http") ||
              strchr(a.redirect, ':'));
        oauth_redirect_error(&url, a.redirect, a.state, OAUTH_ACCESS_DENIED, a.why, a.token);
        check_url(url.data);
        CHECK(oauth_redirect_is_allowed(redirects, a.redirect));
    }
    oauth_exchange_read(p, oauth_param(p, "authorization"), &x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    __attribute__((cleanup(oauth_params_donep))) struct oauth_params p = {0};
    struct err e = {0};
    if (oauth_params_parse((const char *) data, size, &p, &e) < 0) {
        CHECK(e.code == -EINVAL && e.text[0]);
        return 0;
    }
    judge(&p);
    for (size_t i = 0; i < p.n; i++) {
        (void) oauth_then_is_local(p.values[i]);
    }
    return 0;
}
