import type { Command, OptionRow } from "../command.ts";

/* What may follow an option, read from the table that parses it: no list of its own can be out of date. */

/** `text` is anything, so nothing is offered. */
export type Values =
  | { readonly kind: "words"; readonly words: readonly string[] }
  | { readonly kind: "none" | "file" | "folder" | "profile" | "text" };

/** A word that stands for itself in a placeholder, as in `on|off` or `TIME|never`; what a person chooses is in capitals. */
const WORD = /^[a-z][a-z0-9_-]*$/;

export function valuesOf(command: Pick<Command, "name">, name: string, row: OptionRow): Values {
  if (row.type === "boolean") return { kind: "none" };
  // The only names that are known without a call.
  const isProfile = name === "profile" || (/^profile (use|remove)$/.test(command.name) && name === "name");
  if (isProfile) return { kind: "profile" };
  const { placeholder = "" } = row;
  if (placeholder === "PATH" || placeholder === "FILE") return { kind: "file" };
  if (placeholder === "DIR") return { kind: "folder" };
  const words = placeholder.split("|").filter((word) => WORD.test(word));
  return words.length === 0 ? { kind: "text" } : { kind: "words", words };
}

/** How an option is written: `--file`, and `-f` when it has a letter. */
export const flagsOf = (name: string, { short }: OptionRow): string[] =>
  short === undefined ? [`--${name}`] : [`--${name}`, `-${short}`];

export interface Noun {
  readonly name: string;
  /** What stands beside it in a list. */
  readonly summary: string;
  readonly verbs: ReadonlyArray<{ readonly name: string; readonly summary: string }>;
}

/** The first words of all commands, in order: a command of one word has no verbs. */
export function nounsOf(commands: readonly Command[]): Noun[] {
  const nouns = new Map<string, Noun>();
  for (const { name, summary } of commands) {
    const [first = "", second] = name.split(" ");
    if (second === undefined) {
      nouns.set(first, { name: first, summary, verbs: [] });
      continue;
    }
    const verbs = [...(nouns.get(first)?.verbs ?? []), { name: second, summary }];
    nouns.set(first, { name: first, summary: verbs.map((verb) => verb.name).join(", "), verbs });
  }
  return [...nouns.values()];
}

/** The programs under which the command line is installed: the second is the plugin of kubectl. */
export const PROGRAMS = ["postern", "kubectl-postern"];

/** Prints the names of the profiles, one a line; nothing when there are none or they cannot be read. */
export const LIST_PROFILES = "postern profile list 2>/dev/null | awk 'NR > 1 { print $1 }'";
