// Passes an authenticated request on to mcpbox, and the answer back as it comes.
import { sign, type Person, type Session, type Signer } from './identity.ts';
import type { Env, Settings } from './settings.ts';

/** mcpbox takes no larger body (HTTP_BODY_MAX). */
export const BODY_MAX = 4 * 1024 * 1024;
export const METHODS: readonly string[] = ['POST', 'GET', 'DELETE'];

/**
 * Returns the fields for mcpbox. A list of what passes, not of what doesn't: no field of a
 * client can be a credential for mcpbox (Authorization, Cf-Access-*, cookies), or say where
 * the request comes from (Forwarded, X-Forwarded-*, Origin).
 */
export function requestFields(from: Headers): Headers {
  const to = new Headers();
  for (const [name, value] of from)
    if (name.startsWith('mcp-') || ['accept', 'content-type', 'last-event-id'].includes(name)) to.set(name, value);
  return to;
}

/** Returns the fields for the client: none of a proxy between us and mcpbox, no cookie. */
export function answerFields(from: Headers): Headers {
  const to = new Headers({ 'Cache-Control': 'no-store' });
  for (const [name, value] of from)
    if (name.startsWith('mcp-') || ['content-type', 'retry-after', 'www-authenticate', 'allow',
                                    'cache-control', 'x-accel-buffering'].includes(name)) to.set(name, value);
  return to;
}

/** Returns the body's bytes, or null if there are more than `most`. */
export async function readBody(request: Request, most: number): Promise<Uint8Array | null> {
  if (!request.body) return new Uint8Array();
  const parts: Uint8Array[] = [];
  let length = 0;
  const reader = request.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.byteLength;
    if (length > most) {
      await reader.cancel();
      return null;
    }
    parts.push(value);
  }
  const all = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.byteLength;
  }
  return all;
}

function failure(status: number, text: string, more: Record<string, string> = {}): Response {
  return Response.json({ jsonrpc: '2.0', id: null, error: { code: -32603, message: text } },
                       { status, headers: { 'Cache-Control': 'no-store', ...more } });
}

export function methodFault(request: Request): Response | null {
  if (METHODS.includes(request.method)) return null;
  return failure(405, 'use POST, GET or DELETE', { Allow: METHODS.join(', ') });
}

export async function forward(
  request: Request, env: Env, settings: Settings, signer: Signer, person: Person, session: Session,
): Promise<Response> {
  const body = request.method === 'POST' ? await readBody(request, BODY_MAX) : new Uint8Array();
  if (!body) return failure(413, `a request may have ${BODY_MAX} bytes`);
  const { search } = new URL(request.url);
  const headers = requestFields(request.headers);
  headers.set('Authorization',
              `Bearer ${await sign(signer, settings, person, session, { method: request.method, search, body })}`);
  const init = {
    method: request.method,
    headers,
    redirect: 'manual' as const,
    ...(request.method === 'POST' ? { body } : {}),
  };
  let answer: Response;
  try {
    answer = await (env.MCPBOX ? env.MCPBOX.fetch(settings.target + search, init) : fetch(settings.target + search, init));
  } catch (e) {
    console.error('mcpbox can not be reached', e);
    return failure(503, 'mcpbox can not be reached', { 'Retry-After': '5' });
  }
  // Our own token was refused: the fault is in the settings, and a client that was told 401
  // would throw its token away and sign in again and again.
  if (answer.status === 401) {
    console.error('mcpbox refused our token', answer.headers.get('WWW-Authenticate'));
    await answer.body?.cancel();
    return failure(502, "mcpbox does not accept this Worker's signature: see the Worker's log, and "
                        + 'compare issuer, resource and key with mcpboxctl access show');
  }
  return new Response(answer.body, { status: answer.status, headers: answerFields(answer.headers) });
}
