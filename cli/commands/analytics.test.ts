import { pino } from "pino";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { PostgresAnalytics } from "../../analytics/postgres/store.ts";
import type { VerificationEvent } from "../../edge/events/contract.ts";
import { aVerificationEvent } from "../../test/builders/usage-event.ts";
import { type ApiCli, openApiCli, type RunOptions } from "../test/api-cli.ts";

const HOUR_MS = 3_600_000;

let cli: ApiCli;
/** Root keys of a workspace with verifications and of one without. */
let used: string;
let unused: string;
let usedId: string;
/** Start of an hour, 3 h ago. */
let hourMs: number;
beforeAll(async () => {
  cli = await openApiCli();
  const { t } = cli;
  const [workspace, other] = [await t.makeWorkspace(), await t.makeWorkspace()];
  ({ id: usedId, rootKey: used } = workspace);
  unused = (await t.makeWorkspace()).rootKey;
  await t.deps.db.query(
    `insert into apis (id, workspace_id, key_space_id, name, created_at)
     values ('api_used_1', $1, 'ks_1', 'x', 1), ('api_used_2', $1, 'ks_2', 'x', 1)`,
    [usedId],
  );
  hourMs = Math.floor(Date.now() / HOUR_MS - 3) * HOUR_MS;
  const identity = { identityId: "id_1", externalId: 'a, "b"' };
  await store(usedId, [
    { timeMs: hourMs, ...identity },
    { timeMs: hourMs + HOUR_MS - 1, outcome: "RATE_LIMITED" },
    { timeMs: hourMs + 2 * HOUR_MS, keyId: "key_2", keySpaceId: "ks_2" },
    { timeMs: hourMs + 2 * HOUR_MS, keyId: "key_2", keySpaceId: "ks_2" },
    { timeMs: hourMs + 2 * HOUR_MS, keyId: "key_2", keySpaceId: "ks_2", outcome: "DISABLED" },
  ]);
  await store(other.id, [{ timeMs: hourMs, keyId: "key_9" }]);
});
afterAll(() => cli.close());

async function store(workspaceId: string, events: readonly Partial<VerificationEvent>[]): Promise<void> {
  const whole = events.map((event, index) =>
    aVerificationEvent({
      id: `ev_${workspaceId}_${index}`,
      timeMs: hourMs,
      workspaceId,
      source: "api",
      spentCredits: 0,
      ...event,
    }),
  );
  const analytics = new PostgresAnalytics({
    db: cli.t.deps.db,
    nowMs: Date.now,
    log: pino({ level: "silent" }),
    metrics: new Registry(),
  });
  await analytics.maintain(Date.now());
  const lines = whole.map((event) => JSON.stringify(event)).join("\n");
  const taken = { workspaceId, batchId: workspaceId, lines, [Symbol.iterator]: () => whole[Symbol.iterator]() };
  expect((await analytics.ingest(taken, Date.now())).stored).toBe(events.length);
  while (await analytics.rollUp());
}

const run = (args: string, { rootKey = used, ...options }: RunOptions & { rootKey?: string } = {}) =>
  cli.run(args.split(" "), { ...cli.as(rootKey), ...options });
const json = async (args: string, rootKey?: string) => {
  const { code, text, notes } = await run(`${args} --json`, rootKey === undefined ? {} : { rootKey });
  expect({ code, notes }).toEqual({ code: 0, notes: [] });
  return JSON.parse(text);
};
const usage = async (args: string, rootKey?: string): Promise<Record<string, unknown>[]> =>
  (await json(`analytics ${args}`, rootKey)).usage;

test("analytics command with --by hour prints a row for each hour of the last day, even without verifications", async () => {
  const rows = await usage("--since 24h");
  expect(rows).toHaveLength(25);
  expect(rows.filter(({ total }) => total !== 0)).toMatchObject([
    { time: hourMs, total: 2, valid: 1, rateLimited: 1, keyId: null, outcome: null },
    { time: hourMs + 2 * HOUR_MS, total: 3, valid: 2, disabled: 1 },
  ]);
});

test("analytics command groups ranges of more than three days by day unless hours are requested", async () => {
  expect(await usage("--since 4d")).toHaveLength(5);
  expect(await usage("--since 4d --by hour")).toHaveLength(97);
  expect(await usage(`--since ${new Date(hourMs).toISOString().slice(0, 16)}Z --until 1h`)).toHaveLength(3);
});

test("analytics command by key, identity or outcome sorts by usage, for one API or all APIs", async () => {
  expect(await usage("--by key")).toMatchObject([
    { keyId: "key_2", total: 3, valid: 2, disabled: 1, time: null },
    { keyId: "key_1", total: 2, valid: 1, rateLimited: 1 },
  ]);
  expect(await usage("--by key --api api_used_1")).toMatchObject([{ keyId: "key_1", total: 2 }]);
  expect(await usage("--by identity")).toMatchObject([{ identityId: "id_1", externalId: 'a, "b"', total: 1 }]);
  const outcomes = (await usage("--by outcome")).map(({ outcome, total }) => [outcome, total]);
  expect(outcomes).toEqual([
    ["VALID", 3],
    ["RATE_LIMITED", 1],
    ["DISABLED", 1],
  ]);
  expect(await json("analytics --by key --limit 1")).toMatchObject({
    usage: [{ keyId: "key_2" }],
    hasMore: true,
  });
});

test("analytics command prints a chart and a table as wide as the terminal", async () => {
  const { code, out, notes } = await run("analytics", { columns: 70 });
  expect({ code, notes }).toEqual({ code: 0, notes: [] });
  expect(out[0]).toBe("verifications per hour");
  expect(out.some((line) => line.startsWith("3┤"))).toBe(true);
  expect(out).toContain("TIME              TOTAL  VALID  RATE LIMITED  DISABLED");
  expect(out).toContain(
    `${new Date(hourMs).toISOString().slice(0, 16).replace("T", " ")}  2      1      1             0`,
  );
  for (const line of out) expect([...line].length).toBeLessThanOrEqual(70);
});

test("analytics command prints a bar for each key", async () => {
  const { out } = await run("analytics --by key", { columns: 100 });
  expect(out).toEqual([
    "KEY    TOTAL  VALID  RATE LIMITED  DISABLED",
    "key_2  3      2      0             1         ████████████████████",
    "key_1  2      1      1             0         █████████████▍",
  ]);
});

test("analytics command with --csv prints a heading and a line for each row", async () => {
  const { out } = await run("analytics --by identity --csv");
  expect(out).toEqual([
    "time,keyId,identityId,externalId,outcome,total,valid,rateLimited,usageExceeded,disabled,expired,forbidden,insufficientPermissions",
    ',,id_1,"a, ""b""",,1,1,0,0,0,0,0,0',
  ]);
});

test("analytics command says that there are no verifications", async () => {
  for (const by of ["", " --by key", " --by outcome"]) {
    const { code, out, notes } = await run(`analytics${by}`, { rootKey: unused });
    expect({ code, out }).toEqual({ code: 0, out: [] });
    expect(notes).toEqual([expect.stringMatching(/^no verifications from \d{4}-.*Z to \d{4}-.*Z$/)]);
  }
  const { out } = await run("analytics --by key --csv", { rootKey: unused });
  expect(out).toHaveLength(1);
});

test("analytics counts only the APIs for which the root key has read_analytics", async () => {
  const one = await cli.t.rootKey(["api.api_used_2.read_analytics"], { workspaceId: usedId });
  expect(await usage("--by key", one)).toMatchObject([{ keyId: "key_2", total: 3 }]);
  const none = await run("analytics", { rootKey: await cli.t.rootKey(["api.*.read_api"], { workspaceId: usedId }) });
  expect(none).toMatchObject({ code: 1, text: "" });
  expect(none.notes.join()).toContain("read_analytics");
});

test("analytics command rejects unsupported options with a message", async () => {
  const failure = async (args: string, code: 1 | 2) => {
    const ran = await run(`analytics ${args}`);
    expect(ran).toMatchObject({ code, text: "" });
    return ran.notes.join("\n");
  };
  expect(await failure("--by week", 2)).toContain("for --by: must be one of hour, day, key, identity, outcome");
  expect(await failure("--csv --json", 2)).toContain("--csv and --json exclude each other");
  expect(await failure("--since 1h --until 2h", 2)).toContain("--since must be before --until");
  expect(await failure("--since 2000-01-01 --by hour", 1)).toContain("more than 10000 rows");
  expect(await failure("--api api_none", 1)).toContain("There is no API api_none");
});
