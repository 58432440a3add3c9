import { parseArgs } from "node:util";
import { stopOwnParts } from "../../harness/broker.ts";
import { measureAtRest } from "./at-rest.ts";

/*
 * `npm run bench:operator-at-rest`: what an operator asks of the api-server and writes to Kubernetes while nothing changes. Exit code 1
 * when a promised figure is exceeded.
 */

const CALLS_PER_SECOND_MAX = 5;

const { values } = parseArgs({
  options: {
    policies: { type: "string", default: "1000" },
    others: { type: "string", default: "0" },
    /** The default of the operator is 300. */
    resync: { type: "string", default: "300" },
    seconds: { type: "string", default: "330" },
  },
});
const others = Number(values.others);
const figures = await measureAtRest({
  objects: {
    ApiKeyPolicy: Number(values.policies),
    ...(others === 0 ? {} : { RatelimitNamespace: others, RatelimitOverride: others, Role: others }),
  },
  resyncMs: Number(values.resync) * 1_000,
  windowMs: Number(values.seconds) * 1_000,
  deadlineMs: 1_500_000,
});
await stopOwnParts();
console.log(JSON.stringify(figures, undefined, 2));
const exceeded = [
  figures.callsPerSecond >= CALLS_PER_SECOND_MAX &&
    `${figures.callsPerSecond} calls/s, promised ${CALLS_PER_SECOND_MAX}`,
  figures.writes > 0 && `${figures.writes} writes to Kubernetes, promised none`,
].filter((line) => line !== false);
for (const line of exceeded) console.error(line);
process.exit(exceeded.length === 0 ? 0 : 1);
