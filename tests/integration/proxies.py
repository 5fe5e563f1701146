# SPDX-License-Identifier: Apache-2.0
"""Proxies that authenticate (RequestHeaderIdentityProvider): a real apache2, their certificates, and requests as from a proxy."""
import datetime
import http.client
import pathlib
import ssl
import subprocess

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

import directory
from oauth_client import Answer

APACHE = "/usr/sbin/apache2"
MODULES = "/usr/lib/apache2/modules"
DAY = datetime.timedelta(days=1)


class Authority:
    """An authority, and the files of what it signs: self.crt, and pairs (certificate, key) of pair()."""

    def __init__(self, folder, name):
        self.folder, self.name = pathlib.Path(folder), name
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.subject = self.name_of(name)
        self.certificate = self.build(self.subject, self.key.public_key(), -DAY, 30 * DAY, authority=True)
        self.crt = str(self.folder / f"{name}.crt")
        pathlib.Path(self.crt).write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    @staticmethod
    def name_of(cn, organization=None):
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)] if organization else []
        return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, cn)])

    def build(self, subject, public, begin, end, authority=False, names=()):
        now = datetime.datetime.now(datetime.timezone.utc)
        b = x509.CertificateBuilder().subject_name(subject).issuer_name(self.subject).public_key(public)
        b = b.serial_number(x509.random_serial_number()).not_valid_before(now + begin).not_valid_after(now + end)
        b = b.add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        if not authority:
            uses = [ExtendedKeyUsageOID.SERVER_AUTH if names else ExtendedKeyUsageOID.CLIENT_AUTH]
            b = b.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        if names:
            b = b.add_extension(x509.SubjectAlternativeName([x509.DNSName(n) for n in names]), critical=False)
        return b.sign(self.key, hashes.SHA256())

    def pair(self, cn, organization=None, begin=-DAY, end=10 * DAY, names=(), key=None):
        """Files of a certificate of a client, or with names, of a server; the second one ends with the certificate."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        certificate = self.build(self.name_of(cn, organization), key.public_key(), begin, end, names=names)
        stem = f"{self.name}-{cn}".replace(":", "_").replace("*", "any")
        crt, pem = self.folder / f"{stem}.crt", self.folder / f"{stem}.pem"
        text = certificate.public_bytes(serialization.Encoding.PEM)
        crt.write_bytes(text)
        pem.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL,
                                          serialization.NoEncryption()) + text)
        return str(crt), str(pem)


def context(pair=None, version=None):
    made = ssl._create_unverified_context()
    if pair:
        made.load_cert_chain(*pair)
    if version:
        made.minimum_version = made.maximum_version = version
    return made


def request(port, path, headers=(), pair=None):
    """One request with exactly these headers (pairs, of which a name may come twice), over a connection with this certificate."""
    c = http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=context(pair))
    c.putrequest("GET", path)
    for name, value in headers:
        c.putheader(name, value)
    c.endheaders()
    answer = Answer(c.getresponse())
    c.close()
    return answer


class Apache:
    """Asks for Basic (joe, "joe's") below /challenging/ and /web/, and passes the rest of the path on to the master, with its own
    certificate and the name in X-Remote-User; below /careless/ without any question or header of its own."""

    def __init__(self, folder, pair, trusts):
        self.folder = directory.certificates(folder, "site")
        self.pair, self.trusts, self.process = pair, trusts, None
        self.ca = str(self.folder / "site.crt")
        joe = subprocess.run(["openssl", "passwd", "-apr1", "joe's"], capture_output=True, text=True, check=True).stdout.strip()
        (self.folder / "users").write_text(f"joe:{joe}\n")
        self.port, = directory.free_ports(1)
        self.url = f"https://localhost:{self.port}"

    def start(self, master_port, pair=None):
        modules = "".join(f"LoadModule {m}_module {MODULES}/mod_{m}.so\n" for m in (
            "mpm_event", "authn_core", "authn_file", "auth_basic", "authz_core", "authz_user", "ssl", "headers", "proxy",
            "proxy_http"))
        asking = "".join(f"""<Location /{path}/>
AuthType Basic
AuthName proxy
AuthBasicProvider file
AuthUserFile {self.folder}/users
Require valid-user
RequestHeader unset Authorization
RequestHeader unset X-Remote-User
RequestHeader set X-Remote-User expr=%{{REMOTE_USER}}
RequestHeader set X-Remote-Name "Joe Doe"
ProxyPass https://localhost:{master_port}/
</Location>
""" for path in ("challenging", "web"))
        (self.folder / "httpd.conf").write_text(f"""{modules}
ServerName localhost
PidFile {self.folder}/pid
ErrorLog {self.folder}/error.log
Mutex pthread
Listen 127.0.0.1:{self.port}
SSLEngine on
SSLCertificateFile {self.folder}/site-good.crt
SSLCertificateKeyFile {self.folder}/site-good.key
SSLProxyEngine on
SSLProxyCACertificateFile {self.trusts}
SSLProxyMachineCertificateFile {(pair or self.pair)[1]}
{asking}
<Location /careless/>
Require all granted
ProxyPass https://localhost:{master_port}/
</Location>
""")
        self.process = subprocess.Popen([APACHE, "-f", self.folder / "httpd.conf", "-DFOREGROUND"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        directory.wait_for_port(self.port, self.process)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait()


def provider(apache_url, ca, **more):
    """The provider as the tests have it; more keys in place of its own (None: without)."""
    keys = {"apiVersion": "v1", "kind": "RequestHeaderIdentityProvider", "clientCA": ca, "clientCommonNames": ["proxy"],
            "challengeURL": f"{apache_url}/challenging/oauth/authorize?${{query}}",
            "loginURL": f"{apache_url}/web/oauth/authorize?${{query}}",
            "headers": ["X-Remote-User", "SSO-User"], "preferredUsernameHeaders": ["X-Remote-Preferred"],
            "nameHeaders": ["X-Remote-Name"], "emailHeaders": ["X-Remote-Email"], **more}
    return {"name": "proxy", "challenge": True, "login": True, "mappingMethod": "claim",
            "provider": {k: v for k, v in keys.items() if v is not None}}
