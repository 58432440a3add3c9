import { expect, test, vi } from "vitest";
import { type PlaceSeeker, Places } from "./places.ts";

const OPTIONS = { max: 100, share: 0.5, waitMs: 60_000, waiting: { max: 100_000, bytesMax: 1_000_000 } };

interface Asking extends PlaceSeeker {
  state: "waits" | "has a place" | "was told no";
}
const seekerOf = (address: string, bytes: number): Asking => ({
  ...{ address, bytes },
  state: "waits",
  onPlace() {
    this.state = "has a place";
  },
  onNoPlace() {
    this.state = "was told no";
  },
});
function seek(places: Places, address: string, bytes = 1): Asking {
  const seeker = seekerOf(address, bytes);
  places.seek(seeker);
  return seeker;
}
const takeAll = (places: Places, address: string): number => {
  let taken = 0;
  while (places.tryTake(address)) taken += 1;
  return taken;
};

test.each([
  { share: 0.5, alone: 50 },
  { share: 0.75, alone: 75 },
  { share: 0.1, alone: 10 },
  { share: 1, alone: 100 },
])("a single address gets a share of $share: $alone of 100", ({ share, alone }) => {
  expect(takeAll(new Places({ ...OPTIONS, share }), "a")).toBe(alone);
});

test.each([1, 2, 3])("of %i places one can be taken", (max) => {
  expect(takeAll(new Places({ ...OPTIONS, max }), "a")).toBeGreaterThanOrEqual(1);
});

test("the more the others hold, the fewer an address gets, and a new one always finds a place", () => {
  const places = new Places(OPTIONS);
  const got = Array.from({ length: 5 }, (_, i) => takeAll(places, `greedy ${i}`));
  expect(got).toEqual([50, 25, 13, 6, 3]);
  expect(places.tryTake("new")).toBe(true);
});

test("never more than all places are taken, and a released one can be taken again", () => {
  const places = new Places({ ...OPTIONS, max: 3, share: 1 });
  expect(takeAll(places, "a")).toBe(3);
  expect(places.tryTake("b")).toBe(false);
  places.release("a");
  expect([places.tryTake("b"), places.tryTake("b"), places.taken]).toEqual([true, false, 3]);
});

test("waiting seekers are served in turns by address, and oldest first within one", () => {
  const places = new Places({ ...OPTIONS, max: 1 });
  places.tryTake("x");
  const order: string[] = [];
  for (const [address, n] of [
    ["many", 1],
    ["many", 2],
    ["many", 3],
    ["few", 1],
    ["few", 2],
  ] as const) {
    places.seek({ address, bytes: 1, onPlace: () => order.push(`${address} ${n}`), onNoPlace: () => {} });
  }
  places.release("x");
  for (let i = 0; i < 4; i++) places.release(order.at(-1)?.split(" ")[0] ?? "");
  expect(order).toEqual(["many 1", "few 1", "many 2", "few 2", "many 3"]);
  expect([places.taken, places.waiting]).toEqual([1, 0]);
});

test("an address over its share waits while places are free, and gets one when enough are", () => {
  const places = new Places(OPTIONS);
  takeAll(places, "greedy");
  for (let i = 0; i < 20; i++) expect(places.tryTake(`other ${i}`)).toBe(true);
  const late = seek(places, "greedy");
  places.release("greedy");
  // It holds 49, and 31 are free.
  expect(late.state).toBe("waits");
  expect(seek(places, "other 20").state).toBe("has a place");
  for (let i = 0; i <= 18; i++) places.release(`other ${i}`);
  expect(late.state).toBe("waits");
  places.release("other 19");
  expect(late.state).toBe("has a place");
});

test("a seeker that left is skipped", () => {
  const places = new Places({ ...OPTIONS, max: 1 });
  places.tryTake("x");
  const [gone, next] = [seek(places, "a"), seek(places, "a")];
  expect([places.leave(gone), places.leave(gone)]).toEqual([true, false]);
  places.release("x");
  expect([gone.state, next.state]).toEqual(["waits", "has a place"]);
  expect(places.leave(next)).toBe(false);
});

/** Seekers of an address, until one is told no. Returns those that wait. */
function fillLine(places: Places, address: string, bytes: number): Asking[] {
  const waiting: Asking[] = [];
  for (;;) {
    const seeker = seek(places, address, bytes);
    if (seeker.state !== "waits") return waiting;
    waiting.push(seeker);
  }
}

test.each([
  { name: "by number", bytes: 0, waiting: { max: 10, bytesMax: 1_000 } },
  { name: "by bytes", bytes: 100, waiting: { max: 1_000, bytesMax: 1_000 } },
])("what waits is bounded $name, shared by address, and who may not wait is told so at once", ({ bytes, waiting }) => {
  const places = new Places({ ...OPTIONS, max: 1, waiting });
  places.tryTake("x");
  const greedy = fillLine(places, "a", bytes);
  expect([greedy.length, fillLine(places, "b", bytes).length, places.waiting]).toEqual([5, 3, 8]);
  // One that leaves, and one that gets a place, make room.
  expect(places.leave(greedy[0] as Asking)).toBe(true);
  expect(seek(places, "c", bytes).state).toBe("waits");
  places.release("x");
  expect(greedy[1]?.state).toBe("has a place");
  expect(seek(places, "c", bytes).state).toBe("waits");
  places.close();
  expect([places.waiting, fillLine(places, "a", bytes).length]).toEqual([0, 5]);
  places.close();
});

test("with a share of 1 addresses are ignored while waiting, and one that is too large never waits", () => {
  const places = new Places({ ...OPTIONS, share: 1, max: 1, waiting: { max: 10, bytesMax: 1_000 } });
  places.tryTake("x");
  expect(seek(places, "a", 1_001).state).toBe("was told no");
  expect(fillLine(places, "a", 100)).toHaveLength(10);
  expect(seek(places, "b", 0).state).toBe("was told no");
  places.close();
});

test("without bounds none waits", () => {
  const places = new Places({ max: 1, share: 0.5, waitMs: 0 });
  expect([seek(places, "a").state, seek(places, "b").state]).toEqual(["has a place", "was told no"]);
});

test("a place that is released at once, ten thousand times, serves all waiting seekers", () => {
  const places = new Places({ ...OPTIONS, max: 1 });
  places.tryTake("x");
  let served = 0;
  const onPlace = (): void => {
    served += 1;
    places.release("a");
  };
  for (let i = 0; i < 10_000; i++) places.seek({ address: "a", bytes: 1, onPlace, onNoPlace: () => {} });
  places.release("x");
  expect([served, places.taken, places.waiting]).toEqual([10_000, 0, 0]);
});

test("seekers that wait too long are notified, oldest first; at the end all are", () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  try {
    const places = new Places({ ...OPTIONS, max: 1, waitMs: 1_000 });
    places.tryTake("x");
    const first = seek(places, "a");
    vi.advanceTimersByTime(600);
    const second = seek(places, "b");
    vi.advanceTimersByTime(500);
    expect([first.state, second.state]).toEqual(["was told no", "waits"]);
    places.close();
    expect([second.state, places.waiting]).toEqual(["was told no", 0]);
    places.release("x");
    expect([places.taken, vi.getTimerCount()]).toEqual([0, 0]);
  } finally {
    vi.useRealTimers();
  }
});
