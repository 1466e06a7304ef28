// server.mjs LIST: the TypeScript server package as its documentation sets it
// up: one instance a request, its tools registered with zod schemas in the
// factory. The tools are those of LIST (a file with the result of a
// tools/list). Prints its port on 127.0.0.1; serves until stdin ends.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer, createMcpHandler } from '@modelcontextprotocol/server';
import * as z from 'zod';

// What an author writes by hand for such a schema.
function schema(s = {}) {
    let made;
    if (Array.isArray(s.enum)) made = z.enum(s.enum.map(String));
    else if (s.type === 'string') made = z.string();
    else if (s.type === 'integer') made = z.number().int();
    else if (s.type === 'number') made = z.number();
    else if (s.type === 'boolean') made = z.boolean();
    else if (s.type === 'array') made = z.array(schema(s.items));
    else if (s.properties) {
        made = z.object(Object.fromEntries(Object.entries(s.properties).map(([name, of]) =>
            [name, s.required?.includes(name) ? schema(of) : schema(of).optional()])));
    } else made = s.type === 'object' ? z.object({}) : z.any();
    return s.description ? made.describe(s.description) : made;
}

const tools = JSON.parse(readFileSync(process.argv[2], 'utf8')).tools;

const handler = toNodeHandler(createMcpHandler(() => {
    const server = new McpServer({ name: 'bench', version: '1.0.0' });
    for (const tool of tools) {
        server.registerTool(tool.name, {
            title: tool.title,
            description: tool.description,
            annotations: tool.annotations,
            inputSchema: schema(tool.inputSchema),
            ...(tool.outputSchema && { outputSchema: schema(tool.outputSchema) }),
        }, () => ({ content: [] }));
    }
    return server;
}));

const http = createServer(handler);
http.listen(0, '127.0.0.1', () => console.log(http.address().port));
process.stdin.on('end', () => process.exit(0)).resume();
