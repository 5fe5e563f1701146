# SPDX-License-Identifier: Apache-2.0
"""LDAPPasswordIdentityProvider against a real slapd, and against servers that are down, slow or hostile."""
import base64
import hashlib
import json
import os
import socket
import subprocess
import threading
import time

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

import directory
from directory import ADMIN, ADMIN_PASSWORD, Liar, ask

KIND = "LDAPPasswordIdentityProvider"
BASE = "/ou=users,dc=example,dc=com"


@pytest.fixture(scope="module")
def slapd(tmp_path_factory):
    s = directory.Slapd(tmp_path_factory.mktemp("slapd"))
    yield s
    s.stop()


def provider(url, **keys):
    attributes = {"id": ["dn"], "preferredUsername": ["uid"], "name": ["cn"], "email": ["nothing", "mail"]}
    return {"apiVersion": "v1", "kind": KIND, "url": url, "attributes": attributes, **keys}


def test_a_person_is_proved_by_a_bind_as_the_entry(slapd):
    joe = {"outcome": "proved", "user": "uid=joe,ou=users,dc=example,dc=com", "preferred": "joe", "name": "Joe Doe",
           "email": "joe@example.com"}
    for config in (provider(slapd.ldap + BASE, ca=slapd.ca), provider(slapd.ldaps + BASE, ca=slapd.ca),
                   provider(slapd.ldap + BASE, insecure=True),
                   provider(slapd.ldap + BASE, ca=slapd.ca, bindDN=ADMIN, bindPassword=ADMIN_PASSWORD),
                   provider(slapd.ldaps + BASE + "?uid?one?(objectClass=inetOrgPerson)", ca=slapd.ca)):
        yes, no, nobody = ask(config, ("joe", "joe's password"), ("joe", "wrong"), ("nobody", "wrong"))
        assert yes == joe
        assert no["outcome"] == "refused" and "wrong password" in no["why"]
        assert nobody["outcome"] == "refused" and "no entry" in nobody["why"]


def test_attributes_and_filters_of_the_url_decide(slapd):
    by_mail = provider(slapd.ldap + BASE + "?mail", insecure=True, attributes={"id": ["jpegPhoto"]})
    joe, = ask(by_mail, ("joe@example.com", "joe's password"))
    assert joe == {"outcome": "proved", "user": "b64:_9j_AAEC"}
    filtered, = ask(provider(slapd.ldap + BASE + "?uid??(sn=Smith)", insecure=True), ("joe", "joe's password"))
    assert filtered["outcome"] == "refused"
    base, = ask(provider(slapd.ldap + BASE + "?uid?base", insecure=True), ("joe", "joe's password"))
    assert base["outcome"] == "refused"
    missing, = ask(provider(slapd.ldap + BASE, insecure=True, attributes={"id": ["title"]}), ("joe", "joe's password"))
    assert missing["outcome"] == "failed" and "attributes.id" in missing["why"]


def test_two_entries_of_a_name_are_an_error(slapd):
    twin, = ask(provider(slapd.ldap + BASE, insecure=True), ("twin", "twin"))
    assert twin["outcome"] == "failed" and "several entries" in twin["why"]


def test_an_empty_password_is_never_sent(slapd):
    """This slapd takes a bind without a password for success: the control shows that it does."""
    control = subprocess.run(["ldapwhoami", "-x", "-H", slapd.ldap, "-D", "uid=joe,ou=users,dc=example,dc=com", "-w", ""],
                             capture_output=True, text=True)
    assert control.returncode == 0, control.stderr
    empty, no_user = ask(provider(slapd.ldap + BASE, insecure=True), ("joe", ""), ("", "x"))
    assert empty["outcome"] == no_user["outcome"] == "refused"
    text = ask(provider(slapd.ldap + BASE, insecure=True, bindDN=ADMIN, bindPassword=""), ("joe", "x"))
    assert text == "bindPassword: is empty"


def test_names_cannot_change_the_filter(slapd):
    config = provider(slapd.ldap + BASE, insecure=True)
    for name in ("*", "jo*", "joe)(objectClass=*", "*)(uid=joe", "joe)(|(uid=*", "\\2a", "joe\\00", "admin)(userPassword=*"):
        answer, = ask(config, (name, "joe's password"))
        assert answer["outcome"] == "refused" and "no entry" in answer["why"], name
    ann, = ask(config, ("a*n(n)", "ann"))
    assert ann["outcome"] == "proved" and ann["name"] == "Smith, (Ann) *"


def test_certificates_are_verified(slapd, tmp_path):
    other = directory.certificates(tmp_path, "foreign")
    answer, = ask(provider(slapd.ldaps + BASE, ca=str(other / "foreign.crt")), ("joe", "joe's password"))
    assert answer["outcome"] == "failed" and "unknown authority" in answer["why"]
    answer, = ask(provider(slapd.ldap + BASE, ca=str(other / "foreign.crt")), ("joe", "joe's password"))
    assert answer["outcome"] == "failed" and "unknown authority" in answer["why"]
    assert "No such file" in ask(provider(slapd.ldaps + BASE, ca=str(tmp_path / "missing")), ("joe", "x"))


def test_a_certificate_for_another_host_is_refused(tmp_path):
    s = directory.Slapd(tmp_path, server="ca-other")
    try:
        for url in (s.ldap, s.ldaps):
            answer, = ask(provider(url + BASE, ca=s.ca), ("joe", "joe's password"))
            assert answer["outcome"] == "failed" and "is for other.example.com, not for localhost" in answer["why"]
    finally:
        s.stop()


def test_a_wrong_bind_dn_is_an_error_of_the_provider(slapd):
    answer, = ask(provider(slapd.ldap + BASE, insecure=True, bindDN=ADMIN, bindPassword="wrong"), ("joe", "joe's password"))
    assert answer["outcome"] == "failed" and answer["why"] == "bind as bindDN: invalid credentials"


def test_a_server_that_is_down_or_unknown_fails():
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    answer, = ask(provider(f"ldap://127.0.0.1:{port}{BASE}", insecure=True), ("joe", "x"))
    assert answer["outcome"] == "failed" and "refused" in answer["why"]
    answer, = ask(provider(f"ldap://no-such-host.invalid{BASE}", insecure=True), ("joe", "x"))
    assert answer["outcome"] == "failed" and "address" in answer["why"]


def test_a_silent_or_slow_server_is_left_after_the_deadline():
    def silent(c):
        while c.recv(100):
            pass

    def drip(c):
        c.recv(1000)
        for byte in b"\x30\x84\x00\x00\x10\x00" + bytes(4096):
            c.sendall(bytes([byte]))
            time.sleep(0.1)

    answers = {}
    with Liar(silent) as a, Liar(drip) as b:
        def one(name, config):
            answers[name] = ask(config, ("joe", "x"))[0]
        threads = [threading.Thread(target=one, args=x) for x in (
            ("StartTLS", provider(f"ldap://127.0.0.1:{a.port}{BASE}")),
            ("TLS", provider(f"ldaps://127.0.0.1:{a.port}{BASE}")),
            ("search", provider(f"ldap://127.0.0.1:{a.port}{BASE}", insecure=True)),
            ("drip", provider(f"ldap://127.0.0.1:{b.port}{BASE}", insecure=True)))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    for name, answer in answers.items():
        assert answer["outcome"] == "failed" and "no answer within 10000 ms" in answer["why"], name


def message(number, operation):
    body = bytes([2, 1, number]) + operation
    return bytes([0x30, len(body)]) + body


def result(tag, code=0):
    return bytes([tag, 7, 10, 1, code, 4, 0, 4, 0])


@pytest.mark.parametrize("answers, why", [
    ([b"HTTP/1.1 400 Bad Request\r\n\r\n"], "malformed LDAP"),
    ([b"\x30\x84\x7f\xff\xff\xff"], "too large"),
    ([message(9, result(0x65))], "another request"),
    ([message(1, result(0x61))], "unexpected answer"),
    ([b"\x30\x0f\x02\x01\x00\x78\x0a\x0a\x01\x34\x04\x00\x04\x03bye"], "bye"),
    ([b""], "closed"),
    # An entry with an empty name: a bind with it would prove any password.
    ([message(1, b"\x64\x04\x04\x00\x30\x00") + message(1, result(0x65))], "empty name"),
    ([message(1, result(0x65, 10))], "referral"),
    ([message(1, result(0x65, 4))], "several entries"),
])
def test_lies_of_a_server_prove_nobody(answers, why):
    def lie(c):
        for a in answers:
            c.recv(4096)
            c.sendall(a)
        c.shutdown(socket.SHUT_WR)
        c.recv(4096)

    with Liar(lie) as s:
        answer, = ask(provider(f"ldap://127.0.0.1:{s.port}{BASE}", insecure=True), ("joe", "x"))
    assert answer["outcome"] == "failed" and why in answer["why"]


def test_bytes_after_the_answer_to_starttls_are_refused():
    """Else an attacker's answers would be taken for the server's, which come encrypted."""
    def inject(c):
        c.recv(4096)
        c.sendall(message(1, result(0x78)) + message(2, result(0x61)))
        c.recv(4096)

    with Liar(inject) as s:
        answer, = ask(provider(f"ldap://127.0.0.1:{s.port}{BASE}"), ("joe", "x"))
    assert answer["outcome"] == "failed" and "not encrypted" in answer["why"]


def test_a_refusal_of_starttls_sends_no_password():
    seen = []

    def refuse(c):
        seen.append(c.recv(4096))
        c.sendall(message(1, result(0x78, 2)))
        seen.append(c.recv(4096))

    with Liar(refuse) as s:
        answer, = ask(provider(f"ldap://127.0.0.1:{s.port}{BASE}", bindDN=ADMIN, bindPassword="secret"), ("joe", "x"))
    assert answer["outcome"] == "failed" and "StartTLS: protocol error" in answer["why"]
    assert b"secret" not in b"".join(seen)


@pytest.mark.parametrize("change, text", [
    ({"url": "http://h/"}, "url: "),
    ({"url": "ldap://h/nonsense"}, "url: "),
    ({"nonsense": 1}, "nonsense: unknown key"),
    ({"insecure": "yes"}, "insecure: must be true or false"),
    ({"insecure": True, "ca": "/x"}, "ca: "),
    ({"insecure": True, "url": "ldaps://h/"}, "insecure: "),
    ({"bindDN": "cn=a"}, "bindDN: needs bindPassword"),
    ({"attributes": {}}, "attributes: id: is required"),
    ({"attributes": {"id": ["a b"]}}, "attributes.id: "),
    ({"bindDN": "cn=a", "bindPassword": {"file": "/a", "env": "B"}}, "bindPassword: must be"),
])
def test_wrong_configurations_name_the_key(change, text):
    assert text in ask({**provider("ldap://h/"), **change})


def test_secrets_come_from_files_and_the_environment(slapd, tmp_path, monkeypatch):
    (tmp_path / "secret").write_text(ADMIN_PASSWORD + "\n")
    monkeypatch.setenv("BIND_SECRET", ADMIN_PASSWORD)
    for secret in ({"value": ADMIN_PASSWORD}, {"file": str(tmp_path / "secret")}, {"env": "BIND_SECRET"}):
        answer, = ask(provider(slapd.ldap + BASE, insecure=True, bindDN=ADMIN, bindPassword=secret), ("joe", "joe's password"))
        assert answer["outcome"] == "proved", json.dumps(answer)
    assert "NO_SUCH" in ask(provider("ldap://h/", bindDN=ADMIN, bindPassword={"env": "NO_SUCH"}))


def encrypted(plain, key):
    """A secret as OpenShift encrypts it: PEM with the headers of RFC 1421, AES-256-CBC, the key by MD5 as OpenSSL derives it."""
    iv, derived = os.urandom(16), b""
    while len(derived) < 32:
        derived += hashlib.md5(derived[-16:] + key + iv[:8]).digest()
    data = plain.encode()
    data += bytes([16 - len(data) % 16]) * (16 - len(data) % 16)
    cipher = Cipher(algorithms.AES(derived), modes.CBC(iv)).encryptor()
    body = base64.encodebytes(cipher.update(data) + cipher.finalize()).decode()
    return (f"-----BEGIN ENCRYPTED STRING-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,{iv.hex().upper()}\n\n{body}"
            "-----END ENCRYPTED STRING-----\n")


def test_encrypted_secrets_are_read_with_their_key(slapd, tmp_path):
    def key_file(name, key):
        text = f"-----BEGIN ENCRYPTING KEY-----\n{base64.b64encode(key).decode()}\n-----END ENCRYPTING KEY-----\n"
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    key = b"\0" + os.urandom(31)
    right, wrong = key_file("key", key), key_file("wrong", os.urandom(32))
    (tmp_path / "secret").write_text(encrypted(ADMIN_PASSWORD, key))
    secret = {"file": str(tmp_path / "secret"), "keyFile": right}
    config = provider(slapd.ldap + BASE, insecure=True, bindDN=ADMIN, bindPassword=secret)
    assert ask(config, ("joe", "joe's password"))[0]["outcome"] == "proved"
    value = {"value": encrypted(ADMIN_PASSWORD, key), "keyFile": right}
    assert ask({**config, "bindPassword": value}, ("joe", "joe's password"))[0]["outcome"] == "proved"
    assert "ENCRYPTED STRING" in ask({**config, "bindPassword": {"value": "plain", "keyFile": right}})
    assert "ENCRYPTING KEY" in ask({**config, "bindPassword": {**secret, "keyFile": secret["file"]}})
    # With another key the padding is wrong, or in 1 of 256 tries the text is.
    answer = ask({**config, "bindPassword": {**secret, "keyFile": wrong}}, ("joe", "joe's password"))
    assert "cannot be decrypted" in answer if isinstance(answer, str) else answer[0]["outcome"] == "failed"
