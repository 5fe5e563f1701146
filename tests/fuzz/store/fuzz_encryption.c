/* SPDX-License-Identifier: Apache-2.0 */
/* EncryptionConfigurations, and envelopes of values in the store, which another process may have
 * written.  The first byte chooses. */
#include "base/str.h"
#include "store/encryption.h"

#include <stdlib.h>

#define KEY "/registry/secrets/red/s"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char own[] =
    "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n"
    "- resources: [secrets]\n  providers:\n"
    "  - aesgcm: {keys: [{name: k, secret: MDEyMzQ1Njc4OWFiY2RlZg==}]}\n"
    "  - aescbc: {keys: [{name: k, secret: MDEyMzQ1Njc4OWFiY2RlZg==}]}\n";

/* A value that the configuration encrypts is decrypted by it. */
static void round_trip(const struct encryption *x)
{
    CLEANUP(blob_unref) struct blob *value = blob_new("{}", 2);
    CLEANUP(blob_unref) struct blob *sealed = NULL;
    CLEANUP(blob_unref) struct blob *opened = NULL;
    struct err e = {0};
    if (encryption_seal(x, KEY, value, &sealed, &e) < 0 || encryption_is_stale(x, KEY, sealed) ||
        encryption_open(x, KEY, sealed, &opened, &e) < 0 || opened->size != 2 ||
        memcmp(opened->data, "{}", 2) != 0) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(encryption_free) struct encryption *x = NULL;
    struct err e = {0};
    if (!size) {
        return 0;
    }
    if (*data == 'c') {
        if (encryption_parse((const char *) data + 1, size - 1, &x, &e) == 0) {
            round_trip(x);
        } else if (!*e.text || x) {
            abort();
        }
        return 0;
    }
    CLEANUP(blob_unref) struct blob *value = blob_new(data + 1, size - 1);
    CLEANUP(blob_unref) struct blob *opened = NULL;
    if (encryption_parse(own, sizeof own - 1, &x, &e) < 0) {
        abort();
    }
    if (encryption_open(x, KEY, value, &opened, &e) < 0 && (!*e.text || opened)) {
        abort();
    }
    return 0;
}
