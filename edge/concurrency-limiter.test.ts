import { expect, test, vi } from "vitest";
import { ConcurrencyLimiter, type Waiter } from "./concurrency-limiter.ts";

const OPTIONS = { max: 100, share: 0.5, waitMs: 60_000, waiting: { max: 100_000, bytesMax: 1_000_000 } };

interface Asking extends Waiter {
  state: "waits" | "has a place" | "was told no";
}
const waiterOf = (address: string, bytes: number): Asking => ({
  ...{ address, bytes },
  state: "waits",
  onAcquired() {
    this.state = "has a place";
  },
  onTimeout() {
    this.state = "was told no";
  },
});
function acquire(limiter: ConcurrencyLimiter, address: string, bytes = 1): Asking {
  const waiter = waiterOf(address, bytes);
  limiter.acquire(waiter);
  return waiter;
}
const takeAll = (limiter: ConcurrencyLimiter, address: string): number => {
  let taken = 0;
  while (limiter.tryAcquire(address)) taken += 1;
  return taken;
};

test.each([
  { share: 0.5, alone: 50 },
  { share: 0.75, alone: 75 },
  { share: 0.1, alone: 10 },
  { share: 1, alone: 100 },
])("ConcurrencyLimiter with share $share limits a single address to $alone of 100 slots", ({ share, alone }) => {
  expect(takeAll(new ConcurrencyLimiter({ ...OPTIONS, share }), "a")).toBe(alone);
});

test.each([1, 2, 3])("ConcurrencyLimiter with max %i lets a single address acquire at least one slot", (max) => {
  expect(takeAll(new ConcurrencyLimiter({ ...OPTIONS, max }), "a")).toBeGreaterThanOrEqual(1);
});

test("ConcurrencyLimiter shrinks the share of one address under load and serves new addresses", () => {
  const limiter = new ConcurrencyLimiter(OPTIONS);
  const got = Array.from({ length: 5 }, (_, i) => takeAll(limiter, `greedy ${i}`));
  expect(got).toEqual([50, 25, 13, 6, 3]);
  expect(limiter.tryAcquire("new")).toBe(true);
});

test("ConcurrencyLimiter never exceeds its maximum and reuses released slots", () => {
  const limiter = new ConcurrencyLimiter({ ...OPTIONS, max: 3, share: 1 });
  expect(takeAll(limiter, "a")).toBe(3);
  expect(limiter.tryAcquire("b")).toBe(false);
  limiter.release("a");
  expect([limiter.tryAcquire("b"), limiter.tryAcquire("b"), limiter.taken]).toEqual([true, false, 3]);
});

test("ConcurrencyLimiter serves waiters round-robin by address, oldest first within an address", () => {
  const limiter = new ConcurrencyLimiter({ ...OPTIONS, max: 1 });
  limiter.tryAcquire("x");
  const order: string[] = [];
  for (const [address, n] of [
    ["many", 1],
    ["many", 2],
    ["many", 3],
    ["few", 1],
    ["few", 2],
  ] as const) {
    limiter.acquire({ address, bytes: 1, onAcquired: () => order.push(`${address} ${n}`), onTimeout: () => {} });
  }
  limiter.release("x");
  for (let i = 0; i < 4; i++) limiter.release(order.at(-1)?.split(" ")[0] ?? "");
  expect(order).toEqual(["many 1", "few 1", "many 2", "few 2", "many 3"]);
  expect([limiter.taken, limiter.waiting]).toEqual([1, 0]);
});

test("ConcurrencyLimiter queues an address above its share although slots are free", () => {
  const limiter = new ConcurrencyLimiter(OPTIONS);
  takeAll(limiter, "greedy");
  for (let i = 0; i < 20; i++) expect(limiter.tryAcquire(`other ${i}`)).toBe(true);
  const late = acquire(limiter, "greedy");
  limiter.release("greedy");
  // The address holds 49 slots, and 31 are free.
  expect(late.state).toBe("waits");
  expect(acquire(limiter, "other 20").state).toBe("has a place");
  for (let i = 0; i <= 18; i++) limiter.release(`other ${i}`);
  expect(late.state).toBe("waits");
  limiter.release("other 19");
  expect(late.state).toBe("has a place");
});

test("ConcurrencyLimiter skips a canceled waiter", () => {
  const limiter = new ConcurrencyLimiter({ ...OPTIONS, max: 1 });
  limiter.tryAcquire("x");
  const [gone, next] = [acquire(limiter, "a"), acquire(limiter, "a")];
  expect([limiter.cancel(gone), limiter.cancel(gone)]).toEqual([true, false]);
  limiter.release("x");
  expect([gone.state, next.state]).toEqual(["waits", "has a place"]);
  expect(limiter.cancel(next)).toBe(false);
});

/** Queues waiters of an address until one is rejected. Returns the queued ones. */
function fillLine(limiter: ConcurrencyLimiter, address: string, bytes: number): Asking[] {
  const waiting: Asking[] = [];
  for (;;) {
    const waiter = acquire(limiter, address, bytes);
    if (waiter.state !== "waits") return waiting;
    waiting.push(waiter);
  }
}

test.each([
  { name: "by number", bytes: 0, waiting: { max: 10, bytesMax: 1_000 } },
  { name: "by bytes", bytes: 100, waiting: { max: 1_000, bytesMax: 1_000 } },
])(
  "ConcurrencyLimiter limits the queue $name per address, and rejects excess waiters immediately",
  ({ bytes, waiting }) => {
    const limiter = new ConcurrencyLimiter({ ...OPTIONS, max: 1, waiting });
    limiter.tryAcquire("x");
    const greedy = fillLine(limiter, "a", bytes);
    expect([greedy.length, fillLine(limiter, "b", bytes).length, limiter.waiting]).toEqual([5, 3, 8]);
    // A canceled waiter and one that acquires a slot free space in the queue.
    expect(limiter.cancel(greedy[0] as Asking)).toBe(true);
    expect(acquire(limiter, "c", bytes).state).toBe("waits");
    limiter.release("x");
    expect(greedy[1]?.state).toBe("has a place");
    expect(acquire(limiter, "c", bytes).state).toBe("waits");
    limiter.close();
    expect([limiter.waiting, fillLine(limiter, "a", bytes).length]).toEqual([0, 5]);
    limiter.close();
  },
);

test("ConcurrencyLimiter with share 1 ignores addresses and rejects oversized waiters immediately", () => {
  const limiter = new ConcurrencyLimiter({ ...OPTIONS, share: 1, max: 1, waiting: { max: 10, bytesMax: 1_000 } });
  limiter.tryAcquire("x");
  expect(acquire(limiter, "a", 1_001).state).toBe("was told no");
  expect(fillLine(limiter, "a", 100)).toHaveLength(10);
  expect(acquire(limiter, "b", 0).state).toBe("was told no");
  limiter.close();
});

test("ConcurrencyLimiter without a queue rejects all waiters", () => {
  const limiter = new ConcurrencyLimiter({ max: 1, share: 0.5, waitMs: 0 });
  expect([acquire(limiter, "a").state, acquire(limiter, "b").state]).toEqual(["has a place", "was told no"]);
});

test("ConcurrencyLimiter serves every waiter when slots are released immediately 10,000 times", () => {
  const limiter = new ConcurrencyLimiter({ ...OPTIONS, max: 1 });
  limiter.tryAcquire("x");
  let served = 0;
  const onAcquired = (): void => {
    served += 1;
    limiter.release("a");
  };
  for (let i = 0; i < 10_000; i++) limiter.acquire({ address: "a", bytes: 1, onAcquired, onTimeout: () => {} });
  limiter.release("x");
  expect([served, limiter.taken, limiter.waiting]).toEqual([10_000, 0, 0]);
});

test("ConcurrencyLimiter times out the oldest waiter first and rejects all waiters on close", () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  try {
    const limiter = new ConcurrencyLimiter({ ...OPTIONS, max: 1, waitMs: 1_000 });
    limiter.tryAcquire("x");
    const first = acquire(limiter, "a");
    vi.advanceTimersByTime(600);
    const second = acquire(limiter, "b");
    vi.advanceTimersByTime(500);
    expect([first.state, second.state]).toEqual(["was told no", "waits"]);
    limiter.close();
    expect([second.state, limiter.waiting]).toEqual(["was told no", 0]);
    limiter.release("x");
    expect([limiter.taken, vi.getTimerCount()]).toEqual([0, 0]);
  } finally {
    vi.useRealTimers();
  }
});
