import { createServer } from "node:http";
import { Pool } from "undici";

/* The baseline for the sidecar: node:http in, undici out, nothing in between. Usage: node pass-through.ts UPSTREAM */
const pool = new Pool(process.argv[2] ?? "", { connections: 64 });
const server = createServer((request, response) => {
  const { method = "GET", url = "/", headers } = request;
  pool.stream(
    { method: method as "GET", path: url, headers, body: method === "GET" ? null : request },
    ({ statusCode, headers }) => response.writeHead(statusCode, headers as Record<string, string>),
    (error) => {
      if (error !== null) response.destroy(error);
    },
  );
});
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  if (typeof address === "object" && address !== null) console.log(`http://127.0.0.1:${address.port}`);
});
process.once("SIGTERM", () => process.exit(0));
