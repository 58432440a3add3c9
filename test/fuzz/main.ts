import { parseArgs } from "node:util";
import { stopOwnParts } from "../harness/broker.ts";
import { fuzz } from "./fuzz.ts";

/** `npm run fuzz -- [--examples N] [--seed N] [--only keys.createKey | --only v1/keys.createKey] [--generation v1] [-- arguments of Schemathesis]` */

const { values, positionals } = parseArgs({
  options: {
    examples: { type: "string", default: "200" },
    seed: { type: "string", default: String(Math.trunc(Date.now() / 1000)) },
    only: { type: "string" },
    generation: { type: "string" },
  },
  allowPositionals: true,
});

try {
  console.log(`fuzzing with ${values.examples} examples per procedure, seed ${values.seed}`);
  const { passed, errors } = await fuzz({
    examples: Number(values.examples),
    seed: Number(values.seed),
    only: values.only,
    ...(values.generation === "v1" || values.generation === "v2" ? { generations: [values.generation] } : {}),
    args: positionals,
    onOutput: (text) => process.stdout.write(text),
  });
  for (const line of errors) console.error(`the api-server logged: ${line}`);
  process.exitCode = passed ? 0 : 1;
} finally {
  await stopOwnParts();
}
