// The way of a person: consent, sign-in upstream, and back to the client with a code.
import {
  AuthorizationError, CimdFetchError, authorizationErrorRedirect,
  type AuthRequest, type OAuthHelpers,
} from '@cloudflare/workers-oauth-provider';
import { base64url } from 'jose';
import { readBody } from './forward.ts';
import { discover, finishSignIn, random, signInUrl, SignInFault, type Begun } from './oidc.ts';
import { consentPage, faultPage, onwardPage } from './pages.ts';
import { mayRedirect } from './redirects.ts';
import { BASIC_SCOPES, SCOPES, type Settings } from './settings.ts';

/** A consent form has a handle, a decision and four scopes. */
const FORM_MAX = 4096;

/** The store's name of a person: a subject may have any bytes, a name no colon. */
export async function userId(sub: string): Promise<string> {
  return base64url.encode(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(sub))));
}

/** Returns the rights that are asked for: known ones, and the basic ones if there is none. */
export function asked(scope: readonly string[]): string[] {
  const known = SCOPES.filter((s) => scope.includes(s));
  return known.length > 0 ? known : BASIC_SCOPES;
}

function back(request: AuthRequest, code: 'invalid_request' | 'access_denied', text: string, headers = new Headers()): Response {
  headers.set('Location', authorizationErrorRedirect(request, code, text));
  headers.set('Cache-Control', 'no-store');
  return new Response(null, { status: 302, headers });
}

async function ask(request: Request, oauth: OAuthHelpers, settings: Settings): Promise<Response> {
  const wanted = await oauth.parseAuthRequest(request);
  // Registration checked it already; a document of a client's own site (CIMD) and a client
  // of the administrator were not registered here.
  if (!mayRedirect(wanted.redirectUri, settings.redirects))
    return faultPage(`This server sends nobody to ${new URL(wanted.redirectUri).host}: its owner can list the address in REDIRECTS.`);
  if (!wanted.codeChallenge || wanted.codeChallengeMethod !== 'S256')
    return back(wanted, 'invalid_request', 'PKCE with S256 is required');
  wanted.scope = asked(wanted.scope);
  const seen = await oauth.describeConsent(wanted);
  const consent = await oauth.beginConsent(wanted);
  return consentPage(seen, consent.handle, new URL(settings.resource).host, consent.headers);
}

async function decide(request: Request, oauth: OAuthHelpers, settings: Settings): Promise<Response> {
  // SameSite and the handle's cookie say the same. This costs nothing.
  const origin = request.headers.get('Origin');
  if (origin !== null && origin !== 'null' && origin !== settings.origin) return faultPage('This form is of another site.');
  const body = await readBody(request, FORM_MAX);
  if (!body) return faultPage('This form is too long.', 413);
  const form = new URLSearchParams(new TextDecoder().decode(body));
  const handle = form.get('handle') ?? '';
  const scope = form.getAll('scope').filter((s) => SCOPES.includes(s));
  if (form.get('decision') !== 'allow' || scope.length === 0) {
    const denied = await oauth.denyConsent(request, handle);
    denied.headers.delete('Location');
    return onwardPage(denied.redirectTo, denied.headers);
  }
  const provider = await discover(settings.oidc.issuer);
  const approved = await oauth.approveConsent(request, handle, { scope });
  const begun: Begun = { verifier: random(), nonce: random() };
  const { state, headers } = await oauth.beginUpstream(approved.request, { data: begun, headers: approved.headers });
  return onwardPage(await signInUrl(settings, provider, state, begun), headers);
}

async function finish(request: Request, oauth: OAuthHelpers, settings: Settings): Promise<Response> {
  const answer = new URL(request.url).searchParams;
  const { request: wanted, data, headers } = await oauth.finishUpstream<Begun>(request);
  if (answer.has('error')) return back(wanted, 'access_denied', 'the sign-in was refused', headers);
  const who = await finishSignIn(settings, await discover(settings.oidc.issuer), answer, data);
  const { redirectTo } = await oauth.completeAuthorization({
    request: wanted,
    userId: await userId(who.sub),
    // The store shows metadata to its owner: enough to find a person's grants.
    metadata: { sub: who.sub },
    scope: wanted.scope,
    props: who,
  });
  headers.set('Location', redirectTo);
  headers.set('Referrer-Policy', 'no-referrer');
  return new Response(null, { status: 302, headers });
}

/** Serves /authorize and /callback. */
export async function authorize(request: Request, oauth: OAuthHelpers, settings: Settings): Promise<Response> {
  const { pathname } = new URL(request.url);
  try {
    if (pathname === '/callback' && request.method === 'GET') return await finish(request, oauth, settings);
    if (pathname === '/authorize' && request.method === 'GET') return await ask(request, oauth, settings);
    if (pathname === '/authorize' && request.method === 'POST') return await decide(request, oauth, settings);
    return faultPage('This address is for a browser.', 405, new Headers({ Allow: 'GET, POST' }));
  } catch (e) {
    if (e instanceof AuthorizationError) {
      // Only where the client and its address are good. The list is ours, so it is asked, too.
      if (e.redirectTo && e.redirectUri && mayRedirect(e.redirectUri, settings.redirects))
        return new Response(null, { status: 302, headers: { Location: e.redirectTo, 'Cache-Control': 'no-store' } });
      return faultPage(e.description);
    }
    if (e instanceof CimdFetchError) return faultPage("The program's own description can not be read.");
    if (e instanceof SignInFault) {
      console.warn('sign-in failed:', e.message);
      return faultPage(`The sign-in failed: ${e.message}.`);
    }
    throw e;
  }
}
