import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Script } from "node:vm";

/*
 * In a bundle this is `main.mjs`: it runs the program beside it, with what V8 has compiled of that before. Another version of Node, or some of V8's
 * flags, make V8 compile it again: that costs a quarter more CPU until it is ready, and nothing else.
 */

const folder = import.meta.dirname;
const path = join(folder, "program.cjs");

/** The compiled code; undefined when there is none. */
function compiled() {
  try {
    return readFileSync(join(folder, "program.compiled"));
  } catch {
    return undefined;
  }
}

export const program = new Script(readFileSync(path, "latin1"), {
  filename: path,
  cachedData: compiled(),
});
program.runInThisContext()(createRequire(path), { exports: {} });
