import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { sendLoad } from "./generator.ts";
import { compare, median, percentile } from "./measure.ts";
import { CONNECTIONS, contestant, type Figure, type Section, timed, toFigures } from "./section.ts";
import { seededKey, seededKeyId, seedKeys } from "./seed.ts";
import type { Stack } from "./stack.ts";

/* Several api-servers, many keys, and creating keys: what is measured, and the bound of each figure. */

const run = promisify(execFile);

const verifyHeaders = (rootKey: string) => ({ authorization: `Bearer ${rootKey}`, "content-type": "application/json" });

/** CPU of a verification when two api-servers share the load, compared with a single one. */
export const replicas: Section = async (environment, options) => {
  const keys = await environment.keys(1000);
  const one = environment.apiServer;
  const other = await environment.startApiServer();
  const requests = keys.map(({ key }) => ({ body: JSON.stringify({ key }) }));
  const load = (url: string, connections: number) => ({
    url: `${url}/v2/keys.verifyKey`,
    method: "POST" as const,
    headers: verifyHeaders(environment.rootKey),
    requests,
    connections,
    durationMs: options.durationMs,
  });
  const alone = contestant(options, ({ url }) => load(url, CONNECTIONS))("one api-server", one);
  const shared = {
    name: "verifyKey on two api-servers",
    pids: [one.pid, other.pid],
    loads: [load(one.url, CONNECTIONS / 2), load(other.url, CONNECTIONS / 2)],
  };
  const results = await compare({
    contestants: [{ contestant: shared, baseline: alone }],
    rounds: options.rounds,
    onRound: (round) => options.progress(`replicas: round ${round} of ${options.rounds}`),
  });
  await other.stop();
  return toFigures(results, [1.1]);
};

const FEW = 1000;
const MANY = 1_000_000;
const PAGE = 100;
const TURNS = 2000;

/** Duration of single calls with a million keys, compared with a thousand. */
export const scale: Section = async (environment, options) => {
  const few = await openSeeded(environment, { name: "few", count: FEW, progress: options.progress });
  const many = await openSeeded(environment, { name: "many", count: MANY, progress: options.progress });
  const calls = [
    {
      name: "verifyKey of any key",
      path: "keys.verifyKey",
      body: (s: Seeded) => ({ key: seededKey(s.apiId, any(s)) }),
    },
    { name: "getKey of any key", path: "keys.getKey", body: (s: Seeded) => ({ keyId: seededKeyId(s.apiId, any(s)) }) },
    { name: "listKeys, first page", path: "apis.listKeys", body: (s: Seeded) => ({ apiId: s.apiId, limit: PAGE }) },
    {
      name: "listKeys, last page",
      path: "apis.listKeys",
      body: (s: Seeded) => ({ apiId: s.apiId, limit: PAGE, cursor: s.lastPage }),
    },
  ];
  const figures: Figure[] = [];
  for (const { name, path, body } of calls) {
    options.progress(`scale: ${name}`);
    const times = new Map<Seeded, number[]>([few, many].map((each) => [each, []]));
    for (let turn = 0; turn < TURNS; turn += 1) {
      for (const each of turn % 2 === 0 ? [few, many] : [many, few]) {
        times.get(each)?.push(await timed(() => each.stack.call(path, body(each))));
      }
    }
    const [ofFew, ofMany] = [times.get(few) ?? [], times.get(many) ?? []];
    figures.push({
      name: `${name}: ${MANY} keys / ${FEW}`,
      unit: "ratio",
      value: median(ofMany) / median(ofFew),
      max: 1.5,
      detail: `medians ${median(ofMany).toFixed(2)} and ${median(ofFew).toFixed(2)} ms, p99 ${percentile(ofMany, 99).toFixed(2)} and ${percentile(ofFew, 99).toFixed(2)} ms`,
    });
  }
  await few.stack.close();
  await many.stack.close();
  return figures;
};

interface Seeded {
  readonly stack: Stack;
  readonly apiId: string;
  readonly count: number;
  /** Where the last page of `PAGE` keys begins. */
  readonly lastPage: string;
}

const any = ({ count }: Seeded): number => Math.floor(Math.random() * count);

/** A stack of its own with so many keys, all of them projected. */
export async function openSeeded(
  environment: Parameters<Section>[0],
  { name, count, progress }: { name: string; count: number; progress: (line: string) => void },
): Promise<Seeded> {
  let apiId = "";
  const startedAt = performance.now();
  const stack = await environment.openSecond(name, async ({ databaseUrl, workspaceId }) => {
    apiId = await seedKeys(databaseUrl, { workspaceId, count });
    progress(`${name}: ${count} keys seeded in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
  });
  const ids = Array.from({ length: count }, (_, n) => seededKeyId(apiId, n)).sort();
  await untilProjected(stack, seededKey(apiId, count - 1));
  progress(`${name}: ${count} keys ready after ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
  return { stack, apiId, count, lastPage: ids[count - PAGE] ?? "" };
}

/** The start of an api-server projects all keys; until then some are unknown, and are read from Postgres. */
async function untilProjected(stack: Stack, key: string): Promise<void> {
  const deadline = Date.now() + 600_000;
  for (;;) {
    const response = await fetch(`${stack.apiServer.url}/readyz?verbose`);
    const { degradations } = (await response.json()) as { degradations: unknown[] };
    if (degradations.length === 0) break;
    if (Date.now() > deadline) throw new Error("the seeded keys were not projected within ten minutes");
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  const { code } = await stack.call<{ code: string }>("keys.verifyKey", { key });
  if (code !== "VALID") throw new Error(`a seeded key is ${code}`);
}

const WRITERS = 16;

/** Keys per second through the API, compared with bare transactions that insert the same rows over as many connections. */
export const creation: Section = async (environment, options) => {
  const { apiServer, rootKey, databaseUrl, workspaceId, apiId } = environment;
  const ratios: number[] = [];
  const rates = { api: [] as number[], bare: [] as number[] };
  const load = {
    url: `${apiServer.url}/v2/keys.createKey`,
    method: "POST" as const,
    headers: verifyHeaders(rootKey),
    requests: [{ body: JSON.stringify({ apiId }) }],
    connections: WRITERS,
    durationMs: options.durationMs,
  };
  const script = join(import.meta.dirname, "children/bare-insert.ts");
  const size = ["--connections", String(WRITERS), "--ms", String(options.durationMs)];
  await sendLoad(load);
  for (let round = 1; round <= options.rounds; round += 1) {
    options.progress(`creation: round ${round} of ${options.rounds}`);
    const { requestsPerSecond: api } = await sendLoad(load);
    const { stdout } = await run(process.execPath, [script, databaseUrl, workspaceId, apiId, ...size]);
    const bare = Number(stdout);
    rates.api.push(api);
    rates.bare.push(bare);
    ratios.push(bare / api);
  }
  return [
    {
      // Inverted, because every figure should be small: half the rate is twice the time.
      name: "time of createKey / bare insert of its rows",
      unit: "ratio",
      value: median(ratios),
      max: 2,
      detail: `${median(rates.api).toFixed(0)} and ${median(rates.bare).toFixed(0)} keys/s over ${WRITERS} connections`,
    },
  ];
};
