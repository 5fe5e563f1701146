/* SPDX-License-Identifier: Apache-2.0 */
/* Objects in Kubernetes' protobuf form ("application/vnd.kubernetes.protobuf"), in which the
 * components of Kubernetes send and read them unless told otherwise.
 *
 * Both directions follow the schemas, whose fields have their numbers (api/kinds), for every kind
 * that has a protobuf form.  The encoder writes what Go's generated code writes: fields by
 * ascending number, maps by key, and a scalar without a pointer also when it is empty.  The form is
 * that of k8s.io/apimachinery, pkg/runtime/serializer/protobuf.
 *
 * Pure; shared by all threads. */
#pragma once

#include "api/schema.h"

#define API_PROTO_TYPE "application/vnd.kubernetes.protobuf"

/* '*ret' is the object as JSON, with apiVersion and kind; these are those of 'k' where the
 * envelope has none ('k' may be NULL).  'unknown' (may be NULL) gets the fields that have no
 * description, as "PodSpec.99"; they are left out.  -EINVAL: malformed, or nested deeper than JSON
 * may be; -EPROTONOSUPPORT: a kind without a protobuf form. */
int api_proto_decode(const void *data, size_t size, const struct api_kind *k, struct json **ret,
                     struct api_paths *unknown, struct err *e);
/* The same for an envelope in which objects of 'k' may have the apiVersion of api/legacy.h; the
 * object then has that of 'k'. */
int api_proto_decode_legacy(const void *data, size_t size, const struct api_kind *k,
                            struct json **ret, struct api_paths *unknown, struct err *e);

/* Appends the message of 'obj', whose schema is 's', without an envelope.  'obj' is of that schema;
 * what it has in addition is left out. */
void api_proto_encode(const struct api_schema *s, const struct json *obj, struct strbuf *out);
/* An envelope is the head, a message of 'size' bytes, and the end. */
void api_proto_put_head(const char *api_version, const char *kind, size_t size, struct strbuf *out);
void api_proto_put_end(struct strbuf *out);
/* Appends the envelope of 'obj', which has a kind and mostly an apiVersion: an object, a list of
 * objects, or a body such as Status or a document of discovery.  -EPROTONOSUPPORT: its kind has no
 * protobuf form. */
int api_proto_put_object(const struct json *obj, struct strbuf *out);
/* The schema of the kind's messages; NULL: it has no protobuf form. */
const struct api_schema *api_proto_schema(const char *api_version, const char *kind);

/* Appends the metadata of a list, its first field.  'token' NULL: the list is complete; 'remaining'
 * NULL: the number of objects that follow is not told. */
void api_proto_put_list_meta(uint64_t revision, const char *token, const size_t *remaining,
                             struct strbuf *out);
/* The number of an element in the message of a list, and the bytes of one whose message has
 * 'size'. */
#define API_PROTO_ITEM 2
size_t api_proto_item_size(size_t size);

/* Appends a frame of a watch: four bytes with the length, and a WatchEvent with the enveloped
 * object. */
void api_proto_put_event(const char *type, const struct strbuf *object, struct strbuf *out);
