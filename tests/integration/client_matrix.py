# SPDX-License-Identifier: Apache-2.0
"""Every kind that is served, by every client: each verb that discovery names for the kind is tried, and its result looked at.

Kinds come from discovery, objects from record_objects.py.  A client is a class with 'name' and 'run(work, report)', where work
is what work_of() returns, and report(item, verb, error) fills a cell: error None when it went well, else request and answer.
"""
import collections
import copy
import json
import os
import re
import select
import subprocess
import time

from kubernetes import client as kube, config, dynamic, watch as kubewatch

from record_objects import MAPPED, OBJECTS

# In this order, with the letter for the table.
VERBS = {"create": "c", "get": "g", "list": "l", "json": "j", "merge": "m", "strategic": "s", "apply": "a", "update": "u",
         "watch": "w", "delete": "d"}
PATCHES = {"json": "application/json-patch+json", "merge": "application/merge-patch+json",
           "strategic": "application/strategic-merge-patch+json", "apply": "application/apply-patch+yaml"}
NEEDED = {"Binding": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "matrix-bound", "namespace": "default"},
                       "spec": {"containers": [{"name": "c", "image": "i"}]}}],
          "UserIdentityMapping": MAPPED}
NAMES = {"Binding": "matrix-bound", "BaselineAdminNetworkPolicy": "default", "CustomResourceDefinition": "books.example.org",
         "HostSubnet": "one", "NetNamespace": "one", "Identity": "ldap:joe", "UserIdentityMapping": "ldap:ann",
         **dict.fromkeys(("OAuthAccessToken", "OAuthAuthorizeToken"), "sha256~AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"),
         "OAuthClientAuthorization": "joe:shop", "PolicyBinding": ":default"}
# Questions whose answer is of another kind.
ANSWERS = {("authorization.openshift.io/v1", start + kind): f"{kind}Response" for start in ("", "Local")
           for kind in ("SubjectAccessReview", "ResourceAccessReview")} | {
               ("project.openshift.io/v1", "ProjectRequest"): "Project"}
# Of these the server keeps names only: nothing can be marked.
COMPOSED = ("PolicyBinding", "UserIdentityMapping")
# No object of these can be made; the server says why.
REFUSED = dict.fromkeys(("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "ValidatingAdmissionPolicy",
                         "ValidatingAdmissionPolicyBinding", "IPAddress", "ServiceCIDR"),
                        "not enforced yet")
# What a patch can change of each object, but for Projects: of these only the texts for people.
MARKED = {"Project": "annotations"}
PLACES = {"Pod": "/api/v1/namespaces/default/pods", "User": "/apis/user.openshift.io/v1/users",
          "Identity": "/apis/user.openshift.io/v1/identities"}
MARK = {"annotations": "openshift.io/description"}
CUSTOM = {"apiVersion": "example.org/v1", "kind": "Book", "spec": {"pages": 3}}

class Item(collections.namedtuple("Item", "version kind plural namespaced verbs object custom")):
    def __hash__(self):
        return hash((self.version, self.kind))



def name_of(kind, version):
    """A name of the version's own: the versions of a group have the same objects."""
    group, _, short = version.rpartition("/")
    return NAMES.get(kind, f"matrix-{kind.lower()}-{group.split('.')[0] or 'core'}-{short}")


def sample(version, kind):
    found = [o for o in [*OBJECTS, CUSTOM] if (o["apiVersion"], o["kind"]) == (version, kind)]
    assert found, f"{version} {kind} is served; record_objects.py needs an object of it"
    obj = copy.deepcopy(found[0])
    obj.pop("status", None)
    obj.setdefault("metadata", {})["name"] = name_of(kind, version)
    obj["metadata"].setdefault("labels", {})["matrix"] = "yes"
    return obj


def work_of(server):
    """The kinds with their verbs, after a definition has added one; on a server that has none of our objects."""
    crd = copy.deepcopy(next(o for o in OBJECTS if o["kind"] == "CustomResourceDefinition"))
    crd["metadata"]["name"] = "books.example.org"
    post(server, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
    end = time.monotonic() + 20
    while server.get("/apis/example.org/v1")[0] != 200:
        assert time.monotonic() < end, "the kind Book is not served"
        time.sleep(0.02)
    items = []
    for base, r in server.resources():
        version = base.removeprefix("/apis/").removeprefix("/api/")
        custom = version == "example.org/v1"
        verbs = [v for v in ("create", "get", "list") if v in r["verbs"] and (v != "get" or "create" in r["verbs"])]
        if "patch" in r["verbs"]:
            verbs += [p for p in PATCHES if p != "strategic" or not custom]
        verbs += [v for v in ("update", "watch", "delete") if v in r["verbs"] and (v == "update" or "create" in r["verbs"])]
        if r["kind"] in REFUSED:
            verbs = ["create", "list"]
        # A PolicyBinding is listed without the labels by which objects are found here; a list of ProjectRequests is a question.
        if r["kind"] in ("PolicyBinding", "ProjectRequest"):
            verbs.remove("list")
        obj = sample(version, r["kind"])
        if r["kind"] == "CustomResourceDefinition":  # not the one that the Books need
            obj = json.loads(json.dumps(obj).replace("book", "film").replace("Book", "Film"))
            obj["spec"]["names"].pop("shortNames")
        if r["namespaced"]:
            obj["metadata"]["namespace"] = "default"
        items.append(Item(version, r["kind"], r["name"], r["namespaced"], verbs, obj, custom))
    for need in (n for i in items for n in NEEDED.get(i.kind, [])):
        post(server, PLACES[need["kind"]], need)
    return items


def post(server, path, obj):
    status, answer = server.request("POST", path, json.dumps(obj), {"Content-Type": "application/json"})
    assert status == 201, answer


def mark(obj, verb):
    """Writes the verb into the object: as the label "last", or for a Project as its description."""
    part = MARKED.get(obj["kind"], "labels")
    obj["metadata"].setdefault(part, {})[MARK.get(part, "last")] = verb
    return obj


def patch_of(verb, item):
    """The body of a patch that marks the object with the verb."""
    if verb == "json":
        part = MARKED.get(item.kind, "labels")
        return [{"op": "add", "path": f"/metadata/{part}/{MARK.get(part, 'last').replace('/', '~1')}", "value": verb}]
    change = {"metadata": mark({"kind": item.kind, "metadata": {}}, verb)["metadata"]}
    if verb == "apply":
        change["metadata"]["name"] = item.object["metadata"]["name"]
        change.update(apiVersion=item.version, kind=item.kind)
    return change


def wrong(item, verb, got):
    """What is wrong with the object that the verb returned; None: nothing."""
    meta = got.get("metadata") or {}
    if "create" in item.verbs and "get" not in item.verbs:
        return None if got.get("kind") in (item.kind, ANSWERS.get((item.version, item.kind)), "Status") else f"a {got.get('kind')} was returned"
    if (got.get("kind"), got.get("apiVersion")) != (item.kind, item.version) or meta.get("name") != item.object["metadata"]["name"]:
        return f"{got.get('apiVersion')} {got.get('kind')} {meta.get('name')} was returned"
    if item.kind in COMPOSED:
        return None
    if verb in ("create", "get"):
        return None if (meta.get("labels") or {}).get("matrix") == "yes" else f"the label is not there: {meta}"
    return None if last_of(got) == verb else f"the mark is not there: {meta}"


def last_of(obj):
    """The verb with which the object was marked last."""
    part = MARKED.get(obj["kind"], "labels")
    return (obj["metadata"].get(part) or {}).get(MARK.get(part, "last"))


# ---- kubectl ----

class Kubectl:
    """One process for a verb of all kinds; the kinds of which it says nothing are asked for one by one, with the log of requests."""

    def __init__(self, name, binary, folder):
        self.name, self.binary, self.home = name, binary, folder
        self.env = dict(os.environ, HOME=str(folder))

    def connect(self, kubeconfig):
        self.env["KUBECONFIG"] = str(kubeconfig)

    def call(self, *args):
        r = subprocess.run([self.binary, *args], env=self.env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        return r.stdout, r.stderr

    @staticmethod
    def resource(item):
        group, _, version = item.version.rpartition("/")
        return f"{item.plural}.{version}.{group}" if group else item.plural

    def file(self, name, objects):
        path = self.home / f"{name}.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        return str(path)

    def command(self, verb, items):
        objects = [i.object for i in items]
        if verb == "create":
            return ["create", "-f", self.file(verb, objects), "-o", "json"]
        if verb == "get":
            return ["get", "-f", self.file(verb, objects), "-o", "json"]
        if verb in ("json", "merge", "strategic"):
            return ["patch", "-f", self.file(verb, objects), f"--type={verb}", "-p", json.dumps(patch_of(verb, items[0])), "-o", "json"]
        if verb in ("apply", "update"):
            if verb == "update":
                objects = list(self.objects(self.call(*self.command("get", items))[0]))
            objects = [mark(o, verb) for o in copy.deepcopy(objects)]
            command = ["apply", "--server-side", "--force-conflicts"] if verb == "apply" else ["replace"]
            return [*command, "-f", self.file(verb, objects), "-o", "json"]
        return ["delete", "--wait=false", "--force", "--grace-period=0", "-f", self.file(verb, objects), "-o", "name"]

    @staticmethod
    def objects(text):
        """The objects of a stream of JSON, those of lists one by one."""
        decoder, at = json.JSONDecoder(), 0
        while text[at:].strip():
            at += len(text[at:]) - len(text[at:].lstrip())
            o, at = decoder.raw_decode(text, at)
            yield from o["items"] if o.get("kind") == "List" else [o]

    def run(self, items, report):
        for verb in VERBS:
            can = [i for i in items if verb in i.verbs]
            if verb == "list":
                self.list(can, report)
            elif verb == "watch":
                self.watch(can, report)
            elif verb == "delete":
                out, err = self.call(*self.command(verb, can))
                done = set(out.split())
                for i in can:
                    group, _, version = i.version.rpartition("/")
                    singular = f"{i.kind.lower()}.{group}" if group else i.kind.lower()
                    gone = f"{singular}/{i.object['metadata']['name']}" in done
                    report(i, verb, None if gone else f"{err}\n{out}")
            else:
                self.write(verb, can, report)

    def write(self, verb, items, report):
        out, err = self.call(*self.command(verb, [i for i in items if "get" in i.verbs]))
        got = {(o.get("apiVersion"), o.get("kind"), (o.get("metadata") or {}).get("name")): o for o in self.objects(out)}
        for i in items:
            answer = got.get((i.version, i.kind, i.object["metadata"]["name"]))
            fault = wrong(i, verb, answer) if answer else "nothing was returned"
            if fault and not answer:
                # What has no name when it comes back, as a review; and what went wrong together with others.
                log_out, log = self.call(*self.command(verb, [i]), "-v=8")
                one = list(self.objects(log_out)) if log_out.strip().startswith("{") else []
                fault = wrong(i, verb, one[0]) if one else f"{fault}: {err}{log.split('goroutine ')[0][-4000:]}"
            report(i, verb, fault)

    def list(self, items, report):
        kinds = ",".join(self.resource(i) for i in items)
        out, err = self.call("get", kinds, "-n", "default", "-o", "json", "-l", "matrix=yes")
        found = {(o["apiVersion"], o["kind"], o["metadata"]["name"]) for o in self.objects(out)}
        for i in items:
            there = (i.version, i.kind, i.object["metadata"]["name"]) in found or "create" not in i.verbs or i.kind in REFUSED
            report(i, "list", err if err and not found else None if there else f"it is not in the list: {err}")

    def watch(self, items, report):
        for i in items:
            p = subprocess.Popen([self.binary, "get", self.resource(i), i.object["metadata"]["name"], "-n", "default", "-w",
                                  "--output-watch-events", "-o", "json"], env=self.env, text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
            text, decoder, fault = "", json.JSONDecoder(), None
            try:
                end, event = time.monotonic() + 20, None
                while not event and not fault:
                    ready = select.select([p.stdout], [], [], max(0, end - time.monotonic()))[0]
                    line = os.read(p.stdout.fileno(), 1 << 16).decode() if ready else ""
                    text += line
                    if not line:
                        fault = f"no event: {text} {p.stderr.read() if p.poll() is not None else ''}"
                    try:
                        event = decoder.raw_decode(text)[0]
                    except ValueError:
                        pass
            finally:
                p.kill()
                p.communicate()
            report(i, "watch", fault or wrong(i, "get", event["object"]))


# ---- the Python client ----

class Python:
    """What the two forms of the Python client have in common; watches begin where the list was made, and see the whole history."""

    def connect(self, kubeconfig):
        self.client = config.new_client_from_config(str(kubeconfig))

    def run(self, items, report):
        for i in items:
            self.kind(i, report)

    def kind(self, item, report):
        start, got = None, None
        for verb in (["list"] if "list" in item.verbs else []) + [v for v in VERBS if v in item.verbs]:
            try:
                if verb == "list":
                    version, names = self.list(item)
                    start = start or version
                    there = item.object["metadata"]["name"] in names or "create" not in item.verbs or item.kind in REFUSED
                    fault = None if there or not got else f"it is not in the list: {names}"
                elif verb == "watch":
                    fault = self.watch(item, start)
                elif verb == "delete":
                    fault = self.delete(item)
                else:
                    body = copy.deepcopy(got if verb == "update" else item.object if verb == "create" else
                                         None if verb == "get" else patch_of(verb, item))
                    if verb == "update":
                        mark(body, verb)
                    now = self.ask(item, verb, body)
                    got = now if verb != "create" or "get" in item.verbs else None
                    fault = wrong(item, verb, now)
            except (kube.ApiException, ValueError, TypeError, AttributeError, KeyError) as e:
                fault = f"{type(e).__name__}: {e}"
            report(item, verb, fault)


def history_of(events):
    """What is wrong with the events of one object from its creation until it is marked with "update"; None: nothing."""
    seen, end = [], time.monotonic() + 10
    for e in events:
        seen.append(e["type"])
        obj = e.get("raw_object") or e["object"]
        if last_of(obj) == "update":
            return None if seen[0] == "ADDED" and set(seen[1:]) == {"MODIFIED"} else f"events: {seen}"
        if time.monotonic() > end:
            break
    return f"the last change did not come: {seen}"


class PythonDynamic(Python):
    name = "python dynamic"

    def connect(self, kubeconfig):
        super().connect(kubeconfig)
        self.dynamic = dynamic.DynamicClient(self.client)

    def place(self, item):
        r = self.dynamic.resources.get(api_version=item.version, kind=item.kind, name=item.plural)
        return r, {"namespace": "default"} if item.namespaced else {}

    def ask(self, item, verb, body):
        r, where = self.place(item)
        name = item.object["metadata"]["name"]
        if verb == "create":
            return r.create(body=body, **where).to_dict()
        if verb == "get":
            return r.get(name=name, **where).to_dict()
        if verb == "update":
            return r.replace(body=body, **where).to_dict()
        more = {"field_manager": "matrix", "force_conflicts": True} if verb == "apply" else {}
        body = json.dumps(body) if verb == "apply" else body  # else this version of the client does not know how to send it
        return r.patch(body=body, name=name, content_type=PATCHES[verb], **more, **where).to_dict()

    def list(self, item):
        r, where = self.place(item)
        found = r.get(**where).to_dict()
        return found["metadata"].get("resourceVersion"), [o["metadata"]["name"] for o in found["items"]]

    def watch(self, item, start):
        r, where = self.place(item)
        return history_of(r.watch(name=item.object["metadata"]["name"], resource_version=start, timeout=10, **where))

    def delete(self, item):
        r, where = self.place(item)
        r.delete(name=item.object["metadata"]["name"], body={"gracePeriodSeconds": 0}, **where)


def snake(kind):
    return re.sub("(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", kind).lower()


class PythonTyped(Python):
    """Models where the client has them for the kind, which check that what is always there is there; else CustomObjectsApi."""
    name = "python typed"

    def method(self, item, verb):
        """The function of the kind, and the arguments before name and body."""
        verb = {"get": "read", "update": "replace"}.get(verb, "patch" if verb in PATCHES else verb)
        group, _, version = item.version.rpartition("/")
        api = "".join(p[0].upper() + p[1:] for p in (group.removesuffix(".k8s.io") or "core").split(".")) + version[0].upper() + version[1:]
        api = getattr(kube, {"RbacAuthorizationV1": "RbacAuthorizationV1"}.get(api, api) + "Api", None)
        scope = "namespaced_" if item.namespaced else ""
        if api and hasattr(api, f"{verb}_{scope}{snake(item.kind)}"):
            return getattr(api(self.client), f"{verb}_{scope}{snake(item.kind)}"), ["default"] if item.namespaced else []
        verb = {"read": "get"}.get(verb, verb)
        f = getattr(kube.CustomObjectsApi(self.client), f"{verb}_{'namespaced' if item.namespaced else 'cluster'}_custom_object")
        return f, [group, version, *(["default"] if item.namespaced else []), item.plural]

    def plain(self, item, answer):
        o = self.client.sanitize_for_serialization(answer)
        return {"apiVersion": item.version, "kind": item.kind, **o}

    def ask(self, item, verb, body):
        f, where = self.method(item, verb)
        custom = len(where) > 2 or (where and where[0] == item.version.rpartition("/")[0])
        name = [item.object["metadata"]["name"]] if verb != "create" else []
        # Models take the name last but for the body; before the namespace.
        args = [*where, *name] if custom else [*name, *where]
        if verb in PATCHES:
            more = {"field_manager": "matrix", "force": True} if verb == "apply" else {}
            body = json.dumps(body) if verb == "apply" else body
            self.client.set_default_header("Content-Type", PATCHES[verb])
            try:
                return self.plain(item, f(*args, body, **more))
            finally:
                del self.client.default_headers["Content-Type"]
        if item.kind == "Binding":  # The server answers with a Status; the client takes it for a Binding.
            return json.loads(f(*args, body, _preload_content=False).data)
        return self.plain(item, f(*args, *([body] if body is not None else [])))

    def list(self, item):
        f, where = self.method(item, "list")
        found = self.client.sanitize_for_serialization(f(*where))
        return found["metadata"].get("resourceVersion"), [o["metadata"]["name"] for o in found["items"]]

    def watch(self, item, start):
        f, where = self.method(item, "list")
        name = item.object["metadata"]["name"]
        return history_of(kubewatch.Watch().stream(f, *where, resource_version=start, timeout_seconds=10,
                                                   field_selector=f"metadata.name={name}"))

    def delete(self, item):
        f, where = self.method(item, "delete")
        custom = len(where) > 2 or (where and where[0] == item.version.rpartition("/")[0])
        name = [item.object["metadata"]["name"]]
        f(*([*where, *name] if custom else [*name, *where]), body=kube.V1DeleteOptions(grace_period_seconds=0))


# ---- programs ----

class Program:
    """A client in another language: a program that gets the work as a file, and prints what came of each verb as a line of JSON.
    Its last verbs see what the first did, so they are looked at in order."""

    def __init__(self, name, argv, folder, without=(), left_out=()):
        """'left_out': kinds, or versions and kinds ("apps/v1/Deployment"), that the client itself cannot do, and why."""
        self.name, self.argv, self.folder, self.without, self.left_out = name, argv, folder, without, dict(left_out)

    def connect(self, kubeconfig):
        self.kubeconfig = kubeconfig

    def work(self, items):
        path = self.folder / "work.json"
        path.write_text(json.dumps({"kubeconfig": str(self.kubeconfig), "items": [{
            "version": i.version, "kind": i.kind, "plural": i.plural, "namespaced": i.namespaced, "verbs": i.verbs,
            "name": i.object["metadata"]["name"], "object": i.object, "mark": (part, MARK.get(part, "last")),
            "patches": {v: patch_of(v, i) for v in PATCHES}} for i in items for part in [MARKED.get(i.kind, "labels")]]}))
        return path

    def run(self, items, report):
        r = subprocess.run([*self.argv, self.work(items)], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=900)
        by_kind = {(i.version, i.kind): i for i in items}
        assert r.stdout, f"{self.name}: {r.stderr}"
        made = set()
        for line in r.stdout.splitlines():
            said = json.loads(line)
            item, verb = by_kind[said["version"], said["kind"]], said["verb"]
            report(item, verb, said.get("error") or self.look(item, verb, said, made))

    @staticmethod
    def look(item, verb, said, made):
        if verb == "list":
            return f"it is not in the list: {said['names']}" if item in made and item.object["metadata"]["name"] not in said["names"] \
                else None
        if verb == "watch":
            return None if said["types"][:1] == ["ADDED"] and set(said["types"][1:]) == {"MODIFIED"} else f"events: {said['types']}"
        if verb == "delete":
            return None
        if verb == "create" and "get" in item.verbs:
            made.add(item)
        return wrong(item, verb, said["object"])


# ---- the matrix ----

class Matrix:
    def __init__(self):
        self.cells, self.items, self.clients, self.left_out = {}, {}, [], []

    def run(self, client, server):
        """Tries all kinds by the client, on a server of its own."""
        client.connect(server.kubeconfig)
        items = [i._replace(verbs=[v for v in i.verbs if v not in getattr(client, "without", ())]) for i in work_of(server)
                 if i.verbs != ["create"] or getattr(client, "asks", True)]
        left_out = getattr(client, "left_out", {})
        self.left_out += [f"left out: {client.name}, {kind}: {why}" for kind, why in left_out.items()]
        items = [i for i in items if i.kind not in left_out and f"{i.version}/{i.kind}" not in left_out]
        self.clients.append(client.name)

        def report(item, verb, error):
            if verb == "create" and item.kind in REFUSED:
                error = None if error and REFUSED[item.kind] in error else f"not refused: {error}"
            self.cells[client.name, item.version, item.kind, verb] = error
        for i in items:
            self.items[i.version, i.kind] = i
        client.run(items, report)
        for i in items:
            for verb in i.verbs:
                if (client.name, i.version, i.kind, verb) not in self.cells:
                    self.cells[client.name, i.version, i.kind, verb] = "the client did not say what came of it"

    def table(self):
        """Kinds by clients: a letter for each verb that went well, 'x' for one that was refused as it must be, '!' for one that
        went wrong, '-' where it does not apply."""
        width = max(len(f"{v} {k}") for v, k in self.items)
        lines = [f"verbs: {', '.join(f'{letter} {verb}' for verb, letter in VERBS.items())}",
                 " " * width + "".join(f"  {c:{max(len(c), len(VERBS))}}" for c in self.clients)]
        for version, kind in sorted(self.items):
            line = f"{version} {kind}".ljust(width)
            for c in self.clients:
                cell = "".join("-" if (key := (c, version, kind, verb)) not in self.cells else "!" if self.cells[key] else
                               "x" if verb == "create" and kind in REFUSED else letter
                               for verb, letter in VERBS.items())
                line += f"  {cell:{max(len(c), len(VERBS))}}"
            lines.append(line.rstrip())
        good = sum(not e for e in self.cells.values())
        lines.append(f"{len(self.items)} kinds, {len(self.clients)} clients, {len(self.cells)} cells: {good} good, "
                     f"{len(self.cells) - good} bad")
        return "\n".join(lines + self.left_out)

    def bad(self, client=None):
        """The cells that went wrong, of one client or of all: what was asked, and what came."""
        return "\n".join(f"{' / '.join(key)}: {error}" for key, error in sorted(self.cells.items())
                         if error and client in (None, key[0]))
