import { randomBytes } from "node:crypto";
import { pino } from "pino";
import { createMemoryEdge } from "../../edge/open.ts";
import { openProjection } from "../../edge/projection/projection.ts";
import { buildApp } from "../app.ts";
import { createPool } from "../store/pool.ts";
import { createCreditService, createRecordSource } from "./stand-ins.ts";

const db = createPool(process.argv[2] ?? "");
const edge = createMemoryEdge();
await edge.writer.begin("x", []);
await edge.writer.complete("x", []);
const projection = await openProjection({
  source: createRecordSource(db),
  feed: edge.feed,
  follow: "central",
  limits: { bypassAfterMs: 30_000 },
});
setInterval(() => void edge.writer.heartbeat("x", Date.now(), []), 1000);
await edge.writer.heartbeat("x", Date.now(), []);
const sink = { add() {}, flush: async () => {}, dropped: () => 0, close: async () => {} };
const app = await buildApp({
  db,
  projection,
  counters: edge.counters({ timeoutMs: 1000 }),
  credits: createCreditService(db, edge.credits),
  events: sink,
  pods: edge.pods,
  log: pino({ level: "error" }),
  nowMs: Date.now,
  randomBytes,
  docsUrl: "",
  region: "",
  propagationDelayed: () => false,
});
const address = await app.listen({ port: 0, host: "127.0.0.1" });
process.on("message", async (m) => {
  if (m === "prof") {
    const { Session } = await import("node:inspector/promises");
    const s = new Session();
    s.connect();
    await s.post("Profiler.enable");
    await s.post("Profiler.start");
    process.once("message", async () => {
      const { profile } = await s.post("Profiler.stop");
      (await import("node:fs")).writeFileSync("/tmp/verify.cpuprofile", JSON.stringify(profile));
      process.send?.("done");
    });
    return;
  }
  if (m === "cpu") process.send?.(process.cpuUsage());
});
process.send?.(address);
