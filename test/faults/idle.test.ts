import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { waitFor } from "../harness/wait.ts";
import { openSystem, type System } from "./system.ts";

const LOOKED_AT_MS = 4_000;

/** Returns commands per second by name, including those in scripts. */
async function commandsPerSecond({ raw }: System): Promise<Map<string, number>> {
  await raw.config("RESETSTAT");
  const since = performance.now();
  await sleep(LOOKED_AT_MS);
  const stats = await raw.info("commandstats");
  const seconds = (performance.now() - since) / 1000;
  const found = stats.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm);
  return new Map([...found].map(([, name = "", calls]) => [name, Number(calls) / seconds]));
}

test("idle credit polling uses one Redis command for all workspaces", async () => {
  const system = await openSystem({ ownRedis: true });
  const api = await system.api();
  const total: number[] = [];
  for (const workspaces of [1, 100]) {
    await system.db.query(
      "insert into workspaces (id, name, created_at) select 'ws_idle' || i, 'idle ' || i, 1 from generate_series(2, $1) i",
      [workspaces],
    );
    await waitFor("all to be projected", async () => {
      const beaten = await system.raw.keys(`${system.prefix}:ws_*:state:*`);
      return beaten.length >= workspaces && (await api.isComplete());
    });
    // The loops detect new workspaces within a second.
    await sleep(2_000);
    const calls = await commandsPerSecond(system);
    total.push([...calls.values()].reduce((sum, each) => sum + each, 0));
    if (process.env.SHOW === "1") console.log(workspaces, total.at(-1), Object.fromEntries(calls));
    expect(calls.get("exists") ?? 0).toBeLessThan(15);
    for (const each of ["spop", "srandmember", "scard", "smembers"]) expect(calls.get(each) ?? 0).toBe(0);
  }
  // Heartbeats and event stream checks are per workspace.
  const [one = 0, hundred = 0] = total;
  expect((hundred - one) / 99).toBeLessThan(12);
}, 60_000);
