// The person's identity for mcpbox: a JWT for one request. mcpbox has the public key in
// its access document and compares method, address and body (issuer member "bound").
import { SignJWT, importJWK, calculateJwkThumbprint, base64url, type JWK } from 'jose';
import { SettingFault, type Settings } from './settings.ts';

/** Seconds that a token is good. mcpbox takes at most 120. */
export const TOKEN_SECONDS = 60;

/** The part of a person that a grant keeps. Each member comes from a verified ID token. */
export interface Person {
  sub: string;
  email?: string;
  email_verified?: boolean;
  name?: string;
  groups?: string[];
}

export interface Signer {
  kid: string;
  key: CryptoKey;
}

export async function readKey(text: string): Promise<Signer> {
  let jwk: JWK;
  try {
    jwk = JSON.parse(text);
  } catch {
    throw new SettingFault('SIGNING_KEY is not JSON: put the private JWK that mcpboxctl remote shows');
  }
  if (jwk.kty !== 'OKP' || jwk.crv !== 'Ed25519' || !jwk.d || !jwk.x)
    throw new SettingFault('SIGNING_KEY must be a private JWK with kty OKP and crv Ed25519');
  // The thumbprint is of the public members (RFC 7638), so this compares with what mcpbox has.
  const kid = await calculateJwkThumbprint({ kty: jwk.kty, crv: jwk.crv, x: jwk.x });
  if (jwk.kid !== undefined && jwk.kid !== kid)
    throw new SettingFault(`SIGNING_KEY: kid must be its RFC 7638 thumbprint, ${kid}`);
  const key = await importJWK({ kty: jwk.kty, crv: jwk.crv, x: jwk.x, d: jwk.d }, 'EdDSA');
  return { kid, key: key as CryptoKey };
}

export interface Bound {
  method: string;
  /** Query of the request with its question mark, or "". */
  search: string;
  body: Uint8Array;
}

export interface Session {
  clientId: string;
  scope: readonly string[];
  /** When the client's access token ends, in seconds since 1970. */
  end: number;
}

export async function digest(body: Uint8Array): Promise<string> {
  return base64url.encode(new Uint8Array(await crypto.subtle.digest('SHA-256', body as Uint8Array<ArrayBuffer>)));
}

/** Returns the token for this one request. */
export async function sign(
  signer: Signer, settings: Settings, person: Person, session: Session, request: Bound,
): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  return await new SignJWT({
    ...(person.email !== undefined ? { email: person.email } : {}),
    ...(person.email_verified !== undefined ? { email_verified: person.email_verified } : {}),
    ...(person.name !== undefined ? { name: person.name } : {}),
    ...(person.groups !== undefined ? { groups: person.groups } : {}),
    client_id: session.clientId,
    scope: session.scope.join(' '),
    htm: request.method,
    htu: settings.resource + request.search,
    bsha256: await digest(request.body),
    session_exp: session.end,
  })
    .setProtectedHeader({ alg: 'EdDSA', kid: signer.kid, typ: 'at+jwt' })
    .setIssuer(settings.origin)
    .setAudience(settings.resource)
    .setSubject(person.sub)
    .setJti(base64url.encode(crypto.getRandomValues(new Uint8Array(16))))
    .setIssuedAt(now)
    .setExpirationTime(now + TOKEN_SECONDS)
    .sign(signer.key);
}
