import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "pino";
import { type Following, followFolder } from "../runtime/follow-folder.ts";
import { WorkspaceName } from "./settings.ts";

/** Maximum number of characters in a key file; root keys are shorter. */
const KEY_LENGTH_MAX = 4096;

export interface RootKeys extends Following {
  /** Returns the root keys by workspace name. */
  current(): ReadonlyMap<string, string>;
}

export interface RootKeysOptions {
  /** Folder with one file per workspace. The file name is the name of the workspace, and the content is a root key. */
  readonly dir: string;
  /** Called with the workspaces whose keys were added, changed or removed. The initial read causes no call. */
  readonly onChange: (workspaces: readonly string[]) => void;
  readonly log: Logger;
}

/**
 * Watches the folder of root keys. A file that is temporarily unreadable keeps its last key; a removed or empty file has none. Throws if
 * the folder cannot be read at the start.
 */
export async function followRootKeys({ dir, onChange, log }: RootKeysOptions): Promise<RootKeys> {
  let keys: ReadonlyMap<string, string> = new Map();
  let ignored: ReadonlySet<string> = new Set();
  let isFirst = true;

  const following = await followFolder({ dir, log }, async () => {
    const found = new Map<string, string>();
    const unusable = new Set<string>();
    // Skips names that begin with a dot, because a mounted Secret contains internal folders with such names.
    for (const name of (await readdir(dir)).filter((one) => !one.startsWith("."))) {
      const key = WorkspaceName.safeParse(name).success ? await readKey(join(dir, name), keys.get(name)) : undefined;
      if (key === undefined) unusable.add(name);
      else found.set(name, key);
    }
    for (const name of unusable) {
      if (!ignored.has(name))
        log.warn({ dir, file: name }, "not a root key: the file name must be a workspace, and the content one line");
    }
    ignored = unusable;
    const before = keys;
    keys = found;
    const changed = [...new Set([...before.keys(), ...found.keys()])].filter(
      (name) => before.get(name) !== found.get(name),
    );
    if (!isFirst && changed.length > 0) {
      log.info({ workspaces: changed }, "root keys were added, changed or removed");
      onChange(changed);
    }
    isFirst = false;
  });
  return { current: () => keys, close: following.close };
}

/** Returns the root key in a file; `undefined` if there is no usable key. */
async function readKey(path: string, last: string | undefined): Promise<string | undefined> {
  try {
    const key = (await readFile(path, "utf8")).trim();
    return key === "" || key.length > KEY_LENGTH_MAX || /\s/.test(key) ? undefined : key;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT" ? undefined : last;
  }
}
