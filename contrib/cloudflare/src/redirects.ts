// Where codes may go. A code that reaches a stranger is an account, and the name that
// a client gives itself proves nothing, so only addresses on this list get one.
import { isLoopback } from './settings.ts';

/** The callbacks of clients that people use; compared byte by byte. */
export const KNOWN_REDIRECTS: readonly string[] = [
  'https://claude.ai/api/mcp/auth_callback',
  'https://claude.com/api/mcp/auth_callback',
  'https://chatgpt.com/connector_platform_oauth_redirect',
  'https://vscode.dev/redirect',
  'https://insiders.vscode.dev/redirect',
  'https://www.cursor.com/agents/mcp/oauth/callback',
];

/**
 * Tells whether a code may be sent there. A program on the person's own machine listens
 * on loopback, on any port and path (RFC 8252 section 7.3): the consent page warns of it.
 */
export function mayRedirect(uri: string, more: readonly string[]): boolean {
  if (KNOWN_REDIRECTS.includes(uri) || more.includes(uri)) return true;
  if (!URL.canParse(uri) || uri !== uri.trim()) return false;
  const url = new URL(uri);
  return url.protocol === 'http:' && isLoopback(url.hostname) && !url.username && !url.password && !uri.includes('#');
}
