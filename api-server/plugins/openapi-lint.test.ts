import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { v1Procedures } from "../v1/index.ts";
import { procedures } from "../v2/index.ts";
import { buildOpenApi } from "./openapi.ts";
import { buildV1OpenApi } from "./v1/openapi.ts";

const run = promisify(execFile);

const LINTER = resolve(import.meta.dirname, "../../node_modules/.bin/redocly");

/** The linter is to look at the file and at nothing else: what it would ask of the network goes to a port that refuses. */
const OFFLINE = {
  REDOCLY_TELEMETRY: "off",
  REDOCLY_SUPPRESS_UPDATE_NOTICE: "true",
  HTTP_PROXY: "http://127.0.0.1:9",
  HTTPS_PROXY: "http://127.0.0.1:9",
};

interface Findings {
  readonly totals: { readonly errors: number; readonly warnings: number; readonly ignored: number };
  readonly problems: { readonly ruleId: string; readonly message: string; readonly location: object[] }[];
}

async function lint(document: object): Promise<Findings> {
  const folder = await mkdtemp(join(tmpdir(), "postern-lint-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, "openapi.json"), JSON.stringify(document, null, 2));
  const args = ["lint", "openapi.json", "--extends=recommended", "--format=json", "--max-problems=1000"];
  const options = { cwd: folder, env: { ...process.env, ...OFFLINE }, maxBuffer: 16 * 1024 * 1024 };
  // It ends with 1 when it finds an error; the findings are on stdout either way.
  const { stdout } = await run(LINTER, args, options).catch((error: { stdout: string }) => error);
  return JSON.parse(stdout) as Findings;
}

test.each([
  { generation: "v2", document: buildOpenApi(procedures) },
  { generation: "v1", document: buildV1OpenApi(v1Procedures) },
])("OpenAPI linter finds no problem in the $generation document", async ({ document }) => {
  const { totals, problems } = await lint(document);
  expect(problems.map(({ ruleId, message, location }) => ({ ruleId, message, location }))).toEqual([]);
  expect(totals).toEqual({ errors: 0, warnings: 0, ignored: 0 });
});

test("OpenAPI linter detects an invalid example and a missing description", async () => {
  const broken = structuredClone(buildOpenApi(procedures)) as {
    tags: { description?: string }[];
    components: { examples: Record<string, { value: object }> };
  };
  delete broken.tags[0]?.description;
  const example = broken.components.examples.unauthorized;
  if (example !== undefined) example.value = { meta: {} };
  const { problems } = await lint(broken);
  expect(new Set(problems.map(({ ruleId }) => ruleId))).toEqual(
    new Set(["tag-description", "no-invalid-media-type-examples"]),
  );
});
