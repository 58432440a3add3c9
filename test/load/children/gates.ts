import { pino } from "pino";
import { type Edge, openRedisEdge } from "../../../edge/open.ts";
import { DEFAULT_TIMEOUTS, type SidecarConfig } from "../../../sidecar/config.ts";
import { RefusalCounts } from "../../../sidecar/decision/rejection-counts.ts";
import { type GateState, openGateState } from "../../../sidecar/gate-state.ts";
import { startPodReports } from "../../../sidecar/pod-reports.ts";

/*
 * What many gates do with Redis when no requests arrive: each has a Redis user, connections, the policy and pod reports of its own, and
 * follows the changes. They do not listen. A child of the section `gates`, with WORKSPACE POLICY NAME as arguments and REDIS_URL.
 */

export type Ask =
  /** Opens further gates, and answers when they enforce the policy. */
  | { readonly open: number }
  /** Answers when all gates enforce this version of the policy or a later one. */
  | { readonly version: number };

/** For each gate when it began to enforce the version, Unix ms; empty after `open`. */
export type Answer = readonly number[];

const [workspaceId = "", policyId = "", name = ""] = process.argv.slice(2);
const redisUrl = process.env.REDIS_URL ?? "";
const logger = pino({ level: "error" }, pino.destination(2));
/** Gates that open at the same time, as pods of a rollout do. */
const OPENED_AT_ONCE = 25;

interface Gate {
  readonly state: GateState;
  /** When it began to enforce each version of the policy, Unix ms. */
  readonly enforced: Map<number, number>;
}

const gates: Gate[] = [];
const control = await openRedisEdge({ url: redisUrl, clientName: `bench-${name}` });

async function openGate(podId: string): Promise<void> {
  const user = await control.gateUsers?.issue({ workspaceId, policyId, podId, podUid: podId });
  if (user === undefined) throw new Error("this Redis has no users");
  const url = Object.assign(new URL(redisUrl), { username: user.username, password: user.password }).href;
  const edge: Edge = await openRedisEdge({ url, clientName: podId, reportsAreOwn: true, connectWaitMs: 30_000 });
  const nowhere = { host: "127.0.0.1", port: 0 };
  const config: SidecarConfig = {
    ...{ edge, workspaceId, policyId, podId, logger, region: "", errorDocsUrl: "", listen: nowhere, admin: nowhere },
  };
  const state = await openGateState(config, DEFAULT_TIMEOUTS);
  const gate: Gate = { state, enforced: new Map() };
  const note = () => {
    const version = state.follower.current?.record.version;
    if (version !== undefined && !gate.enforced.has(version)) gate.enforced.set(version, Date.now());
  };
  state.follower.onChange(note);
  note();
  const refusals = new RefusalCounts(state.nowMs);
  startPodReports(config, { ...state, refusals }, { everyMs: DEFAULT_TIMEOUTS.reportMs, podsAlive: state.podsAlive });
  await until(() => gate.enforced.size > 0);
  gates.push(gate);
}

async function until(isTrue: () => boolean): Promise<void> {
  const deadline = performance.now() + 120_000;
  while (!isTrue()) {
    if (performance.now() > deadline) throw new Error("not within two minutes");
    await new Promise((done) => setTimeout(done, 20));
  }
}

const versionOf = ({ state }: Gate): number => state.follower.current?.record.version ?? 0;

/** When a gate began to enforce the version or a later one, Unix ms. */
const enforcedMs = ({ enforced }: Gate, version: number): number =>
  Math.min(...[...enforced].flatMap(([of, ms]) => (of >= version ? [ms] : [])));

async function openGates(count: number): Promise<void> {
  const first = gates.length;
  for (let from = 0; from < count; from += OPENED_AT_ONCE) {
    const batch = Math.min(OPENED_AT_ONCE, count - from);
    await Promise.all(Array.from({ length: batch }, (_, n) => openGate(`${name}/${first + from + n}`)));
  }
}

async function answer(ask: Ask): Promise<Answer> {
  if ("open" in ask) {
    await openGates(ask.open);
    return [];
  }
  const { version } = ask;
  await until(() => gates.every((gate) => versionOf(gate) >= version));
  return gates.map((gate) => enforcedMs(gate, version));
}

process.on("message", (ask: Ask) => {
  answer(ask).then(
    (answered) => process.send?.(answered),
    (error: unknown) => {
      logger.error({ err: error }, "the gates could not do what was asked");
      process.exit(1);
    },
  );
});
process.once("disconnect", () => process.exit(0));
process.send?.("ready");
