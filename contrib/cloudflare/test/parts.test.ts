// Tests of the parts that run without Cloudflare: node --test test/
import assert from 'node:assert/strict';
import test from 'node:test';
import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, jwtVerify } from 'jose';
import { answerFields, requestFields, readBody } from '../src/forward.ts';
import { digest, readKey, sign } from '../src/identity.ts';
import { addressKey } from '../src/limits.ts';
import { checkIssuer, person, SignInFault, type Provider } from '../src/oidc.ts';
import { escape, faultPage, onwardPage, plain } from '../src/pages.ts';
import { mayRedirect, KNOWN_REDIRECTS } from '../src/redirects.ts';
import { registrationFault } from '../src/registration.ts';
import { SettingFault, settings, type Env } from '../src/settings.ts';

const env = {
  RESOURCE: 'https://mcp.example.org/mcp', OIDC_ISSUER: 'https://id.example.org', OIDC_CLIENT_ID: 'mcpbox',
  SIGNING_KEY: '{}', MCPBOX_URL: 'https://origin.example.org/mcp',
} as unknown as Env;

test('settings: faults say what to write', () => {
  const good = settings(env);
  assert.deepEqual([good.origin, good.target, good.accessSeconds, good.refreshSeconds],
                   ['https://mcp.example.org', 'https://origin.example.org/mcp', 3600, 30 * 86400]);
  for (const [name, value, says] of [
    ['RESOURCE', 'https://mcp.example.org/', 'mcp.example.org/mcp'],
    ['RESOURCE', 'http://mcp.example.org/mcp', 'https://'],
    ['RESOURCE', 'https://MCP.example.org/mcp', 'mcp.example.org/mcp'],
    ['RESOURCE', undefined, 'not set'],
    ['OIDC_ISSUER', 'http://id.example.org', 'https://'],
    ['OIDC_SCOPES', 'email', 'openid'],
    ['SIGNING_KEY', '', 'wrangler secret put'],
    ['MCPBOX_URL', 'https://origin.example.org/', '/mcp'],
    ['MCPBOX_URL', undefined, 'MCPBOX'],
    ['ACCESS_TOKEN_SECONDS', '59', '60'],
    ['REFRESH_DAYS', 'x', '90'],
  ] as const) assert.throws(() => settings({ ...env, [name]: value } as Env), (e) =>
    e instanceof SettingFault && e.message.includes(name) && e.message.includes(says), `${name}=${value}`);
  // With a VPC service the address is made from the resource.
  assert.equal(settings({ ...env, MCPBOX_URL: undefined, MCPBOX: {} } as unknown as Env).target, 'http://mcp.example.org/mcp');
});

test('redirects: a list, and loopback with any port', () => {
  for (const uri of [...KNOWN_REDIRECTS, 'http://localhost:3118/callback', 'http://127.0.0.1:33418', 'http://[::1]:9/x',
                     'http://127.1.2.3/', 'https://own.example.org/in'])
    assert.equal(mayRedirect(uri, ['https://own.example.org/in']), true, uri);
  for (const uri of ['https://own.example.org/in?x', 'https://claude.ai/api/mcp/auth_callback/', 'https://claude.ai.evil.org/',
                     'https://localhost/', 'http://localhost@evil.org/', 'http://localhost.evil.org/', 'javascript:alert(1)',
                     'cursor://x/y', 'http://localhost/#', ' http://localhost/', 'http://0.0.0.0/', 'x', ''])
    assert.equal(mayRedirect(uri, ['https://own.example.org/in']), false, uri);
});

test('registration: bounds', () => {
  const fault = (metadata: Record<string, unknown>) => registrationFault(metadata, []);
  const uri = 'http://localhost:1/';
  assert.equal(fault({ redirect_uris: [uri] }), null);
  assert.equal(fault({ client_name: 'n'.repeat(100), redirect_uris: [uri, 'cursor://a/b'] }), null);
  assert.match(fault({ client_name: 'n'.repeat(101), redirect_uris: [uri] })!, /client_name/);
  assert.match(fault({ client_name: 7, redirect_uris: [uri] })!, /client_name/);
  assert.match(fault({ redirect_uris: Array(11).fill(uri) })!, /1 to 10/);
  assert.match(fault({ redirect_uris: [uri + 'a'.repeat(512)] })!, /512/);
  assert.match(fault({ redirect_uris: [uri, 'https://evil.org/'] })!, /does not list/);
  assert.match(fault({ redirect_uris: ['cursor://a/b'] })!, /no address/);
  assert.match(fault({})!, /redirect_uris/);
});

test('pages: text of strangers stays text', async () => {
  assert.equal(escape(`<a b="c" d='e'>&\``), '&#60;a b=&#34;c&#34; d=&#39;e&#39;&#62;&#38;&#96;');
  assert.equal(plain('a\u202eb\u0000c\n\n d'), 'a\ufffdb\ufffdc d');
  assert.equal([...plain('😀'.repeat(200))].length, 101);
  const page = faultPage('<script>x</script>');
  const text = await page.text();
  assert.ok(!text.includes('<script') && text.includes('&#60;script'));
  assert.match(page.headers.get('Content-Security-Policy')!, /^default-src 'none'.*frame-ancestors 'none'$/);
  assert.ok((await onwardPage('https://a/?b="><i>', new Headers()).text()).includes('url=https://a/?b=&#34;&#62;&#60;i&#62;"'));
});

test('limits: one key a household', () => {
  assert.equal(addressKey('192.0.2.7'), '192.0.2.7');
  assert.equal(addressKey('2001:db8:0:1::7'), addressKey('2001:0DB8::1:a:b:c:d'));
  assert.notEqual(addressKey('2001:db8:0:1::7'), addressKey('2001:db8:0:2::7'));
  assert.equal(addressKey(null), 'unknown');
});

test('fields: a list of what passes', () => {
  const to = requestFields(new Headers({ Authorization: 'x', 'Cf-Access-Jwt-Assertion': 'x', Cookie: 'x', Origin: 'x',
                                         Accept: 'a', 'Mcp-Session-Id': 's' }));
  assert.deepEqual([...to.keys()], ['accept', 'mcp-session-id']);
  const back = answerFields(new Headers({ 'Set-Cookie': 'x', Server: 'x', 'Content-Type': 't', 'Mcp-Session-Id': 's' }));
  assert.deepEqual([...back.keys()], ['cache-control', 'content-type', 'mcp-session-id']);
});

test('body: not more than its bound', async () => {
  const request = () => new Request('https://x/', { method: 'POST', body: 'abc' });
  assert.deepEqual(await readBody(request(), 3), new TextEncoder().encode('abc'));
  assert.equal(await readBody(request(), 2), null);
  assert.deepEqual(await readBody(new Request('https://x/'), 0), new Uint8Array());
});

test('identity: signed, for one request', async () => {
  const { privateKey } = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true });
  const jwk = await exportJWK(privateKey);
  const kid = await calculateJwkThumbprint({ kty: 'OKP', crv: 'Ed25519', x: jwk.x! });
  const signer = await readKey(JSON.stringify({ ...jwk, kid }));
  assert.equal(signer.kid, kid);
  const token = await sign(signer, settings(env), { sub: 'ann', email: 'ann@example.org', groups: ['a'] },
                           { clientId: 'c', scope: ['tools:read', 'tools:call'], end: 4102444800 },
                           { method: 'GET', search: '?a=b', body: new Uint8Array() });
  const { payload, protectedHeader } = await jwtVerify(
    token, await importJWK({ kty: 'OKP', crv: 'Ed25519', x: jwk.x! }, 'EdDSA'),
    { issuer: 'https://mcp.example.org', audience: env.RESOURCE, algorithms: ['EdDSA'] });
  assert.deepEqual(protectedHeader, { alg: 'EdDSA', kid, typ: 'at+jwt' });
  assert.equal(payload.exp! - payload.iat!, 60);
  // SHA-256 of nothing.
  assert.equal(payload['bsha256'], '47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU');
  assert.equal(payload['bsha256'], await digest(new Uint8Array()));
  assert.equal(payload['htu'], 'https://mcp.example.org/mcp?a=b');
  assert.deepEqual([payload['htm'], payload['scope'], payload['client_id'], payload['session_exp'], payload['groups']],
                   ['GET', 'tools:read tools:call', 'c', 4102444800, ['a']]);
  for (const bad of ['x', '{}', JSON.stringify({ ...jwk, kid: 'another' }), JSON.stringify({ ...jwk, d: undefined })])
    await assert.rejects(readKey(bad), SettingFault);
});

test('sign-in: issuer and person', () => {
  const provider = { issuer: 'https://id', authorization_response_iss_parameter_supported: true } as Provider;
  checkIssuer(provider, new URLSearchParams({ iss: 'https://id' }));
  checkIssuer({ ...provider, authorization_response_iss_parameter_supported: false }, new URLSearchParams());
  for (const query of ['', 'iss=https://id/', 'iss=https://id&iss=https://id'])
    assert.throws(() => checkIssuer(provider, new URLSearchParams(query)), SignInFault, query);
  assert.deepEqual(person({ sub: 'a', email: 'e', email_verified: 'true', name: 7, groups: ['g', 7], role: 'admin' }),
                   { sub: 'a', email: 'e' });
  assert.deepEqual(person({ sub: 'a', email_verified: true, groups: Array(65).fill('g') }), { sub: 'a' });
});
