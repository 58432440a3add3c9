import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startProcess } from "../harness/process.ts";
import { waitFor } from "../harness/wait.ts";
import { waitForPort } from "./listening.ts";
import type { Gateway } from "./suite.ts";

/** Starts a gateway with its own files in a new folder and waits for its port. */
export async function startGateway(options: {
  readonly name: string;
  readonly port: number;
  /** Returns file contents by name for the folder. */
  readonly files: (dir: string) => Readonly<Record<string, string>>;
  readonly command: (dir: string) => readonly [program: string, ...args: string[]];
  readonly env?: Readonly<Record<string, string>>;
  /** Readiness check for a gateway that listens before it has read its configuration. */
  readonly isReady?: () => Promise<boolean>;
}): Promise<Gateway> {
  const { name, port, files, command, env = {}, isReady } = options;
  const dir = await mkdtemp(join(tmpdir(), `postern-${name}-`));
  // Some gateways read their files as another user.
  await chmod(dir, 0o755);
  for (const [file, text] of Object.entries(files(dir))) await writeFile(join(dir, file), text);
  const [program, ...args] = command(dir);
  const child = await startProcess(program, args, { cwd: dir, env: { HOME: dir, ...env } });
  const close = async (): Promise<void> => {
    await child.stop();
    await rm(dir, { recursive: true, force: true });
  };
  try {
    await waitForPort(port, child);
    if (isReady !== undefined) await waitFor(`${name} to be ready`, isReady);
  } catch (error) {
    await close();
    throw error;
  }
  return { port, log: () => `${child.stderr()}${child.stdout()}`.slice(-4000), close };
}
