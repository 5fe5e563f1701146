/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands print: tables, objects, JSONPath, descriptions and errors. */
#include "api/table/jsonpath.h"
#include "base/suggest.h"
#include "cli/kubectl/describe.h"
#include "cli/kubectl/print.h"
#include "cli/session.h"

#include "base/timeutil.h"
#include "json_text.h"

#define TABLE                                                                               \
    "{'kind':'Table','columnDefinitions':[{'name':'Name','format':'name','priority':0},"    \
    "{'name':'Status','format':'','priority':0},{'name':'Node','format':'','priority':1}]," \
    "'rows':[{'cells':['web','Running','n1'],'object':{'metadata':{'name':'web',"           \
    "'namespace':'red','labels':{'c':'','a':'b'}}}},"                                       \
    "{'cells':['a-long-name',7,null],'object':{'metadata':{'name':'a-long-name',"           \
    "'namespace':'default'}}}]}"

static void assert_table(const char *table, struct print_table_options o, const char *want)
{
    CLEANUP(json_free) struct json *t = from(table);
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    struct print_widths w = {0};
    print_table(t, &o, &w, &out);
    assert_string_equal(strbuf_cstr(&out), want);
}

static void tables_look_as_those_of_kubectl(void **state)
{
    assert_table(TABLE, (struct print_table_options){0},
                 "NAME          STATUS\n"
                 "web           Running\n"
                 "a-long-name   7\n");
    assert_table(TABLE, (struct print_table_options){.wide = true},
                 "NAME          STATUS    NODE\n"
                 "web           Running   n1\n"
                 "a-long-name   7         <none>\n");
    assert_table(TABLE, (struct print_table_options){.no_headers = true},
                 "web           Running\n"
                 "a-long-name   7\n");
    assert_table(TABLE, (struct print_table_options){.show_namespace = true, .show_labels = true},
                 "NAMESPACE   NAME          STATUS    LABELS\n"
                 "red         web           Running   a=b,c=\n"
                 "default     a-long-name   7         <none>\n");
    assert_table(TABLE, (struct print_table_options){.kind = "pod"},
                 "NAME              STATUS\n"
                 "pod/web           Running\n"
                 "pod/a-long-name   7\n");
    assert_table("{}", (struct print_table_options){0}, "");
}

static void cells_cannot_command_the_terminal(void **state)
{
    assert_table(
        "{'columnDefinitions':[{'name':'A'},{'name':'B'}],"
        "'rows':[{'cells':['\\u001b[2Jx','one\\ntwo']},{'cells':['\\u0007\xc3\xa4','y']}]}",
        (struct print_table_options){0},
        "A        B\n"
        "^[[2Jx   one...\n"
        "?\xc3\xa4       y\n");
}

static void rows_of_a_watch_stay_in_line(void **state)
{
    CLEANUP(json_free) struct json *first = from(TABLE);
    CLEANUP(json_free)
    struct json *next = from("{'columnDefinitions':[{'name':'Name'},{'name':'Status'}],"
                             "'rows':[{'cells':['x','y']}]}");
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    struct print_table_options o = {0};
    struct print_widths w = {0};
    print_table(first, &o, &w, &out);
    strbuf_reset(&out);
    print_table(next, &o, &w, &out);
    assert_string_equal(strbuf_cstr(&out), "x             y\n");
}

static void objects_are_sorted_and_without_managed_fields(void **state)
{
    CLEANUP(json_free)
    struct json *o = from("{'kind':'Node','apiVersion':'v1','metadata':{'uid':'u','name':'n',"
                          "'managedFields':[{}]},'list':[{'b':1,'a':12345678901234567890}]}");
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    print_json(o, &out);
    assert_string_equal(strbuf_cstr(&out), "{\n"
                                           "    \"apiVersion\": \"v1\",\n"
                                           "    \"kind\": \"Node\",\n"
                                           "    \"list\": [\n"
                                           "        {\n"
                                           "            \"a\": 12345678901234567890,\n"
                                           "            \"b\": 1\n"
                                           "        }\n"
                                           "    ],\n"
                                           "    \"metadata\": {\n"
                                           "        \"name\": \"n\",\n"
                                           "        \"uid\": \"u\"\n"
                                           "    }\n"
                                           "}\n");
    strbuf_reset(&out);
    print_yaml(o, &out);
    assert_true(str_has_prefix(strbuf_cstr(&out), "apiVersion: v1\nkind: Node\nlist:\n"));
    CLEANUP(json_free)
    struct json *list =
        from("{'items':[{'metadata':{'managedFields':[{}],'name':'web'}},{'metadata':7},"
             "{}]}");
    strbuf_reset(&out);
    print_yaml(list, &out);
    assert_string_equal(strbuf_cstr(&out),
                        "items:\n- metadata:\n    name: web\n- metadata: 7\n- {}\n");
}

/* ---- JSONPath ---- */

#define NODES                                                                                  \
    "{'kind':'List','items':[{'metadata':{'name':'n1','labels':{'x.y/z':'1'}},'n':3,'status':" \
    "{'addresses':[{'type':'Hostname','address':'n1'},{'type':'InternalIP','address':"         \
    "'10.0.0.1'}]}},{'metadata':{'name':'n2'},'n':5,'up':true,'status':{'addresses':"          \
    "[{'type':'InternalIP','address':'10.0.0.2'}]}}]}"

static void jsonpath_selects_as_kubectl(void **state)
{
    static const struct {
        const char *template, *want;
    } cases[] = {
        {"{.items[*].metadata.name}", "n1 n2"},
        {".items[*].metadata.name", "n1 n2"},
        {"items[0].metadata.name", "n1"},
        {"{.kind}", "List"},
        {"{$.kind}", "List"},
        {"{['kind']}", "List"},
        {"{.items[-1].metadata.name}", "n2"},
        {"{.items[9].metadata.name}", ""},
        {"{.items[-9].metadata.name}", ""},
        {"{.items[0:1].metadata.name}", "n1"},
        {"{.items[1:].metadata.name}", "n2"},
        {"{.items[:-1].metadata.name}", "n1"},
        {"{.items[*].n}", "3 5"},
        {"{.items[1].up}", "true"},
        {"{.missing.thing}", ""},
        {"{..name}", "n1 n2"},
        {"{.items[0].metadata.labels}", "{\"x.y/z\":\"1\"}"},
        {"{.items[0].metadata.labels.x\\.y/z}", "1"},
        {"{.items[0].metadata.labels['x.y/z']}", "1"},
        {"{.items[*].status.addresses[?(@.type==\"InternalIP\")].address}", "10.0.0.1 10.0.0.2"},
        {"{.items[?(@.n>3)].metadata.name}", "n2"},
        {"{.items[?(@.n<=3)].metadata.name}", "n1"},
        {"{.items[?(@.n!=3)].metadata.name}", "n2"},
        {"{.items[?(@.up)].metadata.name}", "n2"},
        {"{.items[?(@.up==true)].metadata.name}", "n2"},
        {"{.items[?(@.metadata.name=='n1')].n}", "3"},
        {"{.items[?(@.status.addresses[?(@.type=='Hostname')].address=='n1')].n}", "3"},
        {"a {.kind} b", "a List b"},
        {"{\"t\\tn\\n\"}", "t\tn\n"},
        {"{range .items[*]}{.metadata.name}={.n}{\"\\n\"}{end}", "n1=3\nn2=5\n"},
        {"{range .none[*]}{.x}{end}.", "."},
        {"{range .items[*]}{range .status.addresses[*]}{.address} {end}| {end}",
         "n1 10.0.0.1 | 10.0.0.2 | "},
        {"{.items[0].metadata.*}", "n1 {\"x.y/z\":\"1\"}"},
        {"{@.kind}", "List"},
    };
    CLEANUP(json_free) struct json *v = from(NODES);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
        struct err e = {0};
        if (jsonpath_print(cases[i].template, v, &out, &e) < 0) {
            fail_msg("%s: %s", cases[i].template, e.text);
        }
        if (!streq(strbuf_cstr(&out), cases[i].want)) {
            fail_msg("%s: \"%s\" is not \"%s\"", cases[i].template, strbuf_cstr(&out),
                     cases[i].want);
        }
    }
}

static void columns_are_what_the_user_wants(void **state)
{
    CLEANUP(json_free) struct json *v = from(NODES);
    const struct json *items = json_get(v, "items");
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    struct err e = {0};
    const char *spec = "NAME:.metadata.name,IPS:.status.addresses[*].address,UP:up";
    assert_int_equal(print_custom_columns(spec, items, false, &out, &e), 0);
    assert_string_equal(strbuf_cstr(&out), "NAME   IPS           UP\n"
                                           "n1     n1,10.0.0.1   <none>\n"
                                           "n2     10.0.0.2      true\n");
    strbuf_reset(&out);
    assert_int_equal(print_custom_columns("A:.n", items, true, &out, &e), 0);
    assert_string_equal(strbuf_cstr(&out), "3\n5\n");
    static const char *const bad[] = {"", "A", "A:", ":x", "A:.n,", "A:.n["};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_int_equal(print_custom_columns(bad[i], items, false, &out, &e), -EINVAL);
    }
}

static void wrong_jsonpath_is_refused(void **state)
{
    static const char *const bad[] = {
        "{",
        "{.a",
        "{.a[}",
        "{.a[0}",
        "{.a[x]}",
        "{'open}",
        "{end}",
        "{range .a}",
        "{range .a[*]}{.b}",
        "{.a[?(@.b==]}",
        "{.a[?(@.b]}",
        "{nothing}",
        "{}",
        "{.a[?(@.b==x)]}",
        "{.a['b}",
        "{.a[1:x]}",
        "{'a\\",
        "{.a[?(",
    };
    CLEANUP(json_free) struct json *v = from("{'a':[{'b':1}]}");
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
        struct err e = {0};
        if (jsonpath_print(bad[i], v, &out, &e) == 0) {
            fail_msg("%s gave \"%s\"", bad[i], strbuf_cstr(&out));
        }
        assert_true(str_has_prefix(e.text, "jsonpath: "));
    }
    CLEANUP_STRBUF struct strbuf deep = STRBUF_INIT;
    for (int i = 0; i < 100; i++) {
        strbuf_adds(&deep, "{range .a[?(@.a[?(");
    }
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    assert_int_equal(jsonpath_print(strbuf_cstr(&deep), v, &out, NULL), -EINVAL);
}

/* ---- descriptions ---- */

static void labels_are_words(void **state)
{
    static const struct {
        const char *field, *want;
    } cases[] = {
        {"hostIP", "Host IP"},
        {"creationTimestamp", "Creation Timestamp"},
        {"uid", "UID"},
        {"egressCIDRs", "Egress CIDRs"},
        {"podIPs", "Pod IPs"},
        {"CIDR", "CIDR"},
        {"netid", "Netid"},
        {"kubernetes.io/name", "kubernetes.io/name"},
        {"IPAddress", "IP Address"},
        {"mtu", "MTU"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
        describe_label(cases[i].field, &out);
        assert_string_equal(strbuf_cstr(&out), cases[i].want);
    }
}

static void assert_described(const char *kind, const char *object, const struct describe_more *more,
                             const char *want)
{
    CLEANUP(json_free) struct json *o = from(object);
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    int64_t now = 0;
    assert_int_equal(time_parse("2026-01-01T00:01:00Z", &now), 0);
    describe_object(api_kind_by_alias(kind), o, more, now, &out);
    assert_string_equal(strbuf_cstr(&out), want);
}

static void any_object_is_described(void **state)
{
    CLEANUP(json_free)
    struct json *events =
        from("{'items':[{'type':'Warning','reason':'OverlappingSubnets','count':3,"
             "'lastTimestamp':'2026-01-01T00:00:30Z',"
             "'source':{'component':'tenet-master'},'message':'two\\nlines'}]}");
    struct describe_more more = {.events = events};
    assert_described("hostsubnet",
                     "{'metadata':{'name':'n1','uid':'u','annotations':{'c':'d','a':'b'}},"
                     "'host':'n1','hostIP':'10.0.0.1','subnet':'10.128.0.0/23',"
                     "'egressIPs':['1.1.1.1','2.2.2.2'],'more':{'deep':[{'x':1}]}}",
                     &more,
                     "Name:         n1\n"
                     "Namespace:    \n"
                     "Labels:       <none>\n"
                     "Annotations:  a: b\n"
                     "              c: d\n"
                     "API Version:  network.openshift.io/v1\n"
                     "Egress IPs:\n"
                     "  1.1.1.1\n"
                     "  2.2.2.2\n"
                     "Host:     n1\n"
                     "Host IP:  10.0.0.1\n"
                     "Kind:     HostSubnet\n"
                     "Metadata:\n"
                     "  UID:  u\n"
                     "More:\n"
                     "  Deep:\n"
                     "    X:   1\n"
                     "Subnet:  10.128.0.0/23\n"
                     "Events:\n"
                     "  Type      Reason               Age        From           Message\n"
                     "  ----      ------               ---        ----           -------\n"
                     "  Warning   OverlappingSubnets   30s (x3)   tenet-master   two...\n");
}

static void quotas_and_limits_are_described_as_kubectl_does(void **state)
{
    struct describe_more more = {0};
    assert_described("quota",
                     "{'metadata':{'name':'q','namespace':'red'},'spec':{'scopes':['Terminating'],"
                     "'scopeSelector':{'matchExpressions':[{'scopeName':'PriorityClass'}]}},"
                     "'status':{'hard':{'limits.cpu':'2','pods':'4'},'used':{'pods':'1'}}}",
                     &more,
                     "Name:       q\n"
                     "Namespace:  red\n"
                     "Scopes:     Terminating, PriorityClass\n"
                     "  Resource     Used   Hard\n"
                     "  --------     ----   ----\n"
                     "  limits.cpu   0      2\n"
                     "  pods         1      4\n");
    assert_described("limits",
                     "{'metadata':{'name':'l','namespace':'red'},'spec':{'limits':[{'type':"
                     "'Container','max':{'cpu':'1'},'default':{'cpu':'1','memory':'1Gi'}}]}}",
                     &more,
                     "Name:       l\n"
                     "Namespace:  red\n"
                     "  Type        Resource   Min   Max   Default Request   Default Limit   Max "
                     "Limit/Request Ratio\n"
                     "  ----        --------   ---   ---   ---------------   -------------   "
                     "-----------------------\n"
                     "  Container   cpu        -     1     -                 1               -\n"
                     "  Container   memory     -     -     -                 1Gi             -\n");
    assert_described("clusterquota",
                     "{'metadata':{'name':'c'},'spec':{'selector':{'labels':{'matchLabels':{'a':"
                     "'b'}},'annotations':{'c':'d'}},'quota':{'hard':{'pods':'4'}}},'status':{"
                     "'total':{'hard':{'pods':'4'},'used':{'pods':'3'}},'namespaces':[{'namespace':"
                     "'red'},{'namespace':'blue'}]}}",
                     &more,
                     "Name:                 c\n"
                     "Namespace:            \n"
                     "Labels:               <none>\n"
                     "Annotations:          <none>\n"
                     "Namespaces:           red, blue\n"
                     "Label Selector:       a=b\n"
                     "Annotation Selector:  c=d\n"
                     "  Resource   Used   Hard\n"
                     "  --------   ----   ----\n"
                     "  pods       3      4\n");
}

static void node_and_project_show_what_belongs_to_them(void **state)
{
    CLEANUP(json_free)
    struct json *pods = from("{'items':[{'metadata':{'name':'p','namespace':'red'},"
                             "'spec':{'nodeName':'n1'},'status':{'podIP':'10.128.0.2'}}]}");
    CLEANUP(json_free) struct json *hs = from("{'subnet':'10.128.0.0/23'}");
    CLEANUP(json_free) struct json *nn = from("{'netid':10}");
    struct describe_more more = {.pods = pods, .hostsubnet = hs, .netnamespace = nn};
    assert_described("node",
                     "{'metadata':{'name':'n1'},'status':{'addresses':[{'type':'InternalIP',"
                     "'address':'10.0.0.1'}],'conditions':[{'type':'Ready','status':'True',"
                     "'reason':'R','message':'m','lastTransitionTime':'t'}]}}",
                     &more,
                     "Name:         n1\n"
                     "Namespace:    \n"
                     "Labels:       <none>\n"
                     "Annotations:  <none>\n"
                     "Created:      <none>\n"
                     "Host Subnet:  10.128.0.0/23\n"
                     "Addresses:\n"
                     "  InternalIP:  10.0.0.1\n"
                     "Conditions:\n"
                     "  Type    Status   Since   Reason   Message\n"
                     "  ----    ------   -----   ------   -------\n"
                     "  Ready   True     t       R        m\n"
                     "Pods:\n"
                     "  Namespace   Name   IP           Node\n"
                     "  ---------   ----   --           ----\n"
                     "  red         p      10.128.0.2   n1\n"
                     "Events:  <none>\n");
    more.pods = NULL;
    assert_described("ns", "{'metadata':{'name':'red'},'status':{'phase':'Active'}}", &more,
                     "Name:         red\n"
                     "Namespace:    \n"
                     "Labels:       <none>\n"
                     "Annotations:  <none>\n"
                     "Status:       Active\n"
                     "NetID:        10\n"
                     "Pods:  <none>\n"
                     "Events:  <none>\n");
}

/* ---- errors ---- */

static void errors_read_as_those_of_kubectl(void **state)
{
    static const struct {
        struct err e;
        const char *context, *want;
    } cases[] = {
        {{-ENOENT, "nodes \"x\" not found"},
         NULL,
         "Error from server (NotFound): nodes \"x\" not found"},
        {{-EEXIST, "namespaces \"red\" already exists"},
         "error when creating \"f\"",
         "Error from server (AlreadyExists): error when creating \"f\": namespaces \"red\" already "
         "exists"},
        {{-EINVAL, "HostSubnet.network.openshift.io \"h\" is invalid: hostIP: Required value"},
         NULL,
         "The HostSubnet \"h\" is invalid: hostIP: Required value"},
        {{-EINVAL,
          "Pod \"p\" is invalid: [a.b: Invalid value: \"x, y: z\": no, c[0]: Required value]"},
         "error when creating \"f\"",
         "The Pod \"p\" is invalid: \n* a.b: Invalid value: \"x, y: z\": no\n* c[0]: Required "
         "value"},
        {{-EINVAL, "unable to parse"}, NULL, "Error from server (BadRequest): unable to parse"},
        {{-EAGAIN, "not now"}, NULL, "Error from server: not now"},
        {{-ECONNREFUSED, "connect: refused"},
         NULL,
         "The connection to the server 127.0.0.1:8443 was refused - did you specify the right host "
         "or port?"},
        {{-ETIMEDOUT, "no answer"}, NULL, "Unable to connect to the server: no answer"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
        session_error_text(&cases[i].e, "http://127.0.0.1:8443/api", cases[i].context, &out);
        assert_string_equal(strbuf_cstr(&out), cases[i].want);
    }
}

static void near_words_are_suggested(void **state)
{
    static const char *const words[] = {"master", "node", "lab", "get", "create", "delete"};
    const size_t n = ARRAY_SIZE(words);
    assert_string_equal(suggest("mastr", words, n), "master");
    assert_string_equal(suggest("gte", words, n), "get");
    assert_string_equal(suggest("crate", words, n), "create");
    assert_string_equal(suggest("deleet", words, n), "delete");
    assert_null(suggest("frobnicate", words, n));
    /* What stands before a word in memory is none of its letters. */
    static const char text[] = "xa";
    const char *const pair[] = {text + 1, "?ay"};
    assert_string_equal(suggest("?ax", pair, 2), "?ay");
    assert_null(suggest("a-word-that-is-much-longer-than-any-command-name", words, n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_look_as_those_of_kubectl),
        cmocka_unit_test(cells_cannot_command_the_terminal),
        cmocka_unit_test(rows_of_a_watch_stay_in_line),
        cmocka_unit_test(objects_are_sorted_and_without_managed_fields),
        cmocka_unit_test(jsonpath_selects_as_kubectl),
        cmocka_unit_test(columns_are_what_the_user_wants),
        cmocka_unit_test(wrong_jsonpath_is_refused),
        cmocka_unit_test(labels_are_words),
        cmocka_unit_test(any_object_is_described),
        cmocka_unit_test(quotas_and_limits_are_described_as_kubectl_does),
        cmocka_unit_test(node_and_project_show_what_belongs_to_them),
        cmocka_unit_test(errors_read_as_those_of_kubectl),
        cmocka_unit_test(near_words_are_suggested),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
