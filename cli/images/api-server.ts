import { apiServer } from "../commands/api-server.ts";
import { ingest } from "../commands/ingest.ts";
import { migrateCommand } from "../commands/migrate.ts";
import { provision } from "../commands/provision.ts";
import { processIo } from "../execute.ts";
import { runImage } from "../run-command.ts";

process.exit(await runImage([apiServer, ingest, migrateCommand, provision], process.argv.slice(2), processIo));
