import { MemoryCounters, MemoryStore } from "./counters/memory.ts";
import { MemoryCreditStore } from "./credits/memory.ts";
import type { Edge } from "./edge.ts";
import { BufferedSink } from "./events/buffer.ts";
import { MemoryEventStream } from "./events/memory.ts";
import { MemoryPodReports } from "./pods/memory.ts";
import { MemoryProjectionStore } from "./projection/memory.ts";

const NONE = { units: 0, largestShare: 0, lastMs: undefined };

/** The complete edge within this process, for `postern dev`. All components share it and use the clock `nowMs`. */
export function createMemoryEdge(options: { nowMs?: () => number } = {}): Edge {
  const { nowMs = Date.now } = options;
  const store = new MemoryStore(nowMs);
  const counters = new MemoryCounters(store);
  const projected = new MemoryProjectionStore(nowMs);
  const events = new MemoryEventStream();
  const sink = new BufferedSink({ send: async (batch) => events.append(batch) });
  return {
    kind: "memory",
    writer: projected,
    source: projected,
    stream: projected,
    // All decisions are made in this process, so local accuracy is as good as strict accuracy.
    counters: () => ({
      consume: (request) => counters.consume(request),
      peek: (limits) => counters.consume({ limits }, { dryRun: true }),
      check: (charge) => {
        const [outcome] = counters.consumeNow({ limits: [charge] }, { dryRun: true }).limits;
        if (outcome === undefined) throw new Error("each charge has an outcome");
        return outcome;
      },
      forgetDenials: () => {},
      addLater: () => {},
      overAdmissions: () => ({ async: NONE, outage: NONE }),
      close: async () => {},
    }),
    credits: new MemoryCreditStore(store),
    sink,
    events,
    // All readers of in-memory events share one queue.
    anotherReader: () => events,
    gateUsers: undefined,
    pods: new MemoryPodReports(nowMs),
    loadScripts: async () => {},
    ping: async () => {},
    info: async () => ({}),
    describe: async () => ({
      version: "",
      memoryBytes: 0,
      memoryMaxBytes: 0,
      persistence: "none",
      role: "master",
      nodes: 1,
      startedAt: 0,
      clients: 0,
    }),
    close: () => sink.close(),
  };
}
