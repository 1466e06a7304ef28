// server.mjs ADDRESS PORT: an MCP server of the official package, which speaks
// 2026-07-28 and the revisions before it. Its tools are those of the JSON that
// comes on standard input, one object a line, each replacing those before:
// {"tools": [{name, description, inputSchema, outputSchema?, result | error}]}
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer, createMcpHandler, fromJsonSchema } from '@modelcontextprotocol/server';

let tools = [];
const seen = [];
const handler = toNodeHandler(createMcpHandler(() => {
    const server = new McpServer({ name: 'played', version: '1.2.3' });
    for (const t of tools)
        server.registerTool(t.name, {
            title: t.title, description: t.description, annotations: t.annotations,
            inputSchema: fromJsonSchema(t.inputSchema),
            ...(t.outputSchema && { outputSchema: fromJsonSchema(t.outputSchema) }),
        }, (given) => {
            if (t.error) throw new Error(t.error);
            return t.result ?? { content: [{ type: 'text', text: JSON.stringify(given) }] };
        });
    return server;
}));

const http = createServer((req, res) => {
    if (req.url === '/seen') {
        res.end(JSON.stringify(seen.splice(0)));
        return;
    }
    seen.push({ method: req.method, version: req.headers['mcp-protocol-version'],
        mcp: req.headers['mcp-method'], name: req.headers['mcp-name'],
        authorization: req.headers.authorization, key: req.headers['x-api-key'] });
    handler(req, res);
});
http.listen(Number(process.argv[3]), process.argv[2], () => console.log('up'));
createInterface({ input: process.stdin }).on('line', (line) => {
    tools = JSON.parse(line).tools;
    console.log('set');
}).on('close', () => process.exit(0));
