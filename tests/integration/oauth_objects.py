# SPDX-License-Identifier: Apache-2.0
"""Users, clients and OAuth tokens for tests: the objects that the OAuth server would make."""
import base64
import hashlib
import os

OAUTH = "/apis/oauth.openshift.io/v1"
TOKENS, CODES = f"{OAUTH}/oauthaccesstokens", f"{OAUTH}/oauthauthorizetokens"
CLIENTS, ALLOWED, OWN = f"{OAUTH}/oauthclients", f"{OAUTH}/oauthclientauthorizations", f"{OAUTH}/useroauthaccesstokens"
USERS, IDENTITIES = "/apis/user.openshift.io/v1/users", "/apis/user.openshift.io/v1/identities"
CLIENT = "shop"


def name_of(token):
    digest = hashlib.sha256(token.removeprefix("sha256~").encode()).digest()
    return "sha256~" + base64.urlsafe_b64encode(digest).decode().rstrip("=")


def make_user(c, name):
    return c.admin("POST", USERS, {"metadata": {"name": name}}, 201)["metadata"]["uid"]


def make_client(c, name=CLIENT):
    c.admin("POST", CLIENTS, {"metadata": {"name": name}, "grantMethod": "auto", "secret": "the-clients-secret"}, 201)


def make_token(c, user, uid, scopes=("user:full",), **more):
    """A token, as the OAuth server makes them: the object has its hash for a name."""
    token = "sha256~" + base64.urlsafe_b64encode(b"\0" + os.urandom(31)).decode().rstrip("=")
    c.admin("POST", TOKENS, {"metadata": {"name": name_of(token)}, "userName": user, "userUID": uid, "clientName": CLIENT,
                             "redirectURI": "https://shop.example.com/", "expiresIn": 86400, "scopes": list(scopes), **more}, 201)
    return token
