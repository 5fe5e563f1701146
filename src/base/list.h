/* SPDX-License-Identifier: Apache-2.0 */
/* Intrusive doubly linked list.  The list does not own its members; a member is in one list at most
 * per node.  An initialized but unlinked node points to itself, so unlinking twice is harmless. */
#pragma once

#include "base/macro.h"

struct list {
    struct list *prev, *next;
};

#define LIST_INIT(l) \
    {                \
        (l), (l)     \
    }

static inline void list_init(struct list *l)
{
    l->prev = l->next = l;
}
static inline bool list_is_empty(const struct list *l)
{
    return l->next == l;
}
static inline void list_insert_before(struct list *before, struct list *node)
{
    node->prev = before->prev;
    node->next = before;
    before->prev->next = node;
    before->prev = node;
}
static inline void list_push_back(struct list *l, struct list *node)
{
    list_insert_before(l, node);
}
static inline void list_push_front(struct list *l, struct list *node)
{
    list_insert_before(l->next, node);
}
static inline void list_remove(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}
/* First node, unlinked; NULL when the list is empty. */
static inline struct list *list_pop_front(struct list *l)
{
    if (list_is_empty(l)) {
        return NULL;
    }
    struct list *node = l->next;
    list_remove(node);
    return node;
}
size_t list_size(const struct list *l); /* Walks the list. */

/* 'iter' of type 'type *' walks the list; the current member may be unlinked or freed. */
#define LIST_FOREACH(iter, type, member, l)                                              \
    for (struct list *iter##_node = (l)->next, *iter##_next = iter##_node->next;         \
         iter##_node != (l) && ((iter) = CONTAINER_OF(iter##_node, type, member), true); \
         iter##_node = iter##_next, iter##_next = iter##_node->next)
