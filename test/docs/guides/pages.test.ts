import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildOpenApi } from "../../../api-server/plugins/openapi.ts";
import { procedures } from "../../../api-server/v2/index.ts";
import { Code } from "../../../core/verification/codes.ts";
import { type RunningProcess, startProcess } from "../../harness/process.ts";
import { callFunction, type Page, readPages, runSteps, type Shell, writeResponses } from "./page.ts";

/*
 * The pages of docs/guides/api as written, all on one `make dev`: the first one from there to a key that is taken back, each other one
 * with a root key that has the permissions that the page names, and no others. Only ports and folder are the test's own.
 */

const ROOT = resolve(import.meta.dirname, "../../..");
const HOUR_MS = 3_600_000;
/** No page takes longer; its counts stay within one window then. */
const PAGE_MS = 20_000;
const [first, ...others] = readPages();

let folder: string;
let dev: RunningProcess;
let apiUrl: string;
let rootKey: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "postern-guides-"));
  const args = `--api-port 0 --sidecar-port 0 --app-port 0 --data-dir ${join(folder, "data")}`;
  dev = await startProcess("make", ["--no-print-directory", "dev", `ARGS=${args}`], {
    cwd: ROOT,
    env: { DATABASE_URL: "", REDIS_URL: "", POSTERN_ROOT_KEY: undefined },
    readyLine: /keys\.verifyKey/,
    readyMs: 120_000,
  });
  [, apiUrl = ""] = /API +(http:\S+)\/v2/.exec(dev.stdout()) ?? [];
  [, rootKey = ""] = /root key +(\S+)/.exec(dev.stdout()) ?? [];
});
afterAll(async () => {
  await dev?.stop(10_000);
  rmSync(folder, { recursive: true, force: true });
});

/** Compares what the page shows with what came, or, with GUIDES set, writes that into the page. */
async function follow(page: Page, steps: Page["steps"], shell: Shell): Promise<void> {
  const remainingMs = HOUR_MS - (Date.now() % HOUR_MS);
  if (remainingMs < PAGE_MS) await sleep(remainingMs);
  const ran = await runSteps(steps, shell, callFunction());
  if (process.env.GUIDES !== undefined) return writeResponses(page, ran);
  for (const { shown, printed, commands } of ran) expect(printed, commands).toBe(shown);
  expect(ran.length).toBeGreaterThan(1);
}

async function call<Data>(procedure: string, body: unknown): Promise<Data> {
  const response = await fetch(`${apiUrl}/v2/${procedure}`, {
    method: "POST",
    headers: { authorization: `Bearer ${rootKey}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const answer = (await response.json()) as { data: Data };
  if (!response.ok) throw new Error(`${procedure} answered ${response.status}: ${JSON.stringify(answer)}`);
  return answer.data;
}

test("first API guide leads from make dev to a revoked key", async () => {
  if (first === undefined) throw new Error("there is no first page");
  const [start, ...steps] = first.steps;
  expect(start?.commands).toBe("make dev\n");
  const variables = { POSTERN_API_URL: apiUrl, POSTERN_DATA_DIR: join(folder, "data") };
  await follow(first, steps, { variables, printed: dev.stdout() });
});

test.each(others)("each command of the guide $name works with the documented permissions", async (page) => {
  const { apiId } = await call<{ apiId: string }>("apis.createApi", { name: page.name });
  const made = await call<{ rootKey: string }>("admin.createRootKey", {
    name: page.name,
    permissions: [...page.permissions],
  });
  const variables = {
    POSTERN_API_URL: apiUrl,
    POSTERN_ROOT_KEY: made.rootKey,
    POSTERN_DATA_DIR: join(folder, "data"),
    API_ID: apiId,
  };
  await follow(page, page.steps, { variables, printed: "" });
});

type Responses = Readonly<Record<string, { readonly $ref?: string }>>;
const openApi = buildOpenApi(procedures) as unknown as {
  paths: Readonly<Record<string, { post?: { responses: Responses } }>>;
  components: { responses: Readonly<Record<string, unknown>> };
};

/** Whether a procedure may answer so, as the OpenAPI document says. */
function mayAnswer(procedure: string, status: string, kind: string): boolean {
  const response = openApi.paths[`/v2/${procedure}`]?.post?.responses[status];
  const shared =
    response?.$ref === undefined ? response : openApi.components.responses[response.$ref.split("/").at(-1) ?? ""];
  return new RegExp(`\\b${kind}\\b`).test(JSON.stringify(shared) ?? "");
}

test.each([first, ...others])("each documented error of the guide $name can occur", (page) => {
  const text = page?.text ?? "";
  const procedures = [...text.matchAll(/(?:\bcall |`|\/v2\/)([a-z]+\.[a-z][A-Za-z]+)\b/g)].map(([, name = ""]) => name);
  const cells = [...text.matchAll(/^(?:\| `([^`|]+)`(?: [^|]*)? \||- `([^`]+)`(?: .*?)?: )/gm)].map(
    ([, cell, entry = ""]) => cell ?? entry,
  );
  const wrong = cells.filter((cell) => {
    if (/^[A-Z_]+$/.test(cell)) return !procedures.includes("keys.verifyKey") || !Code.safeParse(cell).success;
    const [, status, kind = ""] = /^(\d{3}) (\w+)$/.exec(cell) ?? [];
    return status !== undefined && !procedures.some((name) => mayAnswer(name, status, kind));
  });
  expect(wrong).toEqual([]);
  expect(cells.length).toBeGreaterThan(2);
});
