import { createServer } from "node:http";
import { REPORTS } from "./outcome.ts";

/*
 * A web app whose users have API keys. `node app.ts fetch` verifies the keys with plain fetch, `node app.ts client` verifies them with the
 * client `@unkey/api`. Set POSTERN_API_URL, POSTERN_ROOT_KEY and PORT.
 */

const { verify } = await (process.argv[2] === "client"
  ? import("./verify-with-client.ts")
  : import("./verify-with-fetch.ts"));

const server = createServer(async (request, response) => {
  const send = (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): void => {
    response.writeHead(status, { ...headers, "Content-Type": "application/json" }).end(JSON.stringify(body));
  };
  if (request.method !== "GET" || request.url !== "/reports")
    return send(404, { error: "There is only GET /reports." });
  const outcome = await verify(request.headers.authorization, REPORTS);
  if ("refusal" in outcome)
    return send(outcome.refusal.status, { error: outcome.refusal.error }, outcome.refusal.headers);
  const { keyId, externalId, meta } = outcome.caller;
  send(200, { reports: [], for: { keyId, externalId, plan: meta.plan } });
});

server.listen(Number(process.env.PORT ?? 3001), "127.0.0.1", () => {
  const address = server.address();
  if (typeof address === "object") console.log(`listening on http://127.0.0.1:${address?.port}`);
});
process.on("SIGTERM", () => {
  server.close();
  server.closeAllConnections();
});
