import type { LineFault } from "../harness/fault-line.ts";
import type { World } from "./world.ts";

/*
 * Outages of the table in docs/operations/failure-modes.md: each row with every fault that can cause the outage, and the promise for that
 * time. test/outages/outages.test.ts causes the outages; `npm run outages` writes .postern/outages.md from these rows and the results.
 */

/** What is asked all the time, and answered by a status. */
export const ASKS = {
  known: "key in use",
  limited: "key with a limit",
  credits: "key with credits",
  unknown: "key that is none",
  upload: "upload of 512 KiB",
  verify: "keys.verifyKey",
  verifyCredits: "the same, with credits",
  limit: "ratelimit.limit",
  change: "keys.updateKey",
} as const;
export type Ask = keyof typeof ASKS;

export interface Row {
  /** First cell of the row in docs/operations/failure-modes.md. */
  readonly down: string;
  readonly how: string;
  /** In words, for the table. */
  readonly promised: string;
  /** The statuses that each may have while it lasts; what is left out is as always. */
  readonly statuses: Partial<Record<Ask, readonly number[]>>;
  /** What must be seen at least once: otherwise the fault has disturbed nothing. */
  readonly seen?: Partial<Record<Ask, number>>;
  /** What the gate's log must say. */
  readonly told?: RegExp;
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
  upload: [200],
  verify: [200],
  verifyCredits: [200],
  limit: [200],
  change: [200],
};

const GATE_WITHOUT_REDIS = {
  promised: "keys in use and limits served; credits and unknown keys 503; the API as always",
  statuses: { unknown: [503, 401], credits: [503, 200] },
  seen: { unknown: 503, credits: 503 },
  slowestMs: 2_500,
  normalMs: 15_000,
} as const;
const GATE_SLOW_REDIS = { ...GATE_WITHOUT_REDIS, promised: "as without Redis, or as always", seen: {} } as const;
const API_WITHOUT_REDIS = {
  promised:
    "gates as always; keys verified from Postgres, limits counted in the api-server; limited credits 500; changes 200",
  statuses: { unknown: [401, 503], verifyCredits: [500, 200] },
  seen: { verifyCredits: 500 },
  slowestMs: 2_500,
  normalMs: 20_000,
} as const;
const API_SLOW_REDIS = { ...API_WITHOUT_REDIS, promised: "as without Redis, or as always", seen: {} } as const;
const WITHOUT_REDIS = {
  promised:
    "keys in use and limits served; credits and unknown keys 503; the API verifies, and counts limits in the api-server; limited credits 500",
  statuses: { ...GATE_WITHOUT_REDIS.statuses, ...API_WITHOUT_REDIS.statuses, unknown: [503, 401] },
  seen: { ...GATE_WITHOUT_REDIS.seen, ...API_WITHOUT_REDIS.seen },
  slowestMs: 2_500,
  normalMs: 20_000,
} as const;
const WITHOUT_POSTGRES = {
  promised: "gates as always; verifyKey from the cache, changes 500",
  statuses: { change: [500, 200] },
  slowestMs: 2_500,
  normalMs: 15_000,
} as const;
const WITHOUT_API = {
  promised: "gates as always: keys, limits, loaded credits; unknown keys 503 past onStale.after",
  statuses: { verify: [0, 200], verifyCredits: [0, 200], limit: [0, 200], change: [0, 200], unknown: [401, 503] },
  slowestMs: 2_500,
  normalMs: 20_000,
} as const;
/** `status` must be seen of each request that would pass; `others` may be. */
const WITHOUT_APP = (promised: string, status: number, ...others: number[]) => {
  const statuses = [status, ...others];
  return {
    promised: `who may not pass is told so as always; others: ${promised}`,
    statuses: { known: statuses, limited: statuses, credits: statuses, upload: statuses },
    seen: { known: status, limited: status, credits: status, upload: status },
    slowestMs: 4_000,
    normalMs: 5_000,
  };
};
const SLOW_APP = {
  ...WITHOUT_APP("later, and an upload that is read too slowly 504", 200, 504),
  seen: { known: 200, upload: 504 },
};
const WITHOUT_USER = {
  promised: "the same as without Redis; the gate's log says that Redis refuses its user",
  statuses: GATE_WITHOUT_REDIS.statuses,
  seen: GATE_WITHOUT_REDIS.seen,
  told: /WRONGPASS|NOAUTH|NOPERM/,
  slowestMs: 2_500,
  normalMs: 15_000,
} as const;

const REDIS = "Redis";
const API = "all api-servers";
const POSTGRES = "Postgres";
const APP = "the app of a gate";
const USER = "a gate's Redis user";

/** What lines to Redis do. */
const BETWEEN = [
  { how: "connections reset, and refused", fault: { kind: "reset" }, isSlow: false },
  { how: "connections open and silent (half-open)", fault: { kind: "halfOpen" }, isSlow: false },
  { how: "20 ms later each way", fault: { kind: "latency", ms: 20 }, isSlow: true },
  { how: "500 ms later each way", fault: { kind: "latency", ms: 500 }, isSlow: true },
  { how: "packets lost and sent again", fault: { kind: "loss" }, isSlow: true },
  { how: "reads slowly", fault: { kind: "slow" }, isSlow: true },
  { how: "reads nothing", fault: { kind: "unread" }, isSlow: false },
  { how: "connections reset in the middle of an answer", fault: { kind: "cut" }, isSlow: true },
  { how: "replies in another protocol", fault: { kind: "garbage" }, isSlow: false },
  { how: "replies that no value exists", fault: { kind: "empty", response: "$-1\r\n" }, isSlow: false },
] as const satisfies readonly { how: string; fault: LineFault; isSlow: boolean }[];

export const ROWS: readonly Row[] = [
  {
    down: API,
    how: "api-server: kill -9",
    ...WITHOUT_API,
    seen: { verify: 0, change: 0 },
    begin: (world) => world.killApi(),
    end: (world) => world.startApi(),
  },
  {
    down: API,
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
    down: POSTGRES,
    how,
    ...WITHOUT_POSTGRES,
    begin: (world: World) => world.postgres.disturb(fault),
    end: (world: World) => world.postgres.disturb(undefined),
  })),
  {
    down: REDIS,
    how: "kill -9",
    ...WITHOUT_REDIS,
    begin: (world) => world.killRedis(),
    end: (world) => world.startRedis(),
  },
  {
    down: REDIS,
    how: "stands still (SIGSTOP)",
    ...WITHOUT_REDIS,
    begin: (world) => void process.kill(world.redis.pid, "SIGSTOP"),
    end: (world) => void process.kill(world.redis.pid, "SIGCONT"),
  },
  ...BETWEEN.map(({ how, fault, isSlow }) => ({
    down: REDIS,
    how: `between gate and Redis: ${how}`,
    ...(isSlow ? GATE_SLOW_REDIS : GATE_WITHOUT_REDIS),
    begin: (world: World) => world.gateLine.disturb(fault),
    end: (world: World) => world.gateLine.disturb(undefined),
  })),
  ...BETWEEN.map(({ how, fault, isSlow }) => ({
    down: REDIS,
    how: `between api-server and Redis: ${how}`,
    ...(isSlow ? API_SLOW_REDIS : API_WITHOUT_REDIS),
    begin: (world: World) => world.apiLine.disturb(fault),
    end: (world: World) => world.apiLine.disturb(undefined),
  })),
  {
    down: USER,
    how: "another password in Redis, which the gate is not told",
    ...WITHOUT_USER,
    begin: (world) => world.gateUser.rotate(),
    end: (world) => world.gateUser.tellGates(),
  },
  {
    down: USER,
    how: "revoked",
    ...WITHOUT_USER,
    begin: (world) => world.gateUser.revoke(),
    end: (world) => world.gateUser.restore(),
  },
  {
    down: USER,
    how: "may not run scripts any more",
    ...WITHOUT_USER,
    seen: { credits: 503 },
    begin: (world) => world.gateUser.confine(),
    end: (world) => world.gateUser.restore(),
  },
  {
    down: USER,
    how: "Redis restarted empty, without its users",
    ...WITHOUT_USER,
    statuses: WITHOUT_REDIS.statuses,
    normalMs: 20_000,
    begin: async (world) => {
      await world.killRedis();
      await world.startRedis({ withUser: false });
    },
    end: (world) => world.gateUser.restore(),
  },
  {
    down: APP,
    how: "refuses connections",
    ...WITHOUT_APP("502, and the gate is unready", 502, 503),
    begin: (world) => world.app.stop(),
    end: (world) => world.app.start(),
  },
  ...(
    [
      ["connections reset", { kind: "reset" }, WITHOUT_APP("502", 502)],
      [
        "connections open and silent (half-open)",
        { kind: "halfOpen" },
        WITHOUT_APP("504 after `--upstream-response-timeout`", 504),
      ],
      ["200 ms later each way", { kind: "latency", ms: 200 }, WITHOUT_APP("as always, later", 200)],
      ["packets lost and sent again", { kind: "loss" }, WITHOUT_APP("as always, later", 200)],
      ["reads slowly", { kind: "slow" }, SLOW_APP],
      [
        "reads nothing, no upload either",
        { kind: "unread" },
        WITHOUT_APP("504 after `--upstream-response-timeout`", 504),
      ],
      ["sends another protocol", { kind: "empty", response: "$-1\r\n" }, WITHOUT_APP("502", 502)],
    ] as const
  ).map(([how, fault, promise]) => ({
    down: APP,
    how,
    ...promise,
    begin: (world: World) => world.appLine.disturb(fault),
    end: (world: World) => world.appLine.disturb(undefined),
  })),
  ...(
    [
      [
        "resets its connection in the middle of an answer",
        "halfway",
        WITHOUT_APP("what came of it, and then a reset", 0),
      ],
      ["sends bytes that are not HTTP", "nonsense", WITHOUT_APP("502", 502)],
      ["responses with two lengths", "twice", WITHOUT_APP("502", 502)],
    ] as const
  ).map(([how, mood, promise]) => ({
    down: APP,
    how,
    ...promise,
    begin: (world: World) => world.app.behave(mood),
    end: (world: World) => world.app.behave("well"),
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
    down: "one gate",
    how: "the sidecar of another pod: kill -9",
    promised: "the other pods as always",
    statuses: {},
    slowestMs: 2_500,
    normalMs: 1_000,
    begin: (world) => world.killOtherGate(),
    end: () => {},
  },
];
