#!/usr/bin/env node
import { runCommand } from "./commands.ts";
import { processIo } from "./execute.ts";

// Whatever still holds the event loop open after a command is a fault, but not one that should hang a script.
process.exit(await runCommand(process.argv.slice(2), processIo));
