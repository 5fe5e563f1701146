/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/match.h"

#include "api/label_selector.h"
#include "api/node_match.h"
#include "api/obj.h"

/* ---- one pair ---- */

/* A set of access modes as bits. */
static unsigned modes_of(const struct json *list)
{
    static const char *const modes[] = {"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany",
                                        "ReadWriteOncePod"};
    const struct json *item;
    unsigned set = 0;
    JSON_FOREACH (item, list) {
        for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
            set |= streq_null(json_get_string(item), modes[i]) ? 1u << i : 0;
        }
    }
    return set;
}

static bool has_modes(const struct json *claim, const struct json *volume)
{
    unsigned wanted = modes_of(json_path(claim, "spec", "accessModes", NULL));
    return (modes_of(json_path(volume, "spec", "accessModes", NULL)) & wanted) == wanted;
}

static const char *volume_mode(const struct json *o)
{
    const char *mode = json_get_text(json_get(o, "spec"), "volumeMode");
    return *mode ? mode : "Filesystem";
}

static bool is_reachable(const struct json *volume, const struct storage_node *node)
{
    const struct json *required = json_path(volume, "spec", "nodeAffinity", "required", NULL);
    return !node || !required || match_node_selector(required, node->labels, node->name);
}

static bool is_leaving(const struct json *volume)
{
    return obj_is_terminating(volume) ||
           streq(json_get_text(json_get(volume, "status"), "phase"), "Failed");
}

enum storage_misfit storage_check_pair(const struct json *claim, const struct json *volume,
                                       bool named)
{
    const char *class = storage_claim_class(claim);
    return is_leaving(volume) ? STORAGE_LEAVING
           : named && !streq(class ? class : "", storage_volume_class(volume)) ? STORAGE_CLASS
           : !streq(volume_mode(claim), volume_mode(volume))         ? STORAGE_MODE
           : named && !has_modes(claim, volume)                      ? STORAGE_ACCESS
           : storage_claim_size(claim) > storage_volume_size(volume) ? STORAGE_SMALL
                                                                     : STORAGE_FITS;
}

enum storage_misfit storage_check(const struct json *claim, const struct json *volume,
                                  const struct storage_node *node)
{
    const struct json *selector = json_path(claim, "spec", "selector", NULL);
    if (storage_volume_refers_to(volume, claim, false)) {
        enum storage_misfit r = storage_check_pair(claim, volume, false);
        return r == STORAGE_FITS && !is_reachable(volume, node) ? STORAGE_NODE : r;
    }
    if (json_path(volume, "spec", "claimRef", NULL)) {
        return STORAGE_TAKEN;
    }
    enum storage_misfit r = storage_check_pair(claim, volume, true);
    if (r != STORAGE_FITS && r != STORAGE_SMALL) {
        return r;
    }
    if (selector && !label_selector_is_empty(selector) &&
        !label_selector_matches(selector, json_path(volume, "metadata", "labels", NULL))) {
        return STORAGE_SELECTOR;
    }
    return is_reachable(volume, node) ? r : STORAGE_NODE;
}

/* ---- the best ---- */

static unsigned count_modes(const struct json *volume)
{
    return (unsigned) __builtin_popcount(modes_of(json_path(volume, "spec", "accessModes", NULL)));
}

/* Whether 'a' comes before 'b'; both suit the claim. */
static bool is_better(const struct json *claim, const struct json *a, const struct json *b)
{
    bool ours_a = storage_volume_refers_to(a, claim, false);
    bool ours_b = storage_volume_refers_to(b, claim, false);
    if (ours_a != ours_b) {
        return ours_a;
    }
    if (count_modes(a) != count_modes(b)) {
        return count_modes(a) < count_modes(b);
    }
    /* Sets of the same size are told apart by their modes, so that one group ends before the next
     * begins. */
    unsigned set_a = modes_of(json_path(a, "spec", "accessModes", NULL));
    unsigned set_b = modes_of(json_path(b, "spec", "accessModes", NULL));
    int64_t size_a = storage_volume_size(a), size_b = storage_volume_size(b);
    int64_t age_a = obj_created_ms(a), age_b = obj_created_ms(b);
    return set_a != set_b     ? set_a < set_b
           : size_a != size_b ? size_a < size_b
           : age_a != age_b   ? age_a < age_b
                              : strcmp(obj_name(a), obj_name(b)) < 0;
}

const struct json *storage_match(const struct json *claim, const struct json *const *volumes,
                                 size_t n, const struct storage_search *search,
                                 struct storage_misses *ret_misses)
{
    const struct json *best = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct json *v = volumes[i];
        enum storage_misfit why = storage_check(claim, v, search->node);
        if (why == STORAGE_FITS && search->is_taken && search->is_taken(search->ctx, v)) {
            why = STORAGE_TAKEN;
        }
        if (why != STORAGE_FITS) {
            if (ret_misses) {
                ret_misses->n[why]++;
            }
        } else if ((!search->reserved_only || storage_volume_refers_to(v, claim, false)) &&
                   (!best || is_better(claim, v, best))) {
            best = v;
        }
    }
    return best;
}

void storage_misses_write(const struct storage_misses *m, struct strbuf *out)
{
    /* The nearest miss first. */
    static const struct {
        enum storage_misfit why;
        const char *one, *many;
    } texts[] = {
        {STORAGE_SMALL, "volume is too small", "volumes are too small"},
        {STORAGE_NODE, "volume is on another node", "volumes are on other nodes"},
        {STORAGE_SELECTOR, "volume does not match the selector",
         "volumes do not match the selector"},
        {STORAGE_ACCESS, "volume lacks an access mode", "volumes lack an access mode"},
        {STORAGE_MODE, "volume has another volumeMode", "volumes have another volumeMode"},
        {STORAGE_CLASS, "volume has another class", "volumes have another class"},
        {STORAGE_LEAVING, "volume has failed or is being deleted",
         "volumes have failed or are being deleted"},
        {STORAGE_TAKEN, "volume belongs to another claim", "volumes belong to other claims"}};
    bool any = false;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        size_t n = m->n[texts[i].why];
        if (n) {
            strbuf_addf(out, "%s%zu %s", any ? ", " : "", n, n == 1 ? texts[i].one : texts[i].many);
            any = true;
        }
    }
}
