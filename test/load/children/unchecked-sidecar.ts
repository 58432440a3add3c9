import { pino } from "pino";
import { openRedisEdge } from "../../../edge/open.ts";
import { startSidecar } from "../../../sidecar/start.ts";

/*
 * The baseline for the checks: a sidecar like any other, with the same connections and the same policy to follow, but with its
 * checks switched off. Usage: … UPSTREAM WORKSPACE POLICY, with REDIS_URL
 */
const [upstream = "", workspaceId = "", policyId = ""] = process.argv.slice(2);
const sidecar = await startSidecar({
  edge: await openRedisEdge({ url: process.env.REDIS_URL ?? "", clientName: "postern-sidecar" }),
  workspaceId,
  policyId,
  upstream,
  listen: { host: "127.0.0.1", port: 0 },
  admin: { host: "127.0.0.1", port: 0 },
  podId: "unchecked",
  region: "",
  errorDocsUrl: "",
  logger: pino({ level: "info" }, pino.destination(2)),
  checks: false,
});
console.log(sidecar.url);
process.once("SIGTERM", () => process.exit(0));
