// Makes a client that is registered beforehand, for programs that take an id and a secret:
//
//	node client.mjs NAME REDIRECT... >client.json
//	npx wrangler kv key put --remote --binding OAUTH_KV "client:$(...)" --path client.json
//
// The id and the secret are shown once, on standard error, with the whole command. The
// store gets the secret's SHA-256. `--public` makes a client without a secret.
import { createHash, randomBytes } from 'node:crypto';

const words = process.argv.slice(2).filter((w) => w !== '--public');
const open = process.argv.includes('--public');
const [clientName, ...redirectUris] = words;
if (!clientName || redirectUris.length === 0) {
  console.error('usage: node client.mjs [--public] NAME REDIRECT...');
  process.exit(2);
}
const clientId = randomBytes(12).toString('base64url');
const secret = randomBytes(32).toString('base64url');
console.log(JSON.stringify({
  clientId, clientName, redirectUris,
  grantTypes: ['authorization_code', 'refresh_token'],
  responseTypes: ['code'],
  registrationDate: Math.floor(Date.now() / 1000),
  tokenEndpointAuthMethod: open ? 'none' : 'client_secret_basic',
  ...(open ? {} : { clientSecret: createHash('sha256').update(secret).digest('hex') }),
}));
console.error(`client id: ${clientId}`);
if (!open) console.error(`client secret: ${secret}`);
console.error(`npx wrangler kv key put --remote --binding OAUTH_KV "client:${clientId}" --path client.json`);
