import type { World } from "./world.ts";

/*
 * The rows of "When something is down" (docs/architecture.md), each with every way in which the part can be away, and what is promised
 * then. test/outages/outages.test.ts makes them happen; docs/outages.md is written from these rows and what was seen.
 */

/** What is asked all the time, and answered by a status. */
export const ASKS = {
  known: "key in use",
  limited: "key with a limit",
  credits: "key with credits",
  unknown: "key that is none",
  verify: "keys.verifyKey",
  change: "keys.updateKey",
} as const;
export type Ask = keyof typeof ASKS;

export interface Row {
  /** The first cell of the row in docs/architecture.md. */
  readonly down: string;
  readonly how: string;
  /** In words, for the table. */
  readonly promised: string;
  /** The statuses that each may have while it lasts; what is left out is as always. */
  readonly statuses: Partial<Record<Ask, readonly number[]>>;
  /** No answer of the gate may take longer, ms. */
  readonly slowestMs: number;
  /** All must be as always this long after its end, ms. */
  readonly normalMs: number;
  begin(world: World): Promise<void> | void;
  end(world: World): Promise<void> | void;
}

/** What is answered when nothing is down. */
export const NORMAL: Readonly<Record<Ask, readonly number[]>> = {
  known: [200],
  limited: [200],
  credits: [200],
  unknown: [401],
  verify: [200],
  change: [200],
};

const WITHOUT_REDIS = {
  promised: "keys in use and limits served; credits and unknown keys 503; the API goes on",
  statuses: { unknown: [503, 401], credits: [503, 200] },
  slowestMs: 2_500,
  normalMs: 15_000,
} as const;
const SLOW_REDIS = { ...WITHOUT_REDIS, promised: "as without Redis, or as always" } as const;
const WITHOUT_POSTGRES = {
  promised: "gates as always; verifyKey from the cache, changes 500",
  statuses: { change: [500, 200] },
  slowestMs: 2_500,
  normalMs: 15_000,
} as const;
const WITHOUT_API = {
  promised: "gates as always: keys, limits, loaded credits; unknown keys 503 past onStale.after",
  statuses: { verify: [0, 200], change: [0, 200], unknown: [401, 503] },
  slowestMs: 2_500,
  normalMs: 20_000,
} as const;

const REDIS = "Redis";
const CENTRE = "all api-servers, or Postgres";

export const ROWS: readonly Row[] = [
  {
    down: CENTRE,
    how: "api-server: kill -9",
    ...WITHOUT_API,
    begin: (world) => world.killApi(),
    end: (world) => world.startApi(),
  },
  {
    down: CENTRE,
    how: "api-server: stands still (SIGSTOP)",
    ...WITHOUT_API,
    begin: (world) => world.signalApi("SIGSTOP"),
    end: (world) => world.signalApi("SIGCONT"),
  },
  ...(
    [
      ["Postgres: connections reset, and refused", { kind: "reset" }],
      ["Postgres: connections open and silent", { kind: "halfOpen" }],
      ["Postgres: 200 ms later each way", { kind: "latency", ms: 200 }],
    ] as const
  ).map(([how, fault]) => ({
    down: CENTRE,
    how,
    ...WITHOUT_POSTGRES,
    begin: (world: World) => world.postgres.disturb(fault),
    end: (world: World) => world.postgres.disturb(undefined),
  })),
  {
    down: REDIS,
    how: "kill -9",
    ...WITHOUT_REDIS,
    begin: (world) => world.redis.kill("SIGKILL"),
    end: (world) => world.redis.restart(),
  },
  {
    down: REDIS,
    how: "stands still (SIGSTOP)",
    ...WITHOUT_REDIS,
    begin: (world) => void process.kill(world.redis.pid, "SIGSTOP"),
    end: (world) => void process.kill(world.redis.pid, "SIGCONT"),
  },
  ...(
    [
      ["connections reset, and refused", { kind: "reset" }, WITHOUT_REDIS],
      ["connections open and silent (half-open)", { kind: "halfOpen" }, WITHOUT_REDIS],
      ["20 ms later each way", { kind: "latency", ms: 20 }, SLOW_REDIS],
      ["500 ms later each way", { kind: "latency", ms: 500 }, SLOW_REDIS],
      ["packets lost and sent again", { kind: "loss" }, SLOW_REDIS],
      ["reads slowly", { kind: "slow" }, SLOW_REDIS],
      ["answers in another protocol", { kind: "garbage" }, WITHOUT_REDIS],
      ["answers that there is nothing", { kind: "empty", answer: "$-1\r\n" }, WITHOUT_REDIS],
    ] as const
  ).map(([how, fault, promise]) => ({
    down: REDIS,
    how: `between gate and Redis: ${how}`,
    ...promise,
    begin: (world: World) => world.gateLine.disturb(fault),
    end: (world: World) => world.gateLine.disturb(undefined),
  })),
  {
    down: "the operator",
    how: "none runs",
    promised: "all as always",
    statuses: {},
    slowestMs: 2_500,
    normalMs: 1_000,
    begin: () => {},
    end: () => {},
  },
  {
    down: "a sidecar",
    how: "the sidecar of another pod: kill -9",
    promised: "the other pods as always",
    statuses: {},
    slowestMs: 2_500,
    normalMs: 1_000,
    begin: (world) => world.killOtherGate(),
    end: () => {},
  },
];
