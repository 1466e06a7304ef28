// One of the official client packages, with its own OAuth. Each line on standard input is
// a step, each on standard output its result:
//
//	node client.mjs SETTINGS	{sdk: "sdk"|"client", url, scope?, document?, known?}
//
//	{"do": "connect"}	-> {"authorize": URL} or {"version": revision}
//	{"do": "finish", "url": URL}	the callback that the browser came to; then connects
//	{"do": "list"}, {"do": "call", "name": ..., "arguments": ...}
//	{"do": "tokens"}	-> what it was given
//	{"do": "spoil"}		makes its access token one that nobody knows
//	{"do": "forget"}	drops its refresh token
//
// sdk: @modelcontextprotocol/sdk, which speaks 2025-11-25; client:
// @modelcontextprotocol/client, pinned to 2026-07-28. document: the URL of its CIMD
// document; known: what it was registered as beforehand.
import readline from 'node:readline';

const settings = JSON.parse(process.argv[2]);
const url = new URL(settings.url);
const info = { name: 'mcpbox-tests', version: '1.0.0' };
const redirect = 'http://localhost:3118/callback';

let to, state, verifier, registered = settings.known, kept, discovered;
const provider = {
  redirectUrl: redirect,
  clientMetadataUrl: settings.document,
  clientMetadata: {
    client_name: 'mcpbox tests', redirect_uris: [redirect], grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'], token_endpoint_auth_method: 'none', application_type: 'native',
    ...(settings.scope ? { scope: settings.scope } : {}),
  },
  state: () => (state = crypto.randomUUID()),
  clientInformation: () => registered,
  saveClientInformation: (value) => { registered = value; },
  tokens: () => kept,
  saveTokens: (value) => { kept = value; },
  redirectToAuthorization: (value) => { to = String(value); },
  saveCodeVerifier: (value) => { verifier = value; },
  codeVerifier: () => verifier,
  saveDiscoveryState: (value) => { discovered = value; },
  discoveryState: () => discovered,
  invalidateCredentials: (scope) => {
    if (scope === 'all' || scope === 'tokens') kept = undefined;
    if (scope === 'all' || scope === 'client') registered = settings.known;
  },
};

let make;
if (settings.sdk === 'sdk') {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
  make = () => [new Client(info), new StreamableHTTPClientTransport(url, { authProvider: provider })];
} else {
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  make = () => [new Client(info, { versionNegotiation: { mode: { pin: '2026-07-28' } } }),
                new StreamableHTTPClientTransport(url, { authProvider: provider })];
}

let client, transport;
async function connect() {
  to = undefined;
  [client, transport] = make();
  try {
    await client.connect(transport);
  } catch (e) {
    if (to === undefined) throw e;
    return { authorize: to };
  }
  return { version: transport.protocolVersion ?? client.getNegotiatedProtocolVersion?.() ?? null };
}

const steps = {
  connect,
  async finish({ url: came }) {
    const answer = new URL(came).searchParams;
    if (answer.get('state') !== state) throw new Error('the answer has another state');
    await transport.finishAuth(settings.sdk === 'sdk' ? answer.get('code') : answer);
    return await connect();
  },
  async list() {
    return { tools: (await client.listTools()).tools.map((t) => t.name) };
  },
  async call({ name, arguments: args }) {
    return { result: await client.callTool({ name, arguments: args ?? {} }) };
  },
  tokens: () => ({ tokens: kept, client: registered }),
  spoil() {
    // Still of the form that its issuer makes.
    kept = { ...kept, access_token: kept.access_token.replace(/.{6}$/, (end) => [...end].reverse().join('') + 'A') };
    return {};
  },
  forget() {
    kept = { ...kept, refresh_token: undefined };
    return {};
  },
};

for await (const line of readline.createInterface({ input: process.stdin })) {
  const step = JSON.parse(line);
  to = undefined;
  try {
    console.log(JSON.stringify(await steps[step.do](step)));
  } catch (e) {
    console.log(JSON.stringify({ ...(to ? { authorize: to } : {}), error: String(e.stack ?? e), name: e.name }));
  }
}
process.exit(0);
