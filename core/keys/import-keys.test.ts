import { expect, test } from "vitest";
import type { FieldProblem } from "../api/procedures.ts";
import { type ImportingApi, type ImportState, importKeys, type KeyToImport, NOT_STARTED } from "./import-keys.ts";

interface Row extends KeyToImport {
  readonly line: number;
}
type State = ImportState<Row>;

const HASH = (n: number): string => `hash_${n}`;
const rows = (count: number): Row[] =>
  Array.from({ length: count }, (_, n) => ({ line: n + 2, secret: undefined, hash: HASH(n), key: { enabled: true } }));

class Refusal extends Error {
  readonly faults: readonly FieldProblem[] | undefined;
  constructor(faults: readonly FieldProblem[] | undefined) {
    super("refused");
    this.faults = faults;
  }
}

interface Sent {
  readonly procedure: string;
  readonly hashes: readonly string[];
}

/** Returns an API that responds to `keys.migrateKeys` by `respond` and records its requests. */
function anApi(respond: (hashes: readonly string[], call: number) => { migrated: number; failed: string[] }): {
  api: ImportingApi;
  sent: Sent[];
} {
  const sent: Sent[] = [];
  const call = async (procedure: string, body: { keys?: readonly { hash: string }[] }) => {
    const hashes = (body.keys ?? []).map(({ hash }) => hash);
    sent.push({ procedure, hashes });
    if (procedure === "admin.startImport") return { data: { migrationId: "mig_1" } };
    const { migrated, failed } = respond(hashes, sent.length);
    return { data: { migrated: Array.from({ length: migrated }), failed } };
  };
  return { api: { call } as unknown as ImportingApi, sent };
}

const run = (api: ImportingApi, taken: readonly Row[], report: (state: State) => void, from: State = NOT_STARTED) =>
  importKeys(
    {
      what: { apiId: "api_1", name: "import", rows: taken },
      api,
      hashOf: (secret) => `hash of ${secret}`,
      problemsOf: (error) => (error instanceof Refusal ? error.faults : undefined),
      report,
      signal: new AbortController().signal,
    },
    from,
  );

test("importKeys sends each row once in batches and saves state after each", async () => {
  const { api, sent } = anApi((hashes) => ({ migrated: hashes.length, failed: [] }));
  const states: State[] = [];
  await run(api, rows(450), (state) => states.push(state));
  expect(sent.flatMap(({ hashes }) => hashes)).toEqual(rows(450).map(({ hash }) => hash));
  expect(states.map(({ done, made }) => [done, made])).toEqual([
    [0, 0],
    [200, 200],
    [400, 400],
    [450, 450],
  ]);
});

test("importKeys sends the hash of a key, never the key", async () => {
  const { api, sent } = anApi((hashes) => ({ migrated: hashes.length, failed: [] }));
  await run(api, [{ line: 2, secret: "the key", hash: undefined, key: { enabled: true } }], () => undefined);
  expect(sent.at(-1)?.hashes).toEqual(["hash of the key"]);
  expect(JSON.stringify(sent)).not.toContain('"the key"');
});

test("importKeys resumes a saved migration and skips completed rows", async () => {
  const { api, sent } = anApi((hashes) => ({ migrated: hashes.length, failed: [] }));
  const [first] = rows(1);
  if (first === undefined) throw new Error("there is no row");
  const from: State = { migrationId: "mig_0", done: 440, made: 439, failed: [{ row: first, problem: "exists" }] };
  let last = from;
  await run(api, rows(450), (state) => (last = state), from);
  expect(sent).toEqual([
    {
      procedure: "keys.migrateKeys",
      hashes: rows(450)
        .slice(440)
        .map(({ hash }) => hash),
    },
  ]);
  expect(last).toEqual({ migrationId: "mig_0", done: 450, made: 449, failed: from.failed });
});

test("importKeys reports rejected rows and existing keys, and retries all other rows", async () => {
  const { api } = anApi((hashes) => {
    const bad = ["hash_0", "hash_2"].filter((hash) => hashes.includes(hash));
    if (bad.length > 0) {
      throw new Refusal(
        bad.map((hash) => ({ location: `body.keys[${hashes.indexOf(hash)}].name`, message: "too long" })),
      );
    }
    return { migrated: hashes.length - 1, failed: ["hash_4"] };
  });
  let last: State = NOT_STARTED;
  await run(api, rows(5), (state) => (last = state));
  expect(last).toMatchObject({ done: 5, made: 2 });
  expect(last.failed.map(({ row, problem }) => [row.line, problem])).toEqual([
    [2, "name: too long"],
    [4, "name: too long"],
    [6, "exists already; nothing was changed"],
  ]);
});

test.each([
  { name: "another error", error: new Error("x") },
  { name: "a refusal without faults", error: new Refusal(undefined) },
  { name: "a fault of something else", error: new Refusal([{ location: "body.apiId", message: "x" }]) },
  { name: "a fault beyond the portion", error: new Refusal([{ location: "body.keys[200].name", message: "x" }]) },
])("importKeys stops on an error and leaves its batch incomplete: $name", async ({ error }) => {
  const { api } = anApi((hashes, call) => {
    if (call === 3) throw error;
    return { migrated: hashes.length, failed: [] };
  });
  let last: State = NOT_STARTED;
  await expect(run(api, rows(450), (state) => (last = state))).rejects.toBe(error);
  expect(last).toMatchObject({ migrationId: "mig_1", done: 200, made: 200 });
});

test("importKeys names the path of a nested invalid field", async () => {
  const { api } = anApi((hashes) => {
    if (hashes.length === 1) return { migrated: 1, failed: [] };
    throw new Refusal([{ location: "body.keys[1].credits.refill", message: "x" }]);
  });
  let last: State = NOT_STARTED;
  await run(api, rows(2), (state) => (last = state));
  expect(last.failed.map(({ row, problem }) => [row.line, problem])).toEqual([[3, "credits.refill: x"]]);
});
