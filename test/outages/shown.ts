/*
 * What of "When something is down" (docs/architecture.md) the outages do not ask, because it takes longer than they last, another policy
 * or another part: the test that shows it. test/docs/outages.test.ts looks whether there is such a test.
 */

export interface Shown {
  /** As the row of the table in docs/architecture.md begins. */
  readonly down: string;
  readonly what: string;
  readonly file: string;
  /** The first words of its name. */
  readonly name: string;
}

export const SHOWN: readonly Shown[] = [
  ...[
    {
      what: "past `onStale.after`: `Serve` until `denyAfter`, limits and credits served meanwhile",
      file: "test/faults/centre-away.test.ts",
      name: "gates serve cached keys, limits and credits without api-servers until denyAfter",
    },
    {
      what: "`onStale.action: Deny`",
      file: "test/faults/centre-away.test.ts",
      name: "policy action Deny rejects requests after the first staleness bound",
    },
    {
      what: "`verifyKey` from the cache as long as that is fresh",
      file: "test/faults/routed-by-readiness.test.ts",
      name: "readiness routing without Postgres uses caches while they are fresh",
    },
    {
      what: "Postgres away when an api-server starts",
      file: "test/faults/away-at-start.test.ts",
      name: "api-server started without Postgres reports unready",
    },
    {
      what: "kill -9 loses nothing that was acknowledged",
      file: "test/faults/kill-nine.test.ts",
      name: "kill -9 of the api-server",
    },
  ].map((one) => ({ down: "all api-servers, or Postgres", ...one })),
  ...[
    {
      what: "`Local` and `Local` with `budget: 1/pods`",
      file: "test/faults/overshoot.test.ts",
      name: "$onCounterFailure: three gates without Redis admit $perPod each",
    },
    { what: "`Deny`", file: "edge/verification/verify.test.ts", name: "onCounterFailure Deny returns undecided" },
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
      name: "unplanned failover admits at most one extra limit",
    },
    {
      what: "Redis away when a gate starts",
      file: "sidecar/decision/redis.test.ts",
      name: "gate that starts before Redis becomes ready when Redis is available",
    },
    {
      what: "a Redis of events alone",
      file: "test/faults/events-redis.test.ts",
      name: "separate events Redis holds all events",
    },
  ].map((one) => ({ down: "Redis", ...one })),
  {
    down: "a gate's user of Redis",
    what: "one that api-servers make, while they are away, and when Redis has lost it",
    file: "test/faults/gate-credentials.test.ts",
    name: "gate serves while api-servers are unavailable and renews its lost Redis user",
  },
];
