import { writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { policyBody } from "../../api-server/test/resources.ts";
import { podAclRules } from "../../edge/redis/acl.ts";
import { RedisKeys } from "../../edge/redis/keys.ts";
import { makeKey } from "../faults/client.ts";
import { openSystem, type SpawnedApi, type System } from "../faults/system.ts";
import { type FaultLine, openFaultLine } from "../harness/fault-line.ts";
import { call, withKey } from "../harness/gate.ts";
import { freePort } from "../harness/ports.ts";
import type { OwnRedis } from "../harness/redis.ts";
import { type SidecarProcess, spawnSidecar } from "../harness/sidecar-process.ts";
import { waitFor } from "../harness/wait.ts";
import { type MoodyApp, openMoodyApp } from "./app.ts";
import { ASKS, type Ask, NORMAL } from "./rows.ts";

/* An api-server, two gates, an app, Postgres and Redis, all real processes, with lines between them that can be disturbed. */

const HOUR_MS = 3_600_000;
const LOCAL_CREDITS = 1_000_000;
const UPLOAD = Buffer.alloc(512 * 1024, "u");

export interface World {
  readonly redis: OwnRedis;
  readonly postgres: FaultLine;
  /** Between the gates and Redis. */
  readonly gateLine: FaultLine;
  /** Between the api-server and Redis. */
  readonly apiLine: FaultLine;
  /** Between the gates and their app. */
  readonly appLine: FaultLine;
  /** All that the gate has logged. */
  gateLog(): string;
  readonly app: MoodyApp;
  readonly gateUser: GateUser;
  killRedis(): Promise<void>;
  /** Empty, and with the gates' user unless told otherwise. */
  startRedis(options?: { readonly withUser: boolean }): Promise<void>;
  killApi(): Promise<void>;
  startApi(): Promise<void>;
  signalApi(signal: NodeJS.Signals): void;
  killOtherGate(): Promise<void>;
  /** The status of one answer, 0 when there was none, and how long it took. */
  ask(what: Ask): Promise<{ readonly status: number; readonly tookMs: number }>;
  /** What is not answered as always, or what is not up to date; undefined when everything is as always. */
  notNormal(): Promise<string | undefined>;
}

/** With which the gates sign in at Redis; its password is in a file, as that of a Secret. */
interface GateUser {
  /** Another password in Redis, and its connections are closed; the gates' file is as it was. */
  rotate(): Promise<void>;
  /** The gates' file has the password of now. */
  tellGates(): void;
  /** There is no such user any more; Redis closes its connections. */
  revoke(): Promise<void>;
  /** It may not run scripts any more. */
  confine(): Promise<void>;
  /** It is as it was. */
  restore(): Promise<void>;
}

/** A fault that begins while changes of the last one are still announced would find what was in use forgotten. */
export const QUIET_MS = 1_500;

/** Closed when the test ends that opened it. */
export async function openWorld(whenDone: (close: () => Promise<void>) => void): Promise<World> {
  const system: System = await openSystem({ ownRedis: true, whenDone });
  const postgres = system.closing(await openFaultLine(system.databaseUrl));
  const gateLine = system.closing(await openFaultLine(system.redisUrl));
  const apiLine = system.closing(await openFaultLine(system.redisUrl));
  const apiPort = String(await freePort());
  const spawnApi = () =>
    system.spawnApi({ DATABASE_URL: postgres.url, REDIS_URL: apiLine.url, POSTERN_API_PORT: apiPort });
  let api: SpawnedApi = await spawnApi();
  const { apiId, key: known } = await makeKey(api);
  // Not one that is asked about: what a change was just announced of, a gate has to read again.
  const { keyId } = await api.data("keys.createKey", { apiId });
  const limited = (await api.data("keys.createKey", { apiId })).key;
  const credits = (await api.data("keys.createKey", { apiId, credits: { remaining: LOCAL_CREDITS } })).key;
  const spent = (await api.data("keys.createKey", { apiId, credits: { remaining: LOCAL_CREDITS } })).key;
  const policy = policyBody(apiId, "outages", {
    rules: [
      {
        match: { path: { prefix: "/limited" } },
        credits: { cost: 0 },
        ratelimits: [{ name: "many", limit: 1_000_000, duration: "1h" }],
      },
      { match: { path: { prefix: "/credits" } } },
      { credits: { cost: 0 } },
    ],
  });
  const { policyId } = (await api.data("managed.applyObject", policy)).ids;
  const app = system.closing(await openMoodyApp());
  const appLine = system.closing(await openFaultLine(app.url));
  const workspaceId = await system.workspaceId();
  const secrets = await mkdtemp(join(tmpdir(), "postern-outages-"));
  system.closing({ close: () => rm(secrets, { recursive: true, force: true }) });
  const urlFile = join(secrets, "redis-url");
  const gateUser = openGateUser(system, { workspaceId, urlFile, url: gateLine.url });
  await gateUser.restore();
  gateUser.tellGates();
  const startGate = async (pod: string): Promise<SidecarProcess> => {
    const disk = await mkdtemp(join(tmpdir(), "postern-outages-"));
    system.closing({ close: () => rm(disk, { recursive: true, force: true }) });
    const gate = await spawnSidecar({
      REDIS_URL_FILE: urlFile,
      POSTERN_REDIS_PREFIX: system.prefix,
      POSTERN_WORKSPACE: workspaceId,
      POSTERN_POLICY: policyId,
      POSTERN_UPSTREAM: appLine.url,
      // Not minutes, which outages of the app would have to last to be seen.
      POSTERN_UPSTREAM_RESPONSE_TIMEOUT: "1s",
      POSTERN_UPSTREAM_IDLE_TIMEOUT: "1s",
      POSTERN_POD: pod,
      POSTERN_SNAPSHOT_DIR: disk,
      POSTERN_SNAPSHOT_KEY: "of-the-world-of-outages-and-of-no-other",
    });
    system.closing({ close: () => gate.process.stop() });
    return gate;
  };
  const keys = new RedisKeys(system.prefix);
  const gate = await startGate("pod-1");
  const other = await startGate("pod-2");

  const throughGate = (key: string, path: string, body?: Buffer) =>
    call(gate.port, { path, ...withKey(key), ...(body === undefined ? {} : { method: "POST", body }) });
  const asks: Readonly<Record<Ask, () => Promise<{ status: number }>>> = {
    known: () => throughGate(known, "/"),
    limited: () => throughGate(limited, "/limited"),
    credits: () => throughGate(credits, "/credits"),
    // Another one each time: that a key is none is remembered.
    unknown: () => throughGate(`a-key-that-is-none-${performance.now()}`, "/"),
    upload: () => throughGate(known, "/", UPLOAD),
    verify: () => api.call("keys.verifyKey", { key: known }),
    verifyCredits: () => api.call("keys.verifyKey", { key: spent }),
    limit: () =>
      api.call("ratelimit.limit", { namespace: "many", identifier: "all", limit: 1_000_000, duration: HOUR_MS }),
    change: () => api.call("keys.updateKey", { keyId, name: `named ${performance.now()}` }),
  };
  const ask: World["ask"] = async (what) => {
    const sinceMs = performance.now();
    const response = asks[what]().then(({ status }) => status);
    const late = new Promise<number>((resolve) => setTimeout(resolve, 15_000, 0).unref());
    const status = await Promise.race([response, late]).catch(() => 0);
    return { status, tookMs: performance.now() - sinceMs };
  };
  const world: World = {
    redis: system.redis,
    postgres,
    gateLine,
    apiLine,
    appLine,
    gateLog: () => gate.process.stderr(),
    app,
    gateUser,
    killRedis: () => system.redis.kill("SIGKILL"),
    startRedis: async ({ withUser } = { withUser: true }) => {
      await system.redis.restart();
      if (!withUser) return;
      await waitFor("Redis", () => system.raw.ping().then(() => true));
      await gateUser.restore();
    },
    killApi: async () => {
      api.process.kill("SIGKILL");
      await api.process.exited;
    },
    startApi: async () => {
      api = await spawnApi();
    },
    signalApi: (signal) => api.process.kill(signal),
    killOtherGate: async () => {
      other.process.kill("SIGKILL");
      await other.process.exited;
    },
    ask,
    notNormal: async () => {
      for (const what of Object.keys(NORMAL) as Ask[]) {
        const { status } = await ask(what);
        if (!NORMAL[what].includes(status)) return `${ASKS[what]}: ${status}`;
      }
      const { body } = await call(gate.adminPort, { path: "/readyz" });
      const { stalenessMs, source, snapshot } = JSON.parse(body);
      if (stalenessMs >= 3_000 || !source.usable || snapshot !== null) return `gate: ${body}`;
      // While a projection is made again, what it announces makes gates read again.
      const complete = await system.raw.hget(keys.projectionState(workspaceId), "complete");
      if (complete !== "1") return "projection is incomplete";
      if (!(await api.isReady())) return "api-server is not ready";
      return (await api.degradations()).find((degradation) => !isOver(degradation));
    },
  };
  await waitFor("everything to be as always", async () => (await world.notNormal()) === undefined, {
    deadlineMs: 60_000,
  });
  return world;
}

/** That events were dropped is told for a minute after the last one. */
const isOver = (degradation: string): boolean => degradation === "events_dropped";

function openGateUser(system: System, of: { workspaceId: string; urlFile: string; url: string }): GateUser {
  const NAME = "gates";
  const rules = podAclRules({ workspaceId: of.workspaceId, prefix: system.prefix });
  let generation = 1;
  const password = (): string => `password-${generation}`;
  const command = (...args: string[]) => system.raw.call("ACL", ...args);
  const restore = async (): Promise<void> => void (await command("SETUSER", NAME, ...rules, `>${password()}`));
  return {
    restore,
    rotate: async () => {
      generation += 1;
      await restore();
      await system.raw.call("CLIENT", "KILL", "USER", NAME);
    },
    tellGates: () => writeFileSync(of.urlFile, of.url.replace("//", `//${NAME}:${password()}@`)),
    revoke: async () => void (await command("DELUSER", NAME)),
    confine: async () => void (await command("SETUSER", NAME, "-evalsha")),
  };
}
