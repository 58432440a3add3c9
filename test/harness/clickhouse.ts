import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { partAddress } from "./broker.ts";
import { CLICKHOUSE_PREFIX, clickhouseCommand, type EngineRights, startEngine } from "./parts/clickhouse.ts";

export type TestClickhouse = {
  /** An ANALYTICS_URL with user, password and the database of this caller. */
  url: string;
  /** Drops the database. Repeatable. */
  drop(): Promise<void>;
};

/** Creates an empty database on the ClickHouse that all files of a run share. */
export async function createTestClickhouse(): Promise<TestClickhouse> {
  const { url = "" } = await partAddress("clickhouse");
  return await createDatabaseAt(url);
}

async function createDatabaseAt(url: string): Promise<TestClickhouse> {
  const name = `${CLICKHOUSE_PREFIX}${randomBytes(6).toString("hex")}`;
  await clickhouseCommand(url, `create database ${name}`);
  const own = new URL(url);
  own.pathname = `/${name}`;
  return { url: own.href, drop: () => clickhouseCommand(url, `drop database if exists ${name}`) };
}

export type OwnClickhouse = {
  /** URL with user, password and an empty database. */
  url: string;
  port: number;
  /** Id of the current process: `process.kill(clickhouse.pid, "SIGSTOP")` makes the server hang. */
  readonly pid: number;
  /** Kills only the process, so that clients lose their connections; `restart` starts it again. */
  kill(): Promise<void>;
  /** Kills a running process and starts it again on the same port and data. Its user gets these permissions, or all by default. */
  restart(rights?: EngineRights): Promise<void>;
  /** Stops the server and removes its data. Repeatable. */
  stop(): Promise<void>;
};

/**
 * Starts a separate ClickHouse engine on a free port of 127.0.0.1, for tests that stop it. With `isReplicated`, tables may have Replicated
 * engines; they do not survive a restart, which clears Keeper.
 */
export async function startOwnClickhouse({ isReplicated = false } = {}): Promise<OwnClickhouse> {
  const dir = await mkdtemp(join(tmpdir(), "postern-own-clickhouse-"));
  let engine = await startEngine({ dir, port: 0, isReplicated });
  const { port } = engine;
  const { url } = await createDatabaseAt(engine.url);
  const kill = async () => {
    engine.server.kill("SIGKILL");
    await engine.server.stop();
  };
  return {
    url,
    port,
    get pid() {
      return engine.server.pid;
    },
    kill,
    restart: async (rights) => {
      await kill();
      engine = await startEngine({ dir, port, rights, isReplicated });
    },
    stop: async () => {
      await kill();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
