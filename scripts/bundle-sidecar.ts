import { readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

/*
 * The sidecar as one file, dist/sidecar.mjs: starts faster and takes less memory than the sources with their libraries.
 * Nothing is minified, so that a stack trace from a pod can be read.
 */
const outfile = process.argv[2] ?? "dist/sidecar.mjs";
await build({
  entryPoints: ["cli/sidecar-main.ts"],
  outfile,
  bundle: true,
  platform: "node",
  target: "node22",
  format: "esm",
  // Libraries written for CommonJS ask for `require`, which a module does not have of itself.
  banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' },
  legalComments: "eof",
  logLevel: "warning",
});

// esbuild escapes what is not ASCII, but for comments. One such character, and V8 keeps the whole source in two bytes each:
// 2 MB for every pod.
writeFileSync(outfile, readFileSync(outfile, "utf8").replace(/[^\0-\x7f]/g, "?"));
console.log(outfile);
