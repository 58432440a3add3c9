import { constants } from "node:fs";
import { type FileHandle, open, rename, unlink } from "node:fs/promises";
import { join } from "node:path";

/*
 * Reads and writes one file in a directory that other processes may write to. The path may be a link or a special file, its contents may
 * have any size and may change at any time, and the disk may be full, read-only or unresponsive.
 */

const NAME = "snapshot";
/** Fixed name of the temporary file, so that a killed process leaves at most one temporary file. */
const NEXT_NAME = "snapshot.next";

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants;

/**
 * Returns the contents of the file; `undefined` if it does not exist. Throws unless it is a regular file of at most `bytesMax` bytes, and
 * never follows a link.
 */
export async function readSnapshotFile(directory: string, bytesMax: number): Promise<Buffer | undefined> {
  let file: FileHandle;
  try {
    // Without O_NONBLOCK, opening a pipe would wait for a writer.
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
    // The file may have been truncated in the meantime; the seal detects missing bytes.
    const { bytesRead } = await file.read(bytes, 0, found.size, 0);
    return bytes.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

/** Replaces the file atomically once all chunks are on disk. If this fails, the previous file remains. */
export async function writeSnapshotFile(directory: string, chunks: Iterable<Buffer>): Promise<void> {
  const next = join(directory, NEXT_NAME);
  await unlink(next).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
  const file = await open(next, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    // Creates each chunk only after the previous one is written, so that the gate serves requests in between.
    for (const chunk of chunks) await file.writeFile(chunk);
    await file.sync();
  } catch (error) {
    await file.close();
    await unlink(next).catch(() => undefined);
    throw error;
  }
  await file.close();
  await rename(next, join(directory, NAME));
}
