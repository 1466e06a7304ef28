// server.mjs LIST: the TypeScript server package as its documentation sets it
// up, one instance a request, with the tools of LIST (a file with the result of
// a tools/list). Prints its port on 127.0.0.1; serves until stdin ends.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer, createMcpHandler, fromJsonSchema } from '@modelcontextprotocol/server';

// Schemas are read once: that is not what a request costs.
const tools = JSON.parse(readFileSync(process.argv[2], 'utf8')).tools.map((tool) => ({
    name: tool.name,
    config: {
        title: tool.title,
        description: tool.description,
        annotations: tool.annotations,
        inputSchema: fromJsonSchema(tool.inputSchema),
        ...(tool.outputSchema && { outputSchema: fromJsonSchema(tool.outputSchema) }),
    },
}));

const handler = toNodeHandler(createMcpHandler(() => {
    const server = new McpServer({ name: 'bench', version: '1.0.0' });
    for (const tool of tools)
        server.registerTool(tool.name, tool.config, () => ({ content: [] }));
    return server;
}));

const http = createServer(handler);
http.listen(0, '127.0.0.1', () => console.log(http.address().port));
process.stdin.on('end', () => process.exit(0)).resume();
