import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { PieceTurns, type Reader } from "./piece-turns.ts";

class FakeBody implements Reader {
  pieces = 0;
  isHeld = false;
  turns = 0;
  endTurn(): void {
    this.turns += 1;
  }
  hold(): void {}
  letGo(): void {}
}

let turns: PieceTurns;
let faults: unknown[];
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setImmediate", "clearImmediate", "performance"] });
  faults = [];
  turns = new PieceTurns((error) => void faults.push(error));
});
afterEach(() => {
  vi.useRealTimers();
  expect(faults).toEqual([]);
});

const readers = (count: number): FakeBody[] =>
  Array.from({ length: count }, () => {
    const reader = new FakeBody();
    turns.add(reader);
    return reader;
  });
const count = (reader: FakeBody, pieces: number): void => {
  for (let i = 0; i < pieces; i++) turns.count(reader);
};
const endTurn = (): void => void vi.advanceTimersByTime(0);

test("a body gets its turn once, however many pieces came", () => {
  const [a, b] = readers(2) as [FakeBody, FakeBody];
  count(a, 3);
  count(b, 500);
  count(a, 2);
  endTurn();
  expect([a.turns, b.turns, a.isHeld, b.isHeld]).toEqual([1, 1, false, false]);
  count(a, 1);
  endTurn();
  expect([a.turns, b.turns]).toEqual([2, 1]);
});

test("after very many pieces nothing more is read in that turn; the light ones go on after it", () => {
  const [heavy, light, quiet] = readers(3) as [FakeBody, FakeBody, FakeBody];
  count(light, 10);
  count(heavy, 10_000);
  expect([heavy.isHeld, light.isHeld, quiet.isHeld]).toEqual([true, true, true]);
  endTurn();
  expect([heavy.isHeld, light.isHeld, quiet.isHeld]).toEqual([true, false, false]);
});

test("many light bodies share a turn as well, and none of them stands in line", () => {
  const all = readers(10);
  for (const reader of all.slice(0, 5)) count(reader, 500);
  expect(all.every(({ isHeld }) => isHeld)).toBe(true);
  endTurn();
  expect(all.every(({ isHeld }) => !isHeld)).toBe(true);
});

test("heavy bodies are read one at a time, in turn, with rests", () => {
  const all = readers(4);
  for (const reader of all) count(reader, 10_000);
  endTurn();
  const order: number[] = [];
  for (let i = 0; i < 8; i++) {
    let at = -1;
    for (let ms = 0; at === -1 && ms < 5_000; ms += 10) {
      vi.advanceTimersByTime(10);
      at = all.findIndex(({ isHeld }) => !isHeld);
    }
    expect(all.filter(({ isHeld }) => !isHeld)).toHaveLength(1);
    order.push(at);
    count(all[at] as FakeBody, 10_000);
    endTurn();
  }
  expect(order).toEqual([0, 1, 2, 3, 0, 1, 2, 3]);
});

test("one in line that has nothing to read does not keep the others waiting; one that ended is passed over", () => {
  const [silent, gone, last] = readers(3) as [FakeBody, FakeBody, FakeBody];
  for (const reader of [silent, gone, last]) count(reader, 10_000);
  endTurn();
  turns.delete(gone);
  vi.advanceTimersByTime(10_000);
  expect([silent.isHeld, last.isHeld, vi.getTimerCount()]).toEqual([false, false, 0]);
});

test("one that ends while it is held lets its connection go", () => {
  const [held] = readers(1) as [FakeBody];
  const letGo = vi.spyOn(held, "letGo");
  count(held, 10_000);
  turns.delete(held);
  expect([held.isHeld, letGo.mock.calls.length]).toEqual([false, 1]);
  endTurn();
  expect([held.isHeld, vi.getTimerCount()]).toEqual([false, 0]);
});
