/* SPDX-License-Identifier: Apache-2.0 */
#include "oauth/page.h"

#include "api/kinds/oauth.h"
#include "base/mem.h"

#define HEAD(title)                                                                      \
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"            \
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"         \
    "<meta name=\"robots\" content=\"noindex\">\n"                                       \
    "<title>" title "</title>\n<link rel=\"stylesheet\" href=\"" PAGE_STYLE_PATH "\">\n" \
    "<link rel=\"icon\" type=\"image/svg+xml\" href=\"" PAGE_ICON_PATH "\">\n"           \
    "</head>\n<body>\n<main>\n"
#define FOOT "</main>\n</body>\n</html>\n"
#define HIDDEN(name) \
    "<input type=\"hidden\" name=\"{{ .Names." name " }}\" value=\"{{ .Values." name " }}\">\n"

const char page_style[] =
    ":root{color-scheme:light dark}\n"
    "body{margin:0;font:1rem/1.5 system-ui,sans-serif;background:#f3f4f6;color:#1b1f24}\n"
    "main{box-sizing:border-box;max-width:32rem;margin:8vh auto;padding:2rem;background:#fff;"
    "border:1px solid #c9ced6;border-radius:.5rem}\n"
    "h1{margin:0 0 1rem;font-size:1.375rem;font-weight:600}\n"
    "label{display:block;margin-top:1rem;font-weight:600}\n"
    "input[type=text],input[type=password]{box-sizing:border-box;width:100%;margin-top:.25rem;"
    "padding:.5rem .625rem;font:inherit;color:inherit;background:transparent;"
    "border:1px solid #6b7280;border-radius:.25rem}\n"
    "button,.choice{display:inline-block;margin:1.5rem .5rem 0 0;padding:.5rem "
    "1.25rem;font:inherit;"
    "font-weight:600;color:#fff;background:#0b5cad;border:1px solid #0b5cad;border-radius:.25rem;"
    "text-decoration:none;cursor:pointer}\n"
    "button.second{color:#0b5cad;background:transparent}\n"
    ":focus-visible{outline:3px solid #e0a100;outline-offset:2px}\n"
    ".error{padding:.75rem 1rem;border-left:.25rem solid "
    "#b42318;background:#fdecea;color:#7a1710}\n"
    "ul.choices{list-style:none;margin:0;padding:0}\nul.choices "
    ".choice{display:block;margin-top:.75rem}\n"
    "code,pre{font:.875rem/1.5 "
    "ui-monospace,monospace;overflow-wrap:anywhere;white-space:pre-wrap}\n"
    "pre{padding:.75rem 1rem;background:#eef0f3;border-radius:.25rem}\n"
    "@media(prefers-color-scheme:dark){body{background:#14171b;color:#e6e8eb}"
    "main{background:#1d2126;border-color:#3a4048}pre{background:#14171b}"
    "button.second{color:#7cb8f2}.error{background:#3a1714;color:#ffc9c3}}\n";

const char page_icon[] =
    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 16 16\">"
    "<circle cx=\"5\" cy=\"8\" r=\"3\" fill=\"none\" stroke=\"#0b5cad\" stroke-width=\"2\"/>"
    "<path d=\"M8 8h7v4M12 8v3\" fill=\"none\" stroke=\"#0b5cad\" stroke-width=\"2\"/></svg>\n";

static const char *const sources[PAGE_MAX] = {
    [PAGE_LOGIN] = HEAD(
        "Log in") "<h1>Log in{{ if .ProviderName }} with {{ .ProviderName }}{{ end }}</h1>\n"
                  "{{ if .Error }}<p class=\"error\" role=\"alert\" id=\"error\">{{ .Error "
                  "}}</p>\n{{ end }}"
                  "<form method=\"post\" action=\"{{ .Action }}\">\n" HIDDEN("Then") HIDDEN(
                      "CSRF") "<label for=\"username\">User name</label>\n"
                              "<input type=\"text\" id=\"username\" name=\"{{ .Names.Username }}\" "
                              "value=\"{{ .Values.Username }}\" autocomplete=\"username\" "
                              "autocapitalize=\"none\" "
                              "spellcheck=\"false\" required autofocus"
                              "{{ if .Error }} aria-describedby=\"error\"{{ end }}>\n"
                              "<label for=\"password\">Password</label>\n"
                              "<input type=\"password\" id=\"password\" name=\"{{ .Names.Password "
                              "}}\" "
                              "autocomplete=\"current-password\" required>\n"
                              "<button type=\"submit\">Log in</button>\n</form>\n" FOOT,
    [PAGE_PROVIDERS] = HEAD(
        "Log in") "<h1>Log in with</h1>\n"
                  "{{ if .Error }}<p class=\"error\" role=\"alert\">{{ .Error }}</p>\n{{ end }}"
                  "<ul class=\"choices\">\n{{ range $provider := .Providers }}"
                  "<li><a class=\"choice\" href=\"{{ $provider.URL }}\">{{ $provider.Name "
                  "}}</a></li>\n"
                  "{{ end }}</ul>\n" FOOT,
    [PAGE_ERROR] = HEAD("Error") "<h1>Could not log in</h1>\n<p class=\"error\" role=\"alert\">{{ "
                                 ".Error }}</p>\n" FOOT,
    [PAGE_APPROVE] = HEAD(
        "Authorize access") "<h1>Authorize access</h1>\n"
                            "<p>{{ if .Account }}The service account <strong>{{ .Account "
                            "}}</strong> of the project "
                            "<strong>{{ .Namespace }}</strong>{{ else }}The client <strong>{{ "
                            ".Client }}</strong>"
                            "{{ end }} asks for access to your account <strong>{{ .User "
                            "}}</strong>.</p>\n"
                            "<form method=\"post\" action=\"{{ .Action }}\">\n" HIDDEN("Then")
                                HIDDEN("CSRF") HIDDEN("ClientID") HIDDEN("UserName") HIDDEN(
                                    "RedirectURI") "<fieldset><legend>It may</legend>\n{{ range "
                                                   ".Scopes }}"
                                                   "<label><input type=\"checkbox\" name=\"scope\" "
                                                   "value=\"{{ .Name }}\" checked> "
                                                   "{{ .Text }} <code>{{ .Name "
                                                   "}}</code></label>\n{{ end }}</fieldset>\n"
                                                   "<p>You will be sent to <code>{{ .Redirect "
                                                   "}}</code></p>\n"
                                                   "<button type=\"submit\" name=\"approve\" "
                                                   "value=\"yes\">Allow</button>\n"
                                                   "<button type=\"submit\" name=\"deny\" "
                                                   "value=\"yes\" class=\"second\">Deny</button>\n"
                                                   "</form>\n" FOOT,
    [PAGE_DISPLAY] =
        HEAD("Display a token") "<h1>Display a token</h1>\n<p>A token for the command line is "
                                "ready. It gives all your "
                                "rights to anybody who sees it.</p>\n"
                                "<form method=\"post\" action=\"{{ .Action }}\">\n" HIDDEN("Code")
                                    HIDDEN("CSRF") "<button type=\"submit\">Display "
                                                   "token</button>\n</form>\n" FOOT,
    [PAGE_TOKEN] =
        HEAD("Your token") "<h1>Your token</h1>\n<p>Your API token is</p>\n<pre id=\"token\">{{ "
                           ".Token }}</pre>\n"
                           "<p>Log in with this token</p>\n"
                           "<pre>oc login --token={{ .Token }} --server={{ .Server }}</pre>\n"
                           "<p>Use this token directly against the API</p>\n"
                           "<pre>curl -H \"Authorization: Bearer {{ .Token }}\" "
                           "\"{{ .Server }}/apis/user.openshift.io/v1/users/~\"</pre>\n"
                           "<p><a href=\"{{ .RequestURL }}\">Request another token</a></p>\n"
                           "<form method=\"post\" action=\"{{ .LogoutURL }}\">\n" HIDDEN("Then")
                               HIDDEN("CSRF") "<button type=\"submit\" class=\"second\">Log "
                                              "out</button>\n</form>\n" FOOT,
};

const char *page_source(enum page p)
{
    return sources[p];
}

const char *page_error_text(const char *code)
{
    static const struct {
        const char *code, *text;
    } texts[] = {
        {"user_required", "Login is required. Please try again."},
        {"token_expired", "Could not check the form. Please try again."},
        {"access_denied", "Invalid login or password. Please try again."},
        {"mapping_claim_error", "Could not create user."},
        {"mapping_lookup_error", "Could not find user."},
        {"too_many_attempts", "Too many attempts to log in. Please wait a moment and try again."},
        {"grant_error", "Could not give access. Please try again from the beginning."},
        {"csrf_error", "Could not check the form. Please try again from the beginning."},
        {"state_error", "This login was not begun in this browser, or took too long. Please try "
                        "again from the beginning."},
        {"invalid_request", "The request for access is malformed. Please tell the developers of "
                            "the program that sent you here."},
        {"unauthorized_client", "The program that sent you here is not known to this server."},
        {"not_configured", "There is no way to log in to this server by a web browser."},
    };
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        if (streq(texts[i].code, code)) {
            return texts[i].text;
        }
    }
    return "An authentication error occurred.";
}

char *page_scope_text(const char *scope)
{
    struct oauth_scope s;
    if (oauth_scope_parse(scope, &s) < 0) {
        return xstrdup("");
    }
    switch (s.type) {
    case OAUTH_SCOPE_INFO:
        return xstrdup("read your user name and groups");
    case OAUTH_SCOPE_CHECK_ACCESS:
        return xstrdup("see what you may do");
    case OAUTH_SCOPE_LIST_SCOPED_PROJECTS:
        return xstrdup("list your projects that it may see");
    case OAUTH_SCOPE_LIST_PROJECTS:
        return xstrdup("list all your projects");
    case OAUTH_SCOPE_FULL:
        return xstrdup("do everything that you may do");
    case OAUTH_SCOPE_ROLE:
        break;
    }
    bool all = s.namespace_size == 1 && *s.namespace == '*';
    return xasprintf("act with the role %.*s in %s%.*s%s", (int) s.role_size, s.role,
                     all ? "all your projects" : "the project ", all ? 0 : (int) s.namespace_size,
                     s.namespace, s.escalating ? ", also on secrets and roles" : "");
}
