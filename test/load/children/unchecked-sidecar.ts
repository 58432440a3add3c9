import { pino } from "pino";
import { createMemoryEdge } from "../../../edge/open.ts";
import { startSidecar } from "../../../sidecar/start.ts";

/* The sidecar with its checks off: the proxy alone, which the checks are measured against. Usage: … UPSTREAM */
const sidecar = await startSidecar({
  edge: createMemoryEdge(),
  workspaceId: "ws_bench",
  policyId: "pol_bench",
  upstream: process.argv[2] ?? "",
  listen: { host: "127.0.0.1", port: 0 },
  admin: { host: "127.0.0.1", port: 0 },
  podId: "bench",
  region: "",
  errorDocsUrl: "",
  logger: pino({ level: "warn" }, pino.destination(2)),
  checks: false,
});
console.log(sidecar.url);
process.once("SIGTERM", () => process.exit(0));
