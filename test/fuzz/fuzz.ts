import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { makeKeyString } from "../../core/keys/key-string.ts";
import { cacheFolder } from "../harness/parts/go-build.ts";
import { schemathesis } from "../harness/parts/schemathesis.ts";
import { createTestDatabase } from "../harness/postgres.ts";
import { PROGRAM, startProcess } from "../harness/process.ts";
import { createTestRedis } from "../harness/redis.ts";
import { seed, toDictionaries } from "./seed.ts";

/*
 * Sends to every procedure of its own api-server, over a real Postgres and a real Redis, what the OpenAPI documents of both generations
 * allow and what they do not, and checks the responses against the documents.
 */

const ROOT = resolve(import.meta.dirname, "../..");

const UNICODE_TABLES = join(cacheFolder(), "hypothesis");
const DELETES = "[.]delete[A-Z]";

/** v1 comes after v2, on the same objects. */
const DOCUMENTS = { v2: "/openapi.json", v1: "/v1/openapi.json" } as const;
type Generation = keyof typeof DOCUMENTS;

export interface FuzzOptions {
  /** How many requests are generated for each procedure, besides those for each bound of each field. */
  readonly examples: number;
  /** The same seed generates the same requests. */
  readonly seed: number;
  /** The one procedure to fuzz, `keys.createKey` or `v1/keys.createKey`; all when left out. */
  readonly only?: string | undefined;
  /** The generations whose procedures are fuzzed; both when left out. */
  readonly generations?: readonly Generation[] | undefined;
  /** Additional arguments for Schemathesis. */
  readonly args?: readonly string[];
  /** Changes the document against which responses are checked, to prove that a difference would be found. */
  readonly falsify?: (document: FalsifiedDocument) => void;
  /** Called with the output as it is printed. */
  readonly onOutput?: (text: string) => void;
}

/** The part of the document that a test of the fuzzer changes. */
export interface FalsifiedDocument {
  readonly security: readonly object[];
  readonly paths: Record<
    string,
    { post: { requestBody: { content: { "application/json": { schema: { properties: Record<string, object> } } } } } }
  >;
}

export interface Fuzzed {
  /** Nothing was found. */
  readonly passed: boolean;
  readonly output: string;
  /** What the api-server logged as errors. */
  readonly errors: readonly string[];
}

export async function fuzz({
  examples,
  seed: seedNumber,
  only,
  generations = ["v2", "v1"],
  args = [],
  falsify,
  onOutput,
}: FuzzOptions): Promise<Fuzzed> {
  await using parts = new AsyncDisposableStack();
  const command = await schemathesis();
  const folder = await mkdtemp(join(tmpdir(), "postern-fuzz-"));
  parts.defer(() => rm(folder, { recursive: true, force: true }));
  const server = await startServer(parts);

  const config = join(folder, "schemathesis.toml");
  const seeded = toDictionaries(await seed(server.call, server.databaseUrl));
  await writeFile(config, `${await readFile(join(import.meta.dirname, "schemathesis.toml"), "utf8")}\n${seeded}`);
  let output = "";
  const run = async (document: string, more: readonly string[]): Promise<boolean> => {
    const child = spawn(
      command.file,
      [
        ...command.args,
        ...["--config-file", config, "run", document, "--url", server.url],
        ...["--max-examples", String(examples), "--seed", String(seedNumber), "--no-color", ...args, ...more],
      ],
      {
        cwd: folder,
        // Tables of all characters, which take seconds to make. Nothing is kept there of requests.
        env: { ...process.env, FUZZ_ROOT_KEY: server.rootKey, HYPOTHESIS_STORAGE_DIRECTORY: UNICODE_TABLES },
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    parts.defer(() => void child.kill());
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        output += text;
        onOutput?.(text);
      });
    }
    const [code] = (await once(child, "close")) as [number | null];
    return code === 0;
  };
  // Deleting procedures come last: otherwise there would soon be no objects for the others.
  const filters = [
    ["--exclude-path-regex", DELETES],
    ["--include-path-regex", DELETES],
  ];
  const isV1 = only?.startsWith("v1/") === true;
  const runs: [Generation, readonly string[]][] =
    only === undefined
      ? filters.flatMap((filter) => generations.map((generation): [Generation, string[]] => [generation, filter]))
      : [[isV1 ? "v1" : "v2", ["--include-path", isV1 ? `/${only}` : `/v2/${only}`]]];
  let passed = true;
  for (const [generation, filter] of runs) {
    const document = join(folder, `openapi-${generation}.json`);
    await writeFile(document, JSON.stringify(await fetchDocument(`${server.url}${DOCUMENTS[generation]}`, falsify)));
    passed = (await run(document, filter)) && passed;
  }
  const errors = server.errors();
  return { passed: passed && errors.length === 0, output, errors };
}

/** The document, but that requests carry the root key alone: of those with a made-up session in its place none goes past its 401. */
async function fetchDocument(url: string, falsify: FuzzOptions["falsify"]): Promise<FalsifiedDocument> {
  const document = (await (await fetch(url)).json()) as FalsifiedDocument;
  falsify?.(document);
  return { ...document, security: [{ rootKey: [] }] };
}

async function startServer(parts: AsyncDisposableStack) {
  const database = await createTestDatabase();
  parts.defer(() => database.drop());
  const redis = await createTestRedis();
  parts.defer(() => redis.close());
  const rootKey = makeKeyString({ prefix: "root", randomBytes: randomBytes(24) }).key;
  const ready = /"msg":"ready".*\n/;
  const child = await startProcess(process.execPath, [PROGRAM, "api-server", "--host", "127.0.0.1", "--port", "0"], {
    cwd: ROOT,
    readyLine: ready,
    env: {
      DATABASE_URL: database.url,
      REDIS_URL: redis.url,
      POSTERN_REDIS_PREFIX: redis.prefix.replace(/:$/, ""),
      POSTERN_ROOT_KEY: rootKey,
      POSTERN_LOG_LEVEL: "info",
      POSTERN_ENCRYPTION_KEYS: `fuzz:${randomBytes(32).toString("base64")}`,
    },
  });
  parts.defer(async () => void (await child.stop()));
  const lines = () => child.stderr().split("\n");
  const { url } = JSON.parse(lines().find((line) => ready.test(`${line}\n`)) ?? "{}") as { url: string };

  const call = async <Data>(procedure: string, body: unknown): Promise<Data> => {
    const response = await fetch(`${url}/v2/${procedure}`, {
      method: "POST",
      headers: { authorization: `Bearer ${rootKey}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const reply = (await response.json()) as { data: Data };
    if (!response.ok) throw new Error(`${procedure} answered ${response.status}: ${JSON.stringify(reply)}`);
    return reply.data;
  };
  // pino's levels: 50 is an error.
  const errors = () => lines().filter((line) => /"level":[56]0/.test(line));
  return { url, databaseUrl: database.url, rootKey, call, errors };
}
