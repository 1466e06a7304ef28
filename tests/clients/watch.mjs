// Connects one of the official client packages, says what it is told of and
// calls a tool when asked to.
//
//	node watch.mjs sdk|legacy|auto|pin URL TOOL
//
// Prints a line for each thing that happens: "ready" (it is being told),
// "changed", "ended WHY", "result TEXT". Each line of its input is a call of
// TOOL with the arguments in it; at the end of the input it leaves. Packages
// are found in the folder of this file's copy.
import { createInterface } from 'node:readline';

const [mode, url, tool] = process.argv.slice(2);
const info = { name: 'mcpbox-tests', version: '1.0.0' };
const modern = mode === 'auto' || mode === 'pin';
const changed = () => console.log('changed');

async function connect() {
  if (mode === 'sdk') {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { StreamableHTTPClientTransport } =
      await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    const types = await import('@modelcontextprotocol/sdk/types.js');
    const client = new Client(info);
    client.setNotificationHandler(types.ToolListChangedNotificationSchema, changed);
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    return client;
  }
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const client = new Client(info, {
    versionNegotiation: { mode: mode === 'pin' ? { pin: '2026-07-28' } : mode },
  });
  client.setNotificationHandler('notifications/tools/list_changed', changed);
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return client;
}

const client = await connect();

// On the legacy wire the package opens its stream, and opens it again, by
// itself; on the modern one it says that it ended.
async function listen() {
  const subscription = await client.listen({ toolsListChanged: true });
  if (!subscription.honoredFilter.toolsListChanged) throw new Error('not honoured');
  subscription.closed.then(async (why) => {
    console.log(`ended ${why}`);
    for (let i = 0; why !== 'local' && i < 50; i++) {
      await new Promise((done) => setTimeout(done, 100));
      try {
        return await listen();
      } catch {
        // It is restarting.
      }
    }
  });
  console.log('ready');
}

if (modern) await listen();
else setTimeout(() => console.log('ready'), 500);
for await (const line of createInterface({ input: process.stdin })) {
  const answer = await client.callTool({ name: tool, arguments: JSON.parse(line) });
  console.log(`result ${answer.content[0].text}`);
}
process.exit(0);
