import { sidecar } from "../commands/sidecar.ts";
import { processIo } from "../execute.ts";
import { runImage } from "../run-command.ts";

// Its bundle is no module, so it cannot wait here.
void runImage([sidecar], process.argv.slice(2), processIo).then((code) => process.exit(code));
