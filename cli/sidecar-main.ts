import { sidecar } from "./commands/sidecar.ts";
import { execute, processIo } from "./execute.ts";

/* The sidecar alone, without the other commands: what is bundled into one file for the pods. */
process.exit(await execute(async () => sidecar, process.argv.slice(2), processIo));
