/* SPDX-License-Identifier: Apache-2.0 */
/* Logins: by a name and a password (a form's, or Basic's), and by the pages of other providers.
 *
 * Failures of a user and of an address delay their next attempts; few wait at once, and others get
 * 429, so that a flood of passwords costs neither memory nor the time of other requests. */
#include "apiserver/oauth/oauth_priv.h"

#include "base/log.h"
#include "base/timeutil.h"
#include "oauth/redirect.h"
#include "wire/http1.h"

LOG_MODULE("oauth");

#define WAITING_MAX 64
#define FIELD_MAX 1024
#define ERRAND_S 600
#define ERRAND_COOKIE "oauth-errand"

/* ---- names and passwords ---- */

static void ask_next(struct oauth_request *f);

static void note_failure(struct oauth_request *f)
{
    CLEANUP_FREE char *address = web_address(f);
    uint64_t now = time_mono_ms();
    throttle_failed(&f->s->users, f->username, now);
    throttle_failed(&f->s->addresses, address, now);
    log_info("login refused", "user=\"%.80s\" address=%s", f->username, address);
}

static void mapped(struct oauth_request *f, const char *error)
{
    if (!error) {
        log_info("login", "user=\"%s\" provider=\"%s\"", f->user, f->provider_name);
    }
    f->login_done(f, error);
}

static void answered(void *ctx, enum identity_outcome outcome, struct identity *id,
                     const struct err *why)
{
    static struct log_limit limit;
    struct oauth_request *f = ctx;
    struct oauth_server *s = f->s;
    f->attempt = NULL;
    if (outcome == IDENTITY_PROVED) {
        CLEANUP_FREE char *address = web_address(f);
        throttle_succeeded(&s->users, f->username);
        throttle_succeeded(&s->addresses, address);
        map_take(f, id);
        map_identity(f, mapped);
        return;
    }
    if (outcome == IDENTITY_FAILED) {
        log_limited(&limit, LOG_ERROR, "an identity provider did not decide",
                    "provider=\"%s\" error=\"%s\"", s->providers[f->provider].name, why->text);
        f->failed = true;
    }
    if (f->form || f->failed) {
        if (!f->failed) {
            note_failure(f);
        }
        f->login_done(f, f->failed ? "authentication_error" : "access_denied");
        return;
    }
    f->provider++;
    ask_next(f);
}

/* Asks the provider at oauth_request.provider, or the next one that takes challenges. */
static void ask_next(struct oauth_request *f)
{
    struct oauth_server *s = f->s;
    for (; f->provider < s->n_providers; f->provider++) {
        struct oauth_provider *p = &s->providers[f->provider];
        if (p->provider->kind->password && (f->form || p->challenge)) {
            f->attempt =
                p->provider->kind->password(p->provider, f->username, f->password, answered, f);
            return;
        }
    }
    note_failure(f);
    f->login_done(f, "access_denied");
}

static void waited(void *ctx)
{
    struct oauth_request *f = ctx;
    f->s->waiting--;
    f->timer = loop_timer_free(f->timer);
    ask_next(f);
}

void login_check(struct oauth_request *f, map_fn *done)
{
    struct oauth_server *s = f->s;
    CLEANUP_FREE char *address = web_address(f);
    f->login_done = done;
    if (!*f->username || !*f->password || strlen(f->username) > FIELD_MAX ||
        strlen(f->password) > FIELD_MAX) {
        done(f, *f->username ? "access_denied" : "user_required");
        return;
    }
    uint64_t now = time_mono_ms();
    uint64_t wait = MAX(throttle_wait_ms(&s->users, f->username, now),
                        throttle_wait_ms(&s->addresses, address, now));
    if (wait && s->waiting >= WAITING_MAX) {
        done(f, "too_many_attempts");
        return;
    }
    if (wait) {
        s->waiting++;
        f->timer = loop_timer_new(s->a->loop, waited, f);
        loop_timer_arm(f->timer, wait);
        return;
    }
    ask_next(f);
}

/* ---- pages ---- */

static bool has_form(const struct oauth_provider *p)
{
    return p->login && p->provider->kind->password;
}

/* The index of the provider 'name'; "": the only one with a form.  -1: there is none. */
static int find_provider(const struct oauth_server *s, const char *name)
{
    int found = -1;
    for (size_t i = 0; i < s->n_providers; i++) {
        if (*name ? streq(s->providers[i].name, name) : has_form(&s->providers[i])) {
            if (found >= 0) {
                return -1;
            }
            found = (int) i;
        }
    }
    return found;
}

static void page_url(const struct oauth_server *s, size_t provider, const char *then,
                     struct strbuf *url)
{
    strbuf_adds(url, "/login/");
    http1_escape(s->providers[provider].name, url);
    oauth_param_add(url, '?', "then", then);
}

void login_page(struct oauth_request *f, const char *name)
{
    int i = find_provider(f->s, name);
    const char *then = oauth_param_text(&f->params, "then");
    const char *reason = oauth_param_text(&f->params, "reason");
    if (!oauth_then_is_local(then)) {
        web_redirect(f, "/");
        return;
    }
    if (i < 0 || !has_form(&f->s->providers[i])) {
        web_error(f, 404, "not_configured");
        return;
    }
    web_csrf(f);
    const char *const pairs[][3] = {{"Then", "then", then},
                                    {"CSRF", "csrf", f->csrf},
                                    {"Username", "username", ""},
                                    {"Password", "password", ""},
                                    {NULL}};
    CLEANUP(json_free) struct json *data = web_fields(pairs);
    json_set_string(data, "ProviderName", f->s->providers[i].name);
    CLEANUP_STRBUF struct strbuf action = STRBUF_INIT;
    strbuf_adds(&action, "/login/");
    http1_escape(f->s->providers[i].name, &action);
    json_set_string(data, "Action", action.data);
    if (*reason) {
        json_set_string(data, "ErrorCode",
                        streq(page_error_text(reason), page_error_text("")) ? "" : reason);
        json_set_string(data, "Error", page_error_text(reason));
    }
    /* A browser that has logged in may go on to the client, and it holds the policy of the form
     * against all redirects behind it. */
    CLEANUP_STRBUF struct strbuf origin = STRBUF_INIT;
    authorize_target(f->s, then, &origin);
    web_page(f, 200, PAGE_LOGIN, data, origin.size ? origin.data : NULL);
}

static void form_checked(struct oauth_request *f, const char *error)
{
    const char *then = oauth_param_text(&f->params, "then");
    CLEANUP_FREE char *to = xstrdup(oauth_then_is_local(then) ? then : "/");
    if (!error) {
        session_begin(f);
        web_redirect(f, to);
        return;
    }
    CLEANUP_STRBUF struct strbuf url = STRBUF_INIT;
    page_url(f->s, f->provider < f->s->n_providers ? f->provider : 0, to, &url);
    oauth_param_add(&url, '&', "reason", error);
    web_redirect(f, url.data);
}

void login_submit(struct oauth_request *f, const char *name)
{
    int i = find_provider(f->s, name);
    if (i < 0 || !has_form(&f->s->providers[i])) {
        web_error(f, 404, "not_configured");
        return;
    }
    f->provider = (size_t) i;
    f->form = true;
    if (!web_is_own_form(f) || oauth_params_check_single(&f->params, NULL, NULL) < 0) {
        form_checked(f, "token_expired");
        return;
    }
    f->username = xstrdup(oauth_param_text(&f->params, "username"));
    f->password = xstrdup(oauth_param_text(&f->params, "password"));
    login_check(f, form_checked);
}

/* ---- providers with pages of their own ---- */

static bool has_page(const struct oauth_provider *p)
{
    return p->login && p->provider->kind->redirect;
}

/* The page is that of a proxy, which names the person in headers when the browser comes back. */
static bool has_proxy(const struct oauth_provider *p)
{
    return p->login && p->provider->kind->proxy_login;
}

static void go_to_proxy(struct oauth_request *f, struct identity_provider *p, const char *then)
{
    CLEANUP_FREE char *again = xasprintf("%s%s", f->s->issuer, then);
    CLEANUP_STRBUF struct strbuf url = STRBUF_INIT;
    if (p->kind->proxy_login(p, again, false, &url, NULL) < 0) {
        web_error(f, 403, "not_configured");
        return;
    }
    web_redirect(f, url.data);
}

static char *callback_of(const struct oauth_server *s, size_t provider)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    strbuf_addf(&b, "%s/oauth2callback/", s->issuer);
    http1_escape(s->providers[provider].name, &b);
    return strbuf_steal(&b);
}

/* Sends the browser to the provider; what it must bring back is in a sealed cookie. */
static void go_to_provider(struct oauth_request *f, size_t i, const char *then)
{
    static struct log_limit limit;
    struct oauth_server *s = f->s;
    struct identity_provider *p = s->providers[i].provider;
    char state[OAUTH_CSRF_SIZE + 1], nonce[OAUTH_CSRF_SIZE + 1], verifier[OAUTH_CSRF_SIZE + 1];
    CLEANUP_FREE char *callback = callback_of(s, i);
    CLEANUP_STRBUF struct strbuf url = STRBUF_INIT, sealed = STRBUF_INIT;
    struct err e = {0};
    oauth_csrf_make(state);
    oauth_csrf_make(nonce);
    oauth_csrf_make(verifier);
    struct identity_redirect r = {callback, state, nonce, verifier};
    struct oauth_errand errand = {s->providers[i].name,
                                  state,
                                  nonce,
                                  verifier,
                                  (char *) then,
                                  time_wall_ms() / 1000 + ERRAND_S};
    CLEANUP_FREE char *text = oauth_errand_write(&errand);
    if (p->kind->redirect(p, &r, &url, &e) < 0 || !session_keys(s) ||
        seal_text(&s->ring, ERRAND_COOKIE, text, &sealed) < 0) {
        log_limited(&limit, LOG_ERROR, "no login at an identity provider",
                    "provider=\"%s\" error=\"%s\"", s->providers[i].name, e.text);
        web_error(f, 503, "authentication_error");
        return;
    }
    web_set_cookie(f, ERRAND_COOKIE, sealed.data, "/oauth2callback/", ERRAND_S);
    web_redirect(f, url.data);
}

static void callback_mapped(struct oauth_request *f, const char *error)
{
    CLEANUP_FREE char *then = TAKE(f->then);
    if (error) {
        web_error(f, 403, error);
        return;
    }
    session_begin(f);
    web_redirect(f, then);
}

static void callback_answered(void *ctx, enum identity_outcome outcome, struct identity *id,
                              const struct err *why)
{
    struct oauth_request *f = ctx;
    f->attempt = NULL;
    if (outcome != IDENTITY_PROVED) {
        log_warn("login at a provider refused", "provider=\"%s\" error=\"%s\"",
                 f->s->providers[f->provider].name, why->text);
        web_error(f, 403, outcome == IDENTITY_REFUSED ? "access_denied" : "authentication_error");
        return;
    }
    map_take(f, id);
    map_identity(f, callback_mapped);
}

void login_callback(struct oauth_request *f, const char *name)
{
    struct oauth_server *s = f->s;
    int i = find_provider(s, name);
    CLEANUP_FREE char *sealed = oauth_cookie_find(http_header(f->x, "cookie"), ERRAND_COOKIE);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    __attribute__((cleanup(oauth_errand_donep))) struct oauth_errand errand = {0};
    if (i < 0 || !s->providers[i].provider->kind->callback) {
        web_error(f, 404, "not_configured");
        return;
    }
    web_set_cookie(f, ERRAND_COOKIE, "", "/oauth2callback/", 0);
    if (!sealed || !session_keys(s) || seal_open(&s->ring, ERRAND_COOKIE, sealed, &text) < 0 ||
        oauth_errand_read(text.data, time_wall_ms() / 1000, &errand) < 0 ||
        !streq(errand.provider, name) ||
        !oauth_secret_equal(errand.state, oauth_param(&f->params, "state"))) {
        web_error(f, 400, "state_error");
        return;
    }
    CLEANUP_FREE char *callback = callback_of(s, (size_t) i);
    struct identity_redirect r = {callback, errand.state, errand.nonce, errand.verifier};
    struct identity_provider *p = s->providers[i].provider;
    f->provider = (size_t) i;
    f->then = TAKE(errand.then);
    f->attempt = p->kind->callback(p, &r, f->x, callback_answered, f);
}

/* ---- the choice of a provider ---- */

static void choose(struct oauth_request *f, const char *then)
{
    CLEANUP(json_free) struct json *data = json_object();
    struct json *list = json_ensure_array(data, "Providers");
    for (size_t i = 0; i < f->s->n_providers; i++) {
        const struct oauth_provider *p = &f->s->providers[i];
        if (has_form(p) || has_page(p) || has_proxy(p)) {
            struct json *item = json_append(list, json_object());
            CLEANUP_STRBUF struct strbuf url = STRBUF_INIT;
            strbuf_adds(&url, then);
            oauth_param_add(&url, oauth_query_separator(then), "idp", p->name);
            json_set_string(item, "Name", p->name);
            json_set_string(item, "URL", url.data);
        }
    }
    web_page(f, 200, PAGE_PROVIDERS, data, NULL);
}

/* The number of providers that a person can choose, only the one of the name 'wanted' unless it is
 * ""; '*ret_first' is the first of them. */
static size_t count_usable(const struct oauth_server *s, const char *wanted, size_t *ret_first)
{
    size_t n = 0;
    for (size_t i = s->n_providers; i-- > 0;) {
        const struct oauth_provider *p = &s->providers[i];
        bool usable = has_form(p) || has_page(p) || has_proxy(p);
        if (usable && (!*wanted || streq(wanted, s->providers[i].name))) {
            n++;
            *ret_first = i;
        }
    }
    return n;
}

bool login_leaves_server(const struct oauth_server *s)
{
    size_t first = 0;
    return count_usable(s, "", &first) == 1 && !s->always_select && !has_form(&s->providers[first]);
}

void login_begin(struct oauth_request *f, const char *then)
{
    struct oauth_server *s = f->s;
    const char *wanted = oauth_param_text(&f->params, "idp");
    size_t first = 0, n = count_usable(s, wanted, &first);
    if (n == 0) {
        web_error(f, 403, "not_configured");
    } else if (!*wanted && (n > 1 || s->always_select)) {
        choose(f, then);
    } else if (has_page(&s->providers[first])) {
        go_to_provider(f, first, then);
    } else if (has_proxy(&s->providers[first])) {
        go_to_proxy(f, s->providers[first].provider, then);
    } else {
        CLEANUP_STRBUF struct strbuf url = STRBUF_INIT;
        page_url(s, first, then, &url);
        web_redirect(f, url.data);
    }
}
