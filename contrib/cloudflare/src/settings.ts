// The settings of the Worker: variables and secrets as text, checked once, with a
// fault that says what to write.
import type { RateLimit, KVNamespace, DurableObjectNamespace, Fetcher } from '@cloudflare/workers-types';
import type { Counter } from './counter.ts';

/** The rights that mcpbox knows (docs/ACCESS.md), and what the consent page says of them. */
export const RIGHTS: Readonly<Record<string, string>> = {
  'tools:read': 'See the list of tools',
  'tools:call': 'Call tools',
  manage: 'See and try what is being made: tools, versions, settings',
  'manage:edit': 'Make and change tools, which a person must still approve',
};
export const SCOPES = Object.keys(RIGHTS);
/** The scopes of a client that asks for none. */
export const BASIC_SCOPES = ['tools:read', 'tools:call'];

export interface Env {
  OAUTH_KV: KVNamespace;
  COUNTER: DurableObjectNamespace<Counter>;
  MCP_RATE?: RateLimit;
  /** Workers VPC service; without it MCPBOX_URL is fetched. */
  MCPBOX?: Fetcher;
  MCPBOX_URL?: string;
  RESOURCE: string;
  OIDC_ISSUER: string;
  OIDC_CLIENT_ID: string;
  OIDC_CLIENT_SECRET?: string;
  OIDC_SCOPES?: string;
  SIGNING_KEY: string;
  REDIRECTS?: string;
  ACCESS_TOKEN_SECONDS?: string;
  REFRESH_DAYS?: string;
}

export interface Settings {
  /** Our address as clients know it: the canonical resource, and `aud` for mcpbox. */
  resource: string;
  /** The Worker's own address without a path: issuer for clients and for mcpbox. */
  origin: string;
  /** Where mcpbox is fetched: its /mcp, without a query. */
  target: string;
  oidc: { issuer: string; clientId: string; clientSecret?: string; scopes: string };
  /** Redirect addresses beside those of redirects.ts. */
  redirects: string[];
  accessSeconds: number;
  refreshSeconds: number;
}

/** A setting that is missing or wrong. The message is for the Worker's owner. */
export class SettingFault extends Error {}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

export function isLoopback(hostname: string): boolean {
  return LOOPBACK.test(hostname);
}

/** Returns a URL that is https, or http on this very machine, without user, query and fragment. */
export function safeUrl(name: string, text: string | undefined): URL {
  if (!text) throw new SettingFault(`${name} is not set`);
  if (!URL.canParse(text)) throw new SettingFault(`${name} must be a URL: ${text}`);
  const url = new URL(text);
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopback(url.hostname)))
    throw new SettingFault(`${name} must begin with https://: ${text}`);
  if (url.username || url.password || url.search || url.hash)
    throw new SettingFault(`${name} must have no user, query or fragment: ${text}`);
  return url;
}

function number(name: string, text: string | undefined, least: number, most: number, usual: number): number {
  if (!text) return usual;
  const n = Number(text);
  if (!Number.isInteger(n) || n < least || n > most)
    throw new SettingFault(`${name} must be a whole number from ${least} to ${most}: ${text}`);
  return n;
}

function target(env: Env, resource: string): string {
  if (env.MCPBOX_URL) {
    // With a VPC service the address is only the Host field: http is right there.
    const url = env.MCPBOX ? new URL(env.MCPBOX_URL) : safeUrl('MCPBOX_URL', env.MCPBOX_URL);
    if (url.pathname !== '/mcp') throw new SettingFault('MCPBOX_URL must end with /mcp');
    return url.href;
  }
  if (!env.MCPBOX) throw new SettingFault('set MCPBOX_URL, or bind the Workers VPC service as MCPBOX');
  return `http://${new URL(resource).host}/mcp`;
}

export function settings(env: Env): Settings {
  const resource = safeUrl('RESOURCE', env.RESOURCE);
  if (resource.pathname !== '/mcp' || resource.href !== env.RESOURCE)
    throw new SettingFault(`RESOURCE must be written as ${resource.origin}/mcp`);
  safeUrl('OIDC_ISSUER', env.OIDC_ISSUER);
  if (!env.OIDC_CLIENT_ID) throw new SettingFault('OIDC_CLIENT_ID is not set');
  if (!env.SIGNING_KEY)
    throw new SettingFault('SIGNING_KEY is not set: wrangler secret put SIGNING_KEY');
  const scopes = env.OIDC_SCOPES || 'openid email profile';
  if (!scopes.split(' ').includes('openid')) throw new SettingFault('OIDC_SCOPES must contain openid');
  return {
    resource: resource.href,
    origin: resource.origin,
    target: target(env, resource.href),
    oidc: {
      issuer: env.OIDC_ISSUER,
      clientId: env.OIDC_CLIENT_ID,
      ...(env.OIDC_CLIENT_SECRET ? { clientSecret: env.OIDC_CLIENT_SECRET } : {}),
      scopes,
    },
    redirects: (env.REDIRECTS ?? '').split(/\s+/).filter(Boolean),
    // KV keeps nothing for less than 60 s.
    accessSeconds: number('ACCESS_TOKEN_SECONDS', env.ACCESS_TOKEN_SECONDS, 60, 86400, 3600),
    refreshSeconds: 86400 * number('REFRESH_DAYS', env.REFRESH_DAYS, 0, 90, 30),
  };
}
