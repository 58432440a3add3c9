import { parseArgs } from "node:util";
import { stopOwnParts } from "../harness/broker.ts";
import { fuzz } from "./fuzz.ts";

/** `npm run fuzz -- [--examples N] [--seed N] [--only keys.createKey] [-- arguments of Schemathesis]` */

const { values, positionals } = parseArgs({
  options: {
    examples: { type: "string", default: "200" },
    seed: { type: "string", default: String(Math.trunc(Date.now() / 1000)) },
    only: { type: "string" },
  },
  allowPositionals: true,
});

try {
  console.log(`fuzzing with ${values.examples} examples per procedure, seed ${values.seed}`);
  const { passed, errors } = await fuzz({
    examples: Number(values.examples),
    seed: Number(values.seed),
    only: values.only,
    args: positionals,
    onOutput: (text) => process.stdout.write(text),
  });
  for (const line of errors) console.error(`the api-server logged: ${line}`);
  process.exitCode = passed ? 0 : 1;
} finally {
  await stopOwnParts();
}
