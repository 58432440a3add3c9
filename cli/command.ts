import { parseArgs } from "node:util";
import { readVariable } from "./environment.ts";
import { SUMMARIES } from "./summaries.ts";

/* Definition of a CLI command, with its options as data. Parsing, `--help`, completion and the reference page use the same table. */

/** Accepted values of an option. */
export interface Accepts {
  /** Range or format of the value, for the configuration page: `1 to 100`. */
  readonly says: string;
  /** Unit or type of the value, such as `seconds`, `port` or `URL`. */
  readonly unit: string;
  /** Checks a value. Throws a `UsageError` that states the expected value. */
  readonly check: (option: string, text: string) => void;
  /** Whether the file is reloaded on change. */
  readonly followed?: true;
}

export interface OptionRow {
  readonly type: "string" | "boolean";
  /** Placeholder of the value in the help, such as the `DIR` of `--data-dir DIR`. */
  readonly placeholder?: string;
  readonly help: string;
  /** One-letter form of the option, such as `-f`. */
  readonly short?: string;
  readonly default?: string;
  /** Environment variable that sets the value if the option is absent. */
  readonly env?: string;
  readonly required?: true;
  readonly accepts?: Accepts;
  /** Whether the option may be repeated. The parsed value is the list of all values in order. */
  readonly repeats?: true;
  /** Whether a value of a repeatable option may be a comma-separated list. */
  readonly separates?: true;
  /** Second name of the option. */
  readonly alias?: string;
}

export type OptionTable = Readonly<Record<string, OptionRow>>;

/** Parsed options. A string is `undefined` if it is not given and has no default; booleans and lists are always present. */
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
  /** Name of the command, one or two words: `dev`, `rootkey create`. */
  readonly name: string;
  readonly summary: string;
  /** Details for `--help`, after the summary. */
  readonly description?: string;
  readonly options: T;
  /** Shape of the `--json` output, such as `{"id","name"}`. Later versions may add members, but never rename or remove them. */
  readonly response?: string;
  /** Runs the command and returns its exit code. Throws `UsageError` for an invalid call. */
  readonly run: (options: OptionValues<T>, io: Io) => Promise<number>;
}

/** Environment variables, input and outputs of a command. Logs go to standard error. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Writes a line of the result to standard output. */
  out(line: string): void;
  /** Writes a line of progress or a hint to standard error. */
  note(line: string): void;
  /**
   * Width of the terminal on standard output; `undefined` if standard output is not a terminal. Without a width, lines are not shortened.
   */
  readonly columns?: number | undefined;
  /** Writes text without a newline to standard output. */
  readonly write?: ((text: string) => void) | undefined;
  /** Standard error, if it is a terminal, for a status line that is overwritten. */
  readonly screen?: { readonly columns: number; write(text: string): void } | undefined;
  /** Standard input. Commands read secrets from it, because every user of the machine can read command lines. */
  readonly input?: Input | undefined;
}

export interface Input {
  readonly isTerminal: boolean;
  /** Returns all input if standard input is not a terminal. Throws if the input has more than `bytesMax` bytes. */
  read(bytesMax: number): Promise<string>;
  /** Prompts for one line on the terminal without echo. Throws if the person presses Ctrl-C. */
  ask(prompt: string): Promise<string>;
}

/** Error for an invalid call of a command; the exit code is 2. */
export class UsageError extends Error {
  override name = "UsageError";
}

/** Definition of a command. It may omit the summary, because `SUMMARIES` contains all summaries. */
type CommandDefinition<T extends OptionTable> = Omit<Command<T>, "summary"> & Partial<Pick<Command<T>, "summary">>;

/**
 * Returns the command with its summary. Each definition has types derived from its option table. The returned commands all have the same
 * type, because one parser handles every table.
 */
export const defineCommand = <T extends OptionTable>(command: CommandDefinition<T>): Command =>
  ({ summary: summaryOf(command.name), ...command }) as unknown as Command;

const summaryOf = (name: string): string => (SUMMARIES as Readonly<Record<string, string>>)[name] ?? name;

const givenOptions = new WeakMap<object, ReadonlySet<string>>();

/** Returns whether an option was set by the arguments rather than the environment. */
export const isGiven = (options: object, name: string): boolean => givenOptions.get(options)?.has(name) === true;

/** Parses the arguments and the environment according to the option table. Throws a `UsageError` that names the invalid option. */
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
      // Converts a value from the environment to a list with one entry.
      const list = Array.isArray(value) ? value : value === undefined ? [] : [String(value)];
      values[name] = row.separates === true ? list.flatMap(splitList) : list;
    }
  }
  givenOptions.set(values, new Set(Object.keys(given)));
  return values as OptionValues<OptionTable>;
}

/** Returns the options in the arguments, by name. The value of a repeatable option is the list of all values in order. */
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
    // Throws for a second value, because `parseArgs` would silently use the last one.
    else if (before !== undefined) throw new UsageError(`--${name} may be set only once`);
    else given[name] = value;
  }
  return given;
}

/** Like `parseArgs`, but its error for an unknown option suggests a known one. */
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

/** Returns ` (did you mean --file?)` with the most similar word, or an empty text if no word is similar. */
export function suggestion(word: string, words: readonly string[]): string {
  const distances = words.map((known) => ({ known, distance: editDistance(word, known) }));
  const [best] = distances.sort((a, b) => a.distance - b.distance);
  return best === undefined || best.distance > Math.max(1, word.length / 4) ? "" : ` (did you mean ${best.known}?)`;
}

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

/** Splits `a, b,c` into `["a", "b", "c"]`. Returns an empty list for `undefined` and empty text. */
export function splitList(text: string | undefined): string[] {
  return (text ?? "")
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}

/** Returns the help text about repeating an option; `undefined` if the option cannot be repeated. */
export function repetitionOf({ repeats, separates, alias }: OptionRow): string | undefined {
  if (repeats !== true) return undefined;
  const also = alias === undefined ? "" : `, also as --${alias}`;
  return separates === true ? `comma-separated or repeated${also}` : "repeatable";
}

/** Returns the output of `--help`. `worksWith` is a sentence about the command's backend. */
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
