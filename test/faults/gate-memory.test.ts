import { expect, test } from "vitest";
import { DEFAULT_RESOURCES } from "../../operator/injection/config.ts";
import { nodeOptionsFor } from "../../operator/injection/gate-container.ts";
import { parseQuantity } from "../../operator/injection/quantity.ts";
import { saturateGate } from "../load/gate-memory/saturate.ts";

/* A short run; `npm run bench:gate-memory` runs longer with more keys and prints figures. */

test("gate with injected memory limits survives overload", async () => {
  const { memoryLimit } = DEFAULT_RESOURCES;
  const memoryBytes = parseQuantity(memoryLimit) ?? 0;
  const {
    phases,
    ended,
    chargedMb = 0,
  } = await saturateGate({
    memoryBytes,
    keys: 2_000,
    connections: 256,
    secondsPerPhase: 3,
    nodeOptions: nodeOptionsFor(memoryLimit),
  });
  expect({ ended, phases: phases.length }).toEqual({ ended: undefined, phases: 8 });
  // The kernel reclaims memory before it kills, so a margin is asserted.
  expect(chargedMb * 1_000_000).toBeLessThan(0.95 * memoryBytes);
});
