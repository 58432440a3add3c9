import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { progressLine, withNotice, withProgress } from "./progress.ts";

describe("the line", () => {
  const work = { doing: "re-encrypting", resources: "keys" };
  test.each([
    { state: { elapsedMs: 700 }, says: "re-encrypting: 1s" },
    { state: { done: 5, elapsedMs: 700 }, says: "re-encrypting: 5 keys, 1s" },
    { state: { done: 0, total: 0, elapsedMs: 5_000 }, says: "re-encrypting: 0 of 0 keys, 5s" },
    { state: { done: 0, total: 10, elapsedMs: 5_000 }, says: "re-encrypting: 0 of 10 keys, 0 %, 5s" },
    {
      state: { done: 1500, total: 6000, elapsedMs: 12_000 },
      says: "re-encrypting: 1500 of 6000 keys, 25 %, 12s, about 36s left",
    },
    { state: { done: 1500, total: 6000, elapsedMs: 1_500 }, says: "re-encrypting: 1500 of 6000 keys, 25 %, 2s" },
    { state: { done: 12, total: 10, elapsedMs: 9_000 }, says: "re-encrypting: 12 of 12 keys, 100 %, 9s" },
    {
      state: { done: 1, total: 3, step: "0002-x.sql", elapsedMs: 70_000 },
      says: "re-encrypting: 1 of 3 keys, 33 %, 0002-x.sql, 1m10s, about 2m20s left",
    },
  ])("progress of $state is printed as: $says", ({ state, says }) => expect(progressLine(work, state)).toBe(says));
});

describe("while work runs", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** Runs work of this duration that reports 1 of 4 immediately. Returns the output. */
  async function run(
    ms: number,
    { columns, json = false, fails = false }: { columns?: number; json?: boolean; fails?: boolean },
  ) {
    const notes: string[] = [];
    const written: string[] = [];
    const screen = columns === undefined ? undefined : { columns, write: (text: string) => void written.push(text) };
    const io = { note: (line: string) => void notes.push(line), screen };
    const done = withProgress(io, { json }, { doing: "seeding", resources: "keys" }, async (progress) => {
      progress.at({ done: 1, total: 4 });
      await new Promise((resolve) => setTimeout(resolve, ms));
      if (fails) throw new Error("the work failed");
      return "done";
    }).catch((error: Error) => error.message);
    await vi.advanceTimersByTimeAsync(ms);
    expect(await done).toBe(fails ? "the work failed" : "done");
    expect(vi.getTimerCount()).toBe(0);
    return { notes, written };
  }

  test("progress overwrites one terminal line, and removes it at the end or after a failure", async () => {
    for (const fails of [false, true]) {
      const { notes, written } = await run(3_000, { columns: 80, fails });
      expect(notes).toEqual([]);
      expect(written.length).toBeGreaterThan(5);
      for (const one of written) expect(one.slice(0, 4) + one.slice(4).replace(/[\r\n]/g, "a line")).toBe(one);
      expect(written.every((one) => one.startsWith("\r\u001b[K"))).toBe(true);
      expect(written[0]).toContain("seeding: 1 of 4 keys, 25 %");
      expect(written.at(-1)).toBe("\r\u001b[K");
    }
  });

  test("messages during progress are printed on separate lines", async () => {
    const all: string[] = [];
    const io = {
      note: (line: string) => void all.push(line),
      screen: { columns: 80, write: (text: string) => void all.push(text) },
    };
    const done = withProgress(io, {}, { doing: "migrating" }, async (progress) => {
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      progress.say("it waits for a lock");
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    });
    await vi.advanceTimersByTimeAsync(2_000);
    await done;
    const at = all.indexOf("it waits for a lock");
    expect(all[at - 1]).toBe("\r\u001b[K");
    expect(all[at + 1]).toContain("migrating: ");
  });

  test("progress never wraps in a narrow terminal", async () => {
    const { written } = await run(3_000, { columns: 12 });
    for (const one of written) expect(one.replace("\r\u001b[K", "").length).toBeLessThan(12);
  });

  test("progress in a log file has a line every ten seconds", async () => {
    const { notes, written } = await run(35_000, {});
    expect(written).toEqual([]);
    expect(notes).toHaveLength(3);
    expect(notes[0]).toContain("seeding: 1 of 4 keys, 25 %, 10s");
  });

  test.each([
    { name: "short work", ms: 400, options: { columns: 80 } },
    { name: "work for a log that ends within ten seconds", ms: 9_000, options: {} },
    { name: "work whose answer is JSON", ms: 60_000, options: { columns: 80, json: true } },
  ])("progress prints no line for $name", async ({ ms, options }) => {
    expect(await run(ms, options)).toEqual({ notes: [], written: [] });
  });
});

describe("what is made at a first start", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const work = { doing: "building the dashboard", takes: "about 10 seconds" };
  const make = async (fails = false) => {
    await new Promise((resolve) => setTimeout(resolve, 72_000));
    if (fails) throw new Error("it cannot be built");
    return "made";
  };

  test("long step prints one line when it starts and one when it ends", async () => {
    const notes: string[] = [];
    const made = withNotice({ note: (line) => void notes.push(line) }, {}, work, make);
    expect(notes).toEqual(["building the dashboard; this takes about 10 seconds"]);
    await vi.advanceTimersByTimeAsync(72_000);
    expect(await made).toBe("made");
    expect(notes.slice(1)).toEqual(["building the dashboard: done after 1m12s"]);
  });

  test("failed step is not printed as done", async () => {
    const notes: string[] = [];
    const made = withNotice({ note: (line) => void notes.push(line) }, {}, work, () => make(true));
    made.catch(() => undefined);
    await vi.advanceTimersByTimeAsync(72_000);
    await expect(made).rejects.toThrow("it cannot be built");
    expect(notes).toHaveLength(1);
  });

  test("steps print no line with --json", async () => {
    const notes: string[] = [];
    const made = withNotice({ note: (line) => void notes.push(line) }, { json: true }, work, make);
    await vi.advanceTimersByTimeAsync(72_000);
    expect([await made, notes]).toEqual(["made", []]);
  });
});
