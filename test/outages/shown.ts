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
      name: "with all api-servers killed, known keys, limits and credits work until denyAfter, and not after it",
    },
    {
      what: "`onStale.action: Deny`",
      file: "test/faults/centre-away.test.ts",
      name: "a policy whose action is Deny refuses after the first bound",
    },
    {
      what: "`verifyKey` from the cache as long as that is fresh",
      file: "test/faults/routed-by-readiness.test.ts",
      name: "without Postgres: the replicas answer from their caches for as long as these are fresh",
    },
    {
      what: "Postgres away when an api-server starts",
      file: "test/faults/away-at-start.test.ts",
      name: "an api-server whose Postgres is away at its start answers probes",
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
      name: "$onCounterFailure: with Redis killed each of three gates admits $perPod",
    },
    { what: "`Deny`", file: "edge/verification/verify.test.ts", name: "Deny does not decide" },
    { what: "`Allow`", file: "edge/verification/verify.test.ts", name: "Allow lets through, uncounted" },
    {
      what: "`onCreditFailure: Allow`",
      file: "sidecar/decision/redis.test.ts",
      name: "requests without readable credits are admitted where the policy allows it",
    },
    {
      what: "a gate that is restarted meanwhile",
      file: "test/faults/snapshot.test.ts",
      name: "killed while Redis is away it serves known keys within a second",
    },
    {
      what: "a failover, planned",
      file: "test/faults/redis-kinds.test.ts",
      name: "strict limits stay exact through a planned failover, under traffic",
    },
    {
      what: "a failover, unplanned",
      file: "test/faults/redis-kinds.test.ts",
      name: "an unplanned one may admit the limit once more at most",
    },
    {
      what: "Redis away when a gate starts",
      file: "sidecar/decision/redis.test.ts",
      name: "a gate that starts before Redis is ready as soon as Redis is there",
    },
    {
      what: "a Redis of events alone",
      file: "test/faults/events-redis.test.ts",
      name: "events have a Redis of their own",
    },
  ].map((one) => ({ down: "Redis", ...one })),
  {
    down: "a gate's user of Redis",
    what: "one that api-servers make, while they are away, and when Redis has lost it",
    file: "test/faults/gate-credentials.test.ts",
    name: "serves while api-servers are away, also over new connections, and gets another user when Redis has lost its own",
  },
];
