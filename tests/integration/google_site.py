# SPDX-License-Identifier: Apache-2.0
"""Logins by GoogleIdentityProvider, whose issuer is fixed: accounts.google.com is this program.

    unshare -mn python3 google_site.py FOLDER CASES

CASES are claims of id_tokens, as a JSON list.  Prints a line of JSON for each outcome with the hosted domain example.com, then one
without a hosted domain, then the URL to which the browser was sent.
"""
import json
import os
import pathlib
import subprocess
import sys

from proxies import Authority
from test_identity_openid import CLIENT, SECRET, Provider

HOST = "accounts.google.com"


def main():
    folder = pathlib.Path(sys.argv[1])
    authority = Authority(folder, "google")
    (folder / "hosts").write_text(f"127.0.0.1 localhost {HOST}\n")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["mount", "--bind", folder / "hosts", "/etc/hosts"], check=True)
    os.environ["SSL_CERT_FILE"] = authority.crt
    crt, pem = authority.pair("accounts", names=[HOST])
    op = Provider(folder, port=443, issuer=f"https://{HOST}", pair=(crt, pem))
    config = {"kind": "GoogleIdentityProvider", "clientID": CLIENT, "clientSecret": SECRET, "hostedDomain": "example.com"}
    for claims in json.loads(sys.argv[2]):
        op.claims = claims
        print(json.dumps(op.login(config)))
    url = op.url
    print(json.dumps(op.login({k: v for k, v in config.items() if k != "hostedDomain"})))
    print(json.dumps(url))
    op.close()


main()
