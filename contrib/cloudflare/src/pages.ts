// The pages that a person sees. Their text comes from strangers: a client chooses its
// name. So all text is escaped, no script runs, and no other page can frame or restyle them.
import type { ConsentDescription } from '@cloudflare/workers-oauth-provider';
import { NAME_MAX } from './registration.ts';
import { RIGHTS } from './settings.ts';

export function escape(text: string): string {
  return text.replace(/[&<>"'`]/g, (c) => `&#${c.charCodeAt(0)};`);
}

/** Returns a stranger's text in one line, as long as a name, without what turns or hides text. */
export function plain(text: string): string {
  const chars = [...text.replace(/\s+/g, ' ').replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu, '\u{fffd}').trim()];
  return chars.length > NAME_MAX ? chars.slice(0, NAME_MAX).join('') + '…' : chars.join('');
}

const STYLE = 'body{font:1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:3rem auto;padding:0 1rem}'
  + 'strong,code{overflow-wrap:anywhere}button{font:inherit;padding:.4rem 1.2rem;margin-right:.6rem}'
  + '.warn{border-left:.3rem solid #b50;padding-left:.8rem}';

function page(title: string, body: string, status: number, headers: Headers, head = ''): Response {
  const nonce = btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(16))));
  headers.set('Content-Type', 'text/html; charset=utf-8');
  headers.set('Content-Security-Policy',
              `default-src 'none'; style-src 'nonce-${nonce}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`);
  headers.set('X-Frame-Options', 'DENY');
  headers.set('X-Content-Type-Options', 'nosniff');
  headers.set('Referrer-Policy', 'no-referrer');
  headers.set('Cross-Origin-Opener-Policy', 'same-origin');
  headers.set('Cache-Control', 'no-store');
  headers.set('Strict-Transport-Security', 'max-age=31536000');
  return new Response(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex">${head}
<title>${escape(title)}</title><style nonce="${nonce}">${STYLE}</style></head>
<body><main><h1>${escape(title)}</h1>
${body}
</main></body></html>
`, { status, headers });
}

/** The page on which a person lets a client in. `host` is ours. */
export function consentPage(seen: ConsentDescription, handle: string, host: string, headers: Headers): Response {
  const name = escape(plain(seen.clientName));
  const origin = seen.clientDomain
    ? `<p>This program was published by <strong>${escape(plain(seen.clientDomain))}</strong>.</p>`
    : '<p>This program named itself: nobody has verified its name.</p>';
  const local = seen.redirectIsLoopback
    ? '<p class="warn">Access goes to a program on <strong>your own computer</strong>. Go on only if you just '
      + 'started to connect it there yourself.</p>' : '';
  const rights = seen.scope.map((scope) =>
    `<p><label><input type="checkbox" name="scope" value="${escape(scope)}" checked> `
    + `${escape(RIGHTS[scope] ?? scope)} (<code>${escape(scope)}</code>)</label></p>`).join('\n');
  return page('Let this program in?', `<p><strong>${name}</strong> asks for access to the tools at <strong>${escape(host)}</strong>.</p>
${origin}
<p>Access goes to <strong>${escape(plain(seen.redirectHost))}</strong>.</p>
${local}
<form method="post">
<input type="hidden" name="handle" value="${escape(handle)}">
<h2>What it may do in your name</h2>
${rights}
<p><button name="decision" value="allow">Allow and sign in</button><button name="decision" value="deny">Refuse</button></p>
</form>`, 200, headers);
}

/**
 * Leads on after a form. A redirect would be the form's own, and the policy form-action
 * 'self' ends those; this page is left by a refresh, or by its link.
 */
export function onwardPage(url: string, headers: Headers): Response {
  const safe = escape(url);
  return page('One moment', `<p><a href="${safe}" rel="noreferrer">Go on</a></p>`, 200, headers,
              `<meta http-equiv="refresh" content="0;url=${safe}">`);
}

export function faultPage(text: string, status = 400, headers = new Headers()): Response {
  return page('That did not work', `<p>${escape(plain(text))}</p>
<p>Begin again in the program that you want to connect.</p>`, status, headers);
}
