# SPDX-License-Identifier: Apache-2.0
"""Credentials that are forged, over, for somebody else, or guessed: each is 401, and leaves no trace of itself in a log."""
import base64
import hashlib
import hmac
import json
import time

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from lab import wait_for
from people import RED, People
from test_auth import node_token, old_certificate
from test_tls import make_pki


@pytest.fixture(scope="module")
def c(tmp_path_factory):
    tmp = tmp_path_factory.mktemp("tokens")
    people = People(str(tmp), auditConfig={"auditFilePath": str(tmp / "audit.log")})
    people.audit = tmp / "audit.log"
    people.good = people.token("red", "default")
    people.key = serialization.load_pem_private_key((people.pki / "sa.key").read_bytes(), None)
    yield people
    people.stop()


@pytest.fixture(autouse=True)
def alive(c):
    yield
    assert c.proc.poll() is None, c.text()[-4000:]


def b64(data):
    if not isinstance(data, bytes):
        data = json.dumps(data).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def parts(token):
    return [json.loads(base64.urlsafe_b64decode(p + "==")) for p in token.split(".")[:2]]


def sign(key, header, claims):
    """A JWT by the key: ES256 or RS256, whatever the header says."""
    body = f"{header if isinstance(header, str) else b64(header)}.{claims if isinstance(claims, str) else b64(claims)}"
    if isinstance(key, rsa.RSAPrivateKey):
        return f"{body}.{b64(key.sign(body.encode(), PKCS1v15(), hashes.SHA256()))}"
    r, s = decode_dss_signature(key.sign(body.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{body}.{b64(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def good_for(c, token):
    return c.ask(token, "GET", f"{RED}/pods")[0] in (200, 403)


def test_a_token_that_the_tests_sign_with_the_servers_key_is_good(c):
    """The control: it is the claim that is wrong below, not the way it is signed."""
    header, claims = parts(c.good)
    assert good_for(c, sign(c.key, header, claims))
    assert good_for(c, c.good)


def now():
    return int(time.time())


CLAIMS = {
    "over": lambda x: {"exp": now() - 60}, "over by a second": lambda x: {"exp": now() - 1, "iat": now() - 3600,
        "nbf": now() - 3600},
    "over since ever": lambda x: {"exp": 0}, "negative end": lambda x: {"exp": -1}, "end as text": lambda x: {"exp": str(x["exp"])},
    "end as a list": lambda x: {"exp": [x["exp"]]}, "not yet": lambda x: {"nbf": now() + 600, "iat": now() + 600},
    "not yet as text": lambda x: {"nbf": "0"},
    "other issuer": lambda x: {"iss": "https://evil.example.com"}, "no issuer": lambda x: {"iss": None},
    "issuer's list": lambda x: {"iss": [x["iss"]]},
    "issuer with a slash": lambda x: {"iss": x["iss"] + "/"},
    "other audience": lambda x: {"aud": ["vault"]}, "no audience": lambda x: {"aud": None}, "empty audience": lambda x: {"aud": []},
    "audience's prefix": lambda x: {"aud": [x["aud"][0][:-1]]}, "audience in letters": lambda x: {"aud": [x["aud"][0].upper()]},
    "other account": lambda x: {"sub": "system:serviceaccount:blue:default"}, "admin's name": lambda x: {"sub": "system:admin"},
    "masters": lambda x: {"sub": "system:masters"}, "no subject": lambda x: {"sub": None},
    "other namespace": lambda x: {"kubernetes.io": {**x["kubernetes.io"], "namespace": "blue"}},
    "other uid": lambda x: {"kubernetes.io": {**x["kubernetes.io"], "serviceaccount": {**x["kubernetes.io"]["serviceaccount"],
        "uid": "x"}}},
    "other name": lambda x: {"kubernetes.io": {**x["kubernetes.io"], "serviceaccount": {**x["kubernetes.io"]["serviceaccount"],
        "name": "builder"}}},
    "no account": lambda x: {"kubernetes.io": {"namespace": "red"}}, "no claims of ours": lambda x: {"kubernetes.io": None},
    "a pod that is not": lambda x: {"kubernetes.io": {**x["kubernetes.io"], "pod": {"name": "nosuch", "uid": "x"}}},
    "a secret that is not": lambda x: {"kubernetes.io": {**x["kubernetes.io"], "secret": {"name": "nosuch", "uid": "x"}}},
    "a node that is not": lambda x: {"kubernetes.io": {**x["kubernetes.io"], "node": {"name": "nosuch", "uid": "x"}}},
}


@pytest.mark.parametrize("what", CLAIMS)
def test_a_rightly_signed_token_with_a_wrong_claim_is_refused(c, what):
    header, claims = parts(c.good)
    changed = {k: v for k, v in {**claims, **CLAIMS[what](claims)}.items() if v is not None}
    token = sign(c.key, header, changed)
    assert not good_for(c, token)
    assert not c.review(token)["authenticated"]


def test_algorithms_and_keys_of_the_tokens_choice_are_refused(c):
    header, claims = parts(c.good)
    public = (c.key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo))
    other, other_rsa = ec.generate_private_key(ec.SECP256R1()), rsa.generate_private_key(65537, 2048)
    body = c.good.split(".")[1]
    tokens = {}
    for alg in ("none", "None", "NONE", "nOnE", "", "HS256", "HS384", "RS256", "ES384", "ES512", "PS256", "EdDSA", "ES256K", None,
                5, ["ES256"]):
        h = {**header, "alg": alg}
        tokens[f"{alg} without signature"] = f"{b64(h)}.{body}."
        tokens[f"{alg} with the old one"] = f"{b64(h)}.{body}.{c.good.split('.')[2]}"
        for name, secret in (("key", public), ("DER", public.strip()), ("nothing", b"")):
            mac = hmac.new(secret, f"{b64(h)}.{body}".encode(), hashlib.sha256).digest()
            tokens[f"{alg} by HMAC with the public {name}"] = f"{b64(h)}.{body}.{b64(mac)}"
    jwk = {"kty": "EC", "crv": "P-256", "x": b64(other.public_key().public_numbers().x.to_bytes(32, "big")),
           "y": b64(other.public_key().public_numbers().y.to_bytes(32, "big"))}
    for extra in ({}, {"jwk": jwk}, {"jku": f"https://127.0.0.1:{c.port}/openid/v1/jwks"}, {"x5u": "http://198.51.100.1/"},
                  {"kid": "../../etc/passwd"},
                  {"kid": "' OR 1=1"}, {"kid": ""}, {"kid": None}, {"crit": ["exp"]}, {"b64": False, "crit": ["b64"]}):
        tokens[f"another key with {extra}"] = sign(other, {**header, **extra}, claims)
        tokens[f"an RSA key with {extra}"] = sign(other_rsa, {**header, "alg": "RS256", **extra}, claims)
    tokens["wrong kid"] = sign(c.key, {**header, "kid": "x"}, claims)
    wrong = [name for name, token in tokens.items() if good_for(c, token) and name != "wrong kid"]
    assert wrong == []


def test_signatures_that_are_odd_are_refused(c):
    """Zero, of the group's order, cut, longer, in another encoding; and bodies that were changed in a letter."""
    head, body, signature = c.good.split(".")
    raw = base64.urlsafe_b64decode(signature + "==")
    order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551
    r, s = raw[:32], raw[32:]
    n = order.to_bytes(32, "big")
    odd = {"zeroes": bytes(64), "r zero": bytes(32) + s, "s zero": r + bytes(32), "order": n + n, "ones": b"\xff" * 64,
           "cut": raw[:63],
           "longer": raw + b"\0", "padded": b"\0" + raw, "empty": b"", "swapped": s + r, "half": r,
           "DER": b"\x30\x44\x02\x20" + r + b"\x02\x20" + s}
    for name, data in odd.items():
        assert not good_for(c, f"{head}.{body}.{b64(data)}"), name
    for token in (f"{head}.{body}.{signature}=", f"{head}.{body}.{signature}==", f"{head}.{body}.{signature}.",
                  f"{head}.{body}.{signature}.x",
                  f".{head}.{body}.{signature}", f"{head}.{body}.{signature} ", f"{head}..{signature}", f".{body}.{signature}",
                  "..", "...", ".", "x",
                  f"{head}.{body}", f"{head}={'.'}{body}.{signature}", c.good.replace(".", ",")):
        assert c.ask(None, "GET", "/version", headers={"Authorization": f"Bearer {token}"})[0] in (400,
            401) or token.strip() == c.good
    for at in range(0, len(c.good), 17):
        if c.good[at] != ".":
            changed = c.good[:at] + ("A" if c.good[at] != "A" else "B") + c.good[at + 1:]
            assert not good_for(c, changed) or at >= len(c.good) - 1


def test_claims_in_odd_json_are_refused(c):
    header, claims = parts(c.good)
    text = json.dumps(claims)
    for name, body in {"twice": text[:-1] + ',"sub":"system:serviceaccount:kube-system:default"}', "cut": text[:-3],
                       "deep": "[" * 5000,
                       "a list": f"[{text}]", "text": json.dumps(text), "behind": text + "{}", "nothing": "", "null": "null",
                       "big": '{"exp":1e999}',
                       "huge": json.dumps({**claims, "x": "y" * 200000}), "NUL": text.replace('"red"', '"red\\u0000"')}.items():
        assert not good_for(c, sign(c.key, header, b64(body.encode()))), name


def test_bootstrap_tokens_cannot_be_guessed_by_what_they_answer(c):
    token = node_token(c)
    ident, secret = token.split(".")
    for wrong in (f"{ident}.{secret[:-1]}x", f"{ident}.{secret[:-1]}", f"{ident}.{secret}x", f"{ident}.", f".{secret}",
                  f"{ident[:-1]}x.{secret}",
                  f"{ident.upper()}.{secret}", f"{ident}.{secret.upper()}", f"{ident}.{'0' * 16}", f"{ident}.%s",
                  f"{ident}.{secret}.{secret}",
                  "../../x.0123456789abcdef", "own.0123456789abcdef"):
        status, answer = c.ask(wrong, "GET", "/version")
        assert status == 401 and ident not in json.dumps(answer), wrong
    assert c.ask(token, "GET", "/version")[0] == 200
    c.tenet("token", "delete", ident)
    assert c.ask(token, "GET", "/version")[0] == 401


def test_other_schemes_are_refused(c):
    basic = base64.b64encode(b"system:admin:x").decode()
    for header in (f"Basic {basic}", "Basic", "Negotiate YQ==", "Digest username=x", f"bearer{c.good}", f"Bearer\t{c.good}\t",
                   "Bearer", "Bearer ", "",
                   f"Token {c.good}", f"Bearer {c.good},{c.good}", f"Bearer {c.good} x", "AWS4-HMAC-SHA256 x"):
        status, _ = c.ask(None, "GET", f"{RED}/pods", headers={"Authorization": header})
        assert status in (400, 401, 403) or header.split()[-1] == c.good, header
    for header in ("X-Remote-User", "X-Forwarded-User", "X-Remote-Group", "Remote-User", "X-Access-Token", "Cookie"):
        assert c.ask(None, "GET", "/api/v1/nodes", headers={header: "system:admin"})[0] == 403, header


def test_a_wrong_credential_is_not_mended_by_a_right_one(c):
    """Nor does a certificate of a user help a token that is wrong, or two tokens each other."""
    admin = c.user("root", "system:masters")
    status, _ = c.ask(admin, "GET", "/api/v1/nodes", headers={"Authorization": "Bearer wrong"})
    assert status in (200, 401)  # the certificate decides, or the request is refused: the token makes nobody else of root
    for a, b in (("wrong", c.good), (c.good, "wrong")):
        assert c.ask(a, "GET", f"{RED}/pods?access_token={b}")[0] in (400, 401, 403)
    assert c.whoami(c.good)["username"] == "system:serviceaccount:red:default"


def test_certificates_of_others_and_old_ones_do_not_get_in(c, tmp_path):
    other = make_pki(tmp_path, "other", "/O=system:masters/CN=root")
    same_name = make_pki(tmp_path, "same", "/CN=tenet-ca")
    forged = make_pki(tmp_path, "forged", "/O=system:masters/CN=root", ca=same_name)
    by_leaf = make_pki(tmp_path, "leaf", "/O=system:masters/CN=root", ca=(str(c.dir / "user-ed.crt"), str(c.dir / "user-ed.key")))
    crt, key = old_certificate(tmp_path, c.pki, "/O=system:masters/CN=root", time.time() - 60)
    (tmp_path / "over.crt").write_bytes(crt)
    (tmp_path / "over.key").write_bytes(key)
    serving = make_pki(tmp_path, "serving", "/O=system:masters/CN=root", ca=c.ca,
                       ext="basicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n")
    for pair in (other, forged, by_leaf, (str(tmp_path / "over.crt"), str(tmp_path / "over.key")), serving):
        try:
            status, _ = c.ask(c.context(pair), "GET", "/api/v1/nodes")
        except OSError:
            continue  # the handshake ended
        assert status in (401, 403), pair
    assert c.ask(c.user("root", "system:masters"), "GET", "/api/v1/nodes")[0] == 200


def test_tokens_do_not_get_into_logs(c):
    """In every spelling of the query's name; in headers; in the body of a review; as a path."""
    secret = c.token("red", "builder")
    mark = secret.split(".")[2]
    for query in ("access_token", "%61ccess_token", "access%5Ftoken", "access_toke%6e", "ACCESS_TOKEN", "x=1&access_token",
                  "access_token=&access_token",
                  "a%26access_token"):
        c.ask(None, "GET", f"/version?{query}={secret}")
        c.ask(None, "GET", f"{RED}/pods?watch=0&{query}={secret}&limit=1")
    c.ask(secret, "GET", f"{RED}/pods", headers={"User-Agent": "x"})
    c.review(secret)
    c.admin("GET", "/version", headers={"Audit-ID": "last-one"})
    wait_for("the audit log", lambda: "last-one" in c.audit.read_text())
    assert "access_token" in c.audit.read_text()
    shown = [x for x in c.audit.read_text().splitlines() if mark in x]
    unknown = [x for x in shown if not any(q in x for q in ("ACCESS_TOKEN=", "a%26access_token="))]
    assert unknown == [], "it is a token there, however it is spelled"
    assert mark not in c.text()
    assert c.audit.stat().st_mode & 0o077 == 0


def test_revoked_tokens_end_at_once(c):
    """With their account, its uid, the secret, the pod and the namespace."""
    c.namespace("gone")
    tokens = {"namespace": c.token("gone", "default"), "account": c.token("gone", "builder")}
    assert all(c.ask(t, "GET", "/version")[0] == 200 for t in tokens.values())
    c.admin("DELETE", "/api/v1/namespaces/gone/serviceaccounts/builder")
    assert c.ask(tokens["account"], "GET", "/version")[0] == 401
    c.admin("DELETE", "/api/v1/namespaces/gone")
    wait_for("401", lambda: c.ask(tokens["namespace"], "GET", "/version")[0] == 401)
    c.admin("POST", "/api/v1/namespaces", {"metadata": {"name": "again"}}, 201)
    assert c.ask(tokens["namespace"], "GET", "/version")[0] == 401
