import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { parseArgs } from "node:util";
import { against } from "./against-section.ts";
import { backlog } from "./backlog-section.ts";
import { cache } from "./cache-section.ts";
import { clickhouseIngest } from "./clickhouse-ingest-section.ts";
import { openEnvironment } from "./environment.ts";
import { floor } from "./floor-section.ts";
import { gates } from "./gates-section.ts";
import { http2 } from "./http2-section.ts";
import { ingest, ingestBeside } from "./ingest-section.ts";
import { peers } from "./peers-section.ts";
import { raw } from "./raw-section.ts";
import { rebuild } from "./rebuild-section.ts";
import { redisCost } from "./redis-cost-section.ts";
import { refill } from "./refill-section.ts";
import { rules } from "./rules-section.ts";
import type { Figure, Section } from "./section.ts";
import { footprint, propagation, proxy, verifyKey } from "./sections.ts";
import { steady } from "./steady-section.ts";
import { creation, replicas, scale } from "./store-sections.ts";
import { twoGates } from "./two-gates-section.ts";
import { usage } from "./usage-section.ts";

/*
 * `npm run bench`: measures the figures that we promise, prints a table and the same as one line of JSON, and writes that with
 * --json FILE. Exit code 1 when a figure exceeds its bound. Choose sections with `npm run bench -- --only proxy,footprint`; compare
 * with another checkout instead, such as one of the release before, with `npm run bench -- --against FOLDER`.
 */

const SECTIONS: Readonly<Record<string, Section>> = {
  proxy,
  rules,
  peers,
  floor,
  redisCost,
  steady,
  twoGates,
  http2,
  verifyKey,
  raw,
  replicas,
  propagation,
  footprint,
  creation,
  scale,
  cache,
  rebuild,
  gates,
  refill,
  ingest,
  clickhouseIngest,
  ingestBeside,
  backlog,
  usage,
};

const { values } = parseArgs({
  options: {
    only: { type: "string", default: Object.keys(SECTIONS).join(",") },
    rounds: { type: "string", default: "9" },
    seconds: { type: "string", default: "2" },
    keys: { type: "string", default: "1000,1,100000" },
    "stored-keys": { type: "string", default: "1000000" },
    "usage-events": { type: "string", default: "10000000" },
    "clickhouse-events": { type: "string", default: "1000000" },
    "backlog-events": { type: "string", default: "1000000" },
    pictures: { type: "boolean", default: false },
    against: { type: "string" },
    json: { type: "string" },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  console.log(
    `npm run bench -- [--only ${Object.keys(SECTIONS).join(",")}] [--against FOLDER] [--rounds 9] [--seconds 2]\n` +
      "                 [--keys 1000,1,100000] [--stored-keys 1000000] [--usage-events 10000000]\n" +
      "                 [--clickhouse-events 1000000] [--backlog-events 1000000] [--pictures] [--json FILE]\n\n" +
      "The bounds are for the first number of --keys, between which peers, redisCost, steady, verifyKey and raw change with each request.\n" +
      "The section rebuild is repeated for each number of --stored-keys. --pictures draws the curves of gates and rebuild into docs/pictures.",
  );
  process.exit(0);
}
if (process.platform !== "linux") {
  console.error("the benchmark reads /proc, so it needs Linux");
  process.exit(2);
}

const named = values.only.split(",").map((name) => {
  const section = SECTIONS[name];
  if (section === undefined) {
    console.error(`there is no section "${name}"; there are ${Object.keys(SECTIONS).join(", ")}`);
    process.exit(2);
  }
  return section;
});

const numbersOf = (option: "keys" | "stored-keys"): number[] => {
  const numbers = values[option].split(",").map(Number);
  if (!numbers.every((count) => Number.isSafeInteger(count) && count > 0)) {
    console.error(
      `--${option} ${values[option]}: write whole numbers above 0 with commas between them, such as 1000,1`,
    );
    process.exit(2);
  }
  return numbers;
};
const [keyCounts, storedKeys] = [numbersOf("keys"), numbersOf("stored-keys")];

const chosen = values.against === undefined ? named : [against(values.against)];

execFileSync(process.execPath, ["scripts/bundle.ts", "sidecar"], { stdio: "ignore" });
const environment = await openEnvironment();
const figures: Figure[] = [];
try {
  const options = {
    rounds: Number(values.rounds),
    durationMs: Number(values.seconds) * 1000,
    keyCounts,
    storedKeys,
    usageEvents: Number(values["usage-events"]),
    clickhouseEvents: Number(values["clickhouse-events"]),
    backlogEvents: Number(values["backlog-events"]),
    pictures: values.pictures,
    progress: (line: string) => console.error(`  ${line}`),
  };
  for (const section of chosen) figures.push(...(await section(environment, options)));
} finally {
  await environment.close();
}

const report = { node: process.version, figures };
console.log(table(figures));
console.log(`\n${JSON.stringify(report)}`);
if (values.json !== undefined) {
  mkdirSync(dirname(values.json), { recursive: true });
  writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
}
process.exit(figures.every(isWithin) ? 0 : 1);

function isWithin({ value, max }: Figure): boolean {
  return max === undefined || value <= max;
}

function table(rows: readonly Figure[]): string {
  const width = Math.max(...rows.map(({ name }) => name.length));
  const cells = (value: number, unit: Figure["unit"]) =>
    unit === "ratio" || unit === "µs" || unit === "round trips"
      ? value.toFixed(2)
      : value.toFixed(unit === "%" || unit === "s" ? 1 : 0);
  return rows
    .map((row) => {
      const { name, unit, value, max, detail } = row;
      const verdict = max === undefined ? "    " : isWithin(row) ? "ok  " : "OVER";
      const bound = max === undefined ? "" : `of ${cells(max, unit).padStart(5)}`;
      const figure = `${cells(value, unit).padStart(7)} ${bound.padEnd(8)} ${unit.padEnd(11)}`;
      return `${verdict}  ${name.padEnd(width)}  ${figure}  ${detail}`;
    })
    .join("\n");
}
