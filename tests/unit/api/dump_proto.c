/* SPDX-License-Identifier: Apache-2.0 */
/* Writes KIND.json and KIND.bin of each kind that has a protobuf form into the directory of its
 * argument: an object with a value in every field, and its message.  proto_by_protoc reads them. */
#include "api/proto.h"
#include "base/mem.h"
#include "filled.h"

#include <stdio.h>
#include <stdlib.h>

static void write_file(const char *folder, const char *name, const char *ending, const char *data,
                       size_t size)
{
    CLEANUP_FREE char *path = xasprintf("%s/%s.%s", folder, name, ending);
    FILE *f = fopen(path, "w");
    if (!f || (size && fwrite(data, 1, size, f) != size) || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
}

static void dump(const char *folder, const char *name, const struct api_schema *s)
{
    unsigned seed = 0;
    CLEANUP(json_free) struct json *obj = filled_object(s, &seed);
    CLEANUP_FREE char *text = json_to_text(obj);
    CLEANUP_STRBUF struct strbuf message = STRBUF_INIT;
    api_proto_encode(s, obj, &message);
    write_file(folder, name, "json", text, strlen(text));
    write_file(folder, name, "bin", message.data, message.size);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: dump_proto DIRECTORY\n");
        return 2;
    }
    for (size_t i = 0; api_kinds[i]; i++) {
        const struct api_kind *k = api_kinds[i];
        CLEANUP_FREE char *name = xasprintf("%s_%s_%s", k->group, k->version, k->kind);
        if (k->protobuf) {
            dump(argv[1], name, k->schema);
        }
    }
    for (size_t i = 0; api_bodies[i].kind; i++) {
        CLEANUP_FREE char *name = xasprintf("body_%s", api_bodies[i].kind);
        if (api_bodies[i].schema->n_numbered == api_bodies[i].schema->n_fields) {
            dump(argv[1], name, api_bodies[i].schema);
        }
    }
    return 0;
}
