import { parseArgs } from "node:util";
import { stopOwnParts } from "../../harness/broker.ts";
import { applyManyObjects, POD_MEMORY_BYTES } from "./many-objects.ts";

/*
 * `npm run bench:operator`: applies many Roles at once to a real Kubernetes API, with an operator that has the memory of its pod, and
 * prints what they cost. Exit code 1 when a promised figure is exceeded. `--program` measures another build, such as a bundle.
 */

const { values } = parseArgs({
  options: {
    objects: { type: "string", default: "500" },
    bad: { type: "string", default: "0" },
    seconds: { type: "string", default: "25" },
    program: { type: "string" },
  },
});
const good = Number(values.objects) - Number(values.bad);
const promisedMs = Number(values.seconds) * 1_000;
const figures = await applyManyObjects({
  good,
  bad: Number(values.bad),
  memoryBytes: POD_MEMORY_BYTES,
  deadlineMs: 4 * promisedMs,
  ...(values.program === undefined ? {} : { program: [process.execPath, ...values.program.split(" ")] }),
});
await stopOwnParts();
console.log(JSON.stringify(figures, undefined, 2));
const exceeded = [
  figures.readyMs > promisedMs && `ready after ${figures.readyMs} ms, promised ${promisedMs}`,
  figures.connections > 10 && `${figures.connections} connections, promised 10`,
  figures.chargedMb === undefined && "no cgroup could be made, so the memory was not bounded",
].filter((line) => line !== false);
for (const line of exceeded) console.error(line);
process.exit(exceeded.length === 0 ? 0 : 1);
