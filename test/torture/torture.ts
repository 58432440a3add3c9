import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "../harness/wait.ts";
import { JUDGES } from "./checkers/all.ts";
import { toCase, type Violation } from "./checkers/checker.ts";
import { type Final, readFinal } from "./final.ts";
import { type AskEntry, Journal } from "./journal.ts";
import { extAuth, runAsker, runSampler, runSpender } from "./load/askers.ts";
import { ask, callProcedure } from "./load/calls.ts";
import { runChanger } from "./load/changer.ts";
import { runFaults } from "./load/faults.ts";
import { Http, readJson } from "./load/http.ts";
import { Keys, type LoadKey } from "./load/keys.ts";
import { watchMachine } from "./load/machine.ts";
import { sample } from "./load/samples.ts";
import { seed } from "./load/seed.ts";
import { Servers } from "./load/servers.ts";
import { type FaultKind, makePlan } from "./plan.ts";
import { Random } from "./random.ts";
import { makeReport, type Report } from "./report.ts";
import { openWorld, WORKSPACES, type WorkspaceName, type World } from "./world/world.ts";

/*
 * One run: a world is made, clients write and verify while the plan causes faults, everything becomes idle, and the judges read
 * the journal.
 */

export interface TortureOptions {
  readonly seed: number;
  readonly minutes: number;
  readonly kinds: readonly FaultKind[];
  readonly keys: number;
  readonly apiServers: number;
  /** Called with a line every few seconds. */
  readonly onProgress: (line: string) => void;
  /** Aborts the run: everything is stopped, and the promise is rejected. */
  readonly signal?: AbortSignal;
}

/** The distribution of the sidecars; the first two serve one workspace. */
const SIDECARS = ["main", "main", "second"] as const;
const CHANGERS: readonly WorkspaceName[] = ["main", "main", "second"];
const PROGRESS_MS = 5_000;
const QUIET_MS = 2_000;
const QUIET_DEADLINE_MS = 120_000;
const SWEEP_AT_ONCE = 16;
const SWEEP_AGAIN_MS = 1_000;
const SWEEP_DEADLINE_MS = 180_000;

export async function torture(options: TortureOptions): Promise<Report> {
  const startedMs = performance.now();
  const random = new Random(String(options.seed));
  const plan = makePlan(random.fork("plan"), { durationMs: options.minutes * 60_000, kinds: options.kinds });
  const bulkChanges = plan.faults.filter(({ kind }) => kind === "bulk-change").length;
  await using closers = new AsyncDisposableStack();
  const world = await openWorld();
  // After a success the logs are not needed; after a failure they are kept.
  closers.defer(async () => {
    if (options.signal?.aborted === true) await rm(world.folder, { recursive: true, force: true });
  });
  closers.defer(() => world.close());
  const journal = new Journal(join(world.folder, "journal.ndjson"));
  closers.defer(() => journal.close());
  const http = new Http();
  closers.defer(() => http.close());

  options.onProgress(`seed ${options.seed}, ${plan.faults.length} faults planned, everything in ${world.folder}`);
  for (let n = 0; n < options.apiServers; n++) await world.addApiServer();
  await Promise.all(world.apiServers.map((part) => part.start()));
  const keys = new Keys();
  const seeded = await seed({ world, http, keys, journal, count: options.keys, bulkChanges });
  for (const workspace of SIDECARS) await world.addSidecar(workspace, seeded.policyIds[workspace]);
  await Promise.all(world.sidecars.map(({ part }) => part.start()));
  await untilQuiet(world, http);
  options.onProgress(`${keys.all.length} keys, ready after ${seconds(performance.now() - startedMs)}`);

  const loadStartedMs = performance.now();
  const ending = new AbortController();
  const signal = AbortSignal.any([ending.signal, ...(options.signal === undefined ? [] : [options.signal])]);
  const shared = { http, journal, keys, world, apiServers: new Servers(world.apiServers), signal };
  const load = [
    ...CHANGERS.map((name, n) => {
      const of = { name: `client-${n + 1}`, workspace: world.workspaces[name], apiId: seeded.apiIds[name] };
      return runChanger({ ...shared, ...of, random: random.fork(of.name) });
    }),
    ...extAuth(world).map((extAuth) => runAsker({ ...shared, random: random.fork(extAuth.part.name) }, extAuth)),
    ...(["main", "second"] as const).map((name) =>
      runSpender({ ...shared, random: random.fork(`spender ${name}`) }, name),
    ),
    ...world.parts.map((part) => runSampler({ ...shared, random }, part)),
    watchMachine(journal, signal),
  ];
  const progress = setInterval(() => {
    options.onProgress(progressLine(journal, performance.now() - loadStartedMs));
  }, PROGRESS_MS);
  closers.defer(() => clearInterval(progress));
  const onInternalError = ({ kind, target, forMs }: (typeof plan.faults)[number]) =>
    options.onProgress(`${kind}${target === "leader" ? " of the leader" : ""} for ${forMs} ms`);
  await runFaults(plan, { ...shared, keys, random: random.fork("attacker"), onInternalError });
  const restMs = plan.durationMs - (performance.now() - loadStartedMs);
  if (restMs > 0) await sleep(restMs, undefined, { signal }).catch(() => undefined);

  options.signal?.throwIfAborted();

  // The samplers continue: their last reports tell how long the recovery took.
  const quietFromMs = performance.now();
  let unquiet: Violation | undefined;
  await untilQuiet(world, http).catch((error: unknown) => {
    unquiet = { judge: "quiet", what: String(error), atMs: Date.now(), evidence: {} };
  });
  const quietAfterMs = performance.now() - quietFromMs;
  ending.abort();
  await Promise.all(load);
  clearInterval(progress);
  options.onProgress(`quiet after ${seconds(quietAfterMs)}; asking every sidecar about every key`);

  const sweep = unquiet === undefined ? await sweepAll({ world, http, keys: keys.all }) : [];
  const final: Final = { ...(await readFinal(world.db)), credits: await readCredits({ world, http, keys }) };
  const of = toCase({ recorded: journal, final, sweep });
  const crashes = world.parts
    .flatMap(({ crashes }) => crashes)
    .map((what) => ({ judge: "processes", what, atMs: 0, evidence: {} }));
  const violations = [...(unquiet === undefined ? [] : [unquiet]), ...crashes];
  for (const judge of Object.values(JUDGES)) violations.push(...judge(of));
  const report = makeReport({
    ...{ seed: options.seed, minutes: options.minutes, folder: world.folder },
    ...{ of, violations, quietAfterMs, tookMs: performance.now() - startedMs },
  });
  await writeFile(join(world.folder, "report.json"), `${JSON.stringify(report, null, 2)}\n`);
  return report;
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

function progressLine({ changes, asks, faults }: Journal, elapsedMs: number): string {
  const unavailable = asks.filter(({ response }) => response === "unavailable" || response === "none").length;
  return `${seconds(elapsedMs)}: ${changes.length} changes, ${asks.length} questions, ${unavailable} without a decision, ${faults.length} faults over`;
}

/** Waits until every process runs and has all changes but those of the last moment, and nothing waits to be projected. */
async function untilQuiet(world: World, http: Http): Promise<void> {
  await waitFor(
    "all processes to know everything",
    async () => {
      const { rows } = await world.db.query<{ depth: number }>("select count(*)::int as depth from outbox");
      if (rows[0]?.depth !== 0) throw new Error(`${rows[0]?.depth} marks wait in the outbox`);
      for (const part of world.parts) {
        const stalenessMs = (await sample(http, part))?.stalenessMs;
        if (stalenessMs === undefined || stalenessMs > QUIET_MS) throw new Error(`${part.name}: ${stalenessMs} ms`);
      }
      return true;
    },
    { deadlineMs: QUIET_DEADLINE_MS, everyMs: 250 },
  );
}

/** Verifies each key of its workspace at each sidecar, by the path that costs nothing and checks most. */
async function sweepAll(options: { world: World; http: Http; keys: readonly LoadKey[] }): Promise<AskEntry[]> {
  const { world, http, keys } = options;
  const questions = world.sidecars.flatMap(({ part, workspace }) =>
    keys.filter((key) => key.workspace === workspace).map((key) => ({ part, key })),
  );
  const untilMs = performance.now() + SWEEP_DEADLINE_MS;
  const responses = await inParallel(questions, async ({ part, key }) => {
    const tries: AskEntry[] = [];
    for (;;) {
      const workspace = world.workspaces[key.workspace];
      const response = await ask(http, { part, workspace, key, wanted: { needs: "own" } });
      tries.push(response);
      const isUndecided = response.response === "unavailable" || response.response === "none";
      // On a busy machine a verification may time out; it is repeated.
      if (!isUndecided || performance.now() > untilMs) return tries;
      await sleep(SWEEP_AGAIN_MS);
    }
  });
  return responses.flat();
}

/** Reads the remaining credits from an api-server, without spending any. */
async function readCredits(options: { world: World; http: Http; keys: Keys }): Promise<Map<string, number>> {
  const { world, http, keys } = options;
  const part = world.apiServers[0];
  const left = new Map<string, number>();
  if (part === undefined) return left;
  for (const key of WORKSPACES.flatMap((name) => keys.of(name, "credited"))) {
    const workspace = world.workspaces[key.workspace];
    const body = { keyId: key.keyId };
    const result = await callProcedure(http, { part, workspace, procedure: "keys.getKey", body, id: "torture/end" });
    if (result.kind !== "answered") continue;
    const remaining = readJson<{ data?: { credits?: { remaining: number } } }>(result.text)?.data?.credits?.remaining;
    if (remaining !== undefined) left.set(key.name, remaining);
  }
  return left;
}

async function inParallel<T, R>(list: readonly T[], work: (one: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const worker = async () => {
    while (next < list.length) results.push(await work(list[next++] as T));
  };
  await Promise.all(Array.from({ length: SWEEP_AT_ONCE }, worker));
  return results;
}
