// Dynamic registration (RFC 7591): what a stranger may write into our store. The number
// of registrations an address is in counter.ts.
import { mayRedirect } from './redirects.ts';

export const REGISTRATION_BODY_MAX = 16384;
/** A name is shown to a person who decides by it. */
export const NAME_MAX = 100;
export const REDIRECTS_MAX = 10;
export const REDIRECT_LENGTH_MAX = 512;
export const REGISTRATIONS_AN_HOUR = 10;

/** Returns the fault of a registration, or null. */
export function registrationFault(metadata: Record<string, unknown>, more: readonly string[]): string | null {
  const name = metadata['client_name'];
  if (name !== undefined && (typeof name !== 'string' || name.length > NAME_MAX))
    return `client_name must be a text of at most ${NAME_MAX} characters`;
  const uris = metadata['redirect_uris'];
  if (!Array.isArray(uris) || uris.length === 0 || uris.length > REDIRECTS_MAX)
    return `redirect_uris must have 1 to ${REDIRECTS_MAX} addresses`;
  let good = 0;
  for (const uri of uris) {
    if (typeof uri !== 'string' || uri.length > REDIRECT_LENGTH_MAX)
      return `each of redirect_uris must have at most ${REDIRECT_LENGTH_MAX} characters`;
    if (mayRedirect(uri, more)) good++;
    // Cursor registers an address of its own scheme beside the others: no request can use it.
    else if (/^https?:/i.test(uri)) return 'redirect_uris has an address that this server does not list';
  }
  return good > 0 ? null : 'redirect_uris has no address that this server lists';
}
