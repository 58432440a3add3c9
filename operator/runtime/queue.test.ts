import { afterEach, expect, test, vi } from "vitest";
import { createQueue, type QueueOptions, type WorkQueue } from "./queue.ts";

const queues: WorkQueue[] = [];
afterEach(async () => {
  vi.useRealTimers();
  await Promise.all(queues.splice(0).map((queue) => queue.close()));
});

function open(options: Partial<QueueOptions> & Pick<QueueOptions, "work">): WorkQueue {
  const queue = createQueue({
    concurrency: 4,
    backoff: { firstMs: 100, maxMs: 400, random: () => 0 },
    onFailure: () => undefined,
    ...options,
  });
  queues.push(queue);
  return queue;
}

/** Work that the test ends explicitly; `running` holds the keys in progress. */
function heldWork() {
  const running: string[] = [];
  const started: string[] = [];
  const ends = new Map<string, () => void>();
  const work = async (key: string) => {
    running.push(key);
    started.push(key);
    await new Promise<void>((resolve) => ends.set(key, resolve));
    running.splice(running.indexOf(key), 1);
    return {};
  };
  const end = async (key: string) => {
    ends.get(key)?.();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { work, running, started, end };
}

test("reconcile queue deduplicates keys and processes each key in one worker only", async () => {
  const { work, running, started, end } = heldWork();
  const queue = open({ work });
  queue.add("a");
  queue.add("a");
  queue.add("a");
  expect(running).toEqual(["a"]);
  await end("a");
  // A key added several times during its work is processed exactly once more.
  expect(started).toEqual(["a", "a"]);
  await end("a");
  expect(started).toEqual(["a", "a"]);
  expect(queue.depth).toBe(0);
});

test("reconcile queue processes at most `concurrency` keys concurrently", async () => {
  const { work, running, end } = heldWork();
  const queue = open({ work, concurrency: 2 });
  for (const key of ["a", "b", "c"]) queue.add(key);
  expect(running).toEqual(["a", "b"]);
  await end("a");
  expect(running).toEqual(["b", "c"]);
  await end("b");
  await end("c");
});

test("reconcile queue retries with exponential backoff, which success resets", async () => {
  vi.useFakeTimers();
  const waits: number[] = [];
  let failing = true;
  let runs = 0;
  const queue = open({
    work: async () => {
      runs += 1;
      if (failing) throw new Error("not yet");
      return {};
    },
    onFailure: ({ retryAfterMs }) => waits.push(retryAfterMs),
  });
  queue.add("a");
  await vi.advanceTimersByTimeAsync(100 + 200 + 400 + 400);
  expect(waits).toEqual([100, 200, 400, 400, 400]);
  failing = false;
  await vi.advanceTimersByTimeAsync(400);
  expect(runs).toBe(6);
  failing = true;
  queue.add("a");
  await vi.advanceTimersByTimeAsync(0);
  expect(waits.at(-1)).toBe(100);
});

test("reconcile queue applies backoff even to a key that is added again during its failing reconcile", async () => {
  vi.useFakeTimers();
  let runs = 0;
  const queue: WorkQueue = open({
    work: async (key) => {
      runs += 1;
      queue.add(key);
      throw new Error("its own write came back as an event");
    },
  });
  queue.add("a");
  await vi.advanceTimersByTimeAsync(99);
  expect(runs).toBe(1);
});

test("reconcile queue uses the earliest `requeueAfterMs`, and processes events immediately", async () => {
  vi.useFakeTimers();
  const at: number[] = [];
  const begin = Date.now();
  const queue = open({
    work: async () => {
      at.push(Date.now() - begin);
      return { requeueAfterMs: 1000 };
    },
  });
  queue.add("a");
  await vi.advanceTimersByTimeAsync(1000);
  expect(at).toEqual([0, 1000]);
  queue.addAfter("a", 300);
  queue.addAfter("a", 600);
  await vi.advanceTimersByTimeAsync(300);
  expect(at).toEqual([0, 1000, 1300]);
  await vi.advanceTimersByTimeAsync(100);
  queue.add("a");
  await vi.advanceTimersByTimeAsync(0);
  expect(at).toEqual([0, 1000, 1300, 1400]);
});

test("paused reconcile queue collects keys until it is resumed", () => {
  const { work, running, end } = heldWork();
  const queue = open({ work, paused: true });
  queue.add("a");
  queue.add("b");
  expect(running).toEqual([]);
  queue.resume();
  expect(running).toEqual(["a", "b"]);
  return Promise.all([end("a"), end("b")]);
});

test("closing reconcile queue waits for running work and starts no more", async () => {
  const { work, started, end } = heldWork();
  const queue = open({ work, concurrency: 1 });
  queue.add("a");
  queue.add("b");
  let isClosed = false;
  const closing = queue.close().then(() => {
    isClosed = true;
  });
  await Promise.resolve();
  expect(isClosed).toBe(false);
  await end("a");
  await closing;
  queue.add("c");
  expect(started).toEqual(["a"]);
});

test("reconcile queue alternates between namespaces despite 10,000 objects in one", async () => {
  const { work, started, end } = heldWork();
  const queue = open({ work, concurrency: 1 });
  for (let i = 0; i < 10_000; i++) queue.add(`busy/${i}`);
  for (const key of ["quiet/a", "quiet/b", "other/a"]) queue.add(key);
  expect(queue.depth).toBe(10_003);
  for (let i = 0; i < 7; i++) await end(started.at(-1) ?? "");
  expect(started).toEqual(["busy/0", "busy/1", "quiet/a", "other/a", "busy/2", "quiet/b", "busy/3", "busy/4"]);
  void queue.close();
  await end("busy/4");
});
