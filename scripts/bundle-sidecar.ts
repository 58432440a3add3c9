import { readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

/*
 * Bundles the sidecar into one file, dist/sidecar.mjs, which starts faster and takes less memory than the sources with their
 * libraries. It is not minified, so that a stack trace from a pod is readable.
 */
const outfile = process.argv[2] ?? "dist/sidecar.mjs";
await build({
  entryPoints: ["cli/sidecar-main.ts"],
  outfile,
  bundle: true,
  platform: "node",
  target: "node22",
  format: "esm",
  // Libraries written for CommonJS call `require`, which does not exist in a module.
  banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' },
  legalComments: "eof",
  logLevel: "warning",
});

// esbuild escapes non-ASCII characters except in comments. One such character makes V8 store the whole source with two bytes per
// character: 2 MB for every pod.
writeFileSync(outfile, readFileSync(outfile, "utf8").replace(/[^\0-\x7f]/g, "?"));
console.log(outfile);
