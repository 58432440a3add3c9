import fc from "fast-check";
import { expect, test } from "vitest";
import { type StreamUse, shareQuota, trimOver } from "./budget.ts";

const TOTAL = 1_000_000;

const aUse = (workspaceId: string, bytes: number, capacityBytes: number): StreamUse => ({
  workspaceId,
  bytes,
  capacityBytes,
});

/** Streams over time: written up to their budgets, read, and rebalanced repeatedly. */
class World {
  readonly streams = new Map<string, { bytes: number; capacityBytes: number }>();

  uses(): StreamUse[] {
    return [...this.streams].map(([workspaceId, stream]) => ({ workspaceId, ...stream }));
  }

  share(uses: readonly StreamUse[] = this.uses()): void {
    for (const [id, change] of shareQuota(TOTAL, uses)) this.at(id).capacityBytes += change;
  }

  write(id: string, bytes: number): boolean {
    const stream = this.at(id);
    if (stream.capacityBytes < bytes) return false;
    stream.capacityBytes -= bytes;
    stream.bytes += bytes;
    return true;
  }

  read(id: string): void {
    const stream = this.at(id);
    stream.capacityBytes += stream.bytes;
    stream.bytes = 0;
  }

  bytes(): number {
    return this.uses().reduce((sum, { bytes }) => sum + bytes, 0);
  }

  at(id: string): { bytes: number; capacityBytes: number } {
    const stream = this.streams.get(id) ?? { bytes: 0, capacityBytes: 0 };
    this.streams.set(id, stream);
    return stream;
  }
}

const aStep = fc.oneof(
  fc.record({ do: fc.constant("write" as const), who: fc.nat(7), part: fc.double({ min: 0, max: 1, noNaN: true }) }),
  fc.record({ do: fc.constant("read" as const), who: fc.nat(7) }),
  fc.record({ do: fc.constant("come" as const), who: fc.nat(7) }),
  // Writers continue between a measurement and the resulting rebalancing.
  fc.record({ do: fc.constant("share" as const), writes: fc.array(fc.nat(7)) }),
);

test("event stream budget never exceeds its total, however much writers use", () => {
  fc.assert(
    fc.property(fc.array(aStep, { maxLength: 60 }), (steps) => {
      const world = new World();
      for (const step of steps) {
        if (step.do === "come") world.at(`ws_${step.who}`);
        else if (step.do === "write")
          world.write(`ws_${step.who}`, Math.floor(world.at(`ws_${step.who}`).capacityBytes * step.part));
        else if (step.do === "read") world.read(`ws_${step.who}`);
        else {
          const measured = world.uses();
          for (const who of step.writes) world.write(`ws_${who}`, world.at(`ws_${who}`).capacityBytes);
          world.share(measured);
        }
        expect(world.bytes()).toBeLessThanOrEqual(TOTAL);
      }
    }),
    { numRuns: 500 },
  );
});

test("event stream budget gives a flooding stream only the shared half and does not reduce the other streams", () => {
  const world = new World();
  for (const id of ["ws_a", "ws_b", "ws_c", "ws_d"]) world.at(id);
  for (let round = 0; round < 20; round++) {
    world.share();
    while (world.write("ws_a", 1_000));
  }
  expect(world.at("ws_a").bytes).toBeGreaterThan(0.6 * TOTAL);
  for (const id of ["ws_b", "ws_c", "ws_d"]) expect(world.at(id).capacityBytes).toBeGreaterThan(0.12 * TOTAL);
});

test("event stream budget splits the shared half between two busy streams", () => {
  const world = new World();
  for (const id of ["ws_a", "ws_b"]) world.at(id);
  for (let round = 0; round < 20; round++) {
    world.share();
    while (world.write("ws_a", 1_000));
  }
  for (let round = 0; round < 30; round++) {
    world.share();
    while (world.write("ws_b", 1_000));
    const first = world.at("ws_a");
    const read = Math.min(first.bytes, 20_000);
    first.bytes -= read;
    first.capacityBytes += read;
    while (world.write("ws_a", 1_000));
  }
  expect(world.at("ws_b").bytes).toBeGreaterThan(0.45 * TOTAL);
});

test("event stream budget stays unchanged when all streams fit", () => {
  const world = new World();
  for (const id of ["ws_a", "ws_b", "ws_c"]) world.at(id);
  world.share();
  expect(shareQuota(TOTAL, world.uses()).size).toBe(0);
  world.write("ws_a", 100_000);
  world.share();
  world.read("ws_a");
  expect(shareQuota(TOTAL, world.uses()).size).toBe(0);
});

test("event stream budget shrinks after a smaller total or a forged reservation", () => {
  const changes = shareQuota(TOTAL, [aUse("ws_honest", 0, TOTAL / 4), aUse("ws_forged", 0, 1e12)]);
  expect(changes.get("ws_forged")).toBeLessThan(-0.99e12);
  expect(changes.get("ws_honest") ?? 0).toBe(0);
});

test("event stream budget trims only the excess of streams above their share", () => {
  expect(trimOver(TOTAL, [aUse("ws_a", TOTAL, 0)])).toEqual([]);
  const trims = trimOver(TOTAL, [aUse("ws_a", 100_000, 0), aUse("ws_b", 1_900_000, 0)]);
  expect(trims).toHaveLength(1);
  expect(trims[0]?.workspaceId).toBe("ws_b");
  expect(1_900_000 * (trims[0]?.keptShare ?? 1)).toBeCloseTo(900_000);
});
