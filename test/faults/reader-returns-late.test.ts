import { expect, test } from "vitest";
import { waitFor } from "../harness/wait.ts";
import { makeKey } from "./client.ts";
import { openLine } from "./line.ts";
import { openSystem } from "./system.ts";

/*
 * A gate has several Redis connections that reconnect independently. After a data loss the relay repeats recent announcements; a gate that
 * received them before it could read records would only know that they may have changed.
 */

test("gate whose change stream recovers before its other connections serves cached data, then changes", async () => {
  const system = await openSystem({ ownRedis: true });
  const api = await system.api();
  const { apiId, keyId, key } = await makeKey(api);
  const line = system.closing(await openLine(system.redisUrl));
  const gate = await system.gate(api, { apiId, redisUrl: line.url });
  await waitFor("the gate to let it in", async () => (await gate.status(key)) === 200);
  const before = (await api.edge.writer.state()).projectionId;

  line.cut();
  await system.raw.flushall();
  await waitFor("everything to be projected again", async () => {
    const { complete, projectionId } = await api.edge.writer.state();
    return complete && projectionId !== before;
  });
  // The name of every connection except that of the change stream ends here.
  line.hold("sidecar\r\n");
  line.mend();
  const seen = new Set<number>();
  const until = performance.now() + 1_500;
  await waitFor("a while to pass", async () => {
    seen.add(await gate.status(key));
    return performance.now() > until;
  });
  expect(seen).toEqual(new Set([200]));

  line.hold();
  await api.data("keys.updateKey", { keyId, enabled: false });
  await waitFor("the gate to refuse", async () => (await gate.status(key)) === 401);
});
