#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of tools/gen-kinds: a wrong description is refused with its file and line, a good one becomes C."""
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
HEAD = 'group "g.example" v1\ndefinitions example.g.v1\n'
META = "definitions example.meta.v1\ntype ObjectMeta export=api_schema_object_meta\n    1 name string\n"
KIND = HEAD + 'kind Thing things\n    "A thing"\n    column name\n  fields\n'

# What stands after KIND or HEAD, the line of the mistake, and what is said of it.
WRONG = [
    (KIND + "    2 spec Missing\n", 7, "type Missing is not declared"),
    (KIND + "    2 a string\n    2 b string\n", 8, "b has the protobuf number of a"),
    (KIND + "    2 a string\n    3 a string\n", 8, "a is there twice"),
    (KIND + "    x a string\n", 7, '"x" is no protobuf number'),
    (KIND + "    0 a string\n", 7, '"0" is no protobuf number'),
    (KIND + "    2.0 a string\n", 7, '"2.0" is no protobuf number'),
    (KIND + "    2.2.2.1 a string\n", 7, '"2.2.2.1" is no protobuf number (3, 2.1, 2.2.1 or -)'),
    (KIND + "    65536 a string\n", 7, "65536 in 65536 is over 65535"),
    (KIND + "    2.256.1 a string\n", 7, "256 in 2.256.1 is over 255"),
    (KIND + "    2.2.1 a string\n    2.2.1 b string\n", 8, "b has the protobuf number of a"),
    (KIND + "    2.1 a string\n    2 b string\n", 8, "Thing.a is in the message 2, which is the field b"),
    (KIND + "    2.2 a string\n    2.2.1 b string\n", 8, "Thing.b is in the message 2.2, which is the field a"),
    (KIND + "    2 a string requird\n", 7, '"requird" is no attribute of a field'),
    (KIND + "    2 a int32 default=yes\n", 7, "default=yes is no int32"),
    (KIND + "    2 a enum(A, B) default=C\n", 7, "default=C is not among the values"),
    (KIND + "    2 a int32 min=low\n", 7, "min=low is no whole number"),
    (KIND + "    2 a int32 check=dns-label\n", 7, "check= is for strings"),
    (KIND + "    2 a string check=dns-labl\n", 7, '"dns-labl" is no rule of texts'),
    (KIND + "    2 a list(string check=dns-labl)\n", 7, '"dns-labl" is no rule of texts'),
    (KIND + "    2 a list(string immutable)\n", 7, '"immutable" is no attribute of an element'),
    (KIND + "    2 a list(int32 nonempty)\n", 7, "nonempty is for texts and lists"),
    (KIND + "    2 a int32 nonempty\n", 7, "nonempty is for texts and lists"),
    (KIND + "    2 a string min=1\n", 7, "min= is for whole numbers"),
    (KIND + "    2 a string max-items=1\n", 7, "max-items= is for lists"),
    (KIND + "    2 a list(string) max-length=1\n", 7, "max-length= is for texts"),
    (KIND + "    2 a map(string) unique\n", 7, "unique is for lists"),
    (KIND + "    2 a enum(A,\n            B) default=C\n", 7, "default=C is not among the values"),
    (KIND + "    2 a list(T; id)\ntype T\n    1 name string\n", 7, "T has no field id to be a key"),
    (KIND + "    2 a list(string\n", 7, '")" is missing after list('),
    (KIND + '    2 a string "text" more\n', 7, '"more" is not expected here'),
    (KIND + "    2 a string patch=x\n", 7, "patch= is for lists"),
    (KIND + "    2 a T immutable\ntype T\n    1 b string\n", 7, "not possible for a named type"),
    (KIND + "    2 a string\ntype Unused\n    1 b string\n", 8, "type Unused is used nowhere"),
    (HEAD + 'kind Thing things\n    "A thing"\n    shrt t\n', 5, '"shrt" is not known in a kind'),
    (HEAD + 'kind Thing things\n    "A thing"\n    is namespacd\n', 5, '"namespacd" is no property of a kind'),
    (HEAD + 'kind Thing things\n    "A thing"\n    code valdate\n', 5, '"valdate" is no function of a kind'),
    (HEAD + 'kind Thing things\n    "A thing"\n    column "A" text .a "a"\n', 5, '"text" is no type of a column'),
    (HEAD + 'kind Thing things\n    "A thing"\n    column "A" string "a"\n', 5, "either a path or a cell"),
    (HEAD + 'kind Thing things\n    "A thing"\n', 3, "kind Thing has no columns"),
    (HEAD + "kind Thing things\n    column name\n", 3, "kind Thing has no description"),
    (HEAD + "kid Thing things\n", 3, '"kid" is not known'),
    ("kind Thing things\n", 1, "a kind comes after group and definitions"),
    (HEAD + "    2 a string\n", 3, "this stands in no kind and no type"),
    (HEAD + 'kind Thing things\n    "A thing"\n    roles owner\n', 5, '"owner" is no role of projects'),
    (HEAD + 'kind Thing things\n    "A thing"\n    roles edit\n    column name\n', 3, "roles are for kinds in projects"),
    (HEAD + 'kind Thing things\n    "A thing"\n    effect some "text"\n', 5, '"some" is no effect: none, refuse'),
    (HEAD + 'kind Thing things\n    "A thing"\n    effect none\n', 5, "what does not happen yet is missing"),
    (KIND + "    2 a %\n", 7, "cannot read: %"),
    (KIND + "    2 a string wire=T\ntype T\n    1 b string\n", 7, "wire= is for open and any, not for string"),
    (KIND + "    2 a open wire=Missing\n", 7, "type Missing is not declared"),
    (KIND + "    2 a T\ntype T either\n    1 b bool\n", 8, "type T is one of several types, which are for wire= only"),
]


class GenKinds(unittest.TestCase):
    def run_on(self, text):
        with tempfile.TemporaryDirectory() as tmp:
            tmp = pathlib.Path(tmp)
            (tmp / "g.example.v1.kinds").write_text(text)
            (tmp / "meta.v1.kinds").write_text(META)
            r = subprocess.run([ROOT / "tools/gen-kinds", "--header", tmp / "k.h", "--source", tmp / "k.c",
                                tmp / "g.example.v1.kinds", tmp / "meta.v1.kinds"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
            source = (tmp / "k.c").read_text() if r.returncode == 0 else ""
            self.assertEqual((tmp / "k.c").exists(), r.returncode == 0, "a wrong description leaves no file")
            return r.returncode, r.stderr, source

    def test_a_wrong_description_is_refused_with_file_and_line(self):
        for text, line, says in WRONG:
            with self.subTest(says):
                status, error, _ = self.run_on(text)
                self.assertEqual(status, 1)
                self.assertIn(f"g.example.v1.kinds:{line}: ", error)
                self.assertIn(says, error)
                self.assertNotIn("Traceback", error)

    def test_a_good_description_becomes_a_kind(self):
        status, error, source = self.run_on(KIND + '    2 size int32 min=1 max=9 default=3 "The size"\n'
                                                   "    3.1 inner map(string)\n    3.2.65535 inmost bool\n")
        self.assertEqual((status, error), (0, ""))
        for part in ("const struct api_kind api_kind_thing", '.dflt_text = "3"', ".minimum = 1", ".protobuf = true",
                     '"inner", &api_schema_string_map, NULL, .number = 1, .outer = {3}', "&api_kind_thing,",
                     '"inmost", &api_schema_boolean, NULL, .number = 65535, .outer = {3, 2}'):
            self.assertIn(part, source)

    def test_rules_of_texts_and_lists_reach_the_schema(self):
        status, error, source = self.run_on(
            KIND + "    2 a string required nonempty check=cidr4\n    3 b enum(X,\n        Y) default=X\n"
                   "    4 c list(string nonempty check=ip4) unique\n    5 d enum(X) required\n    6 e string check=thing_check_e\n")
        self.assertEqual((status, error), (0, ""))
        rows = {row.split('"')[1]: row for row in source.splitlines() if row.startswith('    {"')}
        for name, parts in {"a": [".empty = API_EMPTY_REFUSED", ".parse = api_parse_cidr4", "true"],
                            "b": [".empty = API_EMPTY_IS_ABSENT", '"X", "Y"'],
                            "c": [".unique_items = true", ".items = &(const struct api_schema){.type = API_STRING, "
                                  ".empty = API_EMPTY_REFUSED, .check = api_check_ip4}"],
                            "d": [".empty = API_EMPTY_REFUSED"], "e": [".check = thing_check_e"]}.items():
            for part in parts:
                self.assertIn(part, rows[name])

    def test_kinds_become_custom_resource_definitions(self):
        good = KIND.replace("column name", 'column name\n    column "Size" integer wide .size "The size"')
        with tempfile.TemporaryDirectory() as tmp:
            tmp = pathlib.Path(tmp)
            (tmp / "meta.v1.kinds").write_text(META)
            for fields, status, says in (
                    ("    2 size int32 required min=1\n    3 to list(string nonempty check=ip4) max-items=2\n", 0,
                     ["name: things.g.example", "required: [size]", "minimum: 1", "maxItems: 2", "pattern: '^((",
                      "{name: Size, type: integer, jsonPath: .size, priority: 1, description: 'The size'}"]),
                    ("    2 a map(string)\n", 1, ["g.example.v1.kinds:8: map(string) is not possible"]),
                    ("    2 a string check=dns-label\n", 1, ["g.example.v1.kinds:8: check=dns-label has no pattern"])):
                (tmp / "g.example.v1.kinds").write_text(good + fields)
                r = subprocess.run([ROOT / "tools/gen-kinds", "--crds", "g.example", tmp / "g.example.v1.kinds",
                                    tmp / "meta.v1.kinds"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                self.assertEqual(r.returncode, status, r.stdout)
                for part in says:
                    self.assertIn(part, r.stdout)

    def test_a_kind_without_effect_says_so_in_the_table(self):
        for word, constant, cell in (("none", "API_EFFECT_NONE", "stored only"), ("refuse", "API_EFFECT_REFUSED", "refused")):
            text = KIND.replace("column name", f'effect {word} "nobody looks"\n    column name') + "    2 a string\n"
            status, error, source = self.run_on(text)
            self.assertEqual((status, error), (0, ""))
            self.assertIn(f".effect = {constant},", source)
            self.assertIn('.missing = "nobody looks",', source)
            with tempfile.TemporaryDirectory() as tmp:
                tmp = pathlib.Path(tmp)
                (tmp / "g.example.v1.kinds").write_text(text)
                (tmp / "meta.v1.kinds").write_text(META)
                out = subprocess.run([ROOT / "tools/gen-kinds", "--table", tmp / "g.example.v1.kinds", tmp / "meta.v1.kinds"],
                                     stdout=subprocess.PIPE, text=True, check=True).stdout
            self.assertIn(f"| {cell} |", out)

    def test_a_kind_with_a_field_that_has_no_number_has_no_protobuf_form(self):
        _, _, source = self.run_on(KIND + "    2 a string\n    - b string\n")
        self.assertNotIn(".protobuf", source)

    def test_a_value_of_any_type_can_have_a_message_of_its_own(self):
        code, said, source = self.run_on(KIND + "    2 a open wire=T\ntype T\n    1 $ref string\n    2 x-b Either\n"
                                                "type Either either\n    1 c bool\n    2 d T\n")
        self.assertEqual((code, said), (0, ""))
        self.assertIn('{"a", &api_schema_open, NULL, .number = 2, .wire = &type_g_example_v1_T}', source)
        self.assertIn('{"$ref", &api_schema_string, NULL, .number = 1}', source)
        self.assertIn(".either = true", source)


if __name__ == "__main__":
    unittest.main()
