// The Worker: an OAuth 2.1 authorization server for MCP clients, and the resource server
// that passes their requests on to mcpbox.
import { OAuthAuthorizationServer, OAuthResourceServer } from '@cloudflare/workers-oauth-provider';
import { authorize } from './authorize.ts';
import { forward, methodFault, readBody } from './forward.ts';
import { readKey, type Person, type Signer } from './identity.ts';
import { limited, limitedMcp, LIMITS } from './limits.ts';
import { faultPage } from './pages.ts';
import { registrationFault, REGISTRATION_BODY_MAX } from './registration.ts';
import { BASIC_SCOPES, SCOPES, SettingFault, settings, type Env, type Settings } from './settings.ts';

export { Counter } from './counter.ts';

const RESOURCE_METADATA = '/.well-known/oauth-protected-resource';
const TOKEN = '/oauth/token';
const REGISTER = '/oauth/register';

interface Parts {
  settings: Settings;
  signer: Signer;
  server: OAuthAuthorizationServer<Env>;
  resource: OAuthResourceServer<Env, Person>;
}

/** An isolate has one environment, so its parts are made once. */
let made: Promise<Parts> | undefined;

async function make(env: Env): Promise<Parts> {
  const s = settings(env);
  const signer = await readKey(env.SIGNING_KEY);
  const server = new OAuthAuthorizationServer<Env>({
    issuer: s.origin,
    resources: [s.resource],
    tokenEndpoint: `${s.origin}${TOKEN}`,
    clientRegistrationEndpoint: `${s.origin}${REGISTER}`,
    scopesSupported: [...SCOPES],
    accessTokenTTL: s.accessSeconds,
    refreshTokenTTL: s.refreshSeconds,
    clientIdMetadataDocumentEnabled: true,
    clientRegistrationCallback: ({ clientMetadata }) => {
      const fault = registrationFault(clientMetadata, s.redirects);
      return fault ? { code: 'invalid_client_metadata', description: fault } : undefined;
    },
    onError: ({ code, status, internal }) => console.warn('refused', status, code, internal.category, internal.reason),
  });
  const resource = new OAuthResourceServer<Env, Person>({
    resourceMetadata: { resource: s.resource, authorization_servers: [s.origin], resource_name: 'mcpbox' },
    requiredScopes: [...BASIC_SCOPES],
    validateToken: (e) => (name, token) => server.validateToken(name, token, e),
    handler: {
      fetch: (request, e, ctx) => forward(request as unknown as Request, e, s, signer, ctx.props, {
        clientId: ctx.auth.clientId ?? '',
        scope: ctx.auth.scope,
        end: ctx.auth.expiresAt ?? 0,
      }),
    },
  });
  return { settings: s, signer, server, resource };
}

/** Returns the request with its body read, or null if that is too long. */
async function bounded(request: Request, most: number): Promise<Request | null> {
  const body = await readBody(request, most);
  return body && new Request(request, { body });
}

async function serve(request: Request, env: Env, ctx: ExecutionContext): Promise<Response> {
  made ??= make(env);
  const { settings: s, server, resource } = await made;
  const url = new URL(request.url);
  switch (url.pathname) {
    case RESOURCE_METADATA:
      // Clients that look at the root form alone would guess addresses (RFC 9728 section 3.1
      // has the form with the path; both say the same).
      url.pathname = `${RESOURCE_METADATA}/mcp`;
      return await resource.fetch(new Request(url, request), env, ctx);
    case `${RESOURCE_METADATA}/mcp`:
      return await resource.fetch(request, env, ctx);
    case '/mcp':
      if (request.method !== 'OPTIONS') {
        const refused = methodFault(request) ?? await limitedMcp(request, env);
        if (refused) return refused;
      }
      return await resource.fetch(request, env, ctx);
    case '/authorize':
    case '/callback': {
      const refused = await limited(request, env, LIMITS.authorize);
      return refused ? faultPage('Too many tries: wait some minutes.', 429, new Headers(refused.headers))
        : await authorize(request, server.getOAuthApi(env), s);
    }
    case TOKEN:
      return (request.method === 'POST' ? await limited(request, env, LIMITS.token) : null)
        ?? await server.fetch(request, env, ctx);
    case REGISTER: {
      if (request.method !== 'POST') return await server.fetch(request, env, ctx);
      const refused = await limited(request, env, LIMITS.register);
      if (refused) return refused;
      const whole = await bounded(request, REGISTRATION_BODY_MAX);
      return whole ? await server.fetch(whole, env, ctx)
        : Response.json({ error: 'invalid_request', error_description:
          `a registration may have ${REGISTRATION_BODY_MAX} bytes` }, { status: 413 });
    }
    case '/.well-known/oauth-authorization-server':
      return await server.fetch(request, env, ctx);
    default:
      return new Response(null, { status: 404 });
  }
}

export default {
  async fetch(request, env, ctx): Promise<Response> {
    try {
      return await serve(request, env, ctx);
    } catch (e) {
      made = undefined;
      if (!(e instanceof SettingFault)) throw e;
      console.error('setting:', e.message);
      return new Response('This server is not set up yet; its log says what is missing.\n', { status: 503 });
    }
  },
  /** Removes what is over from the store, a part at a time. */
  async scheduled(_event, env): Promise<void> {
    made ??= make(env);
    const cursor = (await env.OAUTH_KV.get('purge-cursor')) ?? undefined;
    const done = await (await made).server.purgeExpiredData(env, { batchSize: 100, ...(cursor ? { cursor } : {}) });
    if (done.cursor) await env.OAUTH_KV.put('purge-cursor', done.cursor);
    else await env.OAUTH_KV.delete('purge-cursor');
  },
} satisfies ExportedHandler<Env>;
