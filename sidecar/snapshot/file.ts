import { constants } from "node:fs";
import { type FileHandle, open, rename, unlink } from "node:fs/promises";
import { join } from "node:path";

/*
 * One file in a directory that others may be able to write to. What is found there need not be a file, may be of any size, and may be
 * replaced at any moment; the disk may be full, read-only, or stand still.
 */

const NAME = "snapshot";
/** Always the same, so that a process that was killed leaves at most one. */
const NEXT_NAME = "snapshot.next";

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants;

/** Returns undefined when there is none. Throws for anything but a file of at most `bytesMax`, and never follows a link. */
export async function readSnapshotFile(directory: string, bytesMax: number): Promise<Buffer | undefined> {
  let file: FileHandle;
  try {
    // Opening a pipe would wait for its other end.
    file = await open(join(directory, NAME), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  try {
    const found = await file.stat();
    if (!found.isFile()) throw new Error("it is no file");
    if (found.size > bytesMax) throw new Error(`it has ${found.size} bytes, and at most ${bytesMax} are read`);
    const bytes = Buffer.allocUnsafe(found.size);
    // It may have been cut since; what is missing is noticed when it is opened.
    const { bytesRead } = await file.read(bytes, 0, found.size, 0);
    return bytes.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

/** Replaces the file as a whole once all pieces are on the disk; until then, and when that fails, the earlier one stays. */
export async function writeSnapshotFile(directory: string, pieces: Iterable<Buffer>): Promise<void> {
  const next = join(directory, NEXT_NAME);
  await unlink(next).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
  const file = await open(next, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    // Each piece is made only when the one before it is written, so that requests are served in between.
    for (const piece of pieces) await file.writeFile(piece);
    await file.sync();
  } catch (error) {
    await file.close();
    await unlink(next).catch(() => undefined);
    throw error;
  }
  await file.close();
  await rename(next, join(directory, NAME));
}
