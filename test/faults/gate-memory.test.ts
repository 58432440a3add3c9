import { expect, test } from "vitest";
import { nodeOptionsFor } from "../../operator/injection/gate-container.ts";
import { parseQuantity } from "../../operator/injection/quantity.ts";
import { saturateGate } from "../load/gate-memory/saturate.ts";

/* A short run; `npm run bench:gate-memory` runs longer with more keys and prints figures. */

/** Less than half of the default, and enough for 256 clients with bodies of 1 MiB. */
const MEMORY = "128Mi";

test("gate limited to 128Mi survives overload, such as 256 uploads of 1 MiB at a time", async () => {
  const memoryBytes = parseQuantity(MEMORY) ?? 0;
  const {
    phases,
    ended,
    chargedMb = 0,
  } = await saturateGate({
    memoryBytes,
    keys: 2_000,
    connections: 256,
    secondsPerPhase: 3,
    nodeOptions: nodeOptionsFor(MEMORY),
  });
  expect({ ended, phases: phases.length }).toEqual({ ended: undefined, phases: 8 });
  // The kernel reclaims memory before it kills, so a margin is asserted.
  expect(chargedMb * 1_000_000).toBeLessThan(0.95 * memoryBytes);
});
