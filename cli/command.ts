import { parseArgs } from "node:util";
import { readVariable } from "./environment.ts";
import { SUMMARIES } from "./summaries.ts";

/*
 * A command of the CLI: a name, a line that says what it does, its options as data. Parsing, `--help` and the
 * reference page are made from the same table.
 */

/** What a value may be. */
export interface Accepts {
  /** In words, for the table of all options: `1 to 100`. */
  readonly says: string;
  /** Such as `seconds`, `port` or `URL`. */
  readonly unit: string;
  /** Throws a `UsageError` that says what was expected. */
  readonly check: (option: string, text: string) => void;
  /** Of a file: it is read again when it changes. */
  readonly followed?: true;
}

export interface OptionRow {
  readonly type: "string" | "boolean";
  /** Shown for a string option in the help: `--data-dir DIR`. */
  readonly placeholder?: string;
  readonly help: string;
  /** One letter: `-f`. */
  readonly short?: string;
  readonly default?: string;
  /** The environment variable with the value when the option is absent. */
  readonly env?: string;
  readonly required?: true;
  readonly accepts?: Accepts;
  /** May be given several times: all values, in order. */
  readonly repeats?: true;
  /** Of an option that repeats: a value may be several, separated by commas. */
  readonly separates?: true;
  /** Another name that the parser accepts. */
  readonly alias?: string;
}

export type OptionTable = Readonly<Record<string, OptionRow>>;

/** Parsed options: a string is undefined when it is neither given nor has a default; a boolean is always present, and so is a list. */
export type OptionValues<T extends OptionTable> = {
  readonly [K in keyof T]: T[K]["type"] extends "boolean"
    ? boolean
    : T[K] extends { readonly repeats: true }
      ? readonly string[]
      : T[K] extends { readonly default: string } | { readonly required: true }
        ? string
        : string | undefined;
};

export interface Command<T extends OptionTable = OptionTable> {
  /** One or two words: `dev`, `rootkey create`. */
  readonly name: string;
  readonly summary: string;
  /** More than the summary, shown by `--help`. */
  readonly description?: string;
  readonly options: T;
  /** The shape of what `--json` prints: `{"id","name"}`. Names are never changed or removed in a later release. */
  readonly response?: string;
  /** Returns the exit code. Throws `UsageError` for what the caller can fix by calling the command differently. */
  readonly run: (options: OptionValues<T>, io: Io) => Promise<number>;
}

/** The environment of a command and its outputs. Logs go to standard error. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The command's answer, to standard output. */
  out(line: string): void;
  /** Progress and hints for a person, to standard error. */
  note(line: string): void;
  /** The width of the terminal that shows the answer; undefined when it is not a terminal, so that nothing is shortened. */
  readonly columns?: number | undefined;
  /** A text without the end of a line, to standard output. */
  readonly write?: ((text: string) => void) | undefined;
  /** Standard error when it is a terminal, for a line that is written over. */
  readonly screen?: { readonly columns: number; write(text: string): void } | undefined;
  /** Standard input, for what must not stand in a command line, which every user of a machine can read. */
  readonly input?: Input | undefined;
}

export interface Input {
  readonly isTerminal: boolean;
  /** All of it, when it is not a terminal. Throws when there are more bytes than these. */
  read(bytesMax: number): Promise<string>;
  /** One line from the terminal, which does not show it. Throws when the person gives up (Ctrl-C). */
  ask(prompt: string): Promise<string>;
}

/** The command was called incorrectly. Exit code 2. */
export class UsageError extends Error {
  override name = "UsageError";
}

/** A command as its file defines it. The summary is in `SUMMARIES`. */
type CommandDefinition<T extends OptionTable> = Omit<Command<T>, "summary"> & Partial<Pick<Command<T>, "summary">>;

/**
 * Returns the command with its summary. Inside, the types of the options follow from their table; outside, all commands have one type,
 * because the options are parsed by the same table.
 */
export const defineCommand = <T extends OptionTable>(command: CommandDefinition<T>): Command =>
  ({ summary: summaryOf(command.name), ...command }) as unknown as Command;

const summaryOf = (name: string): string => (SUMMARIES as Readonly<Record<string, string>>)[name] ?? name;

const givenOptions = new WeakMap<object, ReadonlySet<string>>();

/** Whether an option of these is one of the arguments, and not of the environment. */
export const isGiven = (options: object, name: string): boolean => givenOptions.get(options)?.has(name) === true;

/** Reads the arguments and the environment by the command's table. Throws `UsageError` that names the wrong option. */
export function parseOptions(command: Command, args: readonly string[], env: Io["env"]): OptionValues<OptionTable> {
  let given: Record<string, string | boolean | string[] | undefined>;
  try {
    given = readArguments(command.options, args);
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
  const values: Record<string, string | boolean | string[] | undefined> = {};
  for (const [name, row] of Object.entries(command.options)) {
    const fromEnv = row.env === undefined ? undefined : readVariable(row.env, env);
    if (row.type === "boolean") {
      if (fromEnv !== undefined && !["1", "true", "0", "false"].includes(fromEnv)) {
        throw new UsageError(`invalid value "${fromEnv}" for ${row.env}: must be 1, true, 0 or false`);
      }
      values[name] = given[name] === true || fromEnv === "1" || fromEnv === "true";
      continue;
    }
    const value = given[name] ?? fromEnv ?? row.default;
    if (value === undefined && row.required === true) {
      throw new UsageError(`--${name} is required${row.env === undefined ? "" : `, or set ${row.env}`}`);
    }
    const said = given[name] === undefined && fromEnv !== undefined ? `${name} (${row.env})` : name;
    for (const text of Array.isArray(value) ? value : [value]) {
      if (typeof text === "string" && text !== row.default) row.accepts?.check(said, text);
    }
    if (row.repeats !== true) values[name] = value;
    else {
      // A value of the environment is a list of one.
      const list = Array.isArray(value) ? value : value === undefined ? [] : [String(value)];
      values[name] = row.separates === true ? list.flatMap(splitList) : list;
    }
  }
  givenOptions.set(values, new Set(Object.keys(given)));
  return values as OptionValues<OptionTable>;
}

/** Returns each option that is among the arguments, under its own name: the values of one that repeats, in order. */
function readArguments(table: OptionTable, args: readonly string[]): Record<string, string | boolean | string[]> {
  const nameOf = new Map<string, string>();
  for (const [name, { alias = name }] of Object.entries(table)) nameOf.set(name, name).set(alias, name);
  const options = Object.fromEntries(
    [...nameOf].map(([word, name]) => {
      const { type = "string", short, repeats: multiple = false } = table[name] ?? {};
      return [word, { type, multiple, ...(short === undefined || word !== name ? {} : { short }) }];
    }),
  );
  const { tokens } = parseKnown({ args: [...args], options, strict: true, allowPositionals: false, tokens: true });
  const given: Record<string, string | boolean | string[]> = {};
  for (const token of tokens) {
    if (token.kind !== "option") continue;
    const name = nameOf.get(token.name) ?? token.name;
    const value = token.value ?? true;
    const before = given[name];
    if (table[name]?.repeats === true) given[name] = [...(Array.isArray(before) ? before : []), String(value)];
    // The last one would win without a word.
    else if (before !== undefined) throw new UsageError(`--${name} is given twice`);
    else given[name] = value;
  }
  return given;
}

/** `parseArgs`, with an error for an unknown option that suggests a similar one. */
const parseKnown = ((config) => {
  try {
    return parseArgs(config);
  } catch (error) {
    const [, word] = /^Unknown option '(--?[^' ]+)'/.exec(error instanceof Error ? error.message : "") ?? [];
    if (word === undefined) throw error;
    const known = Object.keys(config?.options ?? {}).map((name) => `--${name}`);
    throw new UsageError(`unknown option ${word}${suggestion(word, known)}`, { cause: error });
  }
}) as typeof parseArgs;

/** ` (did you mean --file?)` for the most similar of the words; empty when none is similar. */
export function suggestion(word: string, words: readonly string[]): string {
  const distances = words.map((known) => ({ known, distance: editDistance(word, known) }));
  const [best] = distances.sort((a, b) => a.distance - b.distance);
  return best === undefined || best.distance > Math.max(1, word.length / 4) ? "" : ` (did you mean ${best.known}?)`;
}

/** How many characters have to be inserted, deleted or replaced to make one text the other (Levenshtein). */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

/** `a, b,c` → `["a", "b", "c"]`; undefined and empty return an empty list. */
export function splitList(text: string | undefined): string[] {
  return (text ?? "")
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}

/** How an option is given several times, for its help; undefined for one that is given once. */
export function repetitionOf({ repeats, separates, alias }: OptionRow): string | undefined {
  if (repeats !== true) return undefined;
  const also = alias === undefined ? "" : `, also as --${alias}`;
  return separates === true ? `comma-separated or repeated${also}` : "repeatable";
}

/** The text of `--help`. `worksWith` says what the command talks to. */
export function helpText(command: Command, worksWith?: string): string {
  const rows = Object.entries(command.options).map(([name, row]) => {
    const flag = row.short === undefined ? `--${name}` : `-${row.short}, --${name}`;
    const left = row.type === "boolean" ? flag : `${flag} ${row.placeholder ?? "VALUE"}`;
    const notes = [
      row.default === undefined ? undefined : `default ${row.default}`,
      row.env === undefined ? undefined : `env ${row.env}`,
      row.required === true ? "required" : undefined,
      repetitionOf(row),
    ].filter((note) => note !== undefined);
    return { left, right: notes.length === 0 ? row.help : `${row.help} (${notes.join("; ")})` };
  });
  const width = Math.max(...rows.map((row) => row.left.length), 6);
  return [
    `postern ${command.name}: ${command.summary}`,
    ...(command.description === undefined ? [] : ["", command.description]),
    ...(worksWith === undefined ? [] : ["", worksWith]),
    ...(command.response === undefined ? [] : ["", `--json prints ${command.response}`]),
    "",
    "Options:",
    ...rows.map((row) => `  ${row.left.padEnd(width)}  ${row.right}`),
    `  ${"--help".padEnd(width)}  show this help`,
  ].join("\n");
}
