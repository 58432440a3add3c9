import { readFileSync } from "node:fs";
import { UsageError } from "./command.ts";

/* Messages for operating system errors, with the next action. */

/** Explanations of network error codes. */
export const NETWORK_REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "no program listens on this port",
  ENOTFOUND: "the host name is unknown",
  EAI_AGAIN: "DNS is unavailable",
  ECONNRESET: "the connection was reset",
  EHOSTUNREACH: "the host is unreachable",
  ENETUNREACH: "the network is unreachable",
  ETIMEDOUT: "the host does not respond",
};

const FILE_REASONS: Readonly<Record<string, string>> = {
  ENOENT: "it does not exist",
  ENOTDIR: "a part of the path is not a directory",
  EISDIR: "it is a directory, not a file",
  EACCES: "permission denied",
  EPERM: "permission denied",
};

/** Returns a sentence for an error code; `undefined` for other errors. `flag` is the option that names the file, such as `--file`. */
export function saySystemError(error: NodeJS.ErrnoException, flag?: string): string | undefined {
  const { code = "", path, syscall } = error;
  const { address, port, hostname } = error as { address?: string; port?: number; hostname?: string };
  const file = FILE_REASONS[code];
  if (file !== undefined && (path !== undefined || code === "EISDIR")) {
    // An error from reading a directory does not contain the path, because the error occurs after `open`.
    return `cannot open ${path === undefined ? "a path" : `"${path}"`}: ${file}; correct ${flag ?? "the path"} (${code})`;
  }
  const network = NETWORK_REASONS[code];
  // Leaves errors of libraries unchanged: they use the same codes, but their messages have more details.
  if (network === undefined || syscall === undefined) return undefined;
  const where =
    address === undefined ? (hostname ?? "the server") : `${address}${port === undefined ? "" : `:${port}`}`;
  return `no connection to ${where}: ${network}; start the server, or correct its address (${code})`;
}

/** Returns the text of the file that an option names. Throws `UsageError` if it cannot be read. */
export function readOptionFile(option: string, file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const named = Object.assign(error as NodeJS.ErrnoException, { path: file });
    throw new UsageError(saySystemError(named, `--${option}`) ?? `--${option} ${file}: ${named.message}`, {
      cause: error,
    });
  }
}
