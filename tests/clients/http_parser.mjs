// What Node's HTTP parser (llhttp) makes of the same bytes: reads cases as
// base64, one a line, and prints for each a line of JSON: the requests that the
// server got whole, in order, and the parser's error, if there was one.
import http from 'node:http';
import net from 'node:net';
import readline from 'node:readline';

let seen;
const server = http.createServer({ maxHeaderSize: 32 * 1024, insecureHTTPParser: false }, take);
function take(req, res) {
  const chunks = [];
  req.on('data', (c) => chunks.push(c));
  req.on('end', () => {
    seen.requests.push({ method: req.method, target: req.url, fields: req.rawHeaders,
      body: Buffer.concat(chunks).toString('hex') });
    res.end();
  });
  req.on('error', () => {});
}
server.on('checkContinue', take);
server.on('checkExpectation', (req, res) => { seen.expectation = true; res.statusCode = 417; res.end(); });
server.on('clientError', (e, socket) => {
  seen.error ??= e.code;
  socket.destroy();
});
server.on('dropRequest', () => {});
server.keepAliveTimeout = 1000;
await new Promise((done) => server.listen(0, '127.0.0.1', done));

function one(bytes) {
  return new Promise((done) => {
    seen = { requests: [] };
    const socket = net.connect(server.address().port, '127.0.0.1');
    socket.on('error', () => {});
    socket.on('data', () => {});
    socket.on('close', () => done(seen));
    socket.end(bytes);
  });
}

for await (const line of readline.createInterface({ input: process.stdin }))
  console.log(JSON.stringify(await one(Buffer.from(line, 'base64'))));
server.close();
server.closeAllConnections();
