import type { Command, OptionRow } from "../command.ts";

/* Values to complete after an option, derived from the option table. */

/** Kind of the values; `text` means free text, which has no suggestions. */
export type Values =
  | { readonly kind: "words"; readonly words: readonly string[] }
  | { readonly kind: "none" | "file" | "folder" | "profile" | "text" };

/** Matches a literal value in a placeholder such as `on|off` or `TIME|never`. A word in capitals stands for free text. */
const WORD = /^[a-z][a-z0-9_-]*$/;

export function valuesOf(command: Pick<Command, "name">, name: string, row: OptionRow): Values {
  if (row.type === "boolean") return { kind: "none" };
  // Profile names are the only names that completion can list without an API call.
  const isProfile = name === "profile" || (/^profile (use|remove)$/.test(command.name) && name === "name");
  if (isProfile) return { kind: "profile" };
  const { placeholder = "" } = row;
  if (placeholder === "PATH" || placeholder === "FILE") return { kind: "file" };
  if (placeholder === "DIR") return { kind: "folder" };
  const words = placeholder.split("|").filter((word) => WORD.test(word));
  return words.length === 0 ? { kind: "text" } : { kind: "words", words };
}

/** Returns the forms of an option: `--file`, and also `-f` if the option has a one-letter form. */
export const flagsOf = (name: string, { short }: OptionRow): string[] =>
  short === undefined ? [`--${name}`] : [`--${name}`, `-${short}`];

export interface Noun {
  readonly name: string;
  /** Description of the word in a completion list. */
  readonly summary: string;
  readonly verbs: ReadonlyArray<{ readonly name: string; readonly summary: string }>;
}

/** Returns the first words of all commands in order. A command of one word has no verbs. */
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

/** Names of the installed program; `kubectl-postern` is the kubectl plugin. */
export const PROGRAMS = ["postern", "kubectl-postern"];

/** Shell command that prints the profile names, one per line. It prints nothing if there are no profiles or the file cannot be read. */
export const LIST_PROFILES = "postern profile list 2>/dev/null | awk 'NR > 1 { print $1 }'";
