import { pino } from "pino";
import { afterEach, describe, expect, test } from "vitest";
import { waitFor } from "../../test/harness/wait.ts";
import { type KubeClient, KubeError, type KubeRequest } from "./kube-client.ts";
import { LEASE_TIMING, microTime, startLeaderElection } from "./leader.ts";

/*
 * How long a replica may act as leader and when another may start, to the millisecond. The test sets the clock; only the poll interval uses
 * real time. test/e2e tests election on a real API server.
 */

const PATH = "/apis/coordination.k8s.io/v1/namespaces/shop/leases";

interface Spec {
  holderIdentity: string;
  leaseDurationSeconds: number;
  acquireTime: string;
  renewTime: string;
  leaseTransitions: number;
}
type Body = { metadata: { name: string; resourceVersion?: string }; spec: Spec };
const specOf = (holderIdentity: string): Spec => ({
  holderIdentity,
  leaseDurationSeconds: 15,
  acquireTime: "2026-01-01T00:00:00.000000Z",
  renewTime: "2026-01-01T00:00:00.000000Z",
  leaseTransitions: 4,
});

/** A Lease as the API stores it: a write with an outdated resourceVersion is a conflict. */
class LeaseApi implements Pick<KubeClient, "send"> {
  spec: Spec | undefined;
  version = 0;
  /** Awaited before a request is handled (`before`) and before its response (`after`); a thrown value becomes the response. */
  before: (request: KubeRequest) => Promise<void> | void = () => {};
  after: (request: KubeRequest) => Promise<void> | void = () => {};
  reads = 0;
  conflicts = 0;
  readonly asked: string[] = [];

  async send<T>(request: KubeRequest): Promise<T> {
    const { method, path, signal } = request;
    this.asked.push(`${method} ${path}`);
    const response = (async () => {
      await this.before(request);
      if (method === "GET") this.reads += 1;
      else this.#write(method, request.body as Body);
      if (this.spec === undefined) throw new KubeError(404, "NotFound", "no such lease");
      const lease = { metadata: { resourceVersion: String(this.version) }, spec: this.spec };
      await this.after(request);
      return lease as T;
    })();
    if (signal === undefined) return response;
    const aborted = Promise.withResolvers<never>();
    signal.addEventListener("abort", () => aborted.reject(new Error("aborted")), { once: true });
    return Promise.race([response, aborted.promise]);
  }

  /** Resolves when a renewal has arrived, with a function that releases its response. */
  async holdRenewal(): Promise<() => void> {
    const [arrived, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    this.after = async ({ method }) => {
      if (method !== "PUT") return;
      arrived.resolve();
      await answered.promise;
    };
    await arrived.promise;
    return answered.resolve;
  }

  put(spec: Spec): void {
    this.spec = spec;
    this.version += 1;
  }

  #write(method: string, { metadata, spec }: Body): void {
    const isCurrent = method === "POST" ? this.spec === undefined : metadata.resourceVersion === String(this.version);
    if (!isCurrent) {
      this.conflicts += 1;
      throw new KubeError(409, "Conflict", "the lease was changed");
    }
    this.put(spec);
  }
}

const closers: Array<() => Promise<void>> = [];
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
});

/** Returns a replica with a clock that the test sets and a poll interval of a few milliseconds. */
function aReplica(api: LeaseApi, identity: string) {
  const clock = { ms: 0 };
  const told: string[] = [];
  const fences: number[] = [];
  const election = startLeaderElection({
    client: api,
    namespace: "shop",
    name: "postern-operator",
    identity,
    onStarted: (fence) => {
      told.push("started");
      fences.push(fence);
    },
    onStopped: () => told.push("stopped"),
    log: pino({ level: "silent" }),
    timing: { ...LEASE_TIMING, renewMs: 5 },
    monotonicMs: () => clock.ms,
  });
  closers.push(() => {
    api.before = () => {};
    return election.close();
  });
  return { election, clock, told, fences };
}

/** Waits for several polls, so that every consequence of the current state has occurred. */
async function someRounds(api: LeaseApi): Promise<void> {
  const from = api.asked.length;
  await waitFor("some rounds", () => api.asked.length >= from + 6, { everyMs: 2 });
}
const hang = () => new Promise<void>(() => {});
const refuse = () => {
  throw new KubeError(500, "InternalError", "the API is away");
};

describe("a follower", () => {
  test("follower takes an expired Lease exactly 15 s after its last change", async () => {
    const api = new LeaseApi();
    api.put(specOf("other"));
    const { election, clock } = aReplica(api, "me");
    await someRounds(api);
    clock.ms = 14_000;
    api.put(specOf("other"));
    await someRounds(api);

    clock.ms = 14_000 + 14_999;
    await someRounds(api);
    expect(election.leading).toBe(false);
    expect(api.spec?.holderIdentity).toBe("other");

    clock.ms = 14_000 + 15_000;
    await waitFor("the Lease to be taken", () => election.leading);
    expect(api.spec).toMatchObject({ holderIdentity: "me", leaseDurationSeconds: 15, leaseTransitions: 5 });
    expect(api.spec?.acquireTime).toBe(api.spec?.acquireTime.match(/^2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)?.[0]);
    expect(api.spec?.acquireTime).not.toBe(specOf("other").acquireTime);
  });

  test("follower takes a released Lease immediately", async () => {
    const api = new LeaseApi();
    api.put(specOf(""));
    const { election } = aReplica(api, "me");
    await waitFor("the Lease to be taken", () => election.leading);
  });

  test("one of two followers that create a missing Lease becomes leader", async () => {
    const api = new LeaseApi();
    const read = Promise.withResolvers<void>();
    // Both replicas have read that the Lease is missing before either writes.
    api.before = async ({ method }) => {
      if (method === "POST" && api.asked.filter((one) => one.startsWith("POST")).length === 2) read.resolve();
      if (method === "POST") await read.promise;
    };
    const replicas = [aReplica(api, "a"), aReplica(api, "b")];
    await waitFor("one to lead", () => replicas.some(({ election }) => election.leading));
    await someRounds(api);
    expect(api.conflicts).toBe(1);
    expect(replicas.filter(({ election }) => election.leading)).toHaveLength(1);
    expect(api.asked).toContain(`POST ${PATH}`);
    expect(api.asked).toContain(`PUT ${PATH}/postern-operator`);
    // A Lease that is created again counts on from the minutes since 1970, and not from 0.
    expect(api.spec?.leaseTransitions).toBeGreaterThan(29_000_000);
  });
});

describe("a leader", () => {
  async function aLeader(api: LeaseApi) {
    const leader = aReplica(api, "me");
    await waitFor("it to lead", () => leader.election.leading);
    await someRounds(api);
    return leader;
  }

  test("leader renewal keeps acquireTime and leaseTransitions", async () => {
    const api = new LeaseApi();
    api.put({ ...specOf("me"), renewTime: "2026-01-01T00:00:01.000000Z" });
    const { told } = await aLeader(api);
    expect(api.spec).toMatchObject({ acquireTime: specOf("me").acquireTime, leaseTransitions: 4 });
    expect(api.spec?.renewTime).not.toBe("2026-01-01T00:00:01.000000Z");
    expect(told).toEqual(["started"]);
  });

  test("term after `renew` has a higher fencing number, and the next term of another replica has an even higher one", async () => {
    const api = new LeaseApi();
    api.put({ ...specOf("former"), holderIdentity: "" });
    const { election, told, fences } = await aLeader(api);
    expect(fences).toEqual([5]);
    election.renew();
    await waitFor("another term", () => fences.length === 2);
    expect(fences).toEqual([5, 6]);
    expect(told).toEqual(["started", "stopped", "started"]);
    await someRounds(api);
    expect(api.spec?.leaseTransitions).toBe(6);
    await election.close();
    const other = aReplica(api, "other");
    await waitFor("the other to lead", () => other.election.leading);
    expect(other.fences).toEqual([7]);
  });

  test.each([
    { name: "are refused", fault: refuse },
    { name: "hang", fault: hang },
  ])("leader stays leader for exactly 10 s after renewals start to $name", async ({ fault }) => {
    const api = new LeaseApi();
    const { election, clock, told } = await aLeader(api);
    clock.ms = 7_000;
    await someRounds(api);
    api.before = fault;
    const faulty = api.asked.length;
    await waitFor("a request that meets the fault", () => api.asked.length > faulty);
    clock.ms = 7_000 + 10_000;
    await passes();
    expect(election.leading).toBe(true);
    clock.ms = 7_000 + 10_001;
    await waitFor("it to follow", () => !election.leading);
    expect(told).toEqual(["started", "stopped"]);
  });

  test("leader term starts when its renewal is sent, not when the response arrives", async () => {
    const api = new LeaseApi();
    const { election, clock } = await aLeader(api);
    const respond = await api.holdRenewal();
    clock.ms = 8_000;
    api.before = hang;
    respond();
    await passes();
    expect(election.leading).toBe(true);
    clock.ms = 10_001;
    await waitFor("it to follow", () => !election.leading);
  });

  test("leader steps down when the response to a renewal arrives after the end of its term", async () => {
    const api = new LeaseApi();
    const { election, clock, told } = await aLeader(api);
    const respond = await api.holdRenewal();
    clock.ms = 10_001;
    await waitFor("it to follow", () => !election.leading);
    api.before = hang;
    respond();
    await passes();
    expect(told).toEqual(["started", "stopped"]);
  });

  test("leader becomes a follower when the Lease names another holder", async () => {
    const api = new LeaseApi();
    const { election, told } = await aLeader(api);
    api.put(specOf("other"));
    await waitFor("it to follow", () => !election.leading);
    await someRounds(api);
    expect(told).toEqual(["started", "stopped"]);
    expect(api.spec?.holderIdentity).toBe("other");
  });

  test("closing leader reports the end of leadership, then releases the Lease", async () => {
    const api = new LeaseApi();
    const { election, told } = await aLeader(api);
    let leadingAtRelease: boolean | undefined;
    api.before = ({ method, body }) => {
      if (method === "PUT" && (body as Body).spec.holderIdentity === "") leadingAtRelease = election.leading;
    };
    await election.close();
    expect(api.spec?.holderIdentity).toBe("");
    expect(leadingAtRelease).toBe(false);
    expect(told).toEqual(["started", "stopped"]);
    const asked = api.asked.length;
    await passes();
    expect(api.asked).toHaveLength(asked);
  });

  /** Waits many check intervals, for checks that send no request. */
  const passes = () => new Promise((resolve) => setTimeout(resolve, 50));
});

test("closing follower does not change the Lease of the leader", async () => {
  const api = new LeaseApi();
  api.put(specOf("other"));
  const { election, told } = aReplica(api, "me");
  await someRounds(api);
  await election.close();
  expect(api.spec).toEqual(specOf("other"));
  expect(told).toEqual([]);
});

test("leader that checks its term only every 2 s stops before another replica becomes the leader", () => {
  const { leaseMs, renewMs, giveUpMs } = LEASE_TIMING;
  expect(giveUpMs + renewMs).toBeLessThan(leaseMs);
  expect({ leaseMs, renewMs, giveUpMs }).toEqual({ leaseMs: 15_000, renewMs: 2_000, giveUpMs: 10_000 });
});

test("MicroTime has six fractional digits", () => {
  expect(microTime()).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
});

describe("problems that prevent leadership", () => {
  const failing = (error: Error) => () => {
    throw error;
  };

  test("leader election reports a missing Lease permission until it is granted", async () => {
    const api = new LeaseApi();
    api.before = failing(new KubeError(403, "Forbidden", "no rights"));
    const replica = aReplica(api, "a");
    await waitFor("the problem", () => replica.election.problem !== undefined);
    expect(replica.election.problem).toBe(
      "the Lease shop/postern-operator cannot be renewed: 403 Forbidden: no rights",
    );
    api.before = () => {};
    await waitFor("it to be over", () => replica.election.problem === undefined);
  });

  test("leader election reports an unreachable API after one Lease duration", async () => {
    const api = new LeaseApi();
    const replica = aReplica(api, "a");
    await waitFor("it to lead", () => replica.election.leading);
    api.before = failing(new Error("reset"));
    const asked = api.asked.length;
    await waitFor("a failure", () => api.asked.length > asked + 1);
    replica.clock.ms += LEASE_TIMING.leaseMs - 1;
    expect(replica.election.problem).toBeUndefined();
    replica.clock.ms += 1;
    expect(replica.election.problem).toContain("reset");
  });
});
