import { sidecar } from "./commands/sidecar.ts";
import { execute, processIo } from "./execute.ts";

/* Only the sidecar, without the other commands: the entry of the bundle for pods. */
process.exit(await execute(async () => sidecar, process.argv.slice(2), processIo));
