import { describe, expect, onTestFinished, test } from "vitest";
import { controlPlaneAclRules, podAclRules } from "../../edge/redis/acl.ts";
import { openCertificateFolder } from "../harness/certificate.ts";
import { WORKSPACE } from "../harness/gate.ts";
import { redisBinary } from "../harness/parts/redis.ts";
import { valkeyBinary } from "../harness/parts/valkey.ts";
import { type KindOptions, type Replicated, startCluster, startSentinels } from "../harness/redis-kinds.ts";
import { waitFor } from "../harness/wait.ts";
import { enoughOfTheHour, type Failover, LIMIT, openFailover, strayErrors } from "./failover.ts";

/* Failovers with TLS and Redis users. Users are not replicated, so a new master may lack the user of a gate. */

const GLOBAL = controlPlaneAclRules({});
const GATES = podAclRules({ workspaceId: WORKSPACE });

async function openWithUsers(start: (options: KindOptions) => Promise<Replicated>, program: string): Promise<Failover> {
  const certificates = openCertificateFolder();
  onTestFinished(() => certificates.remove());
  const tls = certificates.make("redis");
  const store = await start({ program, tls });
  await store.atAll("ACL", "SETUSER", "central", ...GLOBAL, ">secret");
  await store.atAll("ACL", "SETUSER", "gates", ...GATES, ">secret");
  const users = { central: "central:secret", gates: "gates:secret" };
  return await openFailover({ store, users, caFile: tls.certFile, ca: tls.cert });
}

const STORES = [
  { name: "a Redis Cluster", find: redisBinary, start: startCluster },
  { name: "Redis with Sentinel", find: redisBinary, start: startSentinels },
  { name: "a Valkey Cluster", find: valkeyBinary, start: startCluster },
];

// `npm run failovers` runs all variants.
describe.each(process.env.ALL_FAILOVERS === "1" ? STORES : STORES.slice(0, 1))(
  "on $name, with TLS and users",
  ({ find, start }) => {
    test("strict limits stay exact after failover when the new master has the users", async () => {
      await enoughOfTheHour();
      const { store, gates, counter, traffic } = await openWithUsers(start, await find());
      const asking = traffic();
      await waitFor("some traffic", () => asking.admitted() > 20);
      await store.switchOver(counter);
      await waitFor("the limit to be used up", asking.isUsedUp, { deadlineMs: 60_000 });
      await asking.stop();
      expect(asking.admitted()).toBeLessThanOrEqual(LIMIT);
      expect(asking.admitted()).toBeGreaterThan(LIMIT / 2);
      for (const status of asking.statuses) expect([200, 429, 503]).toContain(status);
      expect(await strayErrors(gates)).toBe(0);
    }, 180_000);

    test("failover to a master without the users admits no uncounted request until the users exist", async () => {
      await enoughOfTheHour();
      const { store, gates, counter, traffic } = await openWithUsers(start, await find());
      const asking = traffic();
      await waitFor("some traffic", () => asking.admitted() > 20);
      const before = await store.master(counter);
      // A replica added later without the users file.
      await store.atAll("ACL", "DELUSER", "gates");
      await store.at(before, "ACL", "SETUSER", "gates", ...GATES, ">secret");
      await store.switchOver(counter);
      const isTold = () => gates.every(({ process }) => /Redis rejected the user/.test(process.stderr()));
      await waitFor("the logs to say it", isTold, { deadlineMs: 30_000 });
      for (const { process } of gates) expect(process.stderr()).toMatch(/WRONGPASS/);
      const refused = asking.admitted();
      expect(refused).toBeLessThan(LIMIT);
      await waitFor("503", () => asking.statuses.has(503));
      await store.atAll("ACL", "SETUSER", "gates", ...GATES, ">secret");
      await waitFor("requests to be let through again", () => asking.admitted() > refused, { deadlineMs: 30_000 });
      await waitFor("the limit to be used up", asking.isUsedUp, { deadlineMs: 60_000 });
      await asking.stop();
      expect(asking.admitted()).toBeLessThanOrEqual(LIMIT);
      for (const { process } of gates) expect(process.stderr()).not.toContain("secret");
      expect(await strayErrors(gates)).toBe(0);
    }, 180_000);
  },
);
