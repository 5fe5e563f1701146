/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/request/encode.h"

#include "api/proto.h"
#include "apiserver/request/respond.h"
#include "wire/protobuf.h"

bool encode_can_proto(const struct request *q, enum form form)
{
    /* Without a kind the answer is a Status, discovery or JSON: see answer_json. */
    return form == FORM_PARTIAL || (form == FORM_OBJECT && (!q->kind || q->kind->protobuf));
}

void encode_message(const struct request *q, const struct blob *text, struct strbuf *out)
{
    CLEANUP(json_free) struct json *obj = NULL;
    json_parse(text->data, text->size, &obj, NULL);
    if (q->accept.form == FORM_PARTIAL) {
        size_t mark = pb_begin(out, 1);
        api_proto_encode(&api_schema_object_meta, json_get(obj, "metadata"), out);
        pb_end(out, mark);
    } else {
        api_proto_encode(api_kind_schema(q->kind), obj, out);
    }
}

struct blob *encode_cached(const struct request *q, struct object *o)
{
    /* Versions of a kind have the same messages, views and metadata have others. */
    bool kept = q->accept.form == FORM_OBJECT && !q->kind->view;
    if (!kept || !o->message) {
        CLEANUP(blob_unref) struct blob *text = request_text(q, o->text);
        CLEANUP_STRBUF struct strbuf message = STRBUF_INIT;
        encode_message(q, text, &message);
        struct blob *b = blob_new(strbuf_cstr(&message), message.size);
        if (!kept) {
            return b;
        }
        o->message = b;
    }
    return blob_ref(o->message);
}

#define PARTIAL_VERSION(q) ((q)->accept.v1beta1 ? "meta.k8s.io/v1beta1" : "meta.k8s.io/v1")

void encode_envelope(const struct request *q, const struct strbuf *message, struct strbuf *out)
{
    CLEANUP_FREE char *version = request_api_version(q);
    bool partial = q->accept.form == FORM_PARTIAL;
    api_proto_put_head(partial ? PARTIAL_VERSION(q) : version,
                       partial ? "PartialObjectMetadata" : q->kind->kind, message->size, out);
    strbuf_add(out, message->data, message->size);
    api_proto_put_end(out);
}

void encode_list_head(const struct request *q, size_t size, struct strbuf *out)
{
    CLEANUP_FREE char *version = request_api_version(q);
    CLEANUP_FREE char *list = api_kind_list_kind(q->kind);
    bool partial = q->accept.form == FORM_PARTIAL;
    api_proto_put_head(partial ? PARTIAL_VERSION(q) : version,
                       partial ? "PartialObjectMetadataList" : list, size, out);
}
