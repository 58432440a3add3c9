/*
 * Promises of docs/operations/failure-modes.md that the outages of this folder do not cover, because they take longer, need another policy or
 * concern another component, with the test that covers each. test/docs/outages.test.ts checks that these tests exist.
 */

export interface Shown {
  /** First cell of the row in docs/operations/failure-modes.md; `undefined` for an event that is no outage. */
  readonly down: string | undefined;
  readonly what: string;
  readonly file: string;
  /** First words of the name of the test. */
  readonly name: string;
}

export const SHOWN: readonly Shown[] = [
  ...[
    {
      what: "past `onStale.after`: `Serve` until `denyAfter`, limits and credits served meanwhile",
      file: "test/faults/control-plane-unavailable.test.ts",
      name: "gates serve cached keys, limits and credits without api-servers until denyAfter",
    },
    {
      what: "`onStale.action: Deny`",
      file: "test/faults/control-plane-unavailable.test.ts",
      name: "policy action Deny rejects requests after the first staleness bound",
    },
  ].map((one) => ({ down: "all api-servers", ...one })),
  ...[
    {
      what: "`verifyKey` from the cache as long as that is fresh",
      file: "test/faults/routed-by-readiness.test.ts",
      name: "requests routed by readiness are served from caches without Postgres while the caches are fresh",
    },
    {
      what: "Postgres away when an api-server starts",
      file: "test/faults/away-at-start.test.ts",
      name: "api-server started without Postgres reports unready",
    },
    {
      what: "restored to an older state",
      file: "test/faults/backup.test.ts",
      name: "restored database dump is complete, and gates adopt its state",
    },
  ].map((one) => ({ down: "Postgres", ...one })),
  ...[
    {
      what: "kill -9 loses nothing that was acknowledged",
      file: "test/faults/kill-nine.test.ts",
      name: "SIGKILL during key changes",
    },
    {
      what: "kill -9 while the other one serves",
      file: "test/faults/replicas.test.ts",
      name: "kill -9 of the relaying api-server loses no acknowledged change",
    },
    {
      what: "the relay hangs",
      file: "test/faults/leader-stands-still.test.ts",
      name: "hanging relay leader is replaced within ten seconds and reverts no change when it resumes",
    },
  ].map((one) => ({ down: "one api-server", ...one })),
  ...[
    {
      what: "`Local` and `Local` with `budget: PerPod`",
      file: "test/faults/over-admission.test.ts",
      name: "three gates without Redis admit $perPod each with onCounterFailure $onCounterFailure",
    },
    {
      what: "`Deny`",
      file: "edge/verification/verify.test.ts",
      name: "onCounterFailure Deny returns undecided",
    },
    {
      what: "`Allow`",
      file: "edge/verification/verify.test.ts",
      name: "onCounterFailure Allow admits requests uncounted",
    },
    {
      what: "`onCreditFailure: Allow`",
      file: "sidecar/decision/redis.test.ts",
      name: "gate admits requests without readable credits when the policy allows it",
    },
    {
      what: "a gate that is restarted meanwhile",
      file: "test/faults/snapshot.test.ts",
      name: "gate killed during a Redis outage serves its snapshot",
    },
    {
      what: "a failover, planned",
      file: "test/faults/redis-kinds.test.ts",
      name: "strict limits stay exact through a planned failover",
    },
    {
      what: "a failover, unplanned",
      file: "test/faults/redis-kinds.test.ts",
      name: "unplanned failover admits at most the limit once more",
    },
    {
      what: "Redis away when a gate starts",
      file: "sidecar/decision/redis.test.ts",
      name: "gate that was started without Redis becomes ready as soon as Redis is available",
    },
    {
      what: "a Redis of events alone",
      file: "test/faults/events-redis.test.ts",
      name: "separate events Redis holds all events",
    },
    {
      what: "readiness, and keys that the api-server has not cached",
      file: "test/faults/routed-by-readiness.test.ts",
      name: "requests routed by readiness are verified without Redis, for cached and new keys",
    },
    {
      what: "the shares of `budget: PerPod` when a pod ends",
      file: "test/faults/over-admission.test.ts",
      name: "limit share of a deleted pod goes to the remaining pods",
    },
    {
      what: "it hangs",
      file: "test/faults/hanging-redis.test.ts",
      name: "hanging Redis delays dependent calls by at most a second, and other calls not at all",
    },
    {
      what: "it lost everything or went back: revoked keys stay revoked",
      file: "test/faults/store-lost.test.ts",
      name: "no gate accepts disabled keys after Redis restarts from an old snapshot",
    },
    {
      what: "an older snapshot, and a gate that was disconnected",
      file: "test/faults/redis-snapshot.test.ts",
      name: "gate disconnected since before a Redis rollback accepts no disabled key",
    },
  ].map((one) => ({ down: "Redis", ...one })),
  {
    down: "a gate's Redis user",
    what: "one that api-servers make, while they are away, and when Redis has lost it",
    file: "test/faults/gate-credentials.test.ts",
    name: "gate serves while api-servers are unavailable and renews its lost Redis user",
  },
  {
    down: "ClickHouse",
    what: "events wait in Redis, and each is stored once",
    file: "test/faults/clickhouse-problems.test.ts",
    name: "ClickHouse killed under load is reported, and each event is stored once",
  },
  {
    down: "the operator",
    what: "admission of pods",
    file: "test/e2e/webhook.test.ts",
    name: "only guarded pods are rejected during an operator outage, and the webhook CA survives it",
  },
  {
    down: "one gate",
    what: "no request bypasses it",
    file: "test/cluster/installation.test.ts",
    name: "no request without a key is admitted when a gate pod is killed",
  },
  ...[
    {
      what: "a deleted policy",
      file: "test/cluster/installation.test.ts",
      name: "deleted and reapplied policy guards the app and accepts its former keys",
    },
    {
      what: "an invalid manifest",
      file: "test/cluster/installation.test.ts",
      name: "invalid policy is not Ready and the previous version stays active",
    },
    {
      what: "a rollout of the app",
      file: "test/cluster/installation.test.ts",
      name: "no request fails during three rollouts of the app",
    },
    {
      what: "rotated passwords and root keys",
      file: "test/faults/rotated-secrets.test.ts",
      name: "api-server uses rotated passwords and root key without a restart",
    },
  ].map((one) => ({ down: undefined, ...one })),
];
