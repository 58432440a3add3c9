import { sidecar } from "../commands/sidecar.ts";
import { processIo } from "../execute.ts";
import { runImage } from "../run-command.ts";

// The promise is not awaited, because the bundle is not an ES module and therefore has no top-level await.
void runImage([sidecar], process.argv.slice(2), processIo).then((code) => process.exit(code));
