// SPDX-License-Identifier: Apache-2.0
// npm's oidc-provider as an OpenID Connect server over TLS.
//
//     node oidc_server.mjs CONFIG-FILE
//
// The file, JSON, has port, cert, key, keys (JWKs with private parts), clientID, clientSecret, redirectURI.  Its own pages for logins
// take every name with the password "open sesame".  Prints "ready" when it serves.
import { createServer } from 'node:https';
import { readFileSync } from 'node:fs';
import Provider from 'oidc-provider';

const config = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const issuer = `https://127.0.0.1:${config.port}`;
const provider = new Provider(issuer, {
  clients: [{ client_id: config.clientID, client_secret: config.clientSecret, redirect_uris: [config.redirectURI],
    grant_types: ['authorization_code'], response_types: ['code'], id_token_signed_response_alg: config.keys[0].alg,
    token_endpoint_auth_method: 'client_secret_basic' }],
  jwks: { keys: config.keys },
  pkce: { required: () => true },
  features: { devInteractions: { enabled: false } },
  claims: { openid: ['sub'], profile: ['name', 'preferred_username', 'groups'], email: ['email'] },
  scopes: ['openid', 'profile', 'email'],
  cookies: { keys: ['a secret of the test'] },
  interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
  findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id, name: `Name of ${id}`, preferred_username: id,
    email: `${id}@example.com`, groups: ['dev'] }) }),
  loadExistingGrant: async (ctx) => {
    const grant = new ctx.oidc.provider.Grant({ clientId: ctx.oidc.client.clientId, accountId: ctx.oidc.session.accountId });
    grant.addOIDCScope('openid profile email');
    await grant.save();
    return grant;
  },
});
const page = (text) => `<!DOCTYPE html><html lang="en"><head><title>Sign in</title><link rel="icon" href="data:,"></head>
<body><main><h1>Sign in</h1><p>${text}</p><form method="post"><label>Name <input name="login" autofocus></label>
<label>Password <input name="password" type="password"></label><button>Sign in</button>
<button name="abort" value="yes">Cancel</button></form></main></body></html>`;

const answer = provider.callback();
createServer({ cert: readFileSync(config.cert), key: readFileSync(config.key) }, (req, res) => {
  if (!req.url.startsWith('/interaction/')) {
    answer(req, res);
    return;
  }
  const show = (text) => {
    res.setHeader('Content-Type', 'text/html');
    res.end(page(text));
  };
  if (req.method !== 'POST') {
    show('Who are you?');
    return;
  }
  let body = '';
  req.on('data', (part) => { body += part; });
  req.on('end', async () => {
    const form = new URLSearchParams(body);
    if (form.get('abort')) {
      await provider.interactionFinished(req, res, { error: 'access_denied', error_description: 'the person cancelled' });
    } else if (form.get('password') === 'open sesame') {
      await provider.interactionFinished(req, res, { login: { accountId: form.get('login') } });
    } else {
      show('The password is wrong.');
    }
  });
}).listen(config.port, '127.0.0.1', () => console.log('ready'));
