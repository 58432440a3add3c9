import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod";
import type { Objects, StoredObject } from "./merge.ts";

/*
 * State on disk: objects with their uids, finalizers and statuses. With it, the operator can clean up the database for a manifest that was
 * deleted while the operator was stopped.
 */

const FILE_NAME = "manifests.json";

const Stored = z.object({
  kind: z.enum(["ApiKey", "ApiKeyPolicy", "RatelimitNamespace", "RatelimitOverride", "Role"]),
  namespace: z.string(),
  name: z.string(),
  file: z.string(),
  uid: z.string(),
  generation: z.int(),
  creationTimestamp: z.string(),
  deletionTimestamp: z.string().exactOptional(),
  finalizers: z.array(z.string()),
  annotations: z.record(z.string(), z.string()),
  spec: z.unknown(),
  status: z.unknown(),
});

const State = z.object({ formatVersion: z.literal(1), objects: z.record(z.string(), Stored) });

/** Reads the state. Throws if the file exists but is invalid, because continuing without the state would orphan stored objects. */
export async function loadState(stateDir: string): Promise<Objects> {
  const path = join(stateDir, FILE_NAME);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return new Map();
    throw error;
  }
  try {
    return new Map<string, StoredObject>(Object.entries(State.parse(JSON.parse(text)).objects));
  } catch (error) {
    throw new Error(`${path} is not a state that this version can read`, { cause: error });
  }
}

export interface StateWriter {
  /** Writes the state. Resolves when the current or newer objects are on disk. */
  save(): Promise<void>;
}

/**
 * Creates a writer that performs one write at a time. Each write creates a new file, which then replaces the old one. Calls during a write
 * share the write that follows it.
 */
export function createStateWriter(stateDir: string, objects: () => Objects): StateWriter {
  let running: Promise<void> = Promise.resolve();
  let next: Promise<void> | undefined;

  const write = async () => {
    next = undefined;
    const path = join(stateDir, FILE_NAME);
    await mkdir(stateDir, { recursive: true });
    await writeFile(`${path}.new`, JSON.stringify({ formatVersion: 1, objects: Object.fromEntries(objects()) }), {
      mode: 0o600,
    });
    await rename(`${path}.new`, path);
  };
  return {
    save: () => {
      if (next === undefined) {
        next = running.catch(() => undefined).then(write);
        running = next;
      }
      return next;
    },
  };
}
