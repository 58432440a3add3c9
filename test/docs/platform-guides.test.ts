import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { buildTestApp, type TestApp } from "../../api-server/test/app.ts";
import { makeResources } from "../../api-server/test/resources.ts";
import { ERROR_KINDS } from "../../core/errors.ts";
import {
  createTestNamespace,
  KUBERNETES_START_MS,
  startKubernetes,
  type TestNamespace,
} from "../harness/kubernetes.ts";
import { PROGRAM } from "../harness/process.ts";
import { blocksOf, type Step, stepsOf, wordsOf } from "./page.ts";

/*
 * The guides for platform engineers, followed as written: the files that a page shows are written down, its commands are run among them, and what they
 * print is what the page shows.
 */

const ROOT = resolve(import.meta.dirname, "../..");
const FOLDER = join(ROOT, "docs/guides/platform");
const run = promisify(execFile);

const pages = readdirSync(FOLDER).map((page) => ({ page, blocks: blocksOf(`guides/platform/${page}`) }));

let t: TestApp;
let env: NodeJS.ProcessEnv;
let shop: TestNamespace;
let kubectl: Awaited<ReturnType<typeof startKubernetes>>["kubectl"];
beforeAll(async () => {
  t = await buildTestApp();
  const resources = makeResources(t.deps.db, { workspaceId: t.workspace.id, ask: (path, body) => t.data(path, body) });
  env = {
    ...process.env,
    API_ID: await resources.api(),
    POSTERN_API_URL: await t.app.listen({ host: "127.0.0.1", port: 0 }),
    POSTERN_ROOT_KEY: t.workspace.rootKey,
  };
  ({ kubectl } = await startKubernetes());
  shop = await createTestNamespace();
  const applied = await kubectl(["apply", "--server-side", "-f", join(ROOT, "charts/postern/files/crds")]);
  expect(applied.stderr).toBe("");
}, KUBERNETES_START_MS);
afterAll(() => t?.close());

/** Standard output, then standard error; the exit code is a part of what a command says. */
async function shell(line: string, cwd: string): Promise<{ text: string; code: number }> {
  const command = line.replace(/^postern/, `"${process.execPath}" "${PROGRAM}"`);
  try {
    const { stdout, stderr } = await run("sh", ["-c", command], { cwd, env });
    return { text: stdout + stderr, code: 0 };
  } catch (error) {
    const { stdout = "", stderr = "", code = -1 } = error as { stdout?: string; stderr?: string; code?: number };
    return { text: stdout + stderr, code };
  }
}

/** The commands of a GitHub workflow or a GitLab pipeline. */
function scriptsIn(text: string): string[] {
  const [document] = parseAllDocuments(text);
  const { jobs, ...rest } = (document?.toJS() ?? {}) as { jobs?: Record<string, { steps?: { run?: string }[] }> };
  const ofGitLab = Object.values(rest as Record<string, { script?: string[] } | null>).flatMap(
    (job) => job?.script ?? [],
  );
  const ofGitHub = Object.values(jobs ?? {}).flatMap(({ steps = [] }) => steps.flatMap(({ run: line }) => line ?? []));
  return [...ofGitHub, ...ofGitLab].filter((line) => line.startsWith("postern "));
}

/** What asks an installation is in test/docs/explain.test.ts, and what needs a release or its pods in test/cluster/pages.test.ts. */
const isOurs = ({ line }: Step) => line.startsWith("postern ") && !line.startsWith("postern explain");
const isOfCluster = ({ line }: Step) => line.startsWith("kubectl ") && !/ -n postern |--raw /.test(line);

describe.each(pages.filter(({ blocks }) => stepsOf(blocks).some((step) => isOurs(step) || isOfCluster(step))))(
  "$page",
  ({ blocks }) => {
    const dir = mkdtempSync(join(tmpdir(), "postern-guide-"));
    for (const { file, text } of blocks) if (file !== undefined) writeFileSync(join(dir, file), text);
    afterAll(() => rmSync(dir, { recursive: true }));
    const steps = stepsOf(blocks);

    test.each(steps.filter(isOurs))("command of a platform guide works: $line", async ({ line, printed }) => {
      const { text, code } = await shell(line, dir);
      if (printed !== undefined) expect(text).toBe(printed);
      else if (line.includes("--api-id")) expect(text).toMatch(/^[1-9]\d* keys? imported/);
      else expect(code, text).toBe(0);
    });

    const ofPipelines = blocks.filter(({ language }) => language === "yaml").flatMap(({ text }) => scriptsIn(text));
    if (ofPipelines.length > 0) {
      test.each(ofPipelines)("pipeline command of a platform guide works: %s", async (line) => {
        const { text, code } = await shell(line, dir);
        expect(code, text).toBe(0);
      });
    }

    const ofCluster = steps.filter(isOfCluster);
    if (ofCluster.length === 0) return;
    test("platform guide kubectl commands are accepted by a cluster", async () => {
      const policy =
        readFileSync(join(FOLDER, "rules.md"), "utf8").match(/```yaml\n# policy.yaml\n(.*?)```/s)?.[1] ?? "";
      const made = await kubectl(["apply", "-f", "-"], policy.replaceAll("namespace: shop", `namespace: ${shop.name}`));
      expect(made.stderr).toBe("");
      for (const { line } of ofCluster) {
        const args = wordsOf(line).slice(1);
        // No operator looks at the object here, so what waits for it waits in vain.
        const isWait = args.includes("wait");
        const given = args.map((arg) => (arg === "shop" ? shop.name : arg.replace("--timeout=60s", "--timeout=1s")));
        const { exitCode, stderr } = await kubectl(given);
        if (isWait) expect(stderr).toContain("timed out waiting for the condition");
        else expect([exitCode, stderr]).toEqual([0, ""]);
      }
    });
  },
);

test("platform guide names only gate error kinds with their statuses", () => {
  const rows = [...readFileSync(join(ROOT, "docs/explain.md"), "utf8").matchAll(/^ *\| (\d{3}) \| ([^|]+) \|/gm)];
  expect(rows.length).toBeGreaterThan(7);
  for (const [, status, kinds = ""] of rows) {
    for (const [, kind = ""] of kinds.matchAll(/`(\w+)`/g)) {
      expect(ERROR_KINDS[kind as keyof typeof ERROR_KINDS]?.status, kind).toBe(Number(status));
    }
  }
});

test("every platform guide is in the index of its folder", () => {
  const list = readFileSync(join(FOLDER, "README.md"), "utf8");
  expect(pages.map(({ page }) => page).filter((page) => page !== "README.md" && !list.includes(`(${page})`))).toEqual(
    [],
  );
});
