// Connects one of the official client packages, lists the tools, calls two of
// them and prints what came back as one JSON object.
//
//	node call.mjs sdk|legacy|auto|pin URL TOOL ARGUMENTS EMPTY_TOOL
//
// sdk: @modelcontextprotocol/sdk; the others: @modelcontextprotocol/client in
// that negotiation mode. Packages are found in the folder of this file's copy.
const [mode, url, tool, args, emptyTool] = process.argv.slice(2);
const info = { name: 'mcpbox-tests', version: '1.0.0' };

async function connect() {
  if (mode === 'sdk') {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { StreamableHTTPClientTransport } =
      await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    const client = new Client(info);
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    return client;
  }
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const client = new Client(info, {
    versionNegotiation: { mode: mode === 'pin' ? { pin: '2026-07-28' } : mode },
  });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return client;
}

const client = await connect();
const { tools } = await client.listTools();
const answer = await client.callTool({ name: tool, arguments: JSON.parse(args) });
const empty = await client.callTool({ name: emptyTool, arguments: {} });
let unknown;
try {
  unknown = await client.callTool({ name: 'no_such__tool', arguments: {} });
} catch (e) {
  unknown = { code: e.code, message: String(e.message) };
}
const server = client.getServerVersion?.();
await client.close();
console.log(JSON.stringify({ tools, answer, empty, unknown, server }));
