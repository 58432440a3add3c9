import { describe, expect, test } from "vitest";
import { call, withKey } from "../harness/gate.ts";
import { redisBinary } from "../harness/parts/redis.ts";
import { valkeyBinary } from "../harness/parts/valkey.ts";
import { startCluster, startSentinels } from "../harness/redis-kinds.ts";
import { isReady, type SidecarProcess } from "../harness/sidecar-process.ts";
import { waitFor } from "../harness/wait.ts";
import { enoughOfTheHour, LIMIT, openFailover, strayErrors } from "./failover.ts";

/* Two gates count strictly on replicated Redis and Valkey while the master changes. */

const KINDS = [
  { kind: "Sentinel with a replica", start: startSentinels },
  { kind: "a Cluster of three masters with replicas", start: startCluster },
];
const PROGRAMS = [
  { name: "Redis", find: redisBinary },
  { name: "Valkey", find: valkeyBinary },
];

const BOTH = PROGRAMS.flatMap((program, i) => KINDS.map((kind, at) => ({ ...program, ...kind, isOwnOf: i === at })));

// Each program and each topology once; `npm run failovers` runs all combinations.
describe.each(BOTH.filter(({ isOwnOf }) => isOwnOf || process.env.ALL_FAILOVERS === "1"))(
  "on $name: $kind",
  ({ find, start }) => {
    test("strict limits stay exact through a planned failover", async () => {
      await enoughOfTheHour();
      const { store, gates, counter, traffic } = await openFailover({ store: await start({ program: await find() }) });
      const asking = traffic();
      await waitFor("some traffic", () => asking.admitted() > 20);
      await store.switchOver(counter);
      await waitFor("the limit to be used up", asking.isUsedUp, { deadlineMs: 60_000 });
      await asking.stop();
      console.log(`${LIMIT} allowed, ${asking.admitted()} admitted`);
      // A request whose counter reply was lost or late was counted but not admitted.
      expect(asking.admitted()).toBeLessThanOrEqual(LIMIT);
      expect(asking.admitted()).toBeGreaterThan(LIMIT / 2);
      for (const status of asking.statuses) expect([200, 429, 503]).toContain(status);
      expect(await strayErrors(gates)).toBe(0);
    }, 180_000);

    test("unplanned failover admits at most the limit once more, and gates recover", async () => {
      await enoughOfTheHour();
      const opened = await openFailover({ store: await start({ program: await find() }) });
      const { store, gates, records, counter, traffic } = opened;
      const asking = traffic();
      await waitFor("some traffic", () => asking.admitted() > 20);
      const master = await store.master(counter);
      const killedMs = performance.now();
      process.kill(master.pid, "SIGKILL");
      const atKill = asking.admitted();
      await waitFor("requests to be let through again", () => asking.admitted() > atKill + 10, { deadlineMs: 60_000 });
      const backMs = performance.now() - killedMs;
      await waitFor("the limit to be used up", asking.isUsedUp, { deadlineMs: 60_000 });
      await asking.stop();
      const admitted = asking.admitted();
      console.log(`${LIMIT} allowed, ${admitted} admitted; let through again ${Math.round(backMs)} ms after the kill`);
      expect(admitted).toBeLessThanOrEqual(2 * LIMIT);
      for (const gate of gates) await waitFor("the gate to be ready", () => isReady(gate));
      // Changes arrive through the new master.
      const another = await waitFor("the relay to write", () => records.putKey(), { deadlineMs: 20_000 });
      const isKnown = async () => (await call((gates[0] as SidecarProcess).port, withKey(another))).status === 200;
      await waitFor("a new key to be let through", isKnown, { deadlineMs: 20_000 });
      expect(await strayErrors(gates)).toBe(0);
    }, 180_000);
  },
);
