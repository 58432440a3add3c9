import { pino } from "pino";
import { start } from "../../../api-server/start.ts";
import { openRedisEdge } from "../../../edge/open.ts";

/*
 * An api-server as a process of its own, to be killed. Its one argument is JSON: { databaseUrl, redisUrl, prefix, rootKey }.
 * It prints one line when it is ready: { url, workspaceId }.
 */

const { databaseUrl, redisUrl, prefix, rootKey } = JSON.parse(process.argv[2] ?? "{}");
const edge = await openRedisEdge({ url: redisUrl, prefix, clientName: "faults-child" });
const api = await start({
  databaseUrl,
  edge,
  host: "127.0.0.1",
  port: 0,
  rootKey,
  logger: pino({ level: "warn" }, pino.destination(2)),
});
const { workspaceId } = await api.devRootKey(rootKey);
process.once("SIGTERM", async () => {
  await api.close();
  await edge.close();
});
console.log(JSON.stringify({ url: api.url, workspaceId }));
