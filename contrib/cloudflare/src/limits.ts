// Rates for strangers. mcpbox has rates of its own for each person.
import { REGISTRATIONS_AN_HOUR } from './registration.ts';
import type { Env } from './settings.ts';

export interface Limit {
  name: string;
  most: number;
  seconds: number;
}

export const LIMITS = {
  register: { name: 'register', most: REGISTRATIONS_AN_HOUR, seconds: 3600 },
  // Each begun sign-in is a row in the store for ten minutes.
  authorize: { name: 'authorize', most: 60, seconds: 600 },
  token: { name: 'token', most: 120, seconds: 60 },
} as const satisfies Record<string, Limit>;

/** Returns the name that an address is counted by: of IPv6 the /64 that one household has. */
export function addressKey(address: string | null): string {
  if (!address) return 'unknown';
  if (!address.includes(':')) return address;
  const [head = '', tail] = address.toLowerCase().split('::');
  const left = head.split(':').filter(Boolean);
  const right = tail === undefined ? [] : tail.split(':').filter(Boolean);
  const groups = [...left, ...Array<string>(Math.max(0, 8 - left.length - right.length)).fill('0'), ...right];
  return groups.slice(0, 4).map((g) => g.replace(/^0+(?=.)/, '')).join(':') + '::/64';
}

export function tooMany(seconds: number): Response {
  return Response.json(
    { error: 'temporarily_unavailable', error_description: `too many requests: come again in ${seconds} s` },
    { status: 429, headers: { 'Retry-After': String(seconds), 'Cache-Control': 'no-store' } },
  );
}

/** Returns the refusal, or null while the address has room. */
export async function limited(request: Request, env: Env, limit: Limit): Promise<Response | null> {
  const who = addressKey(request.headers.get('CF-Connecting-IP'));
  const counter = env.COUNTER.get(env.COUNTER.idFromName(`${limit.name} ${who}`));
  const wait = await counter.take(limit.most, limit.seconds);
  return wait > 0 ? tooMany(wait) : null;
}

/** The same for /mcp, where a round trip to a counter would cost too much. */
export async function limitedMcp(request: Request, env: Env): Promise<Response | null> {
  if (!env.MCP_RATE) return null;
  const { success } = await env.MCP_RATE.limit({ key: addressKey(request.headers.get('CF-Connecting-IP')) });
  return success ? null : tooMany(60);
}
