import { parseArgs } from "node:util";
import { stopOwnParts } from "../../harness/broker.ts";
import { type Fuzzed, fuzzAnalytics } from "./fuzz.ts";

/** `npm run fuzz:analytics -- [--seed N] [--seconds S]` */

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: String(Math.trunc(Date.now() / 1000)) },
    seconds: { type: "string", default: "60" },
  },
});

try {
  console.log(`fuzzing queries of usage for ${values.seconds} s, seed ${values.seed}`);
  const fuzzed = await fuzzAnalytics({
    seed: values.seed,
    seconds: Number(values.seconds),
    queriesMax: Number.POSITIVE_INFINITY,
    onProgress: (so) => console.log(toLine(so)),
  });
  const { found } = fuzzed;
  console.log(`${toLine(fuzzed)}, ${found.length} found`);
  for (const { query, problem } of found) console.log(`\n${problem}\n  ${query}`);
  process.exitCode = found.length === 0 ? 0 : 1;
} finally {
  await stopOwnParts();
}

function toLine({ queries, answered, compared, refused }: Fuzzed): string {
  return `${queries} queries: ${answered} answered by both stores, ${compared} compared with ClickHouse's engine, ${refused} refused by one or both`;
}
