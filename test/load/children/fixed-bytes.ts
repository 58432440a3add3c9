import { createServer } from "node:http";

/*
 * Node's own `http`, which reads a request's body and answers fixed bytes: the app behind the measured proxies, and the baseline for a
 * procedure. Prints its address. Usage: … [BODY]
 */
const body = Buffer.from(process.argv[2] ?? JSON.stringify({ ok: true, orders: [1, 2, 3] }));
const headers = { "content-type": "application/json; charset=utf-8", "content-length": body.length };
const server = createServer((request, response) => {
  request.resume().on("end", () => response.writeHead(200, headers).end(body));
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  if (typeof address === "object" && address !== null) console.log(`http://127.0.0.1:${address.port}`);
});
process.once("SIGTERM", () => process.exit(0));
