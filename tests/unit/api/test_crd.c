/* SPDX-License-Identifier: Apache-2.0 */
/* CustomResourceDefinitions: what is refused, and what the kinds are that they make. */
#include "api/condition.h"
#include "api/crd/crd.h"
#include "api/format.h"
#include "api/openapi/openapi.h"
#include "api/patch/patch.h"
#include "api/pattern.h"
#include "api/schema.h"
#include "api/selector.h"
#include "api/table/jsonpath.h"
#include "api/table/table.h"
#include "json_text.h"

static const char base[] =
    "{'apiVersion':'apiextensions.k8s.io/v1','kind':'CustomResourceDefinition',"
    "'metadata':{'name':'widgets.example.com'},'spec':{'group':'example.com','scope':'Namespaced',"
    "'names':{'plural':'widgets','singular':'widget','kind':'Widget','listKind':'WidgetList',"
    "'shortNames':['wd'],'categories':['all']},"
    "'versions':[{'name':'v1','served':true,'storage':true,"
    "'subresources':{'status':{},'scale':{'specReplicasPath':'.spec.replicas',"
    "'statusReplicasPath':'.status.replicas'}},"
    "'selectableFields':[{'jsonPath':'.spec.color'}],"
    "'additionalPrinterColumns':["
    "{'name':'Color','type':'string','jsonPath':'.spec.color'},"
    "{'name':'Replicas','type':'integer','jsonPath':'.spec.replicas'},"
    "{'name':'Ports','type':'string','jsonPath':'.spec.ports[*].name'},"
    "{'name':'Since','type':'date','jsonPath':'.status.since'}],"
    "'schema':{'openAPIV3Schema':{'type':'object','required':['spec'],'properties':{"
    "'metadata':{'type':'object','properties':{'name':{'type':'string','maxLength':5}}},"
    "'spec':{'type':'object','required':['color'],'properties':{"
    "'color':{'type':'string','enum':['red','green']},"
    "'replicas':{'type':'integer','minimum':0,'maximum':10,'default':1},"
    "'ratio':{'type':'number','exclusiveMinimum':true,'minimum':0,'multipleOf':0.5},"
    "'name':{'type':'string','pattern':'^[a-z]+$','minLength':2,'maxLength':8},"
    "'when':{'type':'string','format':'date-time','nullable':true},"
    "'level':{'type':'integer','enum':[1,2]},"
    "'size':{'x-kubernetes-int-or-string':true},"
    "'free':{'type':'object','x-kubernetes-preserve-unknown-fields':true,"
    "'properties':{'known':{'type':'object','properties':{'a':{'type':'string'}}}}},"
    "'template':{'type':'object','x-kubernetes-embedded-resource':true,"
    "'properties':{'spec':{'type':'object'}}},"
    "'labels':{'type':'object','additionalProperties':{'type':'string'},'maxProperties':2},"
    "'one':{'type':'object','properties':{'a':{'type':'string'},'b':{'type':'string'}},"
    "'oneOf':[{'required':['a']},{'required':['b']}],'not':{'required':['a','b']}},"
    "'tags':{'type':'array','x-kubernetes-list-type':'set','maxItems':3,"
    "'items':{'type':'string'}},"
    "'ports':{'type':'array','x-kubernetes-list-type':'map','x-kubernetes-list-map-keys':['name'],"
    "'items':{'type':'object','required':['name'],'properties':{'name':{'type':'string'},"
    "'port':{'type':'integer','default':80}}}}}},"
    "'status':{'type':'object','properties':{'replicas':{'type':'integer'},"
    "'since':{'type':'string'}}}}}}}]}}";

/* The definition above after a JSON patch. */
static struct json *definition(const char *patch)
{
    struct json *obj = from(base);
    struct err e = {0};
    if (patch) {
        CLEANUP(json_free) struct json *p = from(patch);
        if (api_patch_json(&obj, p, &e) < 0) {
            fail_msg("%s: %s", patch, e.text);
        }
    }
    return obj;
}

static struct json *settled(const char *patch)
{
    struct json *obj = definition(patch);
    struct api_registry known;
    api_registry_init(&known, NULL);
    assert_true(crd_settle(obj, &known, NULL, 0));
    assert_false(crd_settle(obj, &known, NULL, 1000));
    api_registry_done(&known);
    return obj;
}

static struct crd *make(const char *patch)
{
    CLEANUP(json_free) struct json *obj = settled(patch);
    struct crd *c = NULL;
    struct err e = {0};
    if (crd_new(obj, &c, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return c;
}

/* ---- refusals ---- */

#define SCHEMA "/spec/versions/0/schema/openAPIV3Schema"
#define SPEC SCHEMA "/properties/spec"
#define COLOR "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[color]"

static const struct {
    const char *patch, *field, *says;
} refusals[] = {
    {"[{'op':'replace','path':'/metadata/name','value':'x.example.com'}]", "metadata.name",
     "spec.names.plural"},
    {"[{'op':'replace','path':'/spec/group','value':'example'}]", "spec.group", "at least one dot"},
    {"[{'op':'replace','path':'/spec/scope','value':'Planet'}]", "spec.scope", "Namespaced"},
    {"[{'op':'remove','path':'/spec/names'}]", "spec.names", "Required"},
    {"[{'op':'replace','path':'/spec/names/kind','value':'my_kind'}]", "spec.names.kind",
     "mixed case"},
    {"[{'op':'replace','path':'/spec/names/listKind','value':'Widget'}]", "spec.names.listKind",
     "may not be the same"},
    {"[{'op':'replace','path':'/spec/names/shortNames/0','value':'W D'}]",
     "spec.names.shortNames[0]", "DNS-1035"},
    {"[{'op':'replace','path':'/spec/versions','value':[]}]", "spec.versions", "exactly one"},
    {"[{'op':'replace','path':'/spec/versions/0/storage','value':false}]", "spec.versions",
     "exactly one version marked as storage"},
    {"[{'op':'remove','path':'/spec/versions/0/served'}]", "spec.versions[0].served", "Required"},
    {"[{'op':'copy','from':'/spec/versions/0','path':'/spec/versions/1'}]", "spec.versions[1].name",
     "unique version names"},
    {"[{'op':'remove','path':'/spec/versions/0/schema'}]",
     "spec.versions[0].schema.openAPIV3Schema", "schemas are required"},
    {"[{'op':'add','path':'/spec/conversion','value':{'strategy':'Webhook'}}]",
     "spec.conversion.strategy", "use None"},
    {"[{'op':'add','path':'/spec/preserveUnknownFields','value':true}]",
     "spec.preserveUnknownFields", "x-kubernetes-preserve-unknown-fields"},
    {"[{'op':'add','path':'/spec/versions/0/deprecationWarning','value':'x'}]",
     "spec.versions[0].deprecationWarning", "deprecated versions"},
    {"[{'op':'replace','path':'/spec/versions/0/subresources/scale/specReplicasPath',"
     "'value':'.status.x'}]",
     "spec.versions[0].subresources.scale.specReplicasPath", "under .spec"},
    {"[{'op':'replace','path':'/spec/versions/0/additionalPrinterColumns/0/type','value':'x'}]",
     "spec.versions[0].additionalPrinterColumns[0].type", "integer"},
    {"[{'op':'replace','path':'/spec/versions/0/additionalPrinterColumns/0/jsonPath',"
     "'value':'.a['}]",
     "spec.versions[0].additionalPrinterColumns[0].jsonPath", "JSON path"},
    {"[{'op':'replace','path':'/spec/versions/0/selectableFields/0/jsonPath','value':'.spec.no'}]",
     "spec.versions[0].selectableFields[0].jsonPath", "string, boolean or integer"},
    {"[{'op':'add','path':'/status','value':{'storedVersions':['v0']}}]",
     "status.storedVersions[0]", "must appear in spec.versions"},
    /* Structural schemas. */
    {"[{'op':'remove','path':'" SCHEMA "/type'}]", "spec.versions[0].schema.openAPIV3Schema.type",
     "must not be empty at the root"},
    {"[{'op':'remove','path':'" SPEC "/properties/color/type'}]", COLOR ".type",
     "must not be empty for specified object fields"},
    {"[{'op':'add','path':'" SPEC "/properties/color/$ref','value':'#/x'}]", COLOR ".$ref",
     "not supported"},
    {"[{'op':'add','path':'" SPEC "/properties/color/pattern','value':'('}]", COLOR ".pattern",
     "regular expression"},
    {"[{'op':'add','path':'" SPEC "/properties/color/enum','value':[]}]", COLOR ".enum",
     "must have a value"},
    {"[{'op':'add','path':'" SPEC "/properties/color/default','value':'blue'}]", COLOR ".default",
     "supported values"},
    {"[{'op':'add','path':'" SPEC "/properties/color/default','value':null}]", COLOR ".default",
     "not nullable"},
    {"[{'op':'add','path':'" SPEC "/properties/color/maxLength','value':-1}]", COLOR ".maxLength",
     "between 0"},
    {"[{'op':'add','path':'" SPEC "/properties/color/x-kubernetes-validations',"
     "'value':[{'rule':'self > 0'}]}]",
     COLOR ".x-kubernetes-validations", "or remove it"},
    {"[{'op':'add','path':'" SPEC "/properties/size/type','value':'string'}]",
     "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[size].type",
     "must be empty if x-kubernetes-int-or-string"},
    {"[{'op':'add','path':'" SPEC "/additionalProperties','value':true}]",
     "spec.versions[0].schema.openAPIV3Schema.properties[spec].additionalProperties",
     "mutually exclusive"},
    {"[{'op':'remove','path':'" SPEC "/properties/tags/items'}]",
     "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[tags].items",
     "must be specified"},
    {"[{'op':'add','path':'" SPEC "/properties/tags/uniqueItems','value':true}]",
     "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[tags].uniqueItems",
     "list-type: set"},
    {"[{'op':'replace','path':'" SPEC "/properties/ports/x-kubernetes-list-map-keys',"
     "'value':['nope']}]",
     "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[ports]."
     "x-kubernetes-list-map-keys[0]",
     "names of item properties"},
    {"[{'op':'remove','path':'" SPEC "/properties/ports/items/required'}]",
     "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[ports].items."
     "properties[name].default",
     "required property"},
    {"[{'op':'add','path':'" SPEC "/properties/one/oneOf/0/default','value':1}]",
     "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[one].oneOf[0].default",
     "undefined to be structural"},
    {"[{'op':'add','path':'" SPEC "/properties/one/oneOf/0/type','value':'string'}]",
     "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[one].oneOf[0].type",
     "must be empty to be structural"},
    {"[{'op':'add','path':'" SPEC "/properties/color/x-kubernetes-preserve-unknown-fields',"
     "'value':false}]",
     COLOR ".x-kubernetes-preserve-unknown-fields", "must be true or undefined"},
    {"[{'op':'replace','path':'/spec/group','value':'example.k8s.io'}]",
     "metadata.annotations[api-approved.kubernetes.io]", "protected groups"},
    {"[{'op':'add','path':'" SCHEMA "/properties/metadata/properties/labels',"
     "'value':{'type':'object'}}]",
     "spec.versions[0].schema.openAPIV3Schema.properties[metadata]", "name and generateName"},
};

static void wrong_definitions_are_refused_by_field(void **state)
{
    const struct api_kind *k = api_kind_by_alias("crd");
    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
        CLEANUP(json_free) struct json *obj = definition(refusals[i].patch);
        CLEANUP(api_causes_done) struct api_causes c = {0};
        bool found = false;
        api_validate_object(k, obj, NULL, &c);
        for (size_t n = 0; n < c.n; n++) {
            found |= streq(c.list[n].field, refusals[i].field) &&
                     strstr(c.list[n].message, refusals[i].says);
        }
        if (!found) {
            fail_msg("%s: got %zu causes, the first %s: %s", refusals[i].patch, c.n,
                     c.n ? c.list[0].field : "", c.n ? c.list[0].message : "");
        }
    }
}

static void names_and_defaults_are_completed(void **state)
{
    const struct api_kind *k = api_kind_by_alias("crd");
    CLEANUP(json_free)
    struct json *obj = definition("[{'op':'remove','path':'/spec/names/singular'},"
                                  "{'op':'remove','path':'/spec/names/listKind'}]");
    k->prepare(obj, NULL);
    k->defaults(obj);
    CLEANUP(api_causes_done) struct api_causes c = {0};
    api_validate_object(k, obj, NULL, &c);
    assert_int_equal(c.n, 0);
    assert_string_equal(json_path_string(obj, "spec", "names", "singular", NULL), "widget");
    assert_string_equal(json_path_string(obj, "spec", "names", "listKind", NULL), "WidgetList");
    assert_string_equal(json_path_string(obj, "spec", "conversion", "strategy", NULL), "None");
    assert_string_equal(json_get_string(json_at(json_path(obj, "metadata", "finalizers", NULL), 0)),
                        CRD_FINALIZER);
}

static void what_is_stored_may_not_change_under_objects(void **state)
{
    const struct api_kind *k = api_kind_by_alias("crd");
    CLEANUP(json_free) struct json *old = settled(NULL);
    CLEANUP(json_free) struct json *obj = json_clone(old);
    CLEANUP(api_causes_done) struct api_causes c = {0};
    json_set_string(json_get(obj, "spec"), "scope", "Cluster");
    json_set_string(json_at(json_path(obj, "spec", "versions", NULL), 0), "name", "v2");
    api_validate_object(k, obj, old, &c);
    assert_int_equal(c.n, 2);
    assert_string_equal(c.list[0].field, "status.storedVersions[0]");
    assert_string_equal(c.list[1].field, "spec.scope");
}

/* ---- names ---- */

static void names_are_accepted_unless_another_kind_has_them(void **state)
{
    struct api_registry known;
    api_registry_init(&known, NULL);
    CLEANUP(crd_unref) struct crd *first = make(NULL);
    api_registry_add(&known, crd_served(first, 0));
    CLEANUP(json_free)
    struct json *obj =
        definition("[{'op':'replace','path':'/metadata/name','value':'gears.example.com'},"
                   "{'op':'replace','path':'/spec/names/plural','value':'gears'},"
                   "{'op':'replace','path':'/spec/names/singular','value':'gear'},"
                   "{'op':'replace','path':'/spec/names/kind','value':'Gear'},"
                   "{'op':'replace','path':'/spec/names/listKind','value':'GearList'}]");
    assert_true(crd_settle(obj, &known, NULL, 0));
    assert_false(condition_is_true(obj, "NamesAccepted"));
    assert_false(condition_is_true(obj, "Established"));
    struct crd *none = NULL;
    assert_int_equal(crd_new(obj, &none, NULL), -ENOENT);
    CLEANUP_FREE char *text = json_to_text(json_get(obj, "status"));
    assert_non_null(strstr(text, "ShortNamesConflict"));
    assert_non_null(strstr(text, "\\\"wd\\\" is already in use"));
    /* The other goes: the name is free. */
    api_registry_remove(&known, crd_served(first, 0));
    assert_true(crd_settle(obj, &known, NULL, 0));
    assert_true(condition_is_true(obj, "Established"));
    /* What is compiled in has its names, too. */
    CLEANUP(json_free)
    struct json *builtin =
        definition("[{'op':'replace','path':'/spec/group','value':'network.openshift.io'},"
                   "{'op':'replace','path':'/spec/names/plural','value':'hostsubnets'},"
                   "{'op':'replace','path':'/metadata/name',"
                   "'value':'hostsubnets.network.openshift.io'}]");
    assert_true(crd_settle(builtin, &known, NULL, 0));
    assert_false(condition_is_true(builtin, "Established"));
    api_registry_done(&known);
}

static void a_status_written_by_hand_makes_no_kind(void **state)
{
    static const char *const names[][2] = {{"plural", "pods"},
                                           {"plural", "a/b"},
                                           {"kind", "Pod"},
                                           {"listKind", "x\",\"y"},
                                           {"singular", ""}};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        CLEANUP(json_free) struct json *obj = settled(NULL);
        struct crd *c = NULL;
        json_set_string(json_path(obj, "status", "acceptedNames", NULL), names[i][0], names[i][1]);
        assert_true(crd_new(obj, &c, NULL) < 0);
    }
}

static void versions_are_ordered_as_kubernetes_does(void **state)
{
    static const char *const order[] = {"v10",     "v2",        "v1",        "v11beta2", "v10beta3",
                                        "v3beta1", "v12alpha1", "v11alpha2", "foo1",     "foo10"};
    for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
        for (size_t k = 0; k < ARRAY_SIZE(order); k++) {
            int r = api_version_compare(order[i], order[k]);
            if ((r < 0) != (i < k) || (r == 0) != (i == k)) {
                fail_msg("%s and %s: %d", order[i], order[k], r);
            }
        }
    }
}

/* ---- the kind ---- */

static void the_kind_is_as_its_definition_says(void **state)
{
    CLEANUP(crd_unref) struct crd *c = make(NULL);
    const struct api_kind *k = crd_stored(c);
    assert_string_equal(crd_name(c), "widgets.example.com");
    assert_ptr_equal(crd_served(c, 0), k);
    assert_null(crd_served(c, 1));
    assert_string_equal(k->short_names[0], "wd");
    assert_string_equal(k->categories[0], "all");
    assert_true(k->namespaced && k->status_subresource && k->custom);
    assert_string_equal(k->scale->spec, ".spec.replicas");
    CLEANUP(json_free)
    struct json *obj = from("{'metadata':{'name':'a'},'spec':{'color':'red','replicas':3,"
                            "'ports':[{'name':'x'},{'name':'y'}]},"
                            "'status':{'since':'1970-01-01T00:00:00Z'}}");
    CLEANUP_STRBUF struct strbuf row = STRBUF_INIT;
    api_table_row(k, obj, "null", 4, API_INCLUDE_NONE, 5000, &row);
    assert_string_equal(row.data, "{\"cells\":[\"a\",\"red\",3,\"x y\",\"5s\"],\"object\":null}");
    CLEANUP(api_index_free) struct api_index *x = api_index_new(k, obj);
    int field = api_field_find(k, "spec.color");
    assert_true(field > 0);
    assert_string_equal(api_index_field(x, (size_t) field), "red");
    CLEANUP(crd_unref) struct crd *same = make(NULL);
    CLEANUP(crd_unref)
    struct crd *other = make("[{'op':'remove','path':'/spec/versions/0/selectableFields'}]");
    assert_true(crd_same(c, same));
    assert_false(crd_same(c, other));
}

/* Clients are told all that the server checks. */
static void the_rules_of_a_schema_are_published(void **state)
{
    static const char *const rows[][2] = {
        {"name", "{'type':'string','pattern':'^[a-z]+$','minLength':2,'maxLength':8}"},
        {"color", "{'type':'string','enum':['red','green']}"},
        {"replicas", "{'type':'integer','minimum':0,'maximum':10,'default':1}"},
        {"ratio", "{'type':'number','minimum':0,'exclusiveMinimum':true,'multipleOf':0.5}"},
        {"when", "{'type':'string','format':'date-time','nullable':true}"},
    };
    CLEANUP(crd_unref) struct crd *c = make(NULL);
    struct api_registry r;
    api_registry_init(&r, NULL);
    api_registry_add(&r, crd_stored(c));
    CLEANUP_FREE char *key = api_openapi_key(crd_stored(c));
    CLEANUP(json_free) struct json *doc = api_openapi_v3(&r, key, "1.2");
    const struct json *schemas = json_path(doc, "components", "schemas", NULL), *spec = NULL;
    for (size_t i = 0; i < json_count(schemas) && !spec; i++) {
        spec = json_path(json_at(schemas, i), "properties", "spec", "properties", NULL);
        spec = json_get(spec, "color") ? spec : NULL;
    }
    assert_non_null(spec);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free) struct json *want = from(rows[i][1]);
        if (!json_equal(json_get(spec, rows[i][0]), want)) {
            CLEANUP_FREE char *got = json_to_text(json_get(spec, rows[i][0]));
            fail_msg("%s is %s", rows[i][0], got);
        }
    }
    api_registry_done(&r);
}

static void unknown_fields_go_and_defaults_come(void **state)
{
    CLEANUP(crd_unref) struct crd *c = make(NULL);
    const struct api_schema *s = crd_stored(c)->schema;
    CLEANUP(json_free)
    struct json *obj =
        from("{'apiVersion':'example.com/v1','kind':'Widget','metadata':{'name':'a'},"
             "'junk':1,'spec':{'color':'red','junk':1,'when':null,'name':null,"
             "'free':{'any':{'thing':1},'known':{'a':'x','junk':1}},"
             "'template':{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p'},"
             "'junk':1},'labels':{'x':'y'},"
             "'ports':[{'name':'a','junk':1},{'name':'b','port':443}]}}");
    CLEANUP(json_free)
    struct json *want =
        from("{'apiVersion':'example.com/v1','kind':'Widget','metadata':{'name':'a'},"
             "'spec':{'color':'red','when':null,'replicas':1,"
             "'free':{'any':{'thing':1},'known':{'a':'x'}},"
             "'template':{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p'}},"
             "'labels':{'x':'y'},"
             "'ports':[{'name':'a','port':80},{'name':'b','port':443}]}}");
    api_schema_prune(s, obj, NULL);
    api_schema_default(s, obj);
    if (!json_equal(obj, want)) {
        CLEANUP_FREE char *text = json_to_text(obj);
        fail_msg("%s", text);
    }
}

static const struct {
    const char *spec, *field; /* "": it is right. */
} values[] = {
    {"{'color':'red'}", ""},
    {"{'color':'blue'}", "spec.color"},
    {"{}", "spec.color"},
    {"{'color':1}", "spec.color"},
    {"{'color':'red','replicas':11}", "spec.replicas"},
    {"{'color':'red','replicas':-1}", "spec.replicas"},
    {"{'color':'red','replicas':1.5}", "spec.replicas"},
    {"{'color':'red','ratio':0}", "spec.ratio"},
    {"{'color':'red','ratio':0.75}", "spec.ratio"},
    {"{'color':'red','ratio':1.5}", ""},
    {"{'color':'red','name':'abc'}", ""},
    {"{'color':'red','name':'a'}", "spec.name"},
    {"{'color':'red','name':'abcdefghi'}", "spec.name"},
    {"{'color':'red','name':'ABC'}", "spec.name"},
    {"{'color':'red','when':null}", ""},
    {"{'color':'red','when':'yesterday'}", "spec.when"},
    {"{'color':'red','when':'2026-11-21T00:00:00Z'}", ""},
    {"{'color':'red','level':2}", ""},
    {"{'color':'red','level':3}", "spec.level"},
    {"{'color':'red','size':'10%'}", ""},
    {"{'color':'red','size':10}", ""},
    {"{'color':'red','size':true}", "spec.size"},
    {"{'color':'red','labels':{'a':1}}", "spec.labels.a"},
    {"{'color':'red','labels':{'a':'1','b':'2','c':'3'}}", "spec.labels"},
    {"{'color':'red','one':{}}", "spec.one"},
    {"{'color':'red','one':{'a':'x'}}", ""},
    {"{'color':'red','one':{'a':'x','b':'y'}}", "spec.one"},
    {"{'color':'red','tags':['a','b']}", ""},
    {"{'color':'red','tags':['a','a']}", "spec.tags[1]"},
    {"{'color':'red','tags':['a','b','c','d']}", "spec.tags"},
    {"{'color':'red','ports':[{'name':'a'},{'name':'a','port':1}]}", "spec.ports[1]"},
    {"{'color':'red','ports':[{}]}", "spec.ports[0].name"},
};

static void values_are_checked_by_the_schema(void **state)
{
    CLEANUP(crd_unref) struct crd *c = make(NULL);
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        CLEANUP_FREE char *text = xasprintf(
            "{'apiVersion':'example.com/v1','kind':'Widget','metadata':{'name':'a'},'spec':%s}",
            values[i].spec);
        CLEANUP(json_free) struct json *obj = from(text);
        CLEANUP(api_causes_done) struct api_causes causes = {0};
        api_schema_validate(crd_stored(c)->schema, obj, &causes);
        const char *got = causes.n ? causes.list[0].field : "";
        if (!streq(got, values[i].field)) {
            fail_msg("%s: got \"%s\" %s", values[i].spec, got,
                     causes.n ? causes.list[0].message : "");
        }
    }
}

static void names_of_objects_can_be_restricted(void **state)
{
    CLEANUP(crd_unref) struct crd *c = make(NULL);
    CLEANUP(json_free)
    struct json *obj = from("{'apiVersion':'example.com/v1','kind':'Widget',"
                            "'metadata':{'name':'too-long','labels':{'a':'b'}},"
                            "'spec':{'color':'red'}}");
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    api_schema_prune(crd_stored(c)->schema, obj, NULL);
    assert_non_null(json_path(obj, "metadata", "labels", "a", NULL));
    api_schema_validate(crd_stored(c)->schema, obj, &causes);
    assert_int_equal(causes.n, 1);
    assert_string_equal(causes.list[0].field, "metadata.name");
}

static void formats_are_checked_where_they_are_known(void **state)
{
    static const struct {
        const char *format, *good, *bad;
    } cases[] = {
        {"ipv4", "10.1.2.3", "10.1.2"},
        {"ipv6", "2001:db8::1", "10.1.2.3"},
        {"cidr", "10.0.0.0/8", "10.0.0.0/33"},
        {"cidr", "2001:db8::/32", "10.0.0.0"},
        {"cidr", "0.0.0.0/0", "10.0.0.0/08"},
        {"mac", "0a:58:0a:80:00:02", "0a:58:0a:80:00"},
        {"uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567-e89b-12d3-a456-42661417400g"},
        {"byte", "aGVsbG8=", "aGVsbG8"},
        {"byte", "", "===="},
        {"date", "2026-02-28", "2026-02-30"},
        {"date-time", "2026-11-21T00:00:00.5+01:00", "2026-11-21"},
        {"hostname", "Node1.example.com", "node_1"},
        {"email", "a@example.com", "@example.com"},
        {"uri", "https://example.com/x", "example com"},
        {"uri", "/path", "path"},
        {"duration", "1h30m0.5s", "1x"},
        {"duration", "0", ""},
        {"duration", "-2ms", "h"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        if (!api_format_fits(cases[i].format, cases[i].good) ||
            api_format_fits(cases[i].format, cases[i].bad)) {
            fail_msg("%s: %s and %s", cases[i].format, cases[i].good, cases[i].bad);
        }
    }
    assert_true(api_format_fits("colour", "anything"));
}

/* ---- patterns ---- */

static void patterns_are_those_of_the_field_and_nothing_runs_away(void **state)
{
    static const struct {
        const char *pattern, *text;
        int want;
    } cases[] = {
        {"^a+$", "aaa", 1},
        {"^a+$", "ab", 0},
        {"b", "abc", 1},
        {"^\\d{3}-\\w+$", "123-x_y", 1},
        {"^(?:a|b)*?c$", "ababc", 1},
        {"(?i)^ABC$", "abc", 1},
        {"^[^/]+$", "a/b", 0},
        {"^\\p{L}+$", "\xc3\xa4\xc3\xb6", 1},
        {"^.$", "\xc3\xa4", 1},
        {"^a$", "a\n", 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = {0};
        CLEANUP(pattern_free) struct pattern *p = NULL;
        if (pattern_new(cases[i].pattern, &p, &e) < 0) {
            fail_msg("%s: %s", cases[i].pattern, e.text);
        }
        assert_int_equal(pattern_match(p, cases[i].text, strlen(cases[i].text)), cases[i].want);
    }
    static const char *const bad[] = {
        "(",         "[a",
        "*",         "(a)\\1",
        "(?R)",      "(?=a)b",
        "(?<!a)b",   "(*SKIP)a",
        "\\Ca",      "a\\Kb",
        "(?(1)a)",   "(?P=name)",
        "(?P>name)", "((((a{99}){99}){99}){99}){99}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct err e = {0};
        struct pattern *p = NULL;
        if (pattern_new(bad[i], &p, &e) == 0) {
            fail_msg("%s was taken", bad[i]);
        }
        assert_true(*e.text != '\0');
    }
    /* What backtracks without end elsewhere is given up. */
    CLEANUP(pattern_free) struct pattern *p = NULL;
    assert_int_equal(pattern_new("^(a|aa|a.)*(b|c)*$", &p, NULL), 0);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    for (int i = 0; i < 5000; i++) {
        strbuf_addc(&text, 'a');
    }
    strbuf_addc(&text, '!');
    strbuf_addc(&text, '\n');
    int r = pattern_match(p, text.data, text.size);
    assert_true(r == -ETIMEDOUT || r == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_definitions_are_refused_by_field),
        cmocka_unit_test(names_and_defaults_are_completed),
        cmocka_unit_test(what_is_stored_may_not_change_under_objects),
        cmocka_unit_test(names_are_accepted_unless_another_kind_has_them),
        cmocka_unit_test(a_status_written_by_hand_makes_no_kind),
        cmocka_unit_test(versions_are_ordered_as_kubernetes_does),
        cmocka_unit_test(the_kind_is_as_its_definition_says),
        cmocka_unit_test(unknown_fields_go_and_defaults_come),
        cmocka_unit_test(the_rules_of_a_schema_are_published),
        cmocka_unit_test(values_are_checked_by_the_schema),
        cmocka_unit_test(names_of_objects_can_be_restricted),
        cmocka_unit_test(formats_are_checked_where_they_are_known),
        cmocka_unit_test(patterns_are_those_of_the_field_and_nothing_runs_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
