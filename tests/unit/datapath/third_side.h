/* SPDX-License-Identifier: Apache-2.0 */
/* The third of three: what a real Open vSwitch with our flows does with a frame that model and
 * programs judge, too (test_ebpf_model.c). */
#pragma once

#include "random_policies.h"
#include "sdn/model.h"
#include "switch_side.h"

struct third_side {
    struct switch_side side;
    struct strbuf want, got;
    uint64_t asked, translated;
};

/* NULL: there is no Open vSwitch here, and 'why' is set. */
struct third_side *third_side_new(const char **why);
struct third_side *third_side_free(struct third_side *t);
/* 'policies': where the plug-in has them. */
void third_side_load(struct third_side *t, const struct model_node *n,
                     const struct random_policies *policies);
struct third_frame {
    const unsigned char *bytes;
    size_t size;
    bool first_fragment; /* Looked up among the connections to services, as all fragments are. */
    bool ends; /* Its connection, by the flags of TCP: the switch does not begin one with it. */
};
/* Whether the switch does with the frame, which is 'p' to the model, as 'v' has it;
 * prints the difference. */
bool third_side_agrees(struct third_side *t, const struct model_node *n,
                       const struct model_packet *p, const struct model_verdict *v,
                       const struct third_frame *f);
