import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { analyticsReference } from "./generate/analytics-reference.ts";
import { apiTypes } from "./generate/api-types.ts";
import { chart, chartCrds } from "./generate/chart/chart.ts";
import { cliReference } from "./generate/cli-reference.ts";
import { configurationPage } from "./generate/configuration-page.ts";
import { crds } from "./generate/crds.ts";
import { errorsPage } from "./generate/errors-page.ts";
import { rolesFileSchema, tenancySchema } from "./generate/file-schemas.ts";
import { knownVariables } from "./generate/known-variables.ts";
import { manifestReference } from "./generate/manifest-reference.ts";
import { metricsPage } from "./generate/metrics-page.ts";
import { openApi, openApiDigests } from "./generate/openapi.ts";
import type { Target } from "./generate/target.ts";

/*
 * Writes all generated files. With `--check`, only compares the generated files in the repository, lists the stale ones and exits with code
 * 1. With `--ignored`, writes only the files that git ignores, as `make setup` does.
 */

export const targets: readonly Target[] = [
  crds,
  manifestReference,
  cliReference,
  knownVariables,
  configurationPage,
  metricsPage,
  errorsPage,
  analyticsReference,
  openApi,
  openApiDigests,
  apiTypes,
  chart,
  chartCrds,
  tenancySchema,
  rolesFileSchema,
];

const ROOT = resolve(import.meta.dirname, "..");

/** Returns the paths of files in the repository that differ from their generated text or should not exist. */
export async function findStale(): Promise<string[]> {
  const stale: string[] = [];
  for (const target of targets) {
    if (target.isIgnored) continue;
    const files = await target.files();
    for (const [path, text] of files) if ((await findText(path)) !== text) stale.push(path);
    stale.push(...(await findLeftOver(target, files)));
  }
  return stale.sort();
}

async function write(written: readonly Target[]): Promise<void> {
  for (const target of written) {
    const files = await target.files();
    for (const [path, text] of files) {
      if ((await findText(path)) === text) continue;
      await mkdir(dirname(join(ROOT, path)), { recursive: true });
      await writeFile(join(ROOT, path), text);
      console.log(`wrote ${path}`);
    }
    for (const path of await findLeftOver(target, files)) {
      await rm(join(ROOT, path));
      console.log(`removed ${path}`);
    }
  }
}

async function findText(path: string): Promise<string | undefined> {
  try {
    return await readFile(join(ROOT, path), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

async function findLeftOver({ ownsFolder }: Target, files: ReadonlyMap<string, string>): Promise<string[]> {
  if (ownsFolder === undefined) return [];
  const names = await readdir(join(ROOT, ownsFolder)).catch(() => []);
  return names.map((name) => `${ownsFolder}/${name}`).filter((path) => !files.has(path));
}

if (import.meta.main) {
  const flag = { type: "boolean", default: false } as const;
  const { values } = parseArgs({ options: { check: flag, ignored: flag } });
  if (!values.check) {
    await write(values.ignored ? targets.filter(({ isIgnored }) => isIgnored) : targets);
  } else {
    const stale = await findStale();
    for (const path of stale) console.error(`stale: ${path}`);
    if (stale.length > 0) {
      console.error("run `npm run generate` and commit what it writes");
      process.exitCode = 1;
    }
  }
}
