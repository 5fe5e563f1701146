/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/login/projects.h"

#include "base/mem.h"
#include "cli/shown.h"

#include <stdio.h>

#define PROJECT_API "project.openshift.io/v1"
#define ACCESS_API "authorization.k8s.io/v1"
#define DISPLAY_NAME "openshift.io/display-name"

const char *project_name(const struct json *project)
{
    return json_get_text(json_get(project, "metadata"), "name");
}

char *project_title(const struct json *project)
{
    const struct json *notes = json_path(project, "metadata", "annotations", NULL);
    const char *display = json_get_text(notes, DISPLAY_NAME), *name = project_name(project);
    CLEANUP_FREE char *text =
        *display && !streq(display, name) ? xasprintf("%s - %s", name, display) : xstrdup(name);
    return shown(text);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(project_name(*(struct json *const *) a), project_name(*(struct json *const *) b));
}

static struct json *sorted(struct json *items)
{
    size_t n = json_count(items);
    CLEANUP_FREE struct json **list = xcalloc(n + 1, sizeof *list);
    for (size_t i = n; i-- > 0;) {
        list[i] = json_take_at(items, i);
    }
    qsort(list, n, sizeof *list, by_name);
    struct json *out = json_array();
    for (size_t i = 0; i < n; i++) {
        json_append(out, list[i]);
    }
    return out;
}

int projects_list(struct api_client *c, struct json **ret, struct err *e)
{
    CLEANUP_FREE char *projects = api_path(PROJECT_API, "projects", NULL, NULL, NULL);
    CLEANUP(json_free) struct json *list = NULL;
    int r = api_request_sync(c, "GET", projects, NULL, NULL, NULL, &list, e);
    if (r == -ENOENT) {
        r = api_request_sync(c, "GET", "/api/v1/namespaces", NULL, NULL, NULL, &list, e);
    }
    if (r == 0) {
        *ret = sorted(json_get(list, "items"));
    }
    return r;
}

const struct json *projects_find(const struct json *projects, const char *name)
{
    const struct json *item;
    JSON_FOREACH (item, projects) {
        if (streq(project_name(item), name)) {
            return item;
        }
    }
    return NULL;
}

void projects_print(const struct json *projects, const char *current)
{
    const struct json *item;
    JSON_FOREACH (item, projects) {
        CLEANUP_FREE char *title = project_title(item);
        printf("%s%s\n", streq(project_name(item), current) ? "  * " : "    ", title);
    }
}

int project_exists(struct api_client *c, const char *name, struct err *e)
{
    static const char *const kinds[][2] = {{PROJECT_API, "projects"}, {"v1", "namespaces"}};
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        CLEANUP_FREE char *path = api_path(kinds[i][0], kinds[i][1], NULL, name, NULL);
        int r = api_request_sync(c, "GET", path, NULL, NULL, NULL, NULL, e);
        if (r != -ENOENT && r != -EACCES) {
            return r < 0 ? r : 1;
        }
    }
    return 0;
}

bool projects_may_request(struct api_client *c)
{
    CLEANUP_FREE char *path = api_path(ACCESS_API, "selfsubjectaccessreviews", NULL, NULL, NULL);
    CLEANUP(json_free) struct json *body = json_object(), *answer = NULL;
    struct json *what = json_ensure_object(json_ensure_object(body, "spec"), "resourceAttributes");
    struct err e = {0};
    json_set_string(what, "verb", "create");
    json_set_string(what, "group", "project.openshift.io");
    json_set_string(what, "resource", "projectrequests");
    return api_request_sync(c, "POST", path, NULL, NULL, body, &answer, &e) == 0 &&
           json_get_bool(json_path(answer, "status", "allowed", NULL), false);
}
