// The Worker of contrib/cloudflare, bundled as wrangler does it, in a real workerd.
//
//	node worker.mjs SETTINGS
//
//	{folder, port, cert, key, vars, kv: {KEY: VALUE}, mcpbox: "host:port",
//	 documents: {URL: CIMD document}}
//
// Prints a line when it listens (https), ends when standard input does. mcpbox is bound as
// a Workers VPC service is: whatever URL is asked, the request goes to that address.
import { readFileSync } from 'node:fs';
import { build } from 'esbuild';
import { Miniflare, Response, fetch } from 'miniflare';

const settings = JSON.parse(process.argv[2]);
const said = readFileSync(`${settings.folder}/wrangler.vpc.jsonc`, 'utf8').replace(/^\s*\/\/.*$/gm, '');
const config = JSON.parse(said);
const bundle = await build({
  entryPoints: [`${settings.folder}/src/index.ts`], bundle: true, format: 'esm', target: 'es2023',
  nodePaths: [new URL('node_modules', import.meta.url).pathname], external: ['cloudflare:*'],
  conditions: ['workerd', 'worker', 'browser'], write: false,
});
const mf = new Miniflare({
  modules: true,
  script: bundle.outputFiles[0].text,
  compatibilityDate: config.compatibility_date,
  compatibilityFlags: config.compatibility_flags,
  kvNamespaces: [config.kv_namespaces[0].binding],
  durableObjects: { COUNTER: { className: 'Counter', useSQLite: true } },
  ratelimits: { MCP_RATE: (({ namespace_id, simple }) => ({ namespace_id, simple }))(config.ratelimits[0]) },
  bindings: settings.vars,
  serviceBindings: { MCPBOX: { external: { address: settings.mcpbox, http: {} } } },
  // The Internet is the documents of clients, and this machine.
  outboundService(request) {
    const document = settings.documents?.[request.url];
    if (document) return Response.json(document, { headers: { 'Cache-Control': 'no-store' } });
    if (new URL(request.url).hostname !== '127.0.0.1') return new Response(null, { status: 404 });
    return fetch(request);
  },
  host: '127.0.0.1', port: settings.port, https: true, httpsCert: settings.cert, httpsKey: settings.key,
});
await mf.ready;
const kv = await mf.getKVNamespace('OAUTH_KV');
for (const [name, value] of Object.entries(settings.kv ?? {})) await kv.put(name, value);
console.log('{}');
process.stdin.resume().on('end', async () => {
  await mf.dispose();
  process.exit(0);
});
