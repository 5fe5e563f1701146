# SPDX-License-Identifier: Apache-2.0
"""Templates of the project openshift as containers, in images made of this machine's packages."""
import json
import pathlib
import subprocess

import pytest

import containerd as ctd
import needs
from lab import run, wait_for

ROOT = pathlib.Path(__file__).resolve().parents[2]
API = "template.openshift.io/v1"


@pytest.fixture(scope="module")
def own(make_lab):
    ctd.needed()
    lab = make_lab("tt", nodes=1, containers=True)
    lab.project("red")
    yield lab
    lab.down(check=False)


@pytest.fixture(scope="module")
def images(own, tmp_path_factory):
    """Imports an image that tools/images makes, of the machine's packages."""
    folder, endpoint = tmp_path_factory.mktemp("images"), own.node("node1")["runtimeEndpoint"].removeprefix("unix://")

    def get(name):
        listed = dict(line.split(": ", 1) for line in run([ROOT / "tools/images", "--list"]).stdout.splitlines())
        for package in listed[name].split(", "):
            r = subprocess.run(["dpkg-query", "-W", "-f=${db:Status-Status}", package], stdout=subprocess.PIPE, text=True)
            if r.stdout != "installed":
                needs.missing(package)
        run([ROOT / "tools/images", "--output", folder, name])
        run(["ctr", "-a", endpoint, "-n", "k8s.io", "images", "import", "--no-unpack", folder / f"{name}.tar"])
    return get


def instance(own, name, **parameters):
    """Makes an instance of a template as a member of the project would, and waits until it is ready."""
    t = json.loads(own.kubectl("get", "template", name, "-n", "openshift", "-o", "json").stdout)
    for p in t["parameters"]:
        if p["name"] in parameters:
            p["value"] = parameters[p["name"]]
    own.kubectl("create", "-n", "red", "-f", "-", input=json.dumps({
        "apiVersion": API, "kind": "TemplateInstance", "metadata": {"name": name},
        "spec": {"template": {**t, "metadata": {"name": name}}}}))

    def conditions():
        o = json.loads(own.kubectl("get", "templateinstance", name, "-n", "red", "-o", "json").stdout)
        return {c["type"]: c for c in o["status"].get("conditions", [])}
    wait_for(f"{name} to be ready or to fail", lambda: any(c["status"] == "True" for c in conditions().values()))
    assert conditions()["Ready"]["status"] == "True", conditions()
    return t


def end(own, name):
    own.kubectl("delete", "templateinstance", name, "-n", "red")
    try:
        wait_for("the pods to go", lambda: not json.loads(own.kubectl("get", "pods", "-n", "red", "-o", "json").stdout)["items"], 15)
    except AssertionError:
        print(own.kubectl("get", "pods", "-n", "red", "-o", "json").stdout)
        raise


def fetch(own, url):
    """The answer, by a pod of the project."""
    own.kubectl("run", "fetch", "-n", "red", "--image=localhost/busybox:1", "--restart=Never", "--", "wget", "-qO-", url)
    try:
        own.kubectl("wait", "-n", "red", "--for=jsonpath={.status.phase}=Succeeded", "pod/fetch", "--timeout=40s")
        return own.kubectl("logs", "-n", "red", "fetch").stdout
    finally:
        own.kubectl("delete", "pod", "-n", "red", "fetch", "--wait=true", "--grace-period=1")


def test_an_application_of_three_parts(own):
    instance(own, "three-parts", NAME="app", MESSAGE="hello from the back")
    logs = own.kubectl("logs", "-n", "red", "job/app-check").stdout
    assert logs.startswith("front app-front-") and "back: hello from the back" in logs
    assert "hello from the back" in fetch(own, "http://app-front:8080/")
    end(own, "three-parts")


@pytest.mark.parametrize("name, answer", [("static-web", "<h1>It works</h1>"), ("node-web", "node1")])
def test_web_servers_of_busybox(own, name, answer):
    instance(own, name)
    if name == "node-web":
        own.kubectl("rollout", "status", "-n", "red", "daemonset/node-web", "--timeout=40s")
    assert fetch(own, f"http://{name}:8080/").strip() == answer
    end(own, name)


def test_work_in_parallel(own):
    instance(own, "parallel-work", PARTS="3", COMMAND='echo "part $JOB_COMPLETION_INDEX"')
    logs = own.kubectl("logs", "-n", "red", "-l", "job-name=parallel-work").stdout
    assert sorted(logs.splitlines()) == ["part 0", "part 1", "part 2"]
    end(own, "parallel-work")


def test_a_python_program(own, images):
    images("python")
    instance(own, "python-web")
    assert fetch(own, "http://python-web:8080/").startswith("Python 3.")
    end(own, "python-web")


def test_nginx(own, images):
    images("nginx")
    instance(own, "nginx")
    assert "<h1>nginx</h1>" in fetch(own, "http://nginx:8080/")
    end(own, "nginx")


def test_redis(own, images):
    images("redis")
    instance(own, "redis-ephemeral", REDIS_PASSWORD="secret")
    answer = own.kubectl("exec", "-n", "red", "deploy/redis", "--", "redis-cli", "-a", "secret", "ping").stdout
    assert answer.strip() == "PONG"
    end(own, "redis-ephemeral")


def test_postgresql(own, images):
    images("postgresql")
    instance(own, "postgresql-ephemeral", POSTGRESQL_USER="eve", POSTGRESQL_PASSWORD="secret", POSTGRESQL_DATABASE="shop")
    answer = own.kubectl("exec", "-n", "red", "deploy/postgresql", "--", "sh", "-c",
                         "PGPASSWORD=secret /usr/lib/postgresql/*/bin/psql -h 127.0.0.1 -U eve shop -Atc 'select current_database()'").stdout
    assert answer.strip() == "shop"
    end(own, "postgresql-ephemeral")
