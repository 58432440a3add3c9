import { writeFileSync } from "node:fs";
import { join } from "node:path";

/*
 * Writes `program.compiled` beside a bundle's program: what V8 compiles of it when it is asked for its help, which is all that is made when it is loaded.
 * Usage: node compile-program.mjs FOLDER
 */

const folder = process.argv[2];
process.argv.splice(1, 2, join(folder, "main.mjs"), "--help");
// It ends by itself, later than it would.
process.exit = () => {};
const { program } = await import(join(folder, "main.mjs"));
process.once("exit", () => writeFileSync(join(folder, "program.compiled"), program.createCachedData()));
