/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ovs/flow_pack.h"

#include "base/mem.h"

#define MAX_KINDS 512  /* Limit of sorts of flows; Tenet's pipeline has far fewer. */
#define MAX_WIDENED 16 /* After this many widenings all bytes may differ. */
#define COOKIE_SIZE 8

#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded" /* Kinds are compared as bytes. */
/* Two flows of one kind have images of the same size. */
struct kind {
    uint16_t priority;
    uint16_t match_size, instructions_size;
    uint8_t table, expires;
};
#pragma GCC diagnostic pop

/* An image is the extra part of the cookie, match and instructions, and zeros up to a multiple of
 * 8. */
union image {
    uint64_t words[FLOW_PACK_MAX / 8];
    uint8_t bytes[FLOW_PACK_MAX];
};

struct flow_shape {
    struct hmap_node node; /* In 'kinds': only the widest shape of each kind. */
    struct kind kind;
    uint16_t id;
    uint16_t n;       /* Number of bytes that differ from flow to flow. */
    uint8_t *at;      /* Offsets of the bytes that differ. */
    unsigned widened; /* Number of widenings since the first shape of the kind. */
    uint64_t *fixed;  /* Mask of the bytes that do not differ; as many words as the image. */
    uint64_t image[];
};

static size_t image_size(const struct kind *k)
{
    return COOKIE_SIZE + (size_t) k->match_size + k->instructions_size;
}

static size_t image_words(const struct kind *k)
{
    return (image_size(k) + 7) / 8;
}

static uint32_t kind_hash(const struct kind *k)
{
    return hash32(k, sizeof *k);
}

static bool kind_equal(const struct kind *a, const struct kind *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static struct kind kind_of(const struct of_flow *f)
{
    return (struct kind){f->priority, f->match_size, f->instructions_size, f->table, f->expires};
}

static struct flow_shape *find(const struct flow_shapes *s, const struct kind *k)
{
    struct flow_shape *x;
    HMAP_FOREACH_WITH_HASH (x, struct flow_shape, node, kind_hash(k), &s->kinds) {
        if (kind_equal(&x->kind, k)) {
            return x;
        }
    }
    return NULL;
}

void flow_shapes_init(struct flow_shapes *s)
{
    *s = (struct flow_shapes){0};
    hmap_init(&s->kinds);
    s->shapes = grow(NULL, &s->cap, 1, sizeof *s->shapes);
    s->shapes[s->n++] = NULL;
}

void flow_shapes_done(struct flow_shapes *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->shapes[i]);
    }
    free(s->shapes);
    hmap_done(&s->kinds);
}

/* Makes a shape for 'image' that is wider than 'from' (NULL: the first of its kind). */
static struct flow_shape *widen(struct flow_shapes *s, const struct kind *k,
                                struct flow_shape *from, const union image *image)
{
    size_t words = image_words(k), size = image_size(k);
    struct flow_shape *x = xcalloc(1, sizeof *x + 2 * words * 8 + size);
    x->kind = *k;
    x->fixed = x->image + words;
    x->at = (uint8_t *) (x->fixed + words);
    x->widened = from ? from->widened + 1 : 0;
    memcpy(x->image, image->words, words * 8);
    uint8_t *fixed = (uint8_t *) x->fixed;
    for (size_t i = 0; i < size; i++) {
        bool differs = from && (((const uint8_t *) from->fixed)[i] == 0 ||
                                ((const uint8_t *) from->image)[i] != image->bytes[i]);
        if (differs || x->widened >= MAX_WIDENED) {
            x->at[x->n++] = (uint8_t) i;
        } else {
            fixed[i] = UINT8_MAX;
        }
    }
    if (from) {
        hmap_remove(&s->kinds, &from->node);
    }
    hmap_insert(&s->kinds, &x->node, kind_hash(k));
    s->shapes = grow(s->shapes, &s->cap, s->n + 1, sizeof *s->shapes);
    x->id = (uint16_t) s->n;
    s->shapes[s->n++] = x;
    return x;
}

static bool fits(const struct flow_shape *x, const union image *image)
{
    uint64_t differs = 0;
    for (size_t i = 0; i < image_words(&x->kind); i++) {
        differs |= (x->image[i] ^ image->words[i]) & x->fixed[i];
    }
    return !differs;
}

uint16_t flow_pack(struct flow_shapes *s, const struct of_flow *f, uint64_t cookie, uint8_t *out)
{
    struct kind k = kind_of(f);
    if (image_size(&k) > FLOW_PACK_MAX) {
        return FLOW_UNPACKED;
    }
    union image image;
    image.words[image_words(&k) - 1] = 0;
    image.words[0] = f->cookie ^ cookie;
    memcpy(image.bytes + COOKIE_SIZE, f->bytes, (size_t) f->match_size + f->instructions_size);
    struct flow_shape *x = find(s, &k);
    if (!x && s->kinds.n >= MAX_KINDS) {
        return FLOW_UNPACKED;
    }
    if (!x || !fits(x, &image)) {
        x = widen(s, &k, x, &image);
    }
    for (size_t i = 0; i < x->n; i++) {
        out[i] = image.bytes[x->at[i]];
    }
    return x->id;
}

size_t flow_packed_size(const struct flow_shapes *s, uint16_t shape)
{
    return s->shapes[shape]->n;
}

void flow_unpack(const struct flow_shapes *s, uint16_t shape, uint64_t cookie,
                 const uint8_t *packed, struct of_flow *ret)
{
    const struct flow_shape *x = s->shapes[shape];
    union image image;
    memcpy(image.words, x->image, image_words(&x->kind) * 8);
    for (size_t i = 0; i < x->n; i++) {
        image.bytes[x->at[i]] = packed[i];
    }
    *ret = (struct of_flow){
        .cookie = cookie ^ image.words[0],
        .priority = x->kind.priority,
        .table = x->kind.table,
        .expires = x->kind.expires,
        .match_size = x->kind.match_size,
        .instructions_size = x->kind.instructions_size,
    };
    memcpy(ret->bytes, image.bytes + COOKIE_SIZE, image_size(&x->kind) - COOKIE_SIZE);
}
