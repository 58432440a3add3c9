import { createServer } from "node:http";

/*
 * The app behind the gate. It handles no keys. It reads the caller from the headers that the gate sets, and returns these headers. Usage:
 * node app.ts [PORT]
 */
const server = createServer((request, response) => {
  const identity = Object.fromEntries(
    Object.entries(request.headers).filter(([name]) => name.startsWith("x-postern-")),
  );
  request.resume();
  request.on("end", () => {
    const body = JSON.stringify({ app: "orders", method: request.method, path: request.url, identity });
    response.writeHead(200, { "content-type": "application/json" }).end(`${body}\n`);
  });
});

server.on("error", (error) => {
  console.error(`the sample app: ${error.message}`);
  process.exit(1);
});
server.listen(Number(process.argv[2] ?? 3000), "127.0.0.1", () => {
  const address = server.address();
  if (typeof address === "object" && address !== null) console.log(`http://127.0.0.1:${address.port}`);
});
process.on("SIGTERM", () => {
  server.close();
  server.closeAllConnections();
});
