/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/ldap.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

static char *hex_of(const struct strbuf *b)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    for (size_t i = 0; i < b->size; i++) {
        strbuf_addf(&out, "%02x", (unsigned char) b->data[i]);
    }
    return strbuf_steal(&out);
}

static size_t bytes_of(const char *hex, unsigned char *out)
{
    size_t n = 0;
    unsigned byte;
    for (; sscanf(hex, "%2x", &byte) == 1; hex += 2) {
        out[n++] = (unsigned char) byte;
    }
    return n;
}

static void requests_are_as_the_standard_writes_them(void **state)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    ldap_write_bind(&out, 1, "cn=a", "pw");
    CLEANUP_FREE char *bind = hex_of(&out);
    assert_string_equal(bind, "3012020101600d020103"
                              "0404636e3d61"
                              "80027077");
    strbuf_reset(&out);
    ldap_write_unbind(&out, 300);
    CLEANUP_FREE char *unbind = hex_of(&out);
    assert_string_equal(unbind, "30060202012c4200");
    strbuf_reset(&out);
    ldap_write_start_tls(&out, 2);
    CLEANUP_FREE char *tls = hex_of(&out);
    assert_string_equal(tls, "301d02010277188016"
                             "312e332e362e312e342e312e313436362e3230303337");
    strbuf_reset(&out);
    const char *attributes[] = {"uid", NULL};
    struct ldap_search s = {.base = "o=x",
                            .scope = LDAP_SCOPE_SUB,
                            .size_limit = 2,
                            .time_limit = 200,
                            .filter = "(uid=a)",
                            .attributes = attributes};
    assert_int_equal(ldap_write_search(&out, 3, &s, NULL), 0);
    CLEANUP_FREE char *search = hex_of(&out);
    assert_string_equal(search, "302b02010363260403"
                                "6f3d78"
                                "0a01020a0100020102020200c8010100"
                                "a3080403756964040161"
                                "30050403756964");
    strbuf_reset(&out);
    s.page_size = 128;
    s.cookie = "c\0d";
    s.cookie_size = 3;
    assert_int_equal(ldap_write_search(&out, 3, &s, NULL), 0);
    CLEANUP_FREE char *paged = hex_of(&out);
    assert_non_null(strstr(paged, "0416312e322e3834302e3131333535362e312e342e333139"
                                  "040b30090202008004036300"
                                  "64"));
    s.filter = "(uid=a";
    size_t before = out.size;
    assert_int_equal(ldap_write_search(&out, 3, &s, NULL), -EINVAL);
    assert_int_equal(out.size, before);
}

static void lengths_grow_with_their_contents(void **state)
{
    static const size_t sizes[] = {1, 100, 127, 128, 255, 256, 65535, 65536, 200000};
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        CLEANUP_STRBUF struct strbuf dn = STRBUF_INIT, out = STRBUF_INIT;
        for (size_t k = 0; k < sizes[i]; k++) {
            strbuf_addc(&dn, 'x');
        }
        ldap_write_bind(&out, 1, dn.data, "p");
        assert_int_equal(ldap_message_size(out.data, out.size), out.size);
        assert_int_equal(ldap_message_size(out.data, out.size - 1), 0);
    }
}

static int parse(const char *hex, struct ldap_message *m)
{
    unsigned char bytes[512];
    size_t n = bytes_of(hex, bytes);
    assert_int_equal(ldap_message_size(bytes, n), n);
    return ldap_parse(bytes, n, m, NULL);
}

static void results_are_read(void **state)
{
    CLEANUP(ldap_message_done) struct ldap_message m = {0};
    char buf[LDAP_RESULT_TEXT_SIZE];
    assert_int_equal(parse("300e02010161090a0131040004026e6f", &m), 0);
    assert_int_equal(m.id, 1);
    assert_int_equal(m.operation, LDAP_BIND_RESPONSE);
    assert_int_equal(m.result, LDAP_INVALID_CREDENTIALS);
    assert_string_equal(m.text, "no");
    assert_string_equal(ldap_result_text(m.result, buf), "invalid credentials");
    assert_string_equal(ldap_result_text(4711, buf), "result 4711");
    ldap_message_done(&m);
    /* Lengths of four bytes, as Active Directory sends them. */
    assert_int_equal(parse("3084000000100201026184000000070a010004000400", &m), 0);
    assert_int_equal(m.result, 0);
    ldap_message_done(&m);
    /* A referral beside the result; it is passed over. */
    assert_int_equal(parse("301602010265110a010a04000400a3080406"
                           "6c6461703a2f",
                           &m),
                     0);
    assert_int_equal(m.result, LDAP_REFERRAL);
    ldap_message_done(&m);
    /* The name of an extended response. */
    assert_int_equal(parse("3010020100780b0a0134040004008a02312e", &m), 0);
    assert_int_equal(m.id, 0);
    assert_string_equal(m.oid, "1.");
}

static void entries_are_read(void **state)
{
    CLEANUP(ldap_message_done) struct ldap_message m = {0};
    assert_int_equal(parse("3022020105641d"
                           "0403633d61"
                           "3016"
                           "300a0403556964310304016a"
                           "300804016d310304"
                           "0100",
                           &m),
                     0);
    assert_int_equal(m.operation, LDAP_ENTRY);
    assert_string_equal(m.entry.dn, "c=a");
    assert_int_equal(m.entry.n, 2);
    const struct ldap_attribute *a = ldap_entry_get(&m.entry, "uid");
    assert_non_null(a);
    assert_string_equal(a->values[0].data, "j");
    a = ldap_entry_get(&m.entry, "M");
    assert_int_equal(a->values[0].size, 1);
    assert_int_equal(a->values[0].data[0], 0);
    assert_null(ldap_entry_get(&m.entry, "x"));
}

static void the_cookie_of_a_page_is_read(void **state)
{
    CLEANUP(ldap_message_done) struct ldap_message m = {0};
    assert_int_equal(parse("3033020104"
                           "65070a010004000400"
                           "a025"
                           "3023"
                           "0416312e322e3834302e3131333535362e312e342e333139"
                           "0409"
                           "30070201000402"
                           "6162",
                           &m),
                     0);
    assert_true(m.paged);
    assert_int_equal(m.cookie.size, 2);
    assert_string_equal(m.cookie.data, "ab");
}

static void malformed_messages_are_refused(void **state)
{
    static const char *const rows[] = {
        "3000",                           /* No number. */
        "300c02010161070a01000400",       /* Truncated contents. */
        "300c0201ff61070a010004000400",   /* A negative number. */
        "300c02010060070a010004000400",   /* A request. */
        "300c02010061070a010004000400",   /* A result without a number. */
        "300d02010161070a01000400040000", /* Bytes after the operation. */
        "300d02010161080a01000400040000", /* Bytes after the result. */
        "300c02010161070a018004000400",   /* A negative result. */
        "300d02010161080a010004010004"
        "00", /* NUL in a text. */
        "301002050100000000"
        "61070a010004000400", /* A number of five bytes. */
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        unsigned char bytes[128];
        struct ldap_message m = {.id = 4711};
        size_t n = bytes_of(rows[i], bytes);
        assert_int_equal(ldap_parse(bytes, n, &m, NULL), -EINVAL);
        assert_int_equal(m.id, 4711);
    }
}

static void sizes_of_messages_are_bounded(void **state)
{
    assert_int_equal(ldap_message_size("", 0), 0);
    assert_int_equal(ldap_message_size("\x30", 1), 0);
    assert_int_equal(ldap_message_size("\x30\x84\x00", 3), 0);
    assert_int_equal(ldap_message_size("HTTP", 4), -EINVAL);
    assert_int_equal(ldap_message_size("\x30\x80", 2), -EINVAL);
    assert_int_equal(ldap_message_size("\x30\x85\x00\x00\x00\x00\x00", 7), -EINVAL);
    assert_int_equal(ldap_message_size("\x30\x84\x00\x40\x00\x00", 6), -EMSGSIZE);
    assert_int_equal(ldap_message_size("\x30\x84\xff\xff\xff\xff", 6), -EMSGSIZE);
    assert_int_equal(ldap_message_size("\x30\x84\x00\x3f\xff\xfa", 6), 0);
}

static void filters_become_ber(void **state)
{
    static const struct {
        const char *text, *hex;
    } rows[] = {
        {"(a=b)", "a3060401610401"
                  "62"},
        {"(a=)", "a30504016104"
                 "00"},
        {"(a=*)", "870161"},
        {"(a=*b*)", "a408040161300381"
                    "0162"},
        {"(a=b*)", "a4080401613003800162"},
        {"(a=*b)", "a4080401613003820162"},
        {"(a=b*c*d)", "a40e0401613009800162810163820164"},
        {"(a>=1)", "a506040161040131"},
        {"(a<=1)", "a606040161040131"},
        {"(a~=1)", "a806040161040131"},
        {"(&(a=b)(c=d))", "a010a306040161040162a306040163040164"},
        {"(|(a=b)(c=d))", "a110a306040161040162a306040163040164"},
        {"(!(a=b))", "a208a306040161040162"},
        {"(&)", "a000"},
        {"(a=\\28\\29\\2a\\5c\\00)", "a30a04016104"
                                     "0528292a5c00"},
        {"(a:=b)", "a906820161830162"},
        {"(a:dn:=b)", "a9098201618301628401ff"},
        {"(:2.4:=b)", "a9088103322e34830162"},
        {"(a:dn:2.4:=b)", "a90e8103322e348201618301628401ff"},
        {"(a;lang-de=\xc3\xbc)", "a30f0409613b6c616e672d64650402c3bc"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
        struct err e = {0};
        if (ldap_filter_write(rows[i].text, &out, &e) < 0) {
            fail_msg("%s", e.text);
        }
        CLEANUP_FREE char *hex = hex_of(&out);
        assert_string_equal(hex, rows[i].hex);
    }
}

static void malformed_filters_are_refused(void **state)
{
    static const char *const rows[] = {
        "",        "a=b",     "(a=b",     "(a=b))",    "()",         "(=b)",          "(a)",
        "(a>b)",   "(a=b(c)", "(a=\\2)",  "(a=\\zz)",  "(a=b**c)",   "(!(a=b)(c=d))", "(!a=b)",
        "(a:b=c)", "(:=b)",   "(:dn:=b)", "(&(a=b)c)", "(a=b)(c=d)", "(a b=c)",       "(a::=b)",
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct err e = {0};
        assert_int_equal(ldap_filter_check(rows[i], &e), -EINVAL);
        assert_true(str_has_prefix(e.text, "filter \""));
    }
    CLEANUP_STRBUF struct strbuf deep = STRBUF_INIT;
    for (int i = 0; i < 40; i++) {
        strbuf_adds(&deep, "(!");
    }
    assert_int_equal(ldap_filter_check(deep.data, NULL), -EINVAL);
}

/* LDAP injection: whatever a name is, the filter asks for equality with that name. */
static void an_escaped_value_stays_one_value(void **state)
{
    static const char *const names[] = {"*",        "a)(uid=*", "\\",    "a*b",
                                        "(|(a=b))", "\xc3\xbc", "a\\2a", ")(|(objectClass=*"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT, out = STRBUF_INIT, wanted = STRBUF_INIT;
        strbuf_adds(&text, "(u=");
        ldap_filter_escape(names[i], strlen(names[i]), &text);
        strbuf_adds(&text, ")");
        assert_int_equal(ldap_filter_write(text.data, &out, NULL), 0);
        size_t n = strlen(names[i]);
        strbuf_addf(&wanted, "%c%c\x04\x01u\x04%c%s", 0xa3, (int) (5 + n), (int) n, names[i]);
        assert_int_equal(out.size, wanted.size);
        assert_memory_equal(out.data, wanted.data, out.size);
    }
    CLEANUP_STRBUF struct strbuf nul = STRBUF_INIT;
    ldap_filter_escape("a\0b", 3, &nul);
    assert_string_equal(nul.data, "a\\00b");
}

static void urls_have_their_parts(void **state)
{
    CLEANUP(ldap_url_done) struct ldap_url u = {0};
    assert_int_equal(
        ldap_url_parse("ldaps://ldap.example.com/ou=users,dc=x?uid?one?(a=b)", &u, NULL), 0);
    assert_true(u.tls);
    assert_string_equal(u.host, "ldap.example.com");
    assert_int_equal(u.port, 636);
    assert_string_equal(u.base, "ou=users,dc=x");
    assert_string_equal(u.attribute, "uid");
    assert_true(u.has_scope);
    assert_int_equal(u.scope, LDAP_SCOPE_ONE);
    assert_string_equal(u.filter, "(a=b)");
    ldap_url_done(&u);
    assert_int_equal(ldap_url_parse("LDAP://10.0.0.1:1389", &u, NULL), 0);
    assert_false(u.tls);
    assert_int_equal(u.port, 1389);
    assert_string_equal(u.base, "");
    assert_null(u.attribute);
    assert_false(u.has_scope);
    assert_null(u.filter);
    ldap_url_done(&u);
    assert_int_equal(ldap_url_parse("ldap://h/o=a%20b%3fc?cn,sn??a=b", &u, NULL), 0);
    assert_string_equal(u.base, "o=a b?c");
    assert_string_equal(u.attribute, "cn");
    assert_string_equal(u.filter, "(a=b)");
}

static void wrong_urls_are_refused(void **state)
{
    static const char *const rows[] = {
        "http://h/",
        "ldap://",
        "ldap:///o=x",
        "ldap://h:0/",
        "ldap://h:70000/",
        "ldap://h:x/",
        "ldap://[::1]/",
        "ldap://u@h/",
        "ldap://h/nonsense",
        "ldap://h/o=x?a b",
        "ldap://h/o=x?"
        "?deep",
        "ldap://h/o=x?"
        "?"
        "?(a",
        "ldap://h/o=x?"
        "?"
        "?"
        "?e",
        "ldap://h/o=%zz",
        "ldap://h/o=%00",
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct ldap_url u = {.port = 4711};
        struct err e = {0};
        if (ldap_url_parse(rows[i], &u, &e) != -EINVAL) {
            fail_msg("%s is accepted", rows[i]);
        }
        assert_int_equal(u.port, 4711);
        assert_true(*e.text);
    }
}

static void names_are_compared_by_meaning(void **state)
{
    assert_true(ldap_dn_equal("CN=Joe  Doe , OU=x", "cn=joe doe,ou=X"));
    assert_true(ldap_dn_equal("cn=a\\2cb,o=x", "cn=a\\,b,o=x"));
    assert_true(ldap_dn_equal("cn=a+sn=b,o=x", "SN=b+CN=a,o=x"));
    assert_true(ldap_dn_equal("cn=a;o=x", "cn=a,o=x"));
    assert_true(ldap_dn_equal("", " "));
    assert_false(ldap_dn_equal("cn=a,o=x", "cn=a"));
    assert_false(ldap_dn_equal("cn=a\\,o=x", "cn=a,o=x"));
    assert_true(ldap_dn_is_below("uid=j,ou=u,o=x", "OU=u, o=x"));
    assert_true(ldap_dn_is_below("ou=u,o=x", "ou=u,o=x"));
    assert_true(ldap_dn_is_below("o=x", ""));
    assert_false(ldap_dn_is_below("uid=j,ou=uu,o=x", "u,o=x"));
    assert_false(ldap_dn_is_below("uid=j,xou=u,o=x", "ou=u,o=x"));
    assert_false(ldap_dn_is_below("o=x", "ou=u,o=x"));
    /* A comma in a value is no boundary. */
    assert_false(ldap_dn_is_below("uid=j\\,ou=u,o=x", "ou=u,o=x"));
    static const char *const wrong[] = {"a", "=b", "a=b,", "a=b,,c=d", "a=\"b\"", "a=b\\", "a b=c"};
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
        if (ldap_dn_normalize(wrong[i], &out, NULL) != -EINVAL) {
            fail_msg("%s is accepted", wrong[i]);
        }
        assert_int_equal(out.size, 0);
    }
}

static void text_is_told_from_bytes(void **state)
{
    static const struct {
        const char *data;
        size_t size;
        bool text;
    } rows[] = {
        {"joe", 3, true},           {"J\xc3\xbcrgen", 7, true}, {"", 0, false},
        {"a\0b", 3, false},         {"a\nb", 3, false},         {"\x1b[2J", 4, false},
        {"a\x7f", 2, false},        {"\xff\xd8", 2, false},     {"a\xc3", 2, false},
        {"\xed\xa0\x80", 3, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct ldap_value v = {.data = (char *) rows[i].data, .size = rows[i].size};
        assert_int_equal(ldap_value_is_text(&v), rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_as_the_standard_writes_them),
        cmocka_unit_test(lengths_grow_with_their_contents),
        cmocka_unit_test(results_are_read),
        cmocka_unit_test(entries_are_read),
        cmocka_unit_test(the_cookie_of_a_page_is_read),
        cmocka_unit_test(malformed_messages_are_refused),
        cmocka_unit_test(sizes_of_messages_are_bounded),
        cmocka_unit_test(filters_become_ber),
        cmocka_unit_test(malformed_filters_are_refused),
        cmocka_unit_test(an_escaped_value_stays_one_value),
        cmocka_unit_test(urls_have_their_parts),
        cmocka_unit_test(wrong_urls_are_refused),
        cmocka_unit_test(names_are_compared_by_meaning),
        cmocka_unit_test(text_is_told_from_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
