import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { DECIDING, testsOf } from "./files.ts";
import { type FileReport, readReport, StrykerReport, toLine } from "./report.ts";

const HELP = `npm run mutate -- [options] [files]

Changes one place of a file at a time (a comparison, a condition, a statement, …), runs the tests that speak about the file, and
lists the changes that no test noticed. Files are named from the project's folder; the files that decide when left out, which
takes an hour or two. Works on a copy in a temporary folder: the sources are never touched.

  --json   print the report as JSON
  --help

Exit code: 0 when every change was noticed, 1 when some were not, 2 for wrong options or when the tests fail unchanged.`;

const ROOT = join(import.meta.dirname, "../..");
const STRYKER = join(ROOT, "node_modules/.bin/stryker");

const { values, positionals } = readArguments();
if (values.help) {
  console.log(HELP);
  process.exit(0);
}
const files = (positionals.length === 0 ? DECIDING : positionals).map((file) => relative(ROOT, resolve(ROOT, file)));
for (const file of files) {
  if (!file.endsWith(".ts") || !existsSync(join(ROOT, file))) refuse(`there is no source file ${file}`);
  if (testsOf(file, ROOT).length === 0) refuse(`no test speaks about ${file}: see test/mutation/files.ts`);
}

const interrupted = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => interrupted.abort());

const folder = await mkdtemp(join(tmpdir(), "postern-mutation-"));
const reports: FileReport[] = [];
try {
  // One file after another: a file's mutants run only against its own tests, and the machine has other work to do.
  for (const file of files) {
    const [report] = await mutate(file);
    if (report === undefined) throw new Error(`Stryker reported nothing about ${file}`);
    reports.push(report);
    if (values.json) continue;
    console.log(`${file}: ${report.killed} of ${report.mutants} mutants killed`);
    for (const survivor of report.survivors) console.log(`  ${toLine(survivor)}`);
  }
  if (values.json) console.log(JSON.stringify(reports, undefined, 2));
  process.exitCode = reports.every(({ survivors }) => survivors.length === 0) ? 0 : 1;
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 2;
} finally {
  await rm(folder, { recursive: true, force: true });
}

async function mutate(file: string): Promise<FileReport[]> {
  const fileName = join(folder, "report.json");
  const config = join(folder, "stryker.config.json");
  const options = {
    mutate: [file],
    testFiles: testsOf(file, ROOT),
    testRunner: "vitest",
    plugins: ["@stryker-mutator/vitest-runner"],
    // All tests that import a file would be most tests, including those that start processes.
    vitest: { related: false },
    coverageAnalysis: "perTest",
    // What a module computes at load time can be mutated only by loading it again for each mutant, which is too slow.
    ignoreStatic: true,
    concurrency: 1,
    dryRunTimeoutMinutes: 2,
    tempDirName: join(folder, "sandbox"),
    // Stryker rewrites the paths in it with an API that TypeScript 7 no longer has; the tests run without it.
    tsconfigFile: "none.json",
    reporters: ["json"],
    jsonReporter: { fileName },
    allowConsoleColors: false,
    logLevel: "warn",
  };
  await rm(fileName, { force: true });
  await writeFile(config, JSON.stringify(options));
  await stryker(config);
  return readReport(StrykerReport.parse(JSON.parse(await readFile(fileName, "utf8"))));
}

/** Throws unless it ends with success: otherwise the tests fail without a mutation, or it was interrupted. */
function stryker(config: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // Its output goes to stderr, so that stdout has only the report.
  const child = spawn(STRYKER, ["run", config], {
    cwd: ROOT,
    stdio: ["ignore", 2, 2],
    signal: interrupted.signal,
    killSignal: "SIGTERM",
  });
  child.once("error", reject);
  child.once("exit", (code) => (code === 0 ? resolve() : reject(new Error(`Stryker ended with exit code ${code}`))));
  return promise;
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: { json: { type: "boolean", default: false }, help: { type: "boolean", default: false } },
    });
  } catch (error) {
    refuse(error instanceof Error ? error.message : String(error));
  }
}

function refuse(message: string): never {
  console.error(`${message}\n\n${HELP}`);
  process.exit(2);
}
