# SPDX-License-Identifier: Apache-2.0
"""What users see of the API, as text: discovery, OpenAPI, and of each kind its Table, defaults and messages.

recorded() asks a server and returns {file name: text} with nothing in it that changes from run to run.  test_recorded.py compares
that with the files in recorded/.  Requests are made from discovery, from the published schemas and from record_objects.py.
"""
import contextlib
import copy
import http.client
import json
import re

import wire_of_proto
from record_objects import MAPPED, OBJECTS

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
V2_REF, V3_REF = "#/definitions/", "#/components/schemas/"
# No object of these can be made.
REFUSED = ("DeviceClass", "IPAddress", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "ServiceCIDR",
           "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
READ_ONLY = ("AppliedClusterResourceQuota", "ClusterPolicy", "ClusterPolicyBinding", "ComponentStatus", "NodeMetrics", "PodMetrics",
             "Policy", "PolicyBinding", "UserOAuthAccessToken")
TYPES_DEPTH = 3  # fields this deep are sent with values of another type; deeper ones have the same messages
UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
UID_BYTES = re.compile(UID.pattern.encode())  # In protobuf a text of the same length takes its place.
TIME_BYTES = re.compile(rb"\x08([\x80-\xff]{4}[\x01-\x7f])\x10\0")  # A Time: seconds of five bytes, no nanoseconds.
VOLATILE = [(re.compile(r'"(uid|resourceVersion|creationTimestamp|deletionTimestamp|time|lastUpdateTime)": ?"[^"]+"'), r'"\1": "…"'),
            (UID, "UID"),
            (re.compile(r"20(2[5-9]|[3-9]\d)-\d\d-\d\dT[\d:.]+Z"), "NOW"),
            (re.compile(r'"(Age|Created At|First Seen|Last Seen|Last Schedule)": "[^"]*"'), r'"\1": "…"'),
            (re.compile(r"\?hash=\w+"), "?hash=…")]


def text_of(value, indent=1):
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    for pattern, replacement in VOLATILE:
        text = pattern.sub(replacement, text)
    return text


def steady_time(found):
    """A Time as it is recorded: one of today becomes another of the same length."""
    now = wire_of_proto.varint(found[1], 0)[0] >= 1735689600  # 2025, as in VOLATILE
    return b"\x08\x80\x80\x80\x80\x01\x10\0" if now else found[0]


class Asker:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        self.warning = None

    def call(self, method, path, body=None, accept="application/json"):
        body = None if body is None else json.dumps(body)
        self.connection.request(method, path, body, {"Content-Type": "application/json", "Accept": accept})
        answer = self.connection.getresponse()
        self.warning = answer.getheader("Warning")
        return answer.status, json.loads(answer.read())

    def bytes_of(self, path, accept):
        self.connection.request("GET", path, headers={"Accept": accept})
        answer = self.connection.getresponse()
        return answer.status, answer.read()


def outcome(answer):
    """One line a cause, or what the server says of the whole; "accepted" when it takes the object."""
    return [UID.sub("UID", line) for line in causes_of(answer)]


def causes_of(answer):
    status, body = answer
    if status < 300:
        return ["accepted"]
    causes = body.get("details", {}).get("causes")
    if not causes:
        return [f"{status} {body.get('reason')}: {body['message']}"]
    return [f"{status} {c.get('field', '')}: {c.get('reason', '')}: {c['message']}" for c in causes]


# OpenAPI

def lines_of_paths(paths):
    for path, item in sorted(paths.items()):
        for method, what in item.items():
            yield f"{path} {method}: {json.dumps(what, ensure_ascii=False)}"


def lines_of_schema(name, schema):
    rest = {k: v for k, v in schema.items() if k != "properties"}
    yield f"{name}: {json.dumps(rest, ensure_ascii=False)}"
    for field, what in schema.get("properties", {}).items():
        yield f"{name}.{field}: {json.dumps(what, ensure_ascii=False)}"


def compared(name, three, two):
    """The lines of a schema of version 3 that are not those of version 2, but for how it refers to others."""
    as_two = re.sub(r'"allOf": \[\{("\$ref": "[^"]*")\}\]', r"\1", json.dumps(three).replace(V3_REF, V2_REF))
    new, old = list(lines_of_schema(name, json.loads(as_two))), list(lines_of_schema(name, two))
    yield f"{name}: as in version 2" + (", but" if new != old else "")
    yield from (f"  {line}" for line in new if line not in old)
    yield from (f"  not {line}" for line in old if line not in new)


def openapi(asker):
    v2 = asker.call("GET", "/openapi/v2")[1]
    schemas, paths = v2.pop("definitions"), v2.pop("paths")
    v2["info"]["version"] = "…"
    lines = [text_of(v2), "", *lines_of_paths(paths), ""]
    for name in sorted(schemas):
        lines += lines_of_schema(name, schemas[name])
    index = asker.call("GET", "/openapi/v3")[1]
    three = [text_of(index)]
    for path, where in index["paths"].items():
        doc = asker.call("GET", where["serverRelativeURL"])[1]
        doc["info"]["version"] = "…"
        own, own_paths = doc["components"].pop("schemas"), doc.pop("paths")
        three += ["", f"# {path}", text_of(doc), *lines_of_paths(own_paths)]
        for name in sorted(own):
            three += compared(name, own[name], schemas.get(name, {}))
    return schemas, "\n".join(lines) + "\n", "\n".join(three) + "\n"


# discovery

def discovery(asker):
    """Returns the resources as [(apiVersion, resource)], and the text."""
    core, groups = asker.call("GET", "/api")[1], asker.call("GET", "/apis")[1]
    core["serverAddressByClientCIDRs"] = "…"
    lines, found = [text_of(core), text_of(groups)], []
    versions = [("v1", "/api/v1")] + [(v["groupVersion"], f"/apis/{v['groupVersion']}")
                                     for g in groups["groups"] for v in g["versions"]]
    for version, path in versions:
        doc = asker.call("GET", path)[1]
        lines += ["", f"# {path}", *(text_of(r, None) for r in doc["resources"])]
        found += [(version, r) for r in doc["resources"]]
    return found, "\n".join(lines) + "\n"


# values that are wrong

def object_of(schema, schemas, leaf, depth, seen=()):
    """A value of a schema whose leaves are what leaf(schema) says, lists and maps with one element."""
    name = schema.get("$ref", "")[len(V2_REF):]
    if name:
        if name in seen or depth < 0:
            return None
        form = "quantity" if name.endswith(".Quantity") else schemas[name].get("format")
        return object_of({**schemas[name], "format": form}, schemas, leaf, depth, (*seen, name))
    if "properties" in schema:
        made = {}
        for field, what in schema["properties"].items():
            value = object_of(what, schemas, leaf, depth - 1, seen)
            if value is not None:
                made[field] = value
        return made
    kind = schema.get("type")
    if kind == "array":
        value = object_of(schema.get("items", {}), schemas, leaf, depth, seen)
        return [] if value is None else [value]
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        value = object_of(schema["additionalProperties"], schemas, leaf, depth, seen)
        return {} if value is None else {"Key!": value}
    return leaf(schema) if depth >= 0 else None


def other_type(schema):
    return {"string": 7, "integer": "x", "number": "x", "boolean": "x", "array": "x", "object": "x"}.get(schema.get("type"))


# What is wrong in these is a 400, which hides all that is wrong elsewhere; unit/api/test_typed has their messages.
DECODED = ("date-time", "byte", "quantity")


def wrong_value(schema):
    if schema.get("format") in DECODED:
        return None
    return {"string": "-Wrong!-", "integer": -1, "number": -1, "boolean": True, "object": {}}.get(schema.get("type"))


def nothing(schema):
    if schema.get("format") in DECODED:
        return None
    return {"string": "", "object": {}}.get(schema.get("type"))


def leaves(value, path=()):
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list) and value:
        for i, inner in enumerate(value):
            yield from leaves(inner, (*path, i))
    else:
        yield path, value


def named(path):
    return "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path)


def changed(obj, path, value):
    """A copy whose value at path is another one; without it when that is None."""
    made = copy.deepcopy(obj)
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    if value is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return made


def another(value):
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else value + "x" if isinstance(value, str) else value


# kinds

class Kind:
    def __init__(self, asker, version, resource, schemas):
        self.asker, self.version, self.resource = asker, version, resource
        self.name = resource["kind"]
        base = f"/api/{version}" if version == "v1" else f"/apis/{version}"
        self.path = f"{base}/namespaces/default/{resource['name']}" if resource["namespaced"] else f"{base}/{resource['name']}"
        group, _, number = version.rpartition("/")
        wanted = {"group": group, "version": number, "kind": self.name}
        self.schemas = schemas
        self.schema = next(s for s in schemas.values() if wanted in s.get("x-kubernetes-group-version-kind", []))
        self.object = copy.deepcopy(next((o for o in OBJECTS if (o["apiVersion"], o["kind"]) == (version, self.name)), None))
        assert self.object is not None, f"record_objects.py needs an object of the kind {version} {self.name}"
        self.object.setdefault("metadata", {}).setdefault("name", "one")
        self.dry = self.path + "?dryRun=All&fieldValidation=Strict"
        self.lines = [f"# {version} {self.name}"]

    def heading(self, text):
        self.lines += ["", f"## {text}"]

    def spec(self):
        """The schema without what all kinds have."""
        return {"properties": {k: v for k, v in self.schema["properties"].items() if k not in ("apiVersion", "kind", "metadata")}}

    def generated(self):
        for title, leaf, depth in (("fields of another type", other_type, TYPES_DEPTH), ("values that are wrong", wrong_value, 20),
                                   ("empty objects and texts", nothing, 20)):
            self.heading(title)
            body = object_of(self.spec(), self.schemas, leaf, depth) or {}
            if self.name == "Pod":  # a wrong priority or runtime class is refused before anything else is looked at
                body["spec"] = {k: v for k, v in body["spec"].items() if not k.startswith(("priority", "preemption", "runtimeClass"))}
            # Each part by itself: what is wrong in one hides nothing of the others.
            for field, value in body.items():
                obj = {"apiVersion": self.version, "kind": self.name, "metadata": self.object["metadata"], field: value}
                rest = {k: v for k, v in self.object.items() if k != field}
                self.lines += [f"{field}:", *("  " + x for x in outcome(self.asker.call("POST", self.dry, {**rest, **obj})))]

    def fields(self):
        return [p for p, _ in leaves({k: v for k, v in self.object.items() if k not in ("apiVersion", "kind", "status")})]

    def one_by_one(self, title, method, path, obj, change):
        self.heading(title)
        for p in self.fields():
            value = obj
            for key in p:
                value = value[key] if not isinstance(value, dict) or key in value else None
                if value is None:
                    break
            if value is None:
                continue
            said = outcome(self.asker.call(method, path, changed(obj, p, change(value))))
            self.lines.append(f"{named(p)}: {'; '.join(said)}")

    def made(self):
        self.heading("created")
        status, obj = self.asker.call("POST", self.path, self.object)
        self.lines += [f"Warning: {self.asker.warning}"] if self.asker.warning else []
        assert status == 201, f"record_objects.py has an object that the server refuses: {obj}"
        self.lines.append(text_of(obj))
        if self.name == "ProjectRequest":  # The answer to a ProjectRequest is a Project.
            self.asker.call("DELETE", f"/apis/project.openshift.io/v1/projects/{obj['metadata']['name']}")
            return None
        return obj if "resourceVersion" in obj.get("metadata", {}) else None  # reviews are answered, not stored

    def in_protobuf(self, obj):
        """The message without the metadata, which changes from run to run."""
        self.heading("in protobuf, without metadata")
        status, data = self.asker.bytes_of(f"{self.path}/{obj['metadata']['name']}", wire_of_proto.TYPE)
        if status != 200:
            self.lines.append(f"{status}")
            return
        _, _, message = wire_of_proto.opened(TIME_BYTES.sub(steady_time, UID_BYTES.sub(b"0" * 36, data)))
        for number, value in wire_of_proto.fields(message):
            if number != 1:
                text = value.hex(" ") if isinstance(value, bytes) else str(value)
                self.lines += [f"{number}:", *("  " + text[i:i + 120].rstrip() for i in range(0, len(text), 120))]

    def status_written(self, obj):
        self.heading("status written")
        status, answer = self.asker.call("PUT", f"{self.path}/{obj['metadata']['name']}/status",
                                         {**obj, "status": self.object["status"]})
        self.lines += [str(status), text_of(answer.get("status", answer))]

    def table(self, name):
        self.heading("Table")
        listed = "list" in self.resource["verbs"]
        path = f"{self.path}?fieldSelector=metadata.name={name}" if listed else f"{self.path}/{name}"
        table = self.asker.call("GET", path, accept=TABLE)[1]
        self.lines += [text_of(c, None) for c in table["columnDefinitions"]]
        for row in table["rows"]:
            cells = {c["name"]: cell for c, cell in zip(table["columnDefinitions"], row["cells"])}
            self.lines.append(text_of(cells, None))

    def stored(self, obj):
        name = obj["metadata"]["name"]
        self.in_protobuf(obj)
        if "status" in self.object and "status" in self.schema["properties"]:
            self.status_written(obj)
        obj = self.asker.call("GET", f"{self.path}/{name}")[1]
        self.one_by_one("updates with one value changed", "PUT", f"{self.path}/{name}?dryRun=All", obj, another)
        self.table(name)
        self.heading("deleted")
        self.lines += [text_of(self.asker.call("DELETE", f"{self.path}/{name}?propagationPolicy=Background")[1].get("status"))]

    def record(self):
        if self.name in REFUSED or self.name in READ_ONLY:
            self.heading("created")
            self.lines += outcome(self.asker.call("POST", self.path, self.object))
            self.table("one")
            return "\n".join(self.lines) + "\n"
        self.generated()
        self.one_by_one("without one value", "POST", self.dry, self.object, lambda value: None)
        self.one_by_one("with one value changed", "POST", self.dry, self.object, another)
        obj = self.made()
        if obj:
            self.stored(obj)
        return "\n".join(self.lines) + "\n"


NEEDED = {"Binding": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"},
                       "spec": {"containers": [{"name": "c", "image": "i"}]}}],
          "UserIdentityMapping": MAPPED}
PLACES = {"Pod": "/api/v1/namespaces/default/pods", "User": "/apis/user.openshift.io/v1/users",
          "Identity": "/apis/user.openshift.io/v1/identities"}


@contextlib.contextmanager
def needed(asker, kind):
    """While an object of the kind is made there are those that it needs: a pod to bind, a user and an identity to map."""
    for obj in NEEDED.get(kind, []):
        assert asker.call("POST", PLACES[obj["kind"]], obj)[0] == 201
    yield
    for obj in NEEDED.get(kind, []):
        asker.call("DELETE", f"{PLACES[obj['kind']]}/{obj['metadata']['name']}?gracePeriodSeconds=0")


def recorded(port):
    asker = Asker(port)
    resources, found = discovery(asker)
    schemas, v2, v3 = openapi(asker)
    files = {"discovery.txt": found, "openapi-v2.txt": v2, "openapi-v3.txt": v3}
    for version, resource in resources:
        if "/" not in resource["name"]:
            kind = Kind(asker, version, resource, schemas)
            same = [r for v, r in resources if (v, r["kind"]) == (version, resource["kind"]) and "/" not in r["name"]]
            name = resource["name"] if len(same) > 1 and "get" not in resource["verbs"] else kind.name
            with needed(asker, kind.name):
                files[f"{version.replace('/', '.')}.{name}.txt"] = kind.record()
    return files
