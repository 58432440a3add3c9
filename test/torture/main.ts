import { rm } from "node:fs/promises";
import { parseArgs } from "node:util";
import { FAULT_KINDS, type FaultKind } from "./plan.ts";
import { toTable } from "./report.ts";
import { torture } from "./torture.ts";

const HELP = `npm run torture -- [options]

Breaks a system of real processes while clients write and ask, and holds what they were answered against what is promised.
Needs Postgres (from npm) and redis-server; everything runs on 127.0.0.1, in a folder of its own.

  --seed N          what is broken and asked, and when; the time's when left out. The same seed makes the same plan;
                    what the processes do meanwhile, and so the journal, differs
  --minutes M       how long the load lasts; 1
  --only LIST       kinds of faults, with commas between; all
  --without LIST    all but these kinds
  --keys N          how many there are at the start; 7500
  --api-servers N   2
  --keep            keep the journal and the logs also when nothing was found
  --json            print the report as JSON
  --help

Kinds of faults: ${FAULT_KINDS.join(", ")}

Exit code: 0 when everything held, 1 when something did not, 2 for wrong options.`;

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: String(Math.trunc(Date.now() / 1000)) },
    minutes: { type: "string", default: "1" },
    only: { type: "string" },
    without: { type: "string", default: "" },
    keys: { type: "string", default: "7500" },
    "api-servers": { type: "string", default: "2" },
    keep: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  console.log(HELP);
  process.exit(0);
}

const kinds = readKinds(values.only ?? FAULT_KINDS.join(",")).filter(
  (kind) => !readKinds(values.without).includes(kind),
);
const interrupted = new AbortController();
// The harness ends its processes by itself; Postgres is ended, and the files are removed, by the run.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => interrupted.abort());

const report = await torture({
  seed: readNumber("seed", values.seed),
  minutes: readNumber("minutes", values.minutes),
  kinds,
  keys: readNumber("keys", values.keys),
  apiServers: readNumber("api-servers", values["api-servers"]),
  onProgress: (line) => console.error(line),
  signal: interrupted.signal,
}).catch((error: unknown) => {
  if (!interrupted.signal.aborted) throw error;
  console.error("interrupted");
  process.exit(130);
});
console.log(values.json ? JSON.stringify(report, null, 2) : toTable(report));
const failed = report.violations.length > 0;
if (failed || values.keep) {
  console.error(`seed ${report.seed}; journal, logs and report in ${report.folder}`);
} else {
  await rm(report.folder, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);

function readKinds(text: string): FaultKind[] {
  return text
    .split(",")
    .filter((name) => name !== "")
    .map((name) => FAULT_KINDS.find((kind) => kind === name) ?? refuse(`there is no kind of fault "${name}"`));
}

function readNumber(name: string, text: string): number {
  const number = Number(text);
  return text !== "" && Number.isFinite(number) && number >= 0 ? number : refuse(`--${name} wants a number`);
}

function refuse(why: string): never {
  console.error(`${why}\n\n${HELP}`);
  process.exit(2);
}
