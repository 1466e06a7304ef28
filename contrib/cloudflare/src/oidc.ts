// Sign-in at the upstream OpenID provider: authorization code with PKCE, state, nonce and
// `iss`. The answer is believed only after the ID token is verified.
import { createLocalJWKSet, jwtVerify, base64url, errors, type JSONWebKeySet, type JWTPayload } from 'jose';
import type { Person } from './identity.ts';
import { isLoopback, type Settings } from './settings.ts';

/** The sign-in failed. The text is for the person's page and names no secret. */
export class SignInFault extends Error {}

export interface Provider {
  issuer: string;
  authorization_endpoint: string;
  token_endpoint: string;
  jwks_uri: string;
  userinfo_endpoint?: string;
  token_endpoint_auth_methods_supported?: string[];
  authorization_response_iss_parameter_supported?: boolean;
}

/** The state of a sign-in from its beginning to its end, kept encrypted for ten minutes. */
export interface Begun {
  verifier: string;
  nonce: string;
}

/** Never none, never HS*: a shared secret would let each client of the provider sign. */
const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519'];
const CLOCKS_DIFFER_SECONDS = 60;
const ANSWER_MAX = 65536;
const PATIENCE_MS = 10_000;
const KEEP_MS = 300_000;
/** An unknown key is looked for so often at most. */
const AGAIN_MS = 30_000;
const SUBJECT_MAX = 255;
const TEXT_MAX = 256;
const GROUPS_MAX = 64;

interface Kept<T> {
  at: number;
  value: T;
}
const providers = new Map<string, Kept<Provider>>();
const keys = new Map<string, Kept<JSONWebKeySet>>();

async function ask(url: string, init: RequestInit = {}): Promise<Record<string, unknown>> {
  let answer: Response;
  try {
    answer = await fetch(url, { ...init, redirect: 'manual', signal: AbortSignal.timeout(PATIENCE_MS) } as RequestInit);
  } catch {
    throw new SignInFault(`${new URL(url).host} can not be reached`);
  }
  const text = await answer.text();
  if (!answer.ok) throw new SignInFault(`${new URL(url).host} answered ${answer.status}`);
  if (text.length > ANSWER_MAX) throw new SignInFault(`the answer of ${new URL(url).host} is too long`);
  try {
    const value = JSON.parse(text);
    if (value !== null && typeof value === 'object' && !Array.isArray(value)) return value;
  } catch {
    // Said below.
  }
  throw new SignInFault(`the answer of ${new URL(url).host} is no JSON object`);
}

function endpoint(issuer: string, name: string, value: unknown): string {
  if (typeof value === 'string' && URL.canParse(value)) {
    const url = new URL(value);
    if (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname)
                                      && isLoopback(new URL(issuer).hostname))) return value;
  }
  throw new SignInFault(`the provider's metadata has no usable ${name}`);
}

/** Returns the provider's metadata (OpenID Connect Discovery 1.0). */
export async function discover(issuer: string): Promise<Provider> {
  const kept = providers.get(issuer);
  if (kept && Date.now() - kept.at < KEEP_MS) return kept.value;
  const got = await ask(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);
  // Byte by byte (section 4.3): one provider must not speak for another.
  if (got['issuer'] !== issuer) throw new SignInFault("the provider's metadata names another issuer");
  const methods = got['token_endpoint_auth_methods_supported'];
  const value: Provider = {
    issuer,
    authorization_endpoint: endpoint(issuer, 'authorization_endpoint', got['authorization_endpoint']),
    token_endpoint: endpoint(issuer, 'token_endpoint', got['token_endpoint']),
    jwks_uri: endpoint(issuer, 'jwks_uri', got['jwks_uri']),
    ...(got['userinfo_endpoint'] === undefined ? {}
      : { userinfo_endpoint: endpoint(issuer, 'userinfo_endpoint', got['userinfo_endpoint']) }),
    ...(Array.isArray(methods) ? { token_endpoint_auth_methods_supported: methods.map(String) } : {}),
    authorization_response_iss_parameter_supported: got['authorization_response_iss_parameter_supported'] === true,
  };
  providers.set(issuer, { at: Date.now(), value });
  return value;
}

async function jwks(uri: string, again: boolean): Promise<JSONWebKeySet> {
  const kept = keys.get(uri);
  if (kept && Date.now() - kept.at < (again ? AGAIN_MS : KEEP_MS)) return kept.value;
  const got = await ask(uri);
  if (!Array.isArray(got['keys'])) throw new SignInFault("the provider's keys can not be read");
  const value = got as unknown as JSONWebKeySet;
  keys.set(uri, { at: Date.now(), value });
  return value;
}

export function random(): string {
  return base64url.encode(crypto.getRandomValues(new Uint8Array(32)));
}

export async function challenge(verifier: string): Promise<string> {
  return base64url.encode(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))));
}

/** Returns where the browser goes to sign in. */
export async function signInUrl(
  settings: Settings, provider: Provider, state: string, begun: Begun,
): Promise<string> {
  const url = new URL(provider.authorization_endpoint);
  for (const [name, value] of Object.entries({
    response_type: 'code',
    client_id: settings.oidc.clientId,
    redirect_uri: `${settings.origin}/callback`,
    scope: settings.oidc.scopes,
    state,
    nonce: begun.nonce,
    code_challenge: await challenge(begun.verifier),
    code_challenge_method: 'S256',
  })) url.searchParams.set(name, value);
  return url.href;
}

/** Checks `iss` of the provider's answer (RFC 9207): a mix-up of providers ends here. */
export function checkIssuer(provider: Provider, answer: URLSearchParams): void {
  const all = answer.getAll('iss');
  if (all.length === 0 && !provider.authorization_response_iss_parameter_supported) return;
  if (all.length !== 1 || all[0] !== provider.issuer) throw new SignInFault('the answer is of another issuer');
}

/** Verifies an ID token and returns its claims (OpenID Connect Core 1.0, section 3.1.3.7). */
export async function verifyIdToken(
  token: string, provider: Provider, clientId: string, nonce: string,
): Promise<JWTPayload> {
  const verify = async (again: boolean) =>
    (await jwtVerify(token, createLocalJWKSet(await jwks(provider.jwks_uri, again)), {
      issuer: provider.issuer,
      audience: clientId,
      algorithms: ALGORITHMS,
      clockTolerance: CLOCKS_DIFFER_SECONDS,
      requiredClaims: ['exp', 'iat', 'sub', 'nonce'],
    })).payload;
  let claims: JWTPayload;
  try {
    try {
      claims = await verify(false);
    } catch (e) {
      // The provider may have changed its keys since.
      if (!(e instanceof errors.JWKSNoMatchingKey)) throw e;
      claims = await verify(true);
    }
  } catch (e) {
    if (e instanceof SignInFault) throw e;
    throw new SignInFault(`the ID token is refused (${e instanceof errors.JOSEError ? e.code : 'malformed'})`);
  }
  if (claims['nonce'] !== nonce) throw new SignInFault('the ID token is of another sign-in');
  const azp = claims['azp'];
  if ((azp !== undefined && azp !== clientId) || (Array.isArray(claims.aud) && claims.aud.length > 1 && azp !== clientId))
    throw new SignInFault('the ID token is for another client');
  if (claims.iat! > Date.now() / 1000 + CLOCKS_DIFFER_SECONDS) throw new SignInFault('the ID token is of the future');
  if (typeof claims.sub !== 'string' || claims.sub === '' || claims.sub.length > SUBJECT_MAX)
    throw new SignInFault('the ID token names no usable subject');
  return claims;
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' && value.length <= TEXT_MAX ? value : undefined;
}

/** Returns what mcpbox learns of the person. */
export function person(claims: Record<string, unknown>): Person {
  const email = text(claims['email']);
  const name = text(claims['name']);
  const groups = claims['groups'];
  return {
    sub: claims['sub'] as string,
    ...(email !== undefined ? { email } : {}),
    ...(email !== undefined && typeof claims['email_verified'] === 'boolean'
      ? { email_verified: claims['email_verified'] } : {}),
    ...(name !== undefined ? { name } : {}),
    // All of them or none: a list that was cut might lack the group that a rule refuses.
    ...(Array.isArray(groups) && groups.length <= GROUPS_MAX && groups.every((g) => text(g) !== undefined)
      ? { groups: groups as string[] } : {}),
  };
}

/** Exchanges the code, and returns the person who signed in. */
export async function finishSignIn(
  settings: Settings, provider: Provider, answer: URLSearchParams, begun: Begun,
): Promise<Person> {
  checkIssuer(provider, answer);
  const code = answer.get('code');
  if (!code) throw new SignInFault('the provider sent no code');
  const { clientId, clientSecret } = settings.oidc;
  const form = new URLSearchParams({
    grant_type: 'authorization_code', code, redirect_uri: `${settings.origin}/callback`, code_verifier: begun.verifier,
  });
  const headers: Record<string, string> = { Accept: 'application/json' };
  const methods = provider.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
  if (clientSecret !== undefined && methods.includes('client_secret_basic')) {
    // Both are form-encoded first (RFC 6749 section 2.3.1).
    const encoded = [clientId, clientSecret].map((s) => new URLSearchParams({ s }).toString().slice(2)).join(':');
    headers['Authorization'] = `Basic ${btoa(encoded)}`;
  } else {
    form.set('client_id', clientId);
    if (clientSecret !== undefined) form.set('client_secret', clientSecret);
  }
  const got = await ask(provider.token_endpoint, { method: 'POST', headers, body: form });
  if (typeof got['id_token'] !== 'string') throw new SignInFault('the provider sent no ID token');
  let claims: Record<string, unknown> = await verifyIdToken(got['id_token'], provider, clientId, begun.nonce);
  // Some providers put only the subject into the ID token.
  if (claims['email'] === undefined && provider.userinfo_endpoint && typeof got['access_token'] === 'string') {
    const more = await ask(provider.userinfo_endpoint, { headers: { Authorization: `Bearer ${got['access_token']}` } });
    if (more['sub'] !== claims['sub']) throw new SignInFault('userinfo is of another person');
    // An address and its verification come from one place.
    const { email_verified: _, ...rest } = claims;
    claims = { ...rest, ...more };
  }
  return person(claims);
}
