import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod";
import type { FoundSecret, ManifestObject, SecretContent, SecretStore } from "../contract.ts";

/*
 * Stores keys in files, because a directory has no Secrets. Each key is a file that only this user can read,
 * `secrets/<namespace>/<name>/<key>` in the state folder, as in a mounted Secret. A note next to these folders names the owner and the
 * written key. The note is written last. A file without a note, or with a note that names another owner, counts as the Secret of another
 * owner.
 */

const Note = z.object({ uid: z.string(), keyId: z.string(), member: z.string() });

export function createDirectorySecrets(stateDir: string): SecretStore {
  const folderOf = ({ metadata: { namespace } }: ManifestObject, name: string) =>
    join(stateDir, "secrets", namespace, name);
  const noteOf = ({ metadata: { namespace } }: ManifestObject, name: string) =>
    join(stateDir, "secret-owners", namespace, `${name}.json`);

  const find = async (owner: ManifestObject, name: string): Promise<FoundSecret> => {
    const text = await readIfThere(noteOf(owner, name));
    const folder = folderOf(owner, name);
    if (text === undefined) return (await isThere(folder)) ? { state: "foreign" } : { state: "absent" };
    const note = Note.parse(JSON.parse(text));
    if (note.uid !== owner.metadata.uid) return { state: "foreign" };
    const isHeld = await isThere(join(folder, note.member));
    return isHeld ? { state: "ours", keyId: note.keyId, version: note.keyId } : { state: "absent" };
  };

  return {
    find,
    areCollected: false,
    check: async () => undefined,
    write: async (owner: ManifestObject, { name, member, keyId, text }: SecretContent) => {
      const { uid } = owner.metadata;
      const note: z.input<typeof Note> = { uid, keyId, member };
      await replaceFile(folderOf(owner, name), member, text);
      await replaceFile(
        join(stateDir, "secret-owners", owner.metadata.namespace),
        `${name}.json`,
        JSON.stringify(note),
      );
      return undefined;
    },
    remove: async (owner, name) => {
      const { state } = await find(owner, name);
      if (state === "foreign") return;
      await rm(folderOf(owner, name), { recursive: true, force: true });
      await rm(noteOf(owner, name), { force: true });
    },
  };
}

/** Writes a new file and renames it, so that the file is replaced atomically. */
async function replaceFile(folder: string, name: string, text: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, name);
  await writeFile(`${path}.new`, text, { mode: 0o600 });
  await rename(`${path}.new`, path);
}

async function readIfThere(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").catch(unlessMissing);
}

const isThere = async (path: string): Promise<boolean> => (await stat(path).catch(unlessMissing)) !== undefined;

function unlessMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}
