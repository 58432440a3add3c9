import { aRule, call } from "../../harness/gate.ts";
import { type GuardedApp, guardApp } from "../../harness/sidecar-process.ts";
import { waitFor } from "../../harness/wait.ts";
import { type FuzzApp, startApps } from "./apps.ts";
import {
  type AppKind,
  type Case,
  DENIED_HEADER,
  DENIED_HOST,
  FUZZ_KEY,
  FUZZ_KEY_ID,
  type ResponsePlan,
} from "./case.ts";
import { judge, play } from "./play.ts";
import { playStreams } from "./play-streams.ts";

/*
 * Three apps, a sidecar process in front of each, and the problems found in them. A sidecar that died is started again, so
 * that the search for the cause can continue.
 */

export interface Complaint {
  /** undefined: the case is unknown. */
  readonly caseId: string | undefined;
  readonly app: AppKind;
  readonly text: string;
}

export interface World {
  /** Plays one case. Resolves when its connection is closed, with what is wrong with the client's responses. */
  play(played: Case): Promise<string | undefined>;
  /** Returns what was found since the last call: by the apps, in the processes, in their metrics. */
  complaints(): Promise<Complaint[]>;
  /** The largest resident memory of a sidecar so far, MiB. */
  readonly rssMaxMiB: number;
  /** Requests that reached an app. */
  readonly seen: number;
  close(): Promise<void>;
}

export type FuzzedGate = Pick<GuardedApp, "process" | "port" | "adminPort" | "metrics" | "close">;

/** The process in front of an app: a sidecar, or another one in tests of the fuzzer. */
export type OpenGate = (app: FuzzApp) => Promise<FuzzedGate>;

/** A request may reach an app a moment after its client has gone, so plans are kept longer than their cases. */
const PLANS_MAX = 5_000;
/** Per case. */
const REQUESTS_MAX = 4;
const LIVEZ_MS = 10_000;
const RSS_MAX_MIB = 400;

/**
 * So few that requests wait for one another, and a connection to an app goes from one to the next at once: what one response leaves behind would
 * reach another client.
 */
const PLACES = 4;

const openSidecar: OpenGate = async (app) => {
  const rules = [
    aRule({ path: { template: "/{area}/denied/{rest...}" }, access: "Deny" }),
    aRule({ hosts: [DENIED_HOST], access: "Deny" }),
    aRule({ headers: [{ name: DENIED_HEADER }], access: "Deny" }),
    aRule({ path: { prefix: "/open" }, access: "Anonymous" }),
  ];
  const gate = await guardApp({
    upstream: app.url,
    policy: { formatVersion: 2, rules },
    env: { POSTERN_MAX_UPSTREAM_REQUESTS: String(PLACES), POSTERN_MAX_CLIENT_SHARE: "100" },
  });
  await gate.records.putKey({ keyId: FUZZ_KEY_ID }, FUZZ_KEY);
  await waitFor("the key to be known", async () => {
    const { status } = await call(gate.port, { headers: { "X-API-Key": FUZZ_KEY, "X-Case": "begin" } });
    return status === 200;
  });
  return gate;
};

export async function openWorld(openGate: OpenGate = openSidecar): Promise<World> {
  const plans = new Map<string, ResponsePlan>();
  let found: Complaint[] = [];
  let seen = 0;
  let rssMaxMiB = 0;
  const caseOf = (requestId: string): string | undefined => /^[\da-z]+-\d+(?=\.\d+$)/.exec(requestId)?.[0];
  const apps = await startApps({
    planFor: (id) => plans.get(id),
    complain: (app, id, text) => void found.push({ caseId: caseOf(id), app, text }),
    onSeen: () => {
      seen += 1;
    },
  });
  const gates = new Map<AppKind, FuzzedGate>();
  const open = async (app: FuzzApp): Promise<void> => void gates.set(app.kind, await openGate(app));
  await Promise.all(apps.map(open));
  const gateOf = (kind: AppKind): FuzzedGate => {
    const gate = gates.get(kind);
    if (gate === undefined) throw new Error(`no gate before the app ${kind}`);
    return gate;
  };
  const faultsSeen = new Map<number, number>();

  /** Returns what is wrong with the process of one gate. */
  async function examine(app: FuzzApp): Promise<string | undefined> {
    const gate = gateOf(app.kind);
    const exit = await Promise.race([gate.process.exited, undefined]);
    if (exit !== undefined) {
      await gate.close();
      await open(app);
      const lastLines = gate.process.stderr().trimEnd().split("\n").slice(-5).join("\n");
      return `the sidecar ended with code ${exit.code}, signal ${exit.signal}: ${lastLines}`;
    }
    const metrics = await Promise.race([readLive(gate), afterMs(LIVEZ_MS)]);
    if (metrics === undefined) {
      gate.process.kill("SIGKILL");
      await gate.process.exited;
      await gate.close();
      await open(app);
      return `the sidecar did not answer at /livez and /metrics within ${LIVEZ_MS} ms`;
    }
    const faults = [...metrics.matchAll(/^postern_sidecar_internal_errors_total\S* (\d+)/gm)].reduce(
      (sum, [, n]) => sum + Number(n),
      0,
    );
    const before = faultsSeen.get(gate.process.pid) ?? 0;
    faultsSeen.set(gate.process.pid, faults);
    const rssMiB = Number(/^process_resident_memory_bytes (\d+)/m.exec(metrics)?.[1] ?? 0) / 2 ** 20;
    rssMaxMiB = Math.max(rssMaxMiB, rssMiB);
    if (rssMiB > RSS_MAX_MIB) return `the sidecar holds ${Math.round(rssMiB)} MiB`;
    if (faults > before) return `an error was thrown that a guard caught: ${lastFault(gate.process.stderr())}`;
    return undefined;
  }

  return {
    async play(played) {
      // A case may be played again with other responses.
      for (let at = 0; at < REQUESTS_MAX; at++) plans.delete(`${played.id}.${at}`);
      for (const [id, plan] of Object.entries(played.responses)) plans.set(id, plan);
      for (const [id] of plans) {
        if (plans.size <= PLANS_MAX) break;
        plans.delete(id);
      }
      const { port } = gateOf(played.app);
      return played.streams === undefined
        ? judge(played, await play(played, port))
        : await playStreams(played, played.streams, port);
    },
    async complaints() {
      const ofApps = found;
      found = [];
      const ofGates = await Promise.all(
        apps.map(async (app): Promise<Complaint[]> => {
          const text = await examine(app);
          return text === undefined ? [] : [{ caseId: undefined, app: app.kind, text }];
        }),
      );
      return [...ofApps, ...ofGates.flat()];
    },
    get rssMaxMiB() {
      return rssMaxMiB;
    },
    get seen() {
      return seen;
    },
    async close() {
      await Promise.all([...gates.values()].map((gate) => gate.close()));
      await Promise.all(apps.map((app) => app.close()));
    },
  };
}

const afterMs = (ms: number): Promise<undefined> =>
  new Promise((resolve) => {
    setTimeout(() => resolve(undefined), ms).unref();
  });

/** Reads its metrics; undefined when it does not respond correctly. */
async function readLive(gate: FuzzedGate): Promise<string | undefined> {
  try {
    const { status } = await call(gate.adminPort, { path: "/livez" });
    return status === 200 ? await gate.metrics() : undefined;
  } catch {
    return undefined;
  }
}

const lastFault = (stderr: string): string =>
  stderr
    .split("\n")
    .filter((line) => line.includes('"level":50'))
    .at(-1)
    ?.slice(0, 1_500) ?? "(no line about it: they are rare)";
