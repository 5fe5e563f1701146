/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/http1.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

#define MAX_OVERHEAD 8192 /* Limit for a chunked body. */

/* tchar of RFC 9110, 5.6.2. */
static bool is_token_char(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static size_t token_size(const char *s, const char *end)
{
    const char *p = s;
    while (p < end && is_token_char(*p)) {
        p++;
    }
    return (size_t) (p - s);
}

/* Field content: no control characters but the tab. */
static bool is_value(const char *s, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char) s[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            return false;
        }
    }
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

ssize_t http1_head_end(const char *p, size_t size, size_t *at)
{
    for (;;) {
        const char *lf = size > *at ? memchr(p + *at, '\n', size - *at) : NULL;
        if (!lf) {
            *at = size;
            return 0;
        }
        size_t i = (size_t) (lf - p);
        if (i == 0 || p[i - 1] != '\r') {
            return -EINVAL;
        }
        if (i == 1 || p[i - 2] == '\n') {
            return (ssize_t) i + 1;
        }
        *at = i + 1;
    }
}

/* ---- heads ---- */

/* The next line of the head from '*at', without its CR LF; an empty line ends the head. */
static int next_line(char **at, const char *end, char **ret, size_t *ret_size, struct err *e)
{
    char *line = *at, *lf = line < end ? memchr(line, '\n', (size_t) (end - line)) : NULL;
    if (!lf || lf == line || lf[-1] != '\r') {
        return err_set(e, -EINVAL, "a line does not end in CR LF");
    }
    *ret = line;
    *ret_size = (size_t) (lf - line) - 1;
    *at = lf + 1;
    if (memchr(line, '\r', *ret_size)) {
        return err_set(e, -EINVAL, "a bare CR");
    }
    return 0;
}

/* The version at 's': HTTP/1.0 or HTTP/1.1; later ones of HTTP/1 are taken for 1.1. */
static int parse_version(const char *s, size_t size, unsigned *ret_minor, struct err *e)
{
    if (size != 8 || memcmp(s, "HTTP/", 5) != 0 || !is_digit(s[5]) || s[6] != '.' ||
        !is_digit(s[7])) {
        return err_set(e, -EINVAL, "malformed HTTP version");
    }
    if (s[5] != '1') {
        return err_set(e, -EPROTONOSUPPORT, "HTTP version %.3s is not supported", s + 5);
    }
    *ret_minor = s[7] == '0' ? 0 : 1;
    return 0;
}

static int parse_request_line(char *s, size_t size, struct http1_head *h, struct err *e)
{
    char *end = s + size;
    size_t method = token_size(s, end);
    if (!method || method > 32 || s + method == end || s[method] != ' ') {
        return err_set(e, -EINVAL, "malformed method");
    }
    char *target = s + method + 1, *p = target;
    while (p < end && *p >= '!' && *p <= '~') {
        p++;
    }
    if (p == target || p == end || *p != ' ') {
        return err_set(e, -EINVAL, "malformed request target");
    }
    int r = parse_version(p + 1, (size_t) (end - p) - 1, &h->minor, e);
    if (r < 0) {
        return r;
    }
    s[method] = *p = '\0';
    h->method = s;
    h->target = target;
    return 0;
}

static int parse_status_line(char *s, size_t size, struct http1_head *h, struct err *e)
{
    if (size < 12 || s[8] != ' ' || !is_digit(s[9]) || !is_digit(s[10]) || !is_digit(s[11]) ||
        (size > 12 && s[12] != ' ') || !is_value(s, size)) {
        return err_set(e, -EINVAL, "malformed status line");
    }
    int r = parse_version(s, 8, &h->minor, e);
    if (r < 0) {
        return r;
    }
    h->status = (s[9] - '0') * 100 + (s[10] - '0') * 10 + (s[11] - '0');
    if (h->status < 100 || h->status > 599) {
        return err_set(e, -EINVAL, "status %d", h->status);
    }
    s[size] = '\0';
    h->reason = size > 12 ? s + 13 : "";
    return 0;
}

/* State of the framing headers during parsing. */
struct framing {
    bool has_length, has_coding, has_host, close, keep_alive;
    uint64_t length;
};

static bool has_list_token(const char *list, const char *token)
{
    size_t n = strlen(token);
    while (*list) {
        list += strspn(list, ", \t");
        size_t size = strcspn(list, ", \t");
        if (size == n && strncasecmp(list, token, n) == 0) {
            return true;
        }
        list += size;
    }
    return false;
}

/* Looks at one header; 'name' and 'value' are strings. */
static int note_header(const char *name, const char *value, struct framing *f, struct http1_head *h,
                       struct err *e)
{
    if (strcasecmp(name, "content-length") == 0) {
        if (f->has_length) {
            return err_set(e, -EINVAL, "repeated Content-Length");
        }
        f->has_length = true;
        if (str_to_u64(value, INT64_MAX, &f->length) < 0) {
            return err_set(e, -EINVAL, "Content-Length \"%.40s\" is not a number", value);
        }
    } else if (strcasecmp(name, "transfer-encoding") == 0) {
        if (f->has_coding || !*value) {
            return err_set(e, -EINVAL, "repeated or empty Transfer-Encoding");
        }
        f->has_coding = true;
        if (strcasecmp(value, "chunked") != 0) {
            return err_set(e, -ENOTSUP, "transfer coding \"%.40s\" is not supported", value);
        }
    } else if (strcasecmp(name, "host") == 0) {
        if (f->has_host) {
            return err_set(e, -EINVAL, "repeated Host");
        }
        f->has_host = true;
        if (strpbrk(value, " \t,/@\\\"")) {
            return err_set(e, -EINVAL, "malformed Host");
        }
    } else if (strcasecmp(name, "connection") == 0) {
        f->close |= has_list_token(value, "close");
        f->keep_alive |= has_list_token(value, "keep-alive");
    } else if (strcasecmp(name, "expect") == 0) {
        h->expect_continue = h->minor > 0 && strcasecmp(value, "100-continue") == 0;
    } else if ((strcasecmp(name, "authorization") == 0 || strcasecmp(name, "content-type") == 0) &&
               http1_header(h, name)) {
        return err_set(e, -EINVAL, "repeated %s", name);
    }
    return 0;
}

/* Reads the headers from 'at' to the blank line, and packs them to where they began. */
static int parse_headers(char *at, const char *end, struct framing *f, struct http1_head *h,
                         struct err *e)
{
    char *out = at;
    h->headers = at;
    h->n_headers = 0;
    for (;;) {
        char *line;
        size_t size;
        int r = next_line(&at, end, &line, &size, e);
        if (r < 0) {
            return r;
        }
        if (!size) {
            break;
        }
        if (h->n_headers == HTTP1_MAX_HEADERS) {
            return err_set(e, -EMSGSIZE, "over %d headers", HTTP1_MAX_HEADERS);
        }
        size_t name_size = token_size(line, line + size);
        if (!name_size || name_size == size || line[name_size] != ':') {
            return err_set(e, -EINVAL, "malformed header name");
        }
        char *value = line + name_size + 1;
        size_t value_size = size - name_size - 1;
        while (value_size && is_blank(*value)) {
            value++;
            value_size--;
        }
        while (value_size && is_blank(value[value_size - 1])) {
            value_size--;
        }
        if (!is_value(value, value_size)) {
            return err_set(e, -EINVAL, "control character in a header");
        }
        char *name = memmove(out, line, name_size);
        out += name_size;
        *out++ = '\0';
        value = memmove(out, value, value_size);
        out += value_size;
        *out++ = '\0';
        r = note_header(name, value, f, h, e);
        if (r < 0) {
            return r;
        }
        h->n_headers++;
    }
    if (at != end) {
        return err_set(e, -EINVAL, "text after the head");
    }
    if (f->has_length && f->has_coding) {
        return err_set(e, -EINVAL, "both Content-Length and Transfer-Encoding");
    }
    if (f->has_coding && h->minor == 0) {
        return err_set(e, -EINVAL, "Transfer-Encoding in HTTP/1.0");
    }
    h->keep_alive = !f->close && (h->minor > 0 || f->keep_alive);
    return 0;
}

int http1_parse_request(char *text, size_t size, struct http1_head *ret, struct err *e)
{
    struct http1_head h = {0};
    struct framing f = {0};
    char *at = text, *line = NULL;
    size_t n = 0;
    int r = next_line(&at, text + size, &line, &n, e);
    if (r == 0) {
        r = parse_request_line(line, n, &h, e);
    }
    if (r == 0) {
        r = parse_headers(at, text + size, &f, &h, e);
    }
    if (r < 0) {
        return r;
    }
    if (!f.has_host && h.minor > 0) {
        return err_set(e, -EINVAL, "no Host header");
    }
    h.framing = f.has_coding ? HTTP1_CHUNKED : f.length ? HTTP1_LENGTH : HTTP1_NO_BODY;
    h.length = f.length;
    *ret = h;
    return 0;
}

int http1_parse_response(char *text, size_t size, bool to_head, struct http1_head *ret,
                         struct err *e)
{
    struct http1_head h = {0};
    struct framing f = {0};
    char *at = text, *line = NULL;
    size_t n = 0;
    int r = next_line(&at, text + size, &line, &n, e);
    if (r == 0) {
        r = parse_status_line(line, n, &h, e);
    }
    if (r == 0) {
        r = parse_headers(at, text + size, &f, &h, e);
    }
    if (r < 0) {
        return r;
    }
    h.length = f.length;
    if (to_head || h.status < 200 || h.status == 204 || h.status == 304) {
        h.framing = HTTP1_NO_BODY;
        h.length = 0;
    } else if (f.has_coding) {
        h.framing = HTTP1_CHUNKED;
    } else if (f.has_length) {
        h.framing = f.length ? HTTP1_LENGTH : HTTP1_NO_BODY;
    } else {
        h.framing = HTTP1_UNTIL_CLOSE;
        h.keep_alive = false;
    }
    *ret = h;
    return 0;
}

int http1_error_status(int code)
{
    switch (code) {
    case -EMSGSIZE:
        return 431;
    case -EPROTONOSUPPORT:
        return 505;
    case -ENOTSUP:
        return 501;
    default:
        return 400;
    }
}

/* The value of 'name' in 'n' pairs of strings. */
static const char *find_pair(const char *pairs, size_t n, const char *name,
                             int (*compare)(const char *, const char *))
{
    for (; n; n--) {
        const char *value = pairs + strlen(pairs) + 1;
        if (compare(pairs, name) == 0) {
            return value;
        }
        pairs = value + strlen(value) + 1;
    }
    return NULL;
}

const char *http1_header(const struct http1_head *h, const char *name)
{
    return find_pair(h->headers, h->n_headers, name, strcasecmp);
}

bool http1_header_at(const struct http1_head *h, size_t i, const char **ret_name,
                     const char **ret_value)
{
    const char *p = h->headers;
    if (i >= h->n_headers) {
        return false;
    }
    for (size_t strings = 2 * i; strings; strings--) {
        p += strlen(p) + 1;
    }
    *ret_name = p;
    *ret_value = p + strlen(p) + 1;
    return true;
}

/* ---- targets ---- */

static int hex_digit(char c)
{
    char l = (char) (c | 0x20);
    return is_digit(c) ? c - '0' : l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

/* Decodes to 'out' with a NUL and returns what follows it; NULL: bad escape or control
 * character. */
static char *unescape(const char *s, size_t size, bool is_query, char *out)
{
    for (const char *end = s + size; s < end; s++) {
        unsigned char c = (unsigned char) *s;
        if (c == '%') {
            int hi = end - s > 2 ? hex_digit(s[1]) : -1, lo = hi >= 0 ? hex_digit(s[2]) : -1;
            if (lo < 0) {
                return NULL;
            }
            c = (unsigned char) (hi << 4 | lo);
            s += 2;
        } else if (c == '+' && is_query) {
            c = ' ';
        }
        if ((c < 0x20 && (c == 0 || !is_query)) || c == 0x7f) {
            return NULL;
        }
        *out++ = (char) c;
    }
    *out++ = '\0';
    return out;
}

static bool has_dot_segment(const char *path)
{
    for (const char *s = path; s; s = strchr(s, '/')) {
        s += *s == '/';
        size_t n = strcspn(s, "/");
        if ((n == 1 && s[0] == '.') || (n == 2 && s[0] == '.' && s[1] == '.')) {
            return true;
        }
    }
    return false;
}

size_t http1_target_size(const char *target)
{
    /* "/" and the path, the unchanged query, and the decoded one with two NULs for each '&' and
     * the end. */
    size_t n = strlen(target), params = 1;
    for (const char *p = target; *p; p++) {
        params += *p == '&';
    }
    return 2 * n + 2 * params + 4;
}

/* The query 's' as pairs of strings at 'out'. */
static int parse_params(const char *s, char *out, struct http1_target *t, struct err *e)
{
    t->params = out;
    t->n_params = 0;
    while (*s) {
        size_t size = strcspn(s, "&"), name = strcspn(s, "&=");
        if (size) {
            out = unescape(s, name, true, out);
            if (out) {
                out = name < size ? unescape(s + name + 1, size - name - 1, true, out)
                                  : unescape("", 0, true, out);
            }
            if (!out) {
                return err_set(e, -EINVAL, "bad escape in the query");
            }
            t->n_params++;
        }
        s += size + (s[size] == '&');
    }
    return 0;
}

int http1_target_parse(const char *target, char *buf, struct http1_target *ret, struct err *e)
{
    if (strncasecmp(target, "http://", 7) == 0) {
        target += 7;
        if (strcspn(target, "/?") == 0) {
            return err_set(e, -EINVAL, "request target without a host");
        }
        target += strcspn(target, "/?");
    } else if (*target != '/' && !streq(target, "*")) {
        return err_set(e, -EINVAL, "the request target is no path");
    }
    if (strchr(target, '#')) {
        return err_set(e, -EINVAL, "fragment in the request target");
    }
    struct http1_target t = {.path = buf};
    size_t path_size = strcspn(target, "?");
    if (*target != '/' && *target != '*') {
        *buf++ = '/'; /* "http://host?query" */
    }
    buf = unescape(target, path_size, false, buf);
    if (!buf) {
        return err_set(e, -EINVAL, "bad escape in the path");
    }
    if (has_dot_segment(t.path)) {
        return err_set(e, -EINVAL, "dot segment in the path");
    }
    const char *query = target + path_size + (target[path_size] == '?');
    size_t query_size = strlen(query);
    memcpy(buf, query, query_size + 1);
    t.query = buf;
    int r = parse_params(t.query, buf + query_size + 1, &t, e);
    if (r == 0) {
        *ret = t;
    }
    return r;
}

bool http1_param_at(const struct http1_target *t, size_t i, const char **ret_name,
                    const char **ret_value)
{
    const char *p = t->params;
    if (i >= t->n_params) {
        return false;
    }
    while (i-- > 0) {
        p += strlen(p) + 1;
        p += strlen(p) + 1;
    }
    *ret_name = p;
    *ret_value = p + strlen(p) + 1;
    return true;
}

const char *http1_param(const struct http1_target *t, const char *name)
{
    return find_pair(t->params, t->n_params, name, strcmp);
}

void http1_escape(const char *s, struct strbuf *out)
{
    static const char hex[] = "0123456789ABCDEF";
    for (; *s; s++) {
        unsigned char c = (unsigned char) *s;
        bool plain = is_digit(*s) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || strchr("-._~", c);
        if (plain) {
            strbuf_addc(out, *s);
        } else {
            strbuf_add(out, (char[]){'%', hex[c >> 4], hex[c & 15]}, 3);
        }
    }
}

/* ---- chunked bodies ---- */

enum chunk_state {
    SIZE,
    EXTENSION,
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    TRAILER_START,
    TRAILER,
    TRAILER_LF,
    LAST_LF
};

/* Takes one byte outside of the data.  -EINVAL: malformed. */
static int chunk_byte(struct http1_chunked *c, char b)
{
    enum chunk_state state = c->state;
    switch (state) {
    case SIZE: {
        int digit = hex_digit(b);
        if (digit >= 0) {
            c->left = c->left << 4 | (uint64_t) digit;
            return ++c->digits > 15 ? -EINVAL : 0;
        }
        c->state = b == ';' ? EXTENSION : SIZE_LF;
        return c->digits && (b == ';' || b == '\r') ? 0 : -EINVAL;
    }
    case EXTENSION:
    case TRAILER:
        if (b == '\r') {
            c->state = state == EXTENSION ? SIZE_LF : TRAILER_LF;
            return 0;
        }
        return ++c->overhead > MAX_OVERHEAD || !is_value(&b, 1) ? -EINVAL : 0;
    case TRAILER_START:
        if (b == '\r') {
            c->state = LAST_LF;
            return 0;
        }
        c->state = TRAILER;
        return ++c->overhead > MAX_OVERHEAD || !is_token_char(b) ? -EINVAL : 0;
    case SIZE_LF:
        c->state = c->left ? DATA : TRAILER_START;
        break;
    case DATA_CR:
        c->state = DATA_LF;
        return b == '\r' ? 0 : -EINVAL;
    case DATA_LF:
        c->state = SIZE;
        c->digits = 0;
        break;
    case TRAILER_LF:
        c->state = TRAILER_START;
        break;
    case LAST_LF:
        c->done = true;
        break;
    case DATA:
        return -EINVAL;
    }
    return b == '\n' ? 0 : -EINVAL;
}

int http1_chunked_feed(struct http1_chunked *c, const char *p, size_t size, size_t *ret_used,
                       const char **ret_data, size_t *ret_size)
{
    struct http1_chunked next = *c;
    size_t i = 0, n = 0;
    while (i < size && next.state != DATA && !next.done) {
        int r = chunk_byte(&next, p[i++]);
        if (r < 0) {
            return r;
        }
    }
    if (next.state == DATA) {
        n = (size_t) MIN((uint64_t) (size - i), next.left);
        next.left -= n;
        if (!next.left) {
            next.state = DATA_CR;
        }
    }
    *c = next;
    *ret_data = p + i;
    *ret_size = n;
    *ret_used = i + n;
    return 0;
}

size_t http1_chunk_head(char out[HTTP1_CHUNK_HEAD_SIZE], uint64_t size)
{
    return (size_t) snprintf(out, HTTP1_CHUNK_HEAD_SIZE, "%" PRIx64 "\r\n", size);
}

/* ---- writing heads ---- */

int http1_start_request(struct strbuf *out, const char *method, const char *target)
{
    size_t n = strlen(method);
    if (!n || token_size(method, method + n) != n || *target != '/') {
        return -EINVAL;
    }
    for (const char *p = target; *p; p++) {
        if (*p <= ' ' || *p >= 0x7f) {
            return -EINVAL;
        }
    }
    return strbuf_addf(out, "%s %s HTTP/1.1\r\n", method, target);
}

void http1_start_response(struct strbuf *out, int status)
{
    strbuf_addf(out, "HTTP/1.1 %d %s\r\n", status, http1_reason(status));
}

int http1_add_header(struct strbuf *out, const char *name, const char *value)
{
    size_t n = strlen(name);
    if (!n || token_size(name, name + n) != n || !is_value(value, strlen(value))) {
        return -EINVAL;
    }
    strbuf_add(out, name, n);
    strbuf_add(out, ": ", 2);
    strbuf_adds(out, value);
    return strbuf_add(out, "\r\n", 2);
}

const char *http1_reason(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {
        {100, "Continue"},
        {101, "Switching Protocols"},
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {301, "Moved Permanently"},
        {302, "Found"},
        {304, "Not Modified"},
        {307, "Temporary Redirect"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {411, "Length Required"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {422, "Unprocessable Content"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
        {507, "Insufficient Storage"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
        if (reasons[i].status == status) {
            return reasons[i].reason;
        }
    }
    return "Unknown";
}
