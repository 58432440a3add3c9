import { execFileSync } from "node:child_process";
import { ALL_GRANTS } from "../../core/permissions/root-key.ts";
import { startProcess } from "../harness/process.ts";
import { startOwnRedis } from "../harness/redis.ts";

/* The api-server side for a measurement: a database, its own Redis, a root key, and as many api-server processes as needed. */

export interface Running {
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

export interface Stack {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  readonly redisPid: number;
  readonly workspaceId: string;
  readonly rootKey: string;
  /** The first api-server; `startApiServer` adds replicas. */
  readonly apiServer: Running;
  startApiServer(): Promise<Running>;
  /** Returns the data of a success; throws otherwise. */
  call<Data>(procedure: string, body: unknown): Promise<Data>;
  /** Starts a process that belongs to this stack; it is ready when a line matches, whose first group is its address. */
  start(args: readonly string[], ready: RegExp): Promise<Running>;
  close(): Promise<void>;
}

/** The log line with a part's listening address. */
export const READY_LOG = /"url":"(http:\/\/127\.0\.0\.1:\d+)"/;

/** Calls `seed` before the first api-server starts, so that its start projects what `seed` made. `args` are for that one alone. */
export async function openStack(
  databaseUrl: string,
  seed: (stack: { databaseUrl: string; workspaceId: string }) => Promise<void> = async () => {},
  args: readonly string[] = [],
): Promise<Stack> {
  const closers: Array<() => Promise<void>> = [];
  const close = async () => {
    for (const closer of closers.splice(0).reverse()) await closer();
  };
  try {
    const redis = await startOwnRedis();
    closers.push(() => redis.stop());
    const env = {
      DATABASE_URL: databaseUrl,
      REDIS_URL: redis.url,
      POSTERN_LOG_LEVEL: "info",
      POSTERN_DRAIN_TIMEOUT: "0",
    };
    const start = async (args: readonly string[], ready: RegExp): Promise<Running> => {
      const child = await startProcess(process.execPath, [...args], { env, readyLine: ready });
      const url = ready.exec(`${child.stdout()}\n${child.stderr()}`)?.[1] ?? "";
      const running = { url, pid: child.pid, stop: async () => void (await child.stop()) };
      closers.push(running.stop);
      return running;
    };
    const startOne = (more: readonly string[]) =>
      start(["cli/main.ts", "api-server", "--host", "127.0.0.1", "--port", "0", ...more], READY_LOG);
    const startApiServer = () => startOne([]);

    const rootKeyJson = execFileSync(
      process.execPath,
      ["cli/main.ts", "rootkey", "create", "--json", "--permissions", ALL_GRANTS.join(",")],
      { env: { ...process.env, ...env }, encoding: "utf8" },
    );
    const { rootKey, workspaceId } = JSON.parse(rootKeyJson) as { rootKey: string; workspaceId: string };
    await seed({ databaseUrl, workspaceId });
    const apiServer = await startOne(args);
    const call = async <Data>(procedure: string, body: unknown): Promise<Data> => {
      const response = await fetch(`${apiServer.url}/v2/${procedure}`, {
        method: "POST",
        headers: { authorization: `Bearer ${rootKey}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      const reply = (await response.json()) as { data: Data };
      if (!response.ok) throw new Error(`${procedure}: ${response.status} ${JSON.stringify(reply)}`);
      return reply.data;
    };
    const { url: redisUrl, pid: redisPid } = redis;
    return { databaseUrl, redisUrl, redisPid, workspaceId, rootKey, apiServer, startApiServer, call, start, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Starts a process that stores the stack's usage events. */
export const startIngest = (stack: Pick<Stack, "start">, args: readonly string[] = []): Promise<Running> =>
  stack.start(
    ["cli/main.ts", "ingest", "--host", "127.0.0.1", "--admin-port", "0", ...args],
    /"adminUrl":"(http:\/\/127\.0\.0\.1:\d+)"/,
  );
