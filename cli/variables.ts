/* Variables that are no options: secrets, which a command line would show to all, and what concerns every command. */

import { ROOT_KEY_WANTED } from "./root-key.ts";

export interface Variable {
  readonly name: string;
  /** The commands that read it; all when left out. */
  readonly of?: readonly string[];
  readonly help: string;
  readonly accepts: string;
  /** The option with a file that may hold it instead. */
  readonly file?: string;
}

/** As pino knows them. */
export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;

export const VARIABLES: readonly Variable[] = [
  {
    name: "POSTERN_ROOT_KEY",
    of: ["dev", "api-server", "operator"],
    help: "`dev`, `api-server`: a root key to register at the start, with every grant. `operator` and every command that calls the API: the root key to act with",
    accepts: ROOT_KEY_WANTED,
    file: "root-key-file",
  },
  {
    name: "POSTERN_ENCRYPTION_KEYS",
    of: ["dev", "api-server", "key reencrypt"],
    help: "the encryption keys for recoverable keys, instead of a file. Each is 32 random bytes (`openssl rand -base64 32`) under a name of your own; the first encrypts, all decrypt",
    accepts: "`ID:BASE64,ID:BASE64`",
    file: "encryption-keys-file",
  },
  {
    name: "POSTERN_SNAPSHOT_KEY",
    of: ["sidecar"],
    help: "the secret of this pod alone with which the files of `--snapshot-dir` are sealed",
    accepts: "32 characters or more",
  },
  {
    name: "POSTERN_HOOK_TOKEN",
    of: ["sidecar"],
    help: "what the pod's preStop hook shows at `/drain` of the admin port; without it there is no such path",
    accepts: "a text",
  },
  {
    name: "POSTERN_PROBES",
    of: ["sidecar"],
    help: "the probes of the app that the gate answers; written by the operator that injects it, not by people",
    accepts: "JSON",
  },
  {
    name: "POSTERN_LOG_LEVEL",
    help: "the least that is logged; `info` when left out",
    accepts: LOG_LEVELS.map((level) => `\`${level}\``).join(" or "),
  },
  { name: "POSTERN_DEBUG", help: "`1` prints the stack of an error that ends a command", accepts: "`1`" },
];
