# SPDX-License-Identifier: Apache-2.0
"""Peers of identity providers: a real slapd, web servers that lie, and the program that asks a provider."""
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import threading
import time

from ha import free_ports

BUILD = pathlib.Path(os.environ.get("TENET_BUILD", pathlib.Path(__file__).parents[2] / "build"))
ASK = BUILD / "tests/unit/ask_identity"
SLAPD = "/usr/sbin/slapd"
ADMIN, ADMIN_PASSWORD = "cn=admin,dc=example,dc=com", "admin secret"


def ask(config, *questions, timeout=60):
    """Opens the provider and asks it (name, password) one after another: a list of answers; text when it does not open."""
    lines = "".join(json.dumps({"user": u, "password": p}) + "\n" for u, p in questions)
    path = f"/proc/self/fd/{os.memfd_create('config')}"
    with open(path, "w") as f:
        json.dump({"provider": config}, f)
    fd = int(path.rsplit("/", 1)[1])
    try:
        r = subprocess.run([ASK, path], input=lines, capture_output=True, text=True, timeout=timeout, pass_fds=[fd])
    finally:
        os.close(fd)
    if r.returncode == 1 and not r.stdout:
        return r.stderr.strip()
    assert r.returncode == 0, r.stderr
    return [json.loads(line) for line in r.stdout.splitlines()]


def certificates(directory, name="ca"):
    """An authority, a certificate of it for localhost and 127.0.0.1, and one that has expired: paths by name."""
    d = pathlib.Path(directory)

    def openssl(*args):
        subprocess.run(["openssl", *args], check=True, capture_output=True, cwd=d)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *key, "-subj", f"/CN={name}", "-days", "30", "-keyout", f"{name}.key", "-out", f"{name}.crt")
    for who, names in (("good", "DNS:localhost,IP:127.0.0.1"), ("other", "DNS:other.example.com")):
        openssl("req", *key, "-subj", f"/CN={who}", "-keyout", f"{name}-{who}.key", "-out", f"{name}-{who}.csr")
        (d / "ext").write_text(f"subjectAltName={names}\n")
        openssl("x509", "-req", "-in", f"{name}-{who}.csr", "-CA", f"{name}.crt", "-CAkey", f"{name}.key", "-CAcreateserial",
                "-days", "30", "-extfile", "ext", "-out", f"{name}-{who}.crt")
    return d


PEOPLE = """\
dn: dc=example,dc=com
objectClass: dcObject
objectClass: organization
dc: example
o: Example

dn: ou=users,dc=example,dc=com
objectClass: organizationalUnit
ou: users

dn: ou=groups,dc=example,dc=com
objectClass: organizationalUnit
ou: groups

dn: uid=joe,ou=users,dc=example,dc=com
objectClass: inetOrgPerson
uid: joe
cn: Joe Doe
sn: Doe
mail: joe@example.com
userPassword: joe's password
jpegPhoto:: /9j/AAEC

dn: cn=Twin,ou=users,dc=example,dc=com
objectClass: inetOrgPerson
uid: twin
cn: Twin
sn: Twin
userPassword: twin

dn: cn=Other Twin,ou=users,dc=example,dc=com
objectClass: inetOrgPerson
uid: twin
cn: Other Twin
sn: Twin
userPassword: twin

dn: cn=Smith\\, (Ann) *,ou=users,dc=example,dc=com
objectClass: inetOrgPerson
uid: a*n(n)
cn: Smith, (Ann) *
sn: Smith
userPassword: ann

dn: uid=nopass,ou=users,dc=example,dc=com
objectClass: inetOrgPerson
uid: nopass
cn: No Password
sn: Password
"""


class Slapd:
    """A slapd with 'ldif' below 'directory', on loopback: .ldap and .ldaps are its URLs without a path."""

    def __init__(self, directory, ldif=PEOPLE, server="ca-good", extra=""):
        self.dir = pathlib.Path(directory)
        self.process = None
        certs = certificates(self.dir)
        self.ca = str(certs / "ca.crt")
        (self.dir / "db").mkdir()
        schema = "".join(f"include /etc/ldap/schema/{s}.schema\n" for s in ("core", "cosine", "nis", "inetorgperson"))
        (self.dir / "slapd.conf").write_text(
            f"{schema}modulepath /usr/lib/ldap\nmoduleload back_mdb\nmoduleload memberof\npidfile {self.dir}/pid\n"
            # Binds with a name and no password succeed here, as on many servers: no provider may send one.
            "allow bind_anon_dn bind_anon_cred bind_v2\n"
            f"TLSCACertificateFile {self.ca}\nTLSCertificateFile {certs}/{server}.crt\nTLSCertificateKeyFile {certs}/{server}.key\n"
            "database mdb\nmaxsize 16777216\nsuffix dc=example,dc=com\n"
            f'rootdn "{ADMIN}"\nrootpw "{ADMIN_PASSWORD}"\ndirectory {self.dir}/db\n{extra}\n'
            "access to attrs=userPassword by anonymous auth by * none\naccess to * by * read\n")
        (self.dir / "data.ldif").write_text(ldif)
        subprocess.run([shutil.which("slapadd", path="/usr/sbin:/sbin"), "-f", self.dir / "slapd.conf", "-l", self.dir / "data.ldif"],
                       check=True, capture_output=True)
        self.start()

    def start(self):
        plain, tls = free_ports(2)
        self.ldap, self.ldaps = f"ldap://localhost:{plain}", f"ldaps://localhost:{tls}"
        self.port, self.tls_port = plain, tls
        self.process = subprocess.Popen([SLAPD, "-d", "0", "-f", self.dir / "slapd.conf", "-h",
                                         f"ldap://127.0.0.1:{plain} ldaps://127.0.0.1:{tls}"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for port in (plain, tls):
            wait_for_port(port, self.process)

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None


def wait_for_port(port, process=None, seconds=30):
    end = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert time.monotonic() < end, f"nothing listens on {port}"
            assert process is None or process.poll() is None, "the server has ended"
            time.sleep(0.02)


class Liar:
    """A TCP server on loopback that gives each connection to 'fn(socket)', in a thread of its own."""

    def __init__(self, fn, tls=None):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.connections = []
        context = None
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)

        def serve(c):
            try:
                fn(context.wrap_socket(c, server_side=True) if context else c)
            except OSError:
                pass

        def accept():
            while True:
                try:
                    c, _ = self.socket.accept()
                except OSError:
                    return
                self.connections.append(c)
                threading.Thread(target=serve, args=(c,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()

    def close(self):
        self.socket.close()
        for c in self.connections:
            try:
                c.close()
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.close()
