import { parseArgs } from "node:util";
import { stopOwnParts } from "../../harness/broker.ts";
import { fuzzAnalytics } from "./fuzz.ts";

/** `npm run fuzz:analytics -- [--seed N] [--seconds S]` */

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: String(Math.trunc(Date.now() / 1000)) },
    seconds: { type: "string", default: "60" },
  },
});

try {
  console.log(`fuzzing queries of usage for ${values.seconds} s, seed ${values.seed}`);
  const { queries, answered, refused, found } = await fuzzAnalytics({
    seed: values.seed,
    seconds: Number(values.seconds),
    queriesMax: Number.POSITIVE_INFINITY,
    onProgress: (so) => console.log(`${so.queries} queries: ${so.answered} answered, ${so.refused} refused`),
  });
  console.log(`${queries} queries: ${answered} answered, ${refused} refused, ${found.length} found`);
  for (const { query, problem } of found) console.log(`\n${problem}\n  ${query}`);
  process.exitCode = found.length === 0 ? 0 : 1;
} finally {
  await stopOwnParts();
}
