// oidc.mjs AS-ADDRESS AS-PORT MCP-ADDRESS MCP-PORT: an OAuth authorization
// server (oidc-provider), and an MCP server that takes its tokens alone, with
// RFC 9728 metadata. GET /seen of the latter says what was asked of both.
// TTL: seconds that an access token lasts.
import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer, createMcpHandler, fromJsonSchema } from '@modelcontextprotocol/server';
import Provider from 'oidc-provider';

const [, , asHost, asPort, host, port] = process.argv;
const issuer = `http://${asHost}:${asPort}`;
const resource = `http://${host}:${port}/mcp`;
const ttl = Number(process.env.TTL ?? 3600);
const seen = { tokens: [], refused: 0, grants: [], registered: [] };

const provider = new Provider(issuer, {
    features: {
        devInteractions: { enabled: true },
        registration: { enabled: true },
        resourceIndicators: {
            enabled: true,
            defaultResource: () => undefined,
            useGrantedResource: () => true,
            getResourceServerInfo: (ctx, indicator) => {
                if (indicator !== resource) throw new Error(`no such resource ${indicator}`);
                return { scope: 'mcp:tools', audience: resource, accessTokenTTL: ttl, accessTokenFormat: 'opaque' };
            },
        },
    },
    scopes: ['openid', 'offline_access', 'mcp:tools'],
    pkce: { required: () => true },
    rotateRefreshToken: true,
    issueRefreshToken: (ctx, client) => client.grantTypeAllowed('refresh_token'),
    findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
});
provider.on('grant.success', (ctx) => seen.grants.push(ctx.oidc.params.grant_type));
provider.on('grant.error', (ctx, e) => seen.grants.push(`${ctx.oidc.params?.grant_type}: ${e.error_description ?? e.message}`));
provider.on('registration_create.success', (ctx, client) => seen.registered.push(client.clientId));
provider.on('server_error', (ctx, e) => console.error(e));

const handler = toNodeHandler(createMcpHandler(() => {
    const server = new McpServer({ name: 'guarded', version: '1.0.0' });
    server.registerTool('whoami', {
        description: 'Says that you are let in.',
        inputSchema: fromJsonSchema({ type: 'object', properties: {} }),
    }, () => ({ content: [{ type: 'text', text: `let in with ${seen.tokens.at(-1)}` }] }));
    return server;
}));

async function serve(req, res) {
    if (req.url === '/seen') {
        res.end(JSON.stringify(seen));
        return;
    }
    if (req.url.startsWith('/.well-known/oauth-protected-resource')) {
        res.setHeader('content-type', 'application/json');
        res.end(JSON.stringify({ resource, authorization_servers: [issuer], scopes_supported: ['mcp:tools'] }));
        return;
    }
    const value = /^Bearer (.+)$/.exec(req.headers.authorization ?? '')?.[1];
    const token = value && await provider.AccessToken.find(value);
    if (!token || token.isExpired || token.aud !== resource) {
        seen.refused++;
        res.writeHead(401, { 'www-authenticate':
            `Bearer resource_metadata="http://${host}:${port}/.well-known/oauth-protected-resource/mcp", scope="mcp:tools"` });
        res.end('{}');
        return;
    }
    seen.tokens.push(value);
    handler(req, res);
}

provider.listen(Number(asPort), asHost, () =>
    createServer((req, res) => serve(req, res).catch((e) => {
        console.error(e);
        res.writeHead(500).end();
    })).listen(Number(port), host, () => console.log('up')));
