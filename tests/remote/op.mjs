// A real OpenID provider on loopback, for both ways: issuer of access tokens for mcpbox,
// and sign-in for the Worker. Whoever asks is signed in as the field X-Who says, and all
// that is asked for is granted, of the rights at mcpbox only those of X-Grants, if it is there.
//
//	node op.mjs SETTINGS	{clients, documents: {URL: CIMD document}, seconds}
//
// Prints {"issuer": ...} when it listens. Access tokens live `seconds`, or what a line
// {"seconds": n} on standard input said last. The answer to a line, {} among them, has
// `seconds`, and how many sign-ins ended well and how many tokens were refreshed so far.
import http from 'node:http';
import readline from 'node:readline';
import { generateKeyPair, exportJWK } from 'jose';
import Provider from 'oidc-provider';

const settings = JSON.parse(process.argv[2]);
const { privateKey } = await generateKeyPair('ES256', { extractable: true });
const key = { ...(await exportJWK(privateKey)), kid: 'op', alg: 'ES256', use: 'sig' };
let { seconds } = settings, signIns = 0, refreshes = 0;

const server = http.createServer();
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const issuer = `http://127.0.0.1:${server.address().port}`;

const claims = (sub) => ({ sub, email: `${sub}@example.org`, email_verified: true, name: `The ${sub}` });
const provider = new Provider(issuer, {
  clients: settings.clients,
  jwks: { keys: [key] },
  clientDefaults: { id_token_signed_response_alg: 'ES256' },
  cookies: { keys: ['a key of this test'] },
  // The rights, too: a client that registers itself names them.
  scopes: ['openid', 'email', 'profile', 'offline_access', 'tools:read', 'tools:call', 'manage'],
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
  conformIdTokenClaims: false,
  findAccount: (_ctx, sub) => ({ accountId: sub, claims: () => claims(sub) }),
  extraTokenClaims: (_ctx, token) => (token.accountId ? { email: claims(token.accountId).email, email_verified: true } : {}),
  issueRefreshToken: () => true,
  pkce: { required: () => true },
  interactions: { url: (_ctx, interaction) => `/interaction/${interaction.uid}` },
  // The documents of clients (CIMD) are on hosts that don't exist.
  fetch: async (url) => {
    const document = settings.documents?.[String(url)];
    return document ? Response.json(document) : new Response(null, { status: 404 });
  },
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    revocation: { enabled: true },
    clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_ctx, resource) => ({
        scope: 'tools:read tools:call manage', audience: resource, accessTokenTTL: seconds,
        accessTokenFormat: 'jwt', jwt: { sign: { alg: 'ES256' } },
      }),
    },
  },
});
provider.on('server_error', (_ctx, e) => console.error(e));
provider.on('authorization.success', () => signIns++);
provider.on('grant.success', ({ oidc }) => { refreshes += oidc.params.grant_type === 'refresh_token'; });

async function interaction(request, response) {
  const { prompt, params, session, grantId } = await provider.interactionDetails(request, response);
  if (prompt.name === 'login')
    return provider.interactionFinished(request, response, { login: { accountId: request.headers['x-who'] } });
  const grant = grantId ? await provider.Grant.find(grantId)
    : new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  const missing = prompt.details;
  if (missing.missingOIDCScope) grant.addOIDCScope(missing.missingOIDCScope.join(' '));
  if (missing.missingOIDCClaims) grant.addOIDCClaims(missing.missingOIDCClaims);
  const only = request.headers['x-grants']?.split(' ');
  for (const [resource, scopes] of Object.entries(missing.missingResourceScopes ?? {})) {
    const [given, kept] = [true, false].map((yes) => scopes.filter((s) => (!only || only.includes(s)) === yes));
    if (given.length > 0) grant.addResourceScope(resource, given.join(' '));
    if (kept.length > 0) grant.rejectResourceScope(resource, kept.join(' '));
  }
  return provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } },
                                      { mergeWithLastSubmission: true });
}

const callback = provider.callback();
server.on('request', (request, response) => {
  if (!request.url.startsWith('/interaction/')) return callback(request, response);
  interaction(request, response).catch((e) => {
    console.error(e);
    response.writeHead(500).end(String(e));
  });
});
readline.createInterface({ input: process.stdin })
  .on('line', (line) => {
    ({ seconds = seconds } = JSON.parse(line));
    console.log(JSON.stringify({ seconds, signIns, refreshes }));
  })
  .on('close', () => process.exit(0));
console.log(JSON.stringify({ issuer }));
