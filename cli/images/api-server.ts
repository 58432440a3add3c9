import { processIo } from "../execute.ts";
import { runImage } from "../run-command.ts";
import { API_SERVER_COMMANDS } from "./api-server-commands.ts";

process.exit(await runImage(API_SERVER_COMMANDS, process.argv.slice(2), processIo));
