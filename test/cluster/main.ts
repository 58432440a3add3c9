import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { isExecutable } from "../harness/parts/find.ts";
import { cacheFolder } from "../harness/parts/go-build.ts";

/*
 * `make e2e`: the suite on a whole cluster. With KUBECONFIG and E2E_TAG set it works on that cluster and those images. Otherwise an adapter
 * makes both: the program E2E_CLUSTER, or `cluster` in the folder of the cache. See README.md here.
 */

const ROOT = resolve(import.meta.dirname, "../..");
const IMAGES = ["api-server", "operator", "sidecar", "redirect"];
const TAG = "e2e";
const run = promisify(execFile);

/** The adapter; undefined when the machine has none. */
export async function findAdapter(env: Readonly<Record<string, string | undefined>>): Promise<string | undefined> {
  const program = env.E2E_CLUSTER || join(cacheFolder(), "cluster");
  const path = program.replace(/^~\//, `${homedir()}/`);
  if (await isExecutable(path)) return path;
  if (env.E2E_CLUSTER) throw new Error(`E2E_CLUSTER is ${program}, which cannot be run`);
  return undefined;
}

/** What an adapter says about its cluster: lines `NAME=value`. */
export function readSaid(stdout: string): Record<string, string> {
  return Object.fromEntries([...stdout.matchAll(/^([A-Z][A-Z0-9_]*)=(.*)$/gm)].map(([, name, value]) => [name, value]));
}

async function testOn(env: Record<string, string>, args: readonly string[]): Promise<number> {
  const vitest = join(ROOT, "node_modules/vitest/vitest.mjs");
  const options = ["run", "--config", "test/cluster/vitest.config.ts", ...args];
  const child = spawn(process.execPath, [vitest, ...options], {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdio: "inherit",
  });
  const [code] = (await once(child, "close")) as [number | null];
  return code ?? 1;
}

async function main(args: readonly string[]): Promise<number> {
  if (process.env.KUBECONFIG && process.env.E2E_TAG) return testOn({}, args);
  const adapter = await findAdapter(process.env);
  if (adapter === undefined) {
    console.error("e2e: give KUBECONFIG and E2E_TAG, or E2E_CLUSTER: test/cluster/README.md says how");
    return 1;
  }
  const ask = async (...words: string[]) => {
    console.error(`e2e: ${words.join(" ")}`);
    return (await run(adapter, words, { cwd: ROOT, maxBuffer: 64 * 1024 * 1024 })).stdout;
  };
  try {
    const said = readSaid(await ask("up"));
    for (const image of IMAGES) await ask("image", `postern-${image}:${TAG}`, image);
    return await testOn({ ...said, E2E_TAG: TAG }, args);
  } finally {
    await ask("down");
  }
}

if (import.meta.main) process.exitCode = await main(process.argv.slice(2));
