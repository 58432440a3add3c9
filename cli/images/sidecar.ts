import { sidecar } from "../commands/sidecar.ts";
import { processIo } from "../execute.ts";
import { runImage } from "../run-command.ts";

process.exit(await runImage([sidecar], process.argv.slice(2), processIo));
