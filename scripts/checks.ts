import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, rm } from "node:fs/promises";
import { join, relative } from "node:path";
import { parseArgs, stripVTControlCharacters } from "node:util";
import { findAdapter } from "../test/cluster/main.ts";
import { findChromium } from "../test/harness/chromium.ts";
import { dockerAnswers } from "../test/harness/parts/find.ts";
import { canStartKubernetes, kubernetesPrograms } from "../test/harness/parts/kubernetes.ts";
import { type Project, selectTests } from "../test/selection.ts";
import { bundle } from "./bundle.ts";

/*
 * `make test` and `make test-all` (`--all`): run the type check, the linter and the tests in sequence, even after a failure. The last line,
 * "N passed, N failed", counts every test, and counts the type check and the linter as one test each. `--record` writes
 * test/durations.json.
 */

const { values: options } = parseArgs({
  options: { all: { type: "boolean", default: false }, record: { type: "boolean", default: false } },
});

/** Notes about tests that this run skips. */
const notes: string[] = [];

/**
 * Failed tests, one line each with the first line of the error. They are printed last, because often only the end of the output is kept.
 */
const failures: string[] = [];

type Count = { passed: number; failed: number };

const root = join(import.meta.dirname, "..");
const results = join(root, ".postern", "test-results");

/** The members of the JSON report (Jest's format) that this script reads. */
type Report = {
  numPassedTests: number;
  numFailedTests: number;
  numPendingTests: number;
  testResults: {
    name: string;
    status: string;
    message: string;
    assertionResults: { status: string; fullName: string; failureMessages: string[] }[];
  }[];
};

async function runScript(name: string, args: string[] = []): Promise<number> {
  process.stdout.write(`\n== ${name}\n`);
  const child = spawn("npm", ["run", "--silent", name, "--", ...args], {
    cwd: root,
    stdio: ["ignore", "inherit", "inherit"],
  });
  const [code] = (await once(child, "close")) as [number | null];
  return code ?? 1;
}

async function asOne(name: string): Promise<Count> {
  const failed = (await runScript(name)) === 0 ? 0 : 1;
  return { passed: 1 - failed, failed };
}

type Counts = Count & { skipped: number };

async function allTests(): Promise<Counts> {
  // Builds the dependency now. Otherwise the build would count against the timeout of the first test that needs it.
  await prepare(prepareKubernetes);
  await prepare(findChromium);
  return countedTests("test");
}

/** Runs the tests that need no build from source, no browser, no gateway and no second database. */
async function quickTests(): Promise<Counts> {
  const projects: Project[] = ["pure", "api-server", "components"];
  const { kubernetes } = selectTests();
  if (await canStartKubernetes()) projects.push("kubernetes");
  else notes.push(`${kubernetes.length} files need a Kubernetes API server, which \`make test-all\` builds`);
  return countedTests(
    "test",
    projects.map((name) => `--project=${name}`),
  );
}

/** Runs the tests on a complete cluster, if a program that can create a cluster is installed. */
async function clusterTests(): Promise<Counts | undefined> {
  const given = process.env.KUBECONFIG && process.env.E2E_TAG;
  return given || (await findAdapter(process.env)) !== undefined ? countedTests("e2e") : undefined;
}

async function countedTests(script: "test" | "e2e", args: readonly string[] = []): Promise<Counts> {
  await rm(results, { recursive: true, force: true });
  await mkdir(results, { recursive: true });
  const file = join(results, `${script}.json`);
  const reporters = ["default", "json", ...(options.record && script === "test" ? ["./test/record-durations.ts"] : [])];
  const code = await runScript(script, [
    ...reporters.map((name) => `--reporter=${name}`),
    `--outputFile.json=${file}`,
    ...args,
  ]);
  const report = await readFile(file, "utf8").then(
    (text) => JSON.parse(text) as Report,
    () => undefined,
  );
  if (report === undefined) return { passed: 0, failed: 1, skipped: 0 };
  // Counts a test file that cannot be loaded, or whose hook failed, as one failure, because none of its tests counts as failed.
  const brokenFiles = report.testResults.filter(
    (file) => file.status === "failed" && !file.assertionResults.some(({ status }) => status === "failed"),
  );
  const failed = report.numFailedTests + brokenFiles.length;
  failures.push(...failuresOf(report));
  // Counts an error outside all tests as a failure, because it also fails the run.
  return {
    passed: report.numPassedTests,
    failed: failed === 0 && code !== 0 ? 1 : failed,
    skipped: report.numPendingTests,
  };
}

function failuresOf(report: Report): string[] {
  return report.testResults.flatMap(({ name, status, message, assertionResults }) => {
    const file = relative(root, name);
    const tests = assertionResults.filter((test) => test.status === "failed");
    if (status === "failed" && tests.length === 0) return [`${file}: ${firstLine(message)}`];
    return tests.map((test) => `${file} > ${test.fullName}: ${firstLine(test.failureMessages[0] ?? "")}`);
  });
}

const firstLine = (text: string): string => stripVTControlCharacters(text).split("\n", 1)[0]?.slice(0, 300) ?? "";

/** Builds or installs a dependency before the tests, so that this does not count against the timeout of a test. */
async function prepare(get: () => Promise<unknown>): Promise<void> {
  try {
    await get();
  } catch (error) {
    // Only warns, because the tests that need the dependency fail with the same message.
    process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  }
}

/** Tests start the bundle, as users do. The bundle needs half as much CPU time to start as the sources. */
async function prepareProgram(): Promise<void> {
  const folder = join(root, ".postern", "program");
  await bundle("cli", folder);
  process.env.TEST_PROGRAM = join(folder, "main.mjs");
}

async function prepareKubernetes(): Promise<void> {
  if (process.env.TEST_KUBECONFIG || (await dockerAnswers())) return;
  await kubernetesPrograms();
}

const check = await asOne("check");
const lint = await asOne("lint");
await prepare(prepareProgram);
const tested = await (options.all ? allTests() : quickTests());
const whole = options.all ? await clusterTests() : undefined;
const all = [check, lint, tested, ...(whole === undefined ? [] : [whole])];
const passed = all.reduce((sum, count) => sum + count.passed, 0);
const failed = all.reduce((sum, count) => sum + count.failed, 0);

if (failures.length > 0) process.stdout.write(`\nFailed:\n${failures.map((line) => `  ${line}\n`).join("")}`);
const outcome = ({ failed }: Count) => (failed === 0 ? "passed" : "FAILED");
if (!options.all) notes.push("the end-to-end, fault, browser, gateway and ClickHouse tests run by `make test-all`");
else if (whole === undefined) notes.push("tests in a whole cluster: test/cluster/README.md");
process.stdout.write(
  `\ntype check ${outcome(check)}, lint ${outcome(lint)}, tests ${outcome(tested)}, ${tested.skipped} skipped` +
    `${whole === undefined ? "" : `, in a whole cluster ${outcome(whole)}`}\n`,
);
for (const note of notes) process.stdout.write(`not run: ${note}\n`);
process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exitCode = failed === 0 ? 0 : 1;
