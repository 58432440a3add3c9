import { createServer } from "node:http";

/* The app behind the measured proxies: responds at once with a small JSON body. Prints its address. */
const BODY = Buffer.from(JSON.stringify({ ok: true, orders: [1, 2, 3] }));
const server = createServer((request, response) => {
  request.resume();
  response.writeHead(200, { "content-type": "application/json", "content-length": BODY.length }).end(BODY);
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  if (typeof address === "object" && address !== null) console.log(`http://127.0.0.1:${address.port}`);
});
process.once("SIGTERM", () => process.exit(0));
