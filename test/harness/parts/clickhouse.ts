import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@clickhouse/client";
import { freePort } from "../ports.ts";
import { type RunningProcess, startProcess } from "../process.ts";
import { waitFor } from "../wait.ts";
import { dockerAnswers, findBinary, findPart, MissingPart } from "./find.ts";
import { pythonWith } from "./python-package.ts";

/** Name prefix of all test databases; other databases of a given server are never touched. */
export const CLICKHOUSE_PREFIX = "postern_test_";

/** Password with characters that a URL must escape. */
const PASSWORD = "p@ss/wörd";

/** Oldest supported release, run in the container. */
const IMAGE = "clickhouse/clickhouse-server:25.8";
/** Version of the embedded ClickHouse engine. */
const ENGINE_VERSION = "26.9.0";

const ADVICE =
  "install clickhouse, or python3 with venv (it brings the engine from PyPI), or start Docker, or set TEST_CLICKHOUSE_URL";

type Server = { url: string; stop(): Promise<void> };

/** Finds or starts the ClickHouse that the files of a run share, each with its own database. */
export async function startClickhousePart() {
  const server = await findPart<Server>("ClickHouse", ADVICE, [
    { name: "TEST_CLICKHOUSE_URL", attempt: fromEnvironment },
    { name: "clickhouse on the PATH", attempt: fromBinary },
    { name: `container ${IMAGE}`, attempt: fromContainer },
    { name: "chdb-core", attempt: fromPackage },
  ]);
  return { address: { url: server.url }, stop: server.stop };
}

async function fromEnvironment(): Promise<Server | undefined> {
  const url = process.env.TEST_CLICKHOUSE_URL;
  if (!url) return undefined;
  await clickhouseCommand(url, "select 1");
  return { url, stop: async () => {} };
}

async function fromBinary(): Promise<Server | undefined> {
  const binary = await findBinary(["clickhouse"]);
  if (binary === undefined) return undefined;
  return await inOwnFolder(async (dir) => {
    const [port, tcpPort] = [await freePort(), await freePort()];
    await writeFile(join(dir, "config.yaml"), configuration({ dir, port, tcpPort }), { mode: 0o600 });
    const server = await startProcess(binary, ["server", "--config-file", join(dir, "config.yaml")], { cwd: dir });
    const ping = async () => (await fetch(`http://127.0.0.1:${port}/ping`)).ok;
    await waitFor("ClickHouse to answer", ping, { deadlineMs: 30_000 }).catch(async (error: unknown) => {
      await server.stop();
      throw new Error(server.stderr().slice(-500), { cause: error });
    });
    return { url: urlAt("127.0.0.1", port), stop: async () => void (await server.stop()) };
  });
}

/** Returns the configuration of a single server without Keeper, cluster or further interfaces. */
function configuration({ dir, port, tcpPort }: { dir: string; port: number; tcpPort: number }): string {
  return JSON.stringify({
    logger: { level: "warning", console: 1 },
    listen_host: "127.0.0.1",
    http_port: port,
    tcp_port: tcpPort,
    path: `${dir}/data/`,
    tmp_path: `${dir}/tmp/`,
    user_files_path: `${dir}/files/`,
    timezone: "UTC",
    profiles: { default: {} },
    quotas: { default: {} },
    users: { default: { password: PASSWORD, profile: "default", quota: "default", networks: { ip: "::/0" } } },
  });
}

async function fromContainer(): Promise<Server | undefined> {
  if (!(await dockerAnswers())) return undefined;
  const { GenericContainer, Wait } = await import("testcontainers");
  const container = await new GenericContainer(IMAGE)
    .withEnvironment({ CLICKHOUSE_USER: "default", CLICKHOUSE_PASSWORD: PASSWORD })
    .withExposedPorts(8123)
    .withWaitStrategy(Wait.forHttp("/ping", 8123))
    .start();
  const url = urlAt(container.getHost(), container.getMappedPort(8123));
  return { url, stop: async () => void (await container.stop()) };
}

async function fromPackage(): Promise<Server | undefined> {
  return await inOwnFolder(async (dir) => {
    const engine = await startEngine({ dir, port: 0 });
    return { url: engine.url, stop: async () => void (await engine.server.stop()) };
  });
}

/**
 * Starts the ClickHouse engine on the data in `dir` and a port (0 for any) within a second. It supports the client operations of Postern
 * and keeps its data over a restart.
 */
export async function startEngine({ dir, port, rights, isReplicated = false }: EngineOptions): Promise<Engine> {
  const python = await pythonWith({ name: "chdb-core", version: ENGINE_VERSION, title: "ClickHouse", alone: true });
  const file = join(import.meta.dirname, "clickhouse-server.py");
  // The engine handles SIGTERM itself; its data needs no clean shutdown.
  if (isReplicated && (process.platform !== "linux" || process.arch !== "x64")) {
    throw new MissingPart("Replicated engines of ClickHouse are tried on Linux on x86-64 alone");
  }
  const configured = rights === undefined ? [] : [join(dir, "rights.xml")];
  for (const path of configured) await writeFile(path, rightsXml(rights ?? { grants: [] }));
  const extra = isReplicated ? ["replicated"] : configured;
  const server = await startProcess(python, [file, join(dir, "data"), String(port), PASSWORD, ...extra], {
    readyLine: /listening on (\d+)/,
    cwd: dir,
  });
  const listening = Number(/listening on (\d+)/.exec(server.stdout())?.[1]);
  return { url: urlAt("127.0.0.1", listening), port: listening, server };
}

export interface EngineOptions {
  readonly dir: string;
  readonly port: number;
  /** Default: all permissions. */
  readonly rights?: EngineRights | undefined;
  /** Whether a single replica with an in-memory Keeper runs, for tables with Replicated engines. ON CLUSTER statements run on it alone. */
  readonly isReplicated?: boolean;
}

/** Permissions of the single user of an engine, checked as in a server. */
export interface EngineRights {
  /** Grants such as `SELECT ON db.*`. */
  readonly grants: readonly string[];
  /** Settings of the user's profile. */
  readonly profile?: Readonly<Record<string, string | number>>;
}

const rightsXml = ({ grants, profile = {} }: EngineRights): string => `<clickhouse>
  <profiles><default>${Object.entries(profile).map(([name, value]) => `<${name}>${value}</${name}>`)}</default></profiles>
  <quotas><default/></quotas>
  <users><default>
    <password></password><profile>default</profile><quota>default</quota><networks><ip>::/0</ip></networks>
    <grants>${grants.map((grant) => `<query>GRANT ${grant}</query>`).join("")}</grants>
  </default></users>
</clickhouse>
`;

export interface Engine {
  readonly url: string;
  readonly port: number;
  readonly server: RunningProcess;
}

async function inOwnFolder(start: (dir: string) => Promise<Server | undefined>): Promise<Server | undefined> {
  const dir = await mkdtemp(join(tmpdir(), "postern-clickhouse-"));
  const remove = () => rm(dir, { recursive: true, force: true });
  try {
    const server = await start(dir);
    if (server === undefined) return undefined;
    return { url: server.url, stop: () => server.stop().then(remove) };
  } catch (error) {
    await remove();
    throw error;
  }
}

const urlAt = (host: string, port: number) => `http://default:${encodeURIComponent(PASSWORD)}@${host}:${port}`;

/** Runs statements on a separate connection. */
export async function clickhouseCommand(url: string, ...queries: readonly string[]): Promise<void> {
  const client = createClient({ url });
  try {
    for (const query of queries) await client.command({ query });
  } finally {
    await client.close();
  }
}
