/* SPDX-License-Identifier: Apache-2.0 */
/* What "tenet collect" removes, and what it keeps. */
#include "base/mem.h"
#include "cli/collect/redact.h"
#include "json_text.h"

#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define R REDACTED
#define TOKEN "abcdef.0123456789abcdef"
#define PEM "-----BEGIN PRIVATE KEY-----\nMIGH\nAgEA\n-----END PRIVATE KEY-----"

static void credentials_in_texts_are_removed(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", ""},
        {"plain text, 10.128.0.1:8443 key=value", "plain text, 10.128.0.1:8443 key=value"},
        {PEM, R},
        {"a\n" PEM "\nb", "a\n" R "\nb"},
        {"-----BEGIN EC PRIVATE KEY-----\nx\n-----END EC PRIVATE KEY-----\n", R "\n"},
        {"-----BEGIN PRIVATE KEY-----\nnever ends", R},
        {"-----BEGIN CERTIFICATE-----\nMIGH\n-----END CERTIFICATE-----",
         "-----BEGIN CERTIFICATE-----\nMIGH\n-----END CERTIFICATE-----"},
        {"join " TOKEN " now", "join " R " now"},
        {TOKEN ":sha256:00ff", R ":sha256:00ff"},
        {"x" TOKEN, "x" TOKEN},
        {TOKEN "x", TOKEN "x"},
        {"eyJhbGciOi.eyJpc3MiO.c2lnbmF0dXJl end", R " end"},
        {"eyJhbGciOi.eyJpc3MiO", R},
        {"eyJhbGciOi alone", "eyJhbGciOi alone"},
        {"sha256~AbC_-9 x", R " x"},
        {"https://user:pw@host/path", "https://" R "@host/path"},
        {"https://user:p@w@host/path", "https://" R "@host/path"},
        {"https://host/path@x", "https://host/path@x"},
        {"https://host?mail=a@b", "https://host?mail=a@b"},
        {"a@b https://h", "a@b https://h"},
        {"Authorization: Bearer abcdefgh.x", "Authorization: " R},
        {"authorization: Basic dXNlcjpwdw==", "authorization: " R},
        {"sent Bearer abcdefghijk, then", "sent Bearer " R ", then"},
        {"Basic needs", "Basic needs"},
        {"password=hunter2 next=1", "password=" R " next=1"},
        {"password: hunter2\nnext: 1", "password: " R "\nnext: 1"},
        {"db_password = 'hunter2 with blanks' next", "db_password = " R " next"},
        {"\"token\": \"hunter2\", \"a\": 1", "\"token\": " R ", \"a\": 1"},
        {"\\\"secret\\\":\\\"x\\\"", "\\\"secret\\\":" R},
        {"?access_token=hunter2&b=1", "?access_token=" R "&b=1"},
        {"apiKey:hunter2", "apiKey:" R},
        {"token=true token=false token=null", "token=true token=false token=null"},
        {"password=trueish", "password=" R},
        {"secretName: mine", "secretName: mine"},
        {"keyFile: /a privateKeyFile: /b", "keyFile: /a privateKeyFile: /b"},
        {"tokenExpirationSeconds: 3600", "tokenExpirationSeconds: 3600"},
        {"the token was refused", "the token was refused"},
        {"secret://host", "secret://host"},
        {"token=", "token="},
        {"password", "password"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
        redact_text(cases[i].text, strlen(cases[i].text), &out);
        if (!streq(strbuf_cstr(&out), cases[i].want)) {
            fail_msg("%s: %s", cases[i].text, strbuf_cstr(&out));
        }
    }
}

static void documents_lose_values_by_their_place(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"{'kind': 'Secret', 'data': {'a': 'eA=='}, 'stringData': {'b': ''}}",
         "{'kind': 'Secret', 'data': {'a': '[removed, 4 bytes]'}, 'stringData': {'b':"
         "'[removed, 0 bytes]'}}"},
        {"{'items': [{'data': {'k': {'deep': 'x'}}}]}", "{'items': [{'data': {'k': '" R "'}}]}"},
        {"{'spec': {'data': 'text'}}", "{'spec': {'data': 'text'}}"},
        {"{'env': [{'name': 'A', 'value': 'x'}, {'name': 'B', 'valueFrom': {'a': 'b'}}, 'odd']}",
         "{'env': [{'name': 'A', 'value': '[removed, 1 bytes]'}, {'name': 'B', 'valueFrom':"
         "{'a': 'b'}}, 'odd']}"},
        {"{'command': ['a', 'b'], 'args': ['c'], 'image': 'i'}",
         "{'command': '[removed, 2 items]', 'args': '[removed, 1 items]', 'image': 'i'}"},
        {"{'httpHeaders': [{'name': 'X', 'value': 'v'}]}",
         "{'httpHeaders': [{'name': 'X', 'value': '[removed, 1 bytes]'}]}"},
        {"{'podManifestURLHeader': ['Authorization: x']}",
         "{'podManifestURLHeader': '[removed, 1 items]'}"},
        {"{'annotations': {'a/b': 'x', 'tenet.io/host-ports': 'tcp:80', 'node-uid': 'u'}}",
         "{'annotations': {'a/b': '[removed, 1 bytes]', 'tenet.io/host-ports': 'tcp:80', "
         "'node-uid':"
         "'u'}}"},
        {"{'annotations': {'tenet.io/x': 'https://u:p@h'}}",
         "{'annotations': {'tenet.io/x': 'https://" R "@h'}}"},
        {"{'users': [{'user': {'token': 't', 'password': 5, 'client-key-data': 'k'}}]}",
         "{'users': [{'user': {'token': '[removed, 1 bytes]', 'password': '" R
         "', 'client-key-data': '[removed, 1 bytes]'}}]}"},
        {"{'tokens': ['a', 'b']}", "{'tokens': '" R "'}"},
        {"{'secret': {'secretName': 's', 'defaultMode': 420}}",
         "{'secret': {'secretName': 's', 'defaultMode': 420}}"},
        {"{'imagePullSecrets': [{'name': 'n'}], 'automountServiceAccountToken': true}",
         "{'imagePullSecrets': [{'name': 'n'}], 'automountServiceAccountToken': true}"},
        {"{'sessionAffinity': 'ClientIP', 'message': 'token=x'}",
         "{'sessionAffinity': 'ClientIP', 'message': 'token=" R "'}"},
        {"{'urls': ['https://u:p@e1:2379', 'https://e2:2379']}",
         "{'urls': ['https://" R "@e1:2379', 'https://e2:2379']}"},
        {"[[{'token': 'x'}]]", "[[{'token': '[removed, 1 bytes]'}]]"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *v = from(cases[i].text);
        redact_json(v);
        assert_json(v, cases[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(credentials_in_texts_are_removed),
        cmocka_unit_test(documents_lose_values_by_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
