/* SPDX-License-Identifier: Apache-2.0 */
/* What parses can be written, and reads back equal (once numbers have YAML's form: 1.0 is 1). */
#include "wire/yaml.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) ((x) ? (void) 0 : abort())

static struct json *rewrite(const struct json *doc)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    yaml_write(doc, &b);
    CHECK(!b.failed);
    struct json *again = NULL;
    struct err e = {0};
    if (yaml_parse(b.data, b.size, &again, &e) < 0) {
        printf("%s\n%s\n", e.text, b.data);
        abort();
    }
    return again;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(json_free) struct json *docs = NULL;
    struct err e = {0};
    size_t line = yaml_find_line((const char *) data, size, "a.b[1].c");
    CHECK(line <= size + 1);
    if (yaml_parse_all((const char *) data, size, &docs, &e) < 0) {
        CHECK(e.code == -EINVAL && e.text[0]);
        return 0;
    }
    struct json *doc;
    JSON_FOREACH (doc, docs) {
        CLEANUP(json_free) struct json *second = rewrite(doc), *third = rewrite(second);
        CHECK(json_equal(second, third));
        CHECK(json_type(doc) == json_type(second) && json_count(doc) == json_count(second));
    }
    return 0;
}
