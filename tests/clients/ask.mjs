// Connects one of the official client packages with handlers for everything a
// server may ask, calls tools that ask, and prints what they returned.
//
//	node ask.mjs sdk|legacy|auto|pin URL TOOL...
//
// Packages are found in the folder of this file's copy.
const [mode, url, ...tools] = process.argv.slice(2);
const info = { name: 'mcpbox-tests', version: '1.0.0' };
const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
const asked = [];

const answers = {
  'elicitation/create': (params) =>
    params.mode === 'url'
      ? { action: 'decline' }
      : { action: 'accept', content: { name: 'Ada', n: 20 + asked.length } },
  'sampling/createMessage': () => ({
    role: 'assistant', content: { type: 'text', text: 'sampled' }, model: 'm', stopReason: 'endTurn',
  }),
  'roots/list': () => ({ roots: [{ uri: 'file:///a', name: 'a' }] }),
};

async function handle(request) {
  asked.push(request.method);
  return answers[request.method](request.params ?? {});
}

async function connect() {
  if (mode === 'sdk') {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { StreamableHTTPClientTransport } =
      await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    const types = await import('@modelcontextprotocol/sdk/types.js');
    const client = new Client(info, { capabilities });
    client.setRequestHandler(types.ElicitRequestSchema, handle);
    client.setRequestHandler(types.CreateMessageRequestSchema, handle);
    client.setRequestHandler(types.ListRootsRequestSchema, handle);
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    return client;
  }
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const client = new Client(info, {
    capabilities,
    versionNegotiation: { mode: mode === 'pin' ? { pin: '2026-07-28' } : mode },
  });
  for (const method of Object.keys(answers)) client.setRequestHandler(method, handle);
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return client;
}

const client = await connect();
const results = {};
for (const name of tools) {
  asked.length = 0;
  const r = await client.callTool({ name, arguments: {} });
  results[name] = { text: r.content[0].text, isError: r.isError ?? false, asked: [...asked].sort() };
}
await client.close();
console.log(JSON.stringify(results));
