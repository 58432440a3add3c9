import { operator } from "../commands/operator.ts";
import { processIo } from "../execute.ts";
import { runImage } from "../run-command.ts";

process.exit(await runImage([operator], process.argv.slice(2), processIo));
