/* SPDX-License-Identifier: Apache-2.0 */
/* CNI input: the first line is CNI_ARGS, the second says which reader, the rest is the configuration, the
 * request line of the agent's socket, or a previous result.  What is accepted must survive the way to
 * the agent; what is refused must give an error object. */
#include "base/mem.h"
#include "wire/cni.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_error(const struct cni_error *e)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    CLEANUP(json_free) struct json *v = NULL;
    cni_error_write(e, &b);
    if (e->code <= 0 || json_parse(b.data, b.size, &v, NULL) < 0) {
        abort();
    }
}

/* What is accepted of stored texts is written as what means the same. */
static void check_stored(const char *text)
{
    CLEANUP(cni_runtime_done) struct cni_runtime r = {0}, again = {0};
    struct cni_bandwidth b, c;
    if (cni_host_ports_parse(text, &r) == 0 && r.n_ports) {
        CLEANUP_FREE char *ports = cni_host_ports_text(&r);
        if (cni_host_ports_parse(ports, &again) < 0 || again.n_ports != r.n_ports) {
            abort();
        }
    }
    if (cni_bandwidth_parse(text, &b) == 0) {
        CLEANUP_FREE char *limits = cni_bandwidth_text(&b);
        if (limits && (cni_bandwidth_parse(limits, &c) < 0 || c.to_pod != b.to_pod ||
                       c.from_pod_burst != b.from_pod_burst)) {
            abort();
        }
    }
}

static void check_request(const struct cni_request *r)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    CLEANUP(cni_request_done) struct cni_request again = {0};
    struct cni_error e = {0};
    cni_request_write(r, &b);
    if (memchr(b.data, '\n', b.size) || cni_request_parse(b.data, b.size, &again, &e) < 0 ||
        again.config.runtime.n_ports != r->config.runtime.n_ports ||
        again.config.runtime.bandwidth.to_pod != r->config.runtime.bandwidth.to_pod) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *) data, *end = text + size;
    const char *eol = memchr(text, '\n', size);
    if (!eol || end - eol < 2) {
        return 0;
    }
    CLEANUP_FREE char *args = xstrndup(text, (size_t) (eol - text));
    char what = eol[1];
    const char *body = eol + 2;
    check_stored(args);
    size_t n = (size_t) (end - body);
    static const char *const commands[] = {"ADD", "DEL", "CHECK", "GC", "STATUS"};
    CLEANUP(cni_request_done) struct cni_request r = {0};
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    struct cni_error e = {0};
    int err = 0;
    if ((what >= '0' && what <= '2') || what == '6' || what == '7') {
        struct cni_env env = {commands[what <= '2' ? what - '0' : what - '3'], "abc", "/n", "eth0",
                              args};
        err = cni_request_read(&env, body, n, &r, &e);
    } else if (what == '3') {
        err = cni_version_answer(body, n, &out, &e);
    } else if (what == '4') {
        struct cni_env env = {"ADD", args, args, args, "K8S_POD_NAMESPACE=a;K8S_POD_NAME=b"};
        err = cni_request_read(&env, body, n, &r, &e);
    } else if (what == '5') {
        struct cni_result want = {.ifname = "eth0", .netns = "/n", .address = {0x0a800002, 23}};
        CLEANUP(json_free) struct json *prev = NULL;
        if (json_parse(body, n, &prev, NULL) == 0) {
            err = cni_result_check(&want, prev, &e);
        }
    } else {
        err = cni_request_parse(body, n, &r, &e);
    }
    if (err < 0) {
        check_error(&e);
    } else if (r.container_id) {
        check_request(&r);
    }
    return 0;
}
