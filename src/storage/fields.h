/* SPDX-License-Identifier: Apache-2.0 */
/* Reading PersistentVolumes, claims and storage classes: the rules about absent fields and legacy
 * annotations in one place.
 *
 * Strings returned belong to the object.  All functions accept objects with parts missing or of the
 * wrong type.  Pure. */
#pragma once

#include "storage/names.h"
#include "wire/json.h"

/* The class that a claim asks for: STORAGE_CLASS_BETA, else spec.storageClassName.  "": a volume
 * without class; NULL: the claim says nothing, and gets the default class if there is one. */
const char *storage_claim_class(const struct json *claim);
/* The class of a volume; "": none. */
const char *storage_volume_class(const struct json *volume);
/* Whether claims of the class wait until a pod uses them; 'class' NULL: false. */
bool storage_class_waits(const struct json *class);
/* Whether the class is marked as the default one. */
bool storage_class_is_default(const struct json *class);
/* The default class among 'n' classes: the one made last, then the first by name; NULL: none. */
const struct json *storage_default_class(const struct json *const *classes, size_t n);
/* The class's provisioner; "" when nothing makes its volumes. */
const char *storage_class_provisioner(const struct json *class);

/* The name of the claim's volume; "": none. */
const char *storage_claim_volume(const struct json *claim);
/* Whether the binding of the claim is complete. */
bool storage_claim_is_bound(const struct json *claim);
/* Bytes that the claim requests. */
int64_t storage_claim_size(const struct json *claim);
/* Bytes of the volume. */
int64_t storage_volume_size(const struct json *volume);

/* Whether the volume's claimRef names the claim; 'exact': with its uid, too.  Otherwise a reference
 * without uid suffices: it reserves the volume for the claim of that name. */
bool storage_volume_refers_to(const struct json *volume, const struct json *claim, bool exact);
/* "NAMESPACE/NAME" of the volume's claimRef, owned; NULL: it has none. */
char *storage_volume_claim_key(const struct json *volume);
/* The name of the node, if the volume can be reached from one node only, which its nodeAffinity
 * names by STORAGE_HOSTNAME; NULL: otherwise. */
const char *storage_volume_node(const struct json *volume);
/* The member of spec that is the volume's source, such as "nfs"; "" when there is none. */
const char *storage_volume_source(const struct json *volume);

/* The name of a claim that a pod's volume 'v' (a member of spec.volumes) mounts, owned: a claim by
 * name, or the generic ephemeral one "POD-VOLUME".  NULL: it mounts no claim. */
char *storage_pod_claim(const struct json *pod, const struct json *v);
