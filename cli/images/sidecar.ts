import { sidecar } from "../commands/sidecar.ts";
import { processIo } from "../execute.ts";
import { runImage } from "../run-command.ts";

// The bundle is not an ES module, so it cannot use top-level await.
void runImage([sidecar], process.argv.slice(2), processIo).then((code) => process.exit(code));
