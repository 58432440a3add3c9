import { readFileSync } from "node:fs";
import { KEY_LENGTH_MAX } from "../../../core/keys/key-hash.ts";
import { type Io, UsageError } from "../../command.ts";

const INPUT_BYTES_MAX = 4096;

/** Option for a file that contains the key. The key itself is not an option, because every user of the machine can read command lines. */
export const keyFile = {
  type: "string",
  placeholder: "PATH",
  help: "file with the key; - is standard input (default)",
} as const;

/** Returns the key from the file, standard input or a prompt. Its `UsageError` never contains the key. */
export async function readKeySecret({ input }: Io, path: string | undefined): Promise<string> {
  const key = (path === undefined || path === "-" ? await readInput(input) : readFileSync(path, "utf8")).trim();
  if (key !== "" && key.length <= KEY_LENGTH_MAX) return key;
  throw new UsageError(`expected one key of at most ${KEY_LENGTH_MAX} characters, on standard input or in --key-file`);
}

async function readInput(input: Io["input"]): Promise<string> {
  if (input === undefined) throw new UsageError("standard input is not available; set --key-file");
  return input.isTerminal ? input.ask("key (hidden): ") : input.read(INPUT_BYTES_MAX);
}
