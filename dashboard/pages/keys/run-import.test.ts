import { expect, test } from "vitest";
import { ApiError } from "../../api/api-error.ts";
import type { Api } from "../../api/client.ts";
import type { ImportRow } from "./key-csv.ts";
import { type ImportState, NOT_STARTED, refusedRows, runImport } from "./run-import.ts";

const HASH = (n: number): string => `hash_${n}`;
const rows = (count: number): ImportRow[] =>
  Array.from({ length: count }, (_, n) => ({ line: n + 2, secret: undefined, hash: HASH(n), key: { enabled: true } }));

const refusal = (faults: { location: string; message: string }[], status = 400): ApiError =>
  new ApiError({ status, kind: "invalid_input", detail: "wrong", faults });

interface Sent {
  readonly procedure: string;
  readonly hashes: readonly string[];
}

/** An API that answers `keys.migrateKeys` by a function, and keeps what it was sent. */
function anApi(answer: (hashes: readonly string[], call: number) => { migrated: number; failed: string[] }): {
  api: Api;
  sent: Sent[];
} {
  const sent: Sent[] = [];
  const call = async (procedure: string, body: { keys?: readonly { hash: string }[] }) => {
    const hashes = (body.keys ?? []).map(({ hash }) => hash);
    sent.push({ procedure, hashes });
    if (procedure === "admin.startImport") return { data: { migrationId: "mig_1" } };
    const { migrated, failed } = answer(hashes, sent.length);
    return { data: { migrated: Array.from({ length: migrated }), failed } };
  };
  return { api: { workspace: undefined, call } as unknown as Api, sent };
}

const what = (count: number) => ({ apiId: "api_1", name: "import", rows: rows(count) });
const never = new AbortController().signal;

test("rows go in portions, once each, and the state after each says where to go on", async () => {
  const { api, sent } = anApi((hashes) => ({ migrated: hashes.length, failed: [] }));
  const states: ImportState[] = [];
  await runImport(api, what(450), NOT_STARTED, { report: (state) => states.push(state), signal: never });
  expect(sent.flatMap(({ hashes }) => hashes)).toEqual(rows(450).map(({ hash }) => hash));
  expect(states.map(({ done, made }) => [done, made])).toEqual([
    [0, 0],
    [200, 200],
    [400, 400],
    [450, 450],
  ]);
});

test("it goes on from a state with the same migration, and sends nothing that is settled", async () => {
  const { api, sent } = anApi((hashes) => ({ migrated: hashes.length, failed: [] }));
  const from: ImportState = { migrationId: "mig_0", done: 440, made: 439, failed: [{ line: 7, problem: "exists" }] };
  let last = from;
  await runImport(api, what(450), from, { report: (state) => (last = state), signal: never });
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

test("rows that the server refuses are listed by their lines, the rest is sent again, existing ones are named", async () => {
  const { api } = anApi((hashes) => {
    const bad = ["hash_0", "hash_2"].filter((hash) => hashes.includes(hash));
    if (bad.length > 0) {
      throw refusal(bad.map((hash) => ({ location: `body.keys[${hashes.indexOf(hash)}].name`, message: "too long" })));
    }
    return { migrated: hashes.length - 1, failed: ["hash_4"] };
  });
  let last = NOT_STARTED;
  await runImport(api, what(5), NOT_STARTED, { report: (state) => (last = state), signal: never });
  expect(last).toMatchObject({ done: 5, made: 2 });
  expect(last.failed).toEqual([
    { line: 2, problem: "name: too long" },
    { line: 4, problem: "name: too long" },
    { line: 6, problem: "exists already; nothing was changed" },
  ]);
});

test("what is no fault of a row stops it, and nothing of that portion counts as done", async () => {
  const { api } = anApi((hashes, call) => {
    if (call === 3) throw refusal([], 503);
    return { migrated: hashes.length, failed: [] };
  });
  let last = NOT_STARTED;
  const run = runImport(api, what(450), NOT_STARTED, { report: (state) => (last = state), signal: never });
  await expect(run).rejects.toThrow(ApiError);
  expect(last).toMatchObject({ migrationId: "mig_1", done: 200, made: 200 });
});

test.each([
  { error: new Error("x"), refused: undefined },
  { error: refusal([]), refused: undefined },
  { error: refusal([{ location: "body.apiId", message: "x" }]), refused: undefined },
  { error: refusal([{ location: "body.keys[9].name", message: "beyond the portion" }]), refused: undefined },
  { error: refusal([{ location: "body.keys[0].name", message: "x" }], 403), refused: undefined },
  { error: refusal([{ location: "body.keys[1].credits.refill", message: "x" }]), refused: [[1, "credits.refill: x"]] },
])("$error.message names the rows $refused", ({ error, refused }) => {
  const found = refusedRows(error, 5);
  expect(found && [...found]).toEqual(refused);
});
