/*
 * Variables without an option: secrets, because every user of the machine can read command lines, and settings that apply to all commands.
 */

import { ROOT_KEY_WANTED } from "./root-key.ts";

export interface Variable {
  readonly name: string;
  /** Commands that read the variable. Default: all commands. */
  readonly of?: readonly string[];
  readonly help: string;
  readonly accepts: string;
  /** Option that names a file with the value. */
  readonly file?: string;
}

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;

export const VARIABLES: readonly Variable[] = [
  {
    name: "POSTERN_ROOT_KEY",
    of: ["dev", "api-server", "operator"],
    help: "`dev`, `api-server`: root key with all permissions, registered at startup; `operator` and commands that call the API: root key to use",
    accepts: ROOT_KEY_WANTED,
    file: "root-key-file",
  },
  {
    name: "POSTERN_ENCRYPTION_KEYS",
    of: ["dev", "api-server", "key reencrypt"],
    help: "encryption keys for recoverable keys, each `ID:BASE64` with 32 random bytes (`openssl rand -base64 32`); the first encrypts, all decrypt",
    accepts: "`ID:BASE64,ID:BASE64`",
    file: "encryption-keys-file",
  },
  {
    name: "POSTERN_SNAPSHOT_KEY",
    of: ["sidecar"],
    help: "secret of this pod that encrypts the files of `--snapshot-dir`",
    accepts: "32 characters or more",
  },
  {
    name: "POSTERN_HOOK_TOKEN",
    of: ["sidecar"],
    help: "token of the preStop hook for `/drain` on the admin port; without it the path does not exist",
    accepts: "a text",
  },
  {
    name: "POSTERN_PROBES",
    of: ["sidecar"],
    help: "app probes that the gate serves; set by the operator at injection",
    accepts: "JSON",
  },
  {
    name: "POSTERN_LOG_LEVEL",
    help: "minimum log level (default `info`)",
    accepts: LOG_LEVELS.map((level) => `\`${level}\``).join(" or "),
  },
  { name: "POSTERN_DEBUG", help: "`1` prints the stack trace of a fatal error", accepts: "`1`" },
];
