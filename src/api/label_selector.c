/* SPDX-License-Identifier: Apache-2.0 */
#include "api/label_selector.h"

#include "api/kind_util.h"

/* ---- checks ---- */

static void check_expression(struct api_causes *c, const char *field, const struct json *v)
{
    const struct json *key = json_get(v, "key"), *values = json_get(v, "values");
    const char *op = json_path_string(v, "operator", NULL), *wrong;
    const char *list = API_FIELD("%s.values", field);
    if (json_string_size(key) == 0) {
        api_required(c, API_FIELD("%s.key", field), "");
    } else if ((wrong = api_check_qualified_name(json_get_string(key)))) {
        api_invalid(c, API_FIELD("%s.key", field), key, "%s", wrong);
    }
    if (streq_null(op, "In") || streq_null(op, "NotIn")) {
        if (json_count(values) == 0) {
            api_required(c, list, "must be specified when `operator` is 'In' or 'NotIn'");
        }
        for (size_t i = 0; i < json_count(values); i++) {
            wrong = api_check_label_value(json_get_string(json_at(values, i)));
            if (wrong) {
                api_invalid(c, API_FIELD("%s[%zu]", list, i), json_at(values, i), "%s", wrong);
            }
        }
    } else if (streq_null(op, "Exists") || streq_null(op, "DoesNotExist")) {
        if (json_count(values) > 0) {
            api_forbidden(c, list,
                          "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        }
    } else {
        api_invalid(c, API_FIELD("%s.operator", field), json_get(v, "operator"),
                    "not a valid selector operator");
    }
}

void label_selector_check(struct api_causes *c, const char *field, const struct json *v)
{
    const struct json *expressions = json_get(v, "matchExpressions");
    api_validate_labels(c, API_FIELD("%s.matchLabels", field), json_get(v, "matchLabels"));
    for (size_t i = 0; i < json_count(expressions); i++) {
        check_expression(c, API_FIELD("%s.matchExpressions[%zu]", field, i),
                         json_at(expressions, i));
    }
}

/* ---- selection ---- */

bool label_selector_is_empty(const struct json *v)
{
    return json_count(json_get(v, "matchLabels")) + json_count(json_get(v, "matchExpressions")) ==
           0;
}

static bool expression_matches(const struct json *e, const struct json *labels)
{
    const char *key = json_path_string(e, "key", NULL);
    const char *operator= json_path_string(e, "operator", NULL);
    const char *value = key ? json_path_string(labels, key, NULL) : NULL;
    const struct json *item;
    bool in = false;
    if (!key || !operator) {
        return false;
    }
    JSON_FOREACH (item, json_get(e, "values")) {
        in = in || streq_null(json_get_string(item), value);
    }
    if (streq(operator, "In")) {
        return value && in;
    }
    if (streq(operator, "NotIn")) {
        return !value || !in;
    }
    return streq(operator, "Exists") ? value != NULL : streq(operator, "DoesNotExist") && !value;
}

bool label_selector_matches(const struct json *v, const struct json *labels)
{
    const struct json *want = json_get(v, "matchLabels"), *e;
    for (size_t i = 0; i < json_count(want); i++) {
        const struct json *has = json_get(labels, json_key_at(want, i));
        if (!has || !json_equal(has, json_at(want, i))) {
            return false;
        }
    }
    JSON_FOREACH (e, json_get(v, "matchExpressions")) {
        if (!expression_matches(e, labels)) {
            return false;
        }
    }
    return true;
}

/* ---- texts ---- */

static void write_labels(const struct json *labels, struct strbuf *out)
{
    for (size_t i = 0; json_is(labels, JSON_OBJECT) && i < json_count(labels); i++) {
        const char *v = json_get_string(json_at(labels, i));
        strbuf_addf(out, "%s%s=%s", out->size ? "," : "", json_key_at(labels, i), v ? v : "?");
    }
}

static void write_expression(const struct json *x, struct strbuf *out)
{
    const char *key = json_path_string(x, "key", NULL);
    const char *op = json_path_string(x, "operator", NULL);
    key = key ? key : "?";
    op = op ? op : "?";
    strbuf_adds(out, out->size ? "," : "");
    if (streq(op, "Exists") || streq(op, "DoesNotExist")) {
        strbuf_addf(out, "%s%s", streq(op, "Exists") ? "" : "!", key);
        return;
    }
    strbuf_addf(out, "%s %s (", key, streq(op, "In") ? "in" : streq(op, "NotIn") ? "notin" : op);
    const struct json *value;
    bool first = true;
    JSON_FOREACH (value, json_get(x, "values")) {
        const char *s = json_get_string(value);
        strbuf_addf(out, "%s%s", first ? "" : ",", s ? s : "?");
        first = false;
    }
    strbuf_addc(out, ')');
}

void label_selector_write(const struct json *v, struct strbuf *out)
{
    const struct json *labels = json_get(v, "matchLabels"), *list = json_get(v, "matchExpressions");
    const struct json *x;
    if (!json_is(labels, JSON_OBJECT) && !json_is(list, JSON_ARRAY)) {
        write_labels(v, out);
        return;
    }
    write_labels(labels, out);
    JSON_FOREACH (x, list) {
        write_expression(x, out);
    }
}
