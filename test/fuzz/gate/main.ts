import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { stopOwnParts } from "../../harness/broker.ts";
import { fuzzGate } from "./run.ts";

/** `npm run fuzz:gate -- [--seed N] [--seconds S] [--findings N] [--out DIR]` */

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: String(Math.trunc(Date.now() / 1000)) },
    seconds: { type: "string", default: "60" },
    findings: { type: "string", default: "1" },
    out: { type: "string", default: join(import.meta.dirname, "found") },
  },
});

try {
  const { seed, seconds, out } = values;
  console.log(`fuzzing the gate for ${seconds} s with seed ${seed}`);
  const report = await fuzzGate({
    seed: Number(seed),
    seconds: Number(seconds),
    findingsMax: Number(values.findings),
    onProgress: (line) => console.log(line),
  });
  const perSecond = Math.round(report.cases / report.seconds);
  console.log(
    `${report.cases} cases, ${perSecond} a second; ${report.seen} requests reached an app; at most ${Math.round(report.rssMaxMiB)} MiB`,
  );
  for (const { complaint, case: smallest, isReproduced } of report.findings) {
    await mkdir(out, { recursive: true });
    const path = join(out, `${smallest.id}.json`);
    await writeFile(path, `${JSON.stringify({ complaint, ...smallest }, undefined, 2)}\n`);
    console.error(
      `seed ${seed}: ${complaint}${isReproduced ? "" : " (not seen again when played alone)"}\n  kept as ${path}`,
    );
  }
  process.exitCode = report.findings.length === 0 ? 0 : 1;
} finally {
  await stopOwnParts();
}
