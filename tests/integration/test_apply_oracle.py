# SPDX-License-Identifier: Apache-2.0
"""Server-side apply beside the library of Kubernetes' API server, on random histories of several managers.

The objects are custom resources whose schema has each kind of list and map.  apply_oracle.go computes each history with
sigs.k8s.io/structured-merge-diff; the master gets the same steps as requests.  Each run is another one: a failure names its
seed, and TENET_RANDOM_SEED repeats it."""
import http.client
import json
import os
import pathlib
import random
import re
import subprocess

import pytest

from test_custom import CRDS, Cluster

HERE = pathlib.Path(__file__).parent
PATH = "/apis/example.com/v1/namespaces/default/things"
HISTORIES, STEPS = 150, 12

# Both schemas come from this description: text, number, set, atomic list, list by keys, map, atomic map, object.
SPEC = {
    "text": "string", "number": "integer", "set": ("set", "string"), "whole": ("atomic", "string"),
    "items": ("map", ["name"], {"name": "string", "value": "string", "tags": ("set", "string"),
                                "more": ("object", {"a": "string", "b": "string"})}),
    "ports": ("map", ["port", "protocol"], {"port": "integer", "protocol": "string", "note": "string"}),
    "labels": ("labels", "string"), "selector": ("atomic labels", "string"),
    "part": ("object", {"x": "string", "y": ("labels", "string"),
                        "z": ("object", {"deep": "string", "few": ("set", "string")})}),
    "lump": ("atomic object", {"x": "string", "y": "string"}),
}


def openapi(t):
    """The description as the schema of a CustomResourceDefinition."""
    if isinstance(t, str):
        return {"type": t}
    if t[0] in ("set", "atomic"):
        return {"type": "array", "items": openapi(t[1]), "x-kubernetes-list-type": t[0]}
    if t[0] == "map":
        return {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": t[1],
                "items": {"type": "object", "required": t[1], "properties": {k: openapi(v) for k, v in t[2].items()}}}
    out = {"type": "object", "x-kubernetes-map-type": "atomic" if t[0].startswith("atomic") else "granular"}
    if t[0].endswith("labels"):
        return {**out, "additionalProperties": openapi(t[1])}
    return {**out, "properties": {k: openapi(v) for k, v in t[1].items()}}


def library(t):
    """The description as a type of the library's own schemas."""
    if isinstance(t, str):
        return {"scalar": {"string": "string", "integer": "numeric"}[t]}
    if t[0] in ("set", "atomic"):
        return {"list": {"elementType": library(t[1]), "elementRelationship": "associative" if t[0] == "set" else "atomic"}}
    if t[0] == "map":
        return {"list": {"elementType": library(("object", t[2])), "elementRelationship": "associative", "keys": t[1]}}
    out = {"elementRelationship": "atomic" if t[0].startswith("atomic") else "separable"}
    if t[0].endswith("labels"):
        return {"map": {**out, "elementType": library(t[1])}}
    return {"map": {**out, "fields": [{"name": k, "type": library(v)} for k, v in t[1].items()]}}


THINGS = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
          "metadata": {"name": "things.example.com"},
          "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
                   "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                       "type": "object", "properties": {"spec": openapi(("object", SPEC))}}}}]}}
ROOT = {"types": [{"name": "root", "map": {"fields": [{"name": "spec", "type": library(("object", SPEC))}]}}]}


def some(rng, names):
    return [n for n in names if rng.random() < 0.5]


def value(rng, t):
    """A random value of the type."""
    if t == "string":
        return rng.choice("uvw")
    if t == "integer":
        return rng.randrange(3)
    if t[0] == "set":
        return [*some(rng, "abc")]
    if t[0] == "atomic":
        return rng.choices("abc", k=rng.randrange(3))
    if t[0] == "map":
        keys = [{"name": n} for n in some(rng, "pqr")] if t[1] == ["name"] else \
            [{"port": p, "protocol": q} for p in (1, 2) for q in some(rng, ("TCP", "UDP"))]
        rng.shuffle(keys)
        rest = {k: v for k, v in t[2].items() if k not in t[1]}
        return [{**key, **value(rng, ("object", rest))} for key in keys]
    if t[0].endswith("labels"):
        return {k: value(rng, t[1]) for k in some(rng, "klm")}
    return {k: value(rng, t[1][k]) for k in some(rng, t[1])}


def history(rng):
    """Begins with a creation or an apply; then all kinds of change, mostly applies."""
    steps = []
    for i in range(STEPS):
        op = rng.choice(("create", "apply")) if i == 0 else rng.choices(("apply", "update", "reset"), (12, 6, 1))[0]
        body = {"spec": value(rng, ("object", SPEC))} if rng.random() < 0.95 else {}
        steps.append({"op": op, "manager": rng.choice("xyz"), "force": rng.random() < 0.4, "object": body})
    return steps


@pytest.fixture(scope="module")
def oracle(tmp_path_factory):
    """The program, built with Debian's package of the library."""
    tmp = tmp_path_factory.mktemp("oracle")
    env = {"GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOCACHE": str(tmp / "cache"), "HOME": str(tmp),
           "PATH": os.environ["PATH"], "GOFLAGS": "-p=2", "CGO_ENABLED": "0"}
    subprocess.run(["go", "build", "-o", tmp / "oracle", HERE / "apply_oracle.go"], env=env, check=True)
    return tmp / "oracle"


@pytest.fixture
def cluster(tmp_path):
    c = Cluster(tmp_path)
    c.define(THINGS)
    yield c
    c.stop()


def sort_elements(v, t):
    """The order of associative lists, which the library has changed since the packaged version, does not count."""
    if isinstance(t, str) or v is None:
        return v
    if t[0] == "set":
        return sorted(v)
    if t[0] == "map":
        fields = ("object", t[2])
        return sorted((sort_elements(e, fields) for e in v), key=lambda e: [str(e[k]) for k in t[1]])
    if t[0].endswith("object"):
        return {k: sort_elements(x, t[1][k]) for k, x in v.items()}
    return v


def manager_of(message):
    name, update = re.fullmatch(r'conflict with "([^"]*)"( using example.com/v1)?', message).groups()
    return name + ("/Update" if update else "/Apply")


def outcome(answer):
    """What the server answered, in the form of the oracle."""
    if answer.get("kind") == "Status":
        assert answer["reason"] == "Conflict", answer
        return {"conflicts": sorted(manager_of(cause["message"]) for cause in answer["details"]["causes"])}
    entries = answer["metadata"].get("managedFields", [])
    managers = {f"{e['manager']}/{e['operation']}": e["fieldsV1"] for e in entries}
    assert len(managers) == len(entries)
    return {"object": sort_elements(answer.get("spec"), ("object", SPEC)), "managers": managers}


def expected(result):
    if "conflicts" in result:
        return {"conflicts": sorted(result["conflicts"])}
    spec = (result.get("object") or {}).get("spec")
    return {"object": sort_elements(spec, ("object", SPEC)), "managers": result.get("managers", {})}


class Requests:
    """The steps as requests, on one connection."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def call(self, method, path, body, content_type):
        self.connection.request(method, path, json.dumps(body), {"Content-Type": content_type})
        return json.loads(self.connection.getresponse().read())

    def step(self, name, live, step):
        obj = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name}, **step["object"]}
        query = f"?fieldManager={step['manager']}"
        if step["op"] == "apply":
            force = "&force=true" if step["force"] else ""
            return self.call("PATCH", f"{PATH}/{name}{query}{force}", obj, "application/apply-patch+yaml")
        if step["op"] == "create":
            return self.call("POST", PATH + query, obj, "application/json")
        obj["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
        if step["op"] == "reset":
            obj["metadata"]["managedFields"] = [{}]
        return self.call("PUT", f"{PATH}/{name}{query}", obj, "application/json")


def test_random_histories_end_as_in_kubernetes(cluster, oracle):
    seed = int(os.environ.get("TENET_RANDOM_SEED") or random.SystemRandom().randrange(1 << 32))
    rng = random.Random(seed)
    histories = [history(rng) for _ in range(HISTORIES)]
    lines = "\n".join(json.dumps(x) for x in (json.dumps(ROOT), *histories))
    out = subprocess.run([oracle], input=lines, text=True, stdout=subprocess.PIPE, check=True).stdout.splitlines()
    assert len(out) == HISTORIES
    requests, conflicts = Requests(cluster.port), 0
    for i, (steps, results) in enumerate(zip(histories, map(json.loads, out))):
        live = None
        for n, (step, result) in enumerate(zip(steps, results)):
            answer = requests.step(f"t{i}", live, step)
            want, have = expected(result), outcome(answer)
            assert have == want, f"seed {seed}, history {i}, step {n}: {json.dumps(steps[:n + 1])}"
            conflicts += "conflicts" in want
            live = answer if answer["kind"] == "Thing" else live
    assert conflicts > HISTORIES  # or the histories would show little
