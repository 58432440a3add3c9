import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeResources, policyBody } from "../../api-server/test/resources.ts";
import { waitFor } from "../harness/wait.ts";
import { type GateProcess, spawnGate } from "./gate-process.ts";
import {
  type Ground,
  type MakeNoticed,
  NOTICED,
  type NoticedChange,
  type Responses,
  verified,
} from "./noticed-changes.ts";
import { V1_NOTICED } from "./noticed-changes-v1.ts";
import { type LocalApi, openSystem, type SpawnedApi, type System } from "./system.ts";

/*
 * Each change is made at one api-server and must take effect at a gate and at another api-server, each in a separate process. The promise
 * is 30 seconds; below one second is normal.
 */

const DEADLINE_MS = 5000;
const NORMAL_MS = 1000;
/** The median of several rounds, because test machines stall from time to time. */
const ROUNDS = 3;

let closeSystem: () => Promise<void>;
let system: System;
/** Api-server at which changes are made. */
let here: LocalApi;
let there: SpawnedApi;

let shared: Guarded;

beforeAll(async () => {
  system = await openSystem({
    whenDone: (close) => {
      closeSystem = close;
    },
  });
  here = await system.api();
  there = await system.spawnApi();
  shared = await guardApi();
});
afterAll(() => closeSystem());

/** A gate whose policy rules change per case. */
interface Guarded {
  readonly ground: Ground;
  readonly gate: GateProcess;
}

async function guardApi(): Promise<Guarded> {
  const { apiId } = await here.data("apis.createApi", { name: "guarded" });
  const gate = await spawnGate(system, here, { apiId });
  const workspaceId = await system.workspaceId();
  const resources = makeResources(system.db, { workspaceId, ask: here.data });
  return { ground: { resources, apiId }, gate };
}

interface PerComponent<T> {
  readonly sidecar: T;
  readonly api: T;
}

/** Resolves with the duration in ms until each place responded as expected. Places without expectations take no time. */
async function untilAnswered(gate: GateProcess, { api, sidecar }: Responses): Promise<PerComponent<number>> {
  const since = performance.now();
  const timeOf = async (what: string, probe: () => Promise<void>): Promise<number> => {
    let last: unknown;
    const holds = () =>
      probe().then(
        () => true,
        (error: unknown) => {
          last = error;
          return false;
        },
      );
    await waitFor(what, holds, { deadlineMs: DEADLINE_MS, everyMs: 2 }).catch((error: unknown) => {
      throw new Error(what, { cause: last ?? error });
    });
    return performance.now() - since;
  };
  const ofSidecar = async () => {
    if (sidecar === undefined) return 0;
    const { key, status, forwarded } = sidecar;
    return timeOf(`${status} from the sidecar`, async () => {
      const response = await gate.ask(key);
      expect(response.status).toBe(status);
      if (forwarded !== undefined) expect(response.forwarded).toMatchObject(forwarded);
    });
  };
  const ofApi = async () => {
    if (api === undefined) return 0;
    const { path, body, data, status = 200, rootKey } = api;
    return timeOf(`${JSON.stringify(data ?? status)} from the other api-server`, async () => {
      const reply = await there.call(path, body, rootKey);
      expect(reply.status).toBe(status);
      if (data !== undefined) expect(reply.body.data).toMatchObject(data);
    });
  };
  const [atSidecar, atApi] = await Promise.all([ofSidecar(), ofApi()]);
  return { sidecar: atSidecar, api: atApi };
}

/** One change with the states before and after. The time is measured from its response. */
interface Round {
  readonly before: Responses | undefined;
  change(): Promise<readonly Responses[]>;
}

/** Makes the change with new objects each time and compares the durations with the normal ones. */
async function measure(
  gate: GateProcess,
  makeRound: (round: number) => Promise<Round>,
  rounds = ROUNDS,
): Promise<void> {
  const took: Array<PerComponent<number>> = [];
  for (let round = 0; round < rounds; round++) {
    const { before, change } = await makeRound(round);
    if (before !== undefined) await untilAnswered(gate, before);
    const brought = await change();
    const times = await Promise.all(brought.map((one) => untilAnswered(gate, one)));
    took.push({
      sidecar: Math.max(...times.map(({ sidecar }) => sidecar)),
      api: Math.max(...times.map(({ api }) => api)),
    });
  }
  for (const place of ["sidecar", "api"] as const) {
    const times = took.map((one) => one[place]).sort((a, b) => a - b);
    console.info(`${expect.getState().currentTestName}: ${place}: ${times.map((ms) => ms.toFixed(1)).join(", ")} ms`);
    expect(times[Math.floor(rounds / 2)], place).toBeLessThan(NORMAL_MS);
  }
}

describe.each(Object.entries({ ...NOTICED, ...V1_NOTICED }))("%s", (path, cases) => {
  // A gate guards one API; if that is deleted, the case gets a separate gate and one round.
  const deletesApi = path.endsWith("apis.deleteApi");

  test.each(Object.entries(cases))(
    "change is propagated to gates and api-servers: %s",
    async (_name, makeNoticed: MakeNoticed) => {
      const { ground, gate } = deletesApi ? await guardApi() : shared;
      const makeRound = async (): Promise<Round> => {
        const { body, rules = [], before, after }: NoticedChange = await makeNoticed(ground);
        await here.data("managed.applyObject", policyBody(ground.apiId, ground.apiId, { rules }));
        return { before, change: async () => after(await here.data(path, body())) };
      };
      await measure(gate, makeRound, deletesApi ? 1 : ROUNDS);
    },
  );
});

test("refill makes an exhausted key usable again", async () => {
  const { ground, gate } = shared;
  const { resources, apiId } = ground;
  await here.data("managed.applyObject", policyBody(apiId, apiId));
  await measure(gate, async (round) => {
    const refill = { interval: "daily", amount: 100_000 };
    const { keyId, key } = await resources.key({ apiId, credits: { remaining: 0, refill } });
    // Dates in the future, which the refill runs of the servers ignore.
    await system.db.query("update key_credits set last_refill_on = '2051-01-01' where key_id = $1", [keyId]);
    return {
      before: verified(key, "USAGE_EXCEEDED"),
      change: async () => {
        await here.server.refill(`2051-01-0${round + 2}`);
        return [verified(key, "VALID")];
      },
    };
  });
});
