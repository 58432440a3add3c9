import { parseArgs } from "node:util";
import { DEFAULT_RESOURCES } from "../../../operator/injection/config.ts";
import { nodeOptionsFor } from "../../../operator/injection/gate-container.ts";
import { parseQuantity } from "../../../operator/injection/quantity.ts";
import { stopOwnParts } from "../../harness/broker.ts";
import { saturateGate } from "./saturate.ts";

/*
 * `npm run bench:gate-memory`: a gate in a cgroup with the memory that an injected gate has by default, with more load than it can serve.
 * Prints what it used in each phase. Exit code 1 when it was killed.
 */

const { values } = parseArgs({
  options: {
    memory: { type: "string", default: DEFAULT_RESOURCES.memoryLimit },
    keys: { type: "string", default: "10000" },
    connections: { type: "string", default: "256" },
    seconds: { type: "string", default: "15" },
    "node-options": { type: "string" },
  },
});
const figures = await saturateGate({
  memoryBytes: parseQuantity(values.memory) ?? 0,
  keys: Number(values.keys),
  connections: Number(values.connections),
  secondsPerPhase: Number(values.seconds),
  nodeOptions: values["node-options"] ?? nodeOptionsFor(values.memory),
  onPhase: (phase) => console.log(JSON.stringify(phase)),
});
await stopOwnParts();
const problems = [
  figures.ended !== undefined && `the gate ended: ${figures.ended}`,
  figures.chargedMb === undefined && "no cgroup could be made, so the memory was not bounded",
].filter((line) => line !== false);
console.log(`peak charged ${figures.chargedMb?.toFixed(1)} MB of ${values.memory}`);
for (const line of problems) console.error(line);
process.exit(problems.length === 0 ? 0 : 1);
