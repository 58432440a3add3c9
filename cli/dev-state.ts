import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { parseJson } from "./parse-json.ts";

/*
 * State of a running `postern dev`, for commands with the same `--data-dir`. Only the owner may read the file, because it contains the
 * password of the embedded Postgres, a root key and the token of the control port.
 */
const DevState = z.object({
  pid: z.number(),
  databaseUrl: z.string(),
  /** Base URL of the API and the dashboard; absent during startup. */
  apiUrl: z.string().optional(),
  /** Root key with all permissions in the workspace `default`; absent during startup. */
  rootKey: z.string().optional(),
  /** URL and token of the control port; absent during startup. */
  control: z.object({ url: z.string(), token: z.string() }).optional(),
});
export type DevState = z.infer<typeof DevState>;

const fileIn = (dataDir: string) => join(dataDir, "dev.json");

/** Returns the state of the `postern dev` that uses this directory; `undefined` if none runs. */
export function findRunningDev(dataDir: string): DevState | undefined {
  const file = fileIn(dataDir);
  if (!existsSync(file)) return undefined;
  const parsed = DevState.safeParse(parseJson(readFileSync(file, "utf8")));
  return parsed.success && isAlive(parsed.data.pid) ? parsed.data : undefined;
}

export function writeDevState(dataDir: string, state: DevState): void {
  mkdirSync(dataDir, { recursive: true });
  writeFileSync(fileIn(dataDir), `${JSON.stringify(state)}\n`, { mode: 0o600 });
}

export function removeDevState(dataDir: string): void {
  rmSync(fileIn(dataDir), { force: true });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
