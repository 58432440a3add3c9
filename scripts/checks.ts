import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, rm } from "node:fs/promises";
import { join, relative } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { findAdapter } from "../test/cluster/main.ts";
import { findChromium } from "../test/harness/chromium.ts";
import { dockerAnswers } from "../test/harness/parts/find.ts";
import { kubernetesPrograms } from "../test/harness/parts/kubernetes.ts";

// `make test`: the type check, the linter and all tests, one after another, also after a failure.
// The last line, "N passed, N failed", counts every test, and the type check and the linter as one each.

/** A line for each test that failed, with the first line of why: all that is left when only the end of the output is kept. */
const failures: string[] = [];

type Count = { passed: number; failed: number };

const root = join(import.meta.dirname, "..");
const results = join(root, ".postern", "test-results");

/** The part of the JSON reporter's file (in Jest's format) that is needed here. */
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

async function tests(): Promise<Count & { skipped: number }> {
  await prepare(prepareKubernetes);
  await prepare(findChromium);
  await rm(results, { recursive: true, force: true });
  await mkdir(results, { recursive: true });
  return countedTests("test");
}

/** What needs a whole cluster, where there is a program that makes one. */
async function clusterTests(): Promise<(Count & { skipped: number }) | undefined> {
  const given = process.env.KUBECONFIG && process.env.E2E_TAG;
  return given || (await findAdapter(process.env)) !== undefined ? countedTests("e2e") : undefined;
}

async function countedTests(script: "test" | "e2e"): Promise<Count & { skipped: number }> {
  const file = join(results, `${script}.json`);
  const code = await runScript(script, ["--reporter=default", "--reporter=json", `--outputFile.json=${file}`]);
  const report = await readFile(file, "utf8").then(
    (text) => JSON.parse(text) as Report,
    () => undefined,
  );
  if (report === undefined) return { passed: 0, failed: 1, skipped: 0 };
  // A file whose hook failed, or which could not be loaded, has no failed test that would be counted.
  const brokenFiles = report.testResults.filter(
    (file) => file.status === "failed" && !file.assertionResults.some(({ status }) => status === "failed"),
  );
  const failed = report.numFailedTests + brokenFiles.length;
  failures.push(...failuresOf(report));
  // An error outside of all tests also fails the run.
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

/** Gets a part that the machine may have to build or to install first, before the time limit of a test starts. */
async function prepare(get: () => Promise<unknown>): Promise<void> {
  try {
    await get();
  } catch (error) {
    // The tests that need it fail with the same message.
    process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  }
}

async function prepareKubernetes(): Promise<void> {
  if (process.env.TEST_KUBECONFIG || (await dockerAnswers())) return;
  await kubernetesPrograms();
}

const check = await asOne("check");
const lint = await asOne("lint");
const tested = await tests();
const whole = await clusterTests();
const all = [check, lint, tested, ...(whole === undefined ? [] : [whole])];
const passed = all.reduce((sum, count) => sum + count.passed, 0);
const failed = all.reduce((sum, count) => sum + count.failed, 0);

if (failures.length > 0) process.stdout.write(`\nFailed:\n${failures.map((line) => `  ${line}\n`).join("")}`);
const said = ({ failed }: Count) => (failed === 0 ? "passed" : "FAILED");
process.stdout.write(
  `\ntype check ${said(check)}, lint ${said(lint)}, tests ${said(tested)}, ${tested.skipped} skipped, ` +
    `${whole === undefined ? "IN A WHOLE CLUSTER SKIPPED: test/cluster/README.md" : `in a whole cluster ${said(whole)}`}\n`,
);
process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exitCode = failed === 0 ? 0 : 1;
