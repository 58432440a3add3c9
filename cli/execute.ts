import { type Command, helpText, type Io, type OptionValues, parseOptions, UsageError } from "./command.ts";
import { printable } from "./fields.ts";
import { worksWith } from "./options.ts";
import { inputOf } from "./secret-input.ts";
import { saySystemError } from "./system-errors.ts";

/** Loads and runs one command and returns its exit code. A failure is printed as one line. */
export async function execute(load: () => Promise<Command>, args: readonly string[], io: Io): Promise<number> {
  let name = "";
  let options: OptionValues<Command["options"]> = {};
  try {
    const command = await load();
    name = ` ${command.name}`;
    if (args.includes("--help")) {
      io.out(helpText(command, worksWith(command)));
      return 0;
    }
    options = parseOptions(command, args, io.env);
    return await command.run(options, io);
  } catch (error) {
    if (error instanceof UsageError) {
      io.note(`postern${name}: ${oneLine(error.message)}; \`postern${name} --help\` shows the options`);
      return 2;
    }
    const reason = error instanceof Error ? error : new Error(String(error));
    const isTaken = "code" in reason && reason.code === "EADDRINUSE";
    const hint = isTaken ? `; choose another port: \`postern${name} --help\` shows the options` : "";
    io.note(`postern${name}: ${describe(reason, options)}${hint}`);
    // Prints the stack trace only if POSTERN_DEBUG=1.
    if (io.env.POSTERN_DEBUG === "1" && reason.stack !== undefined) io.note(reason.stack);
    return 1;
  }
}

/** Returns one line with the messages of the error and its causes. */
function describe(error: NodeJS.ErrnoException, options: Readonly<Record<string, unknown>>): string {
  // If all addresses of a host such as `localhost` fail, Node.js throws an AggregateError without a message; it contains one error per
  // address.
  if (error instanceof AggregateError && error.errors[0] instanceof Error) return describe(error.errors[0], options);
  const { path } = error;
  const [named] =
    Object.entries(options).find(([, value]) => path !== undefined && [value].flat().includes(path)) ?? [];
  const message = saySystemError(error, named === undefined ? undefined : `--${named}`) ?? error.message;
  const cause = error.cause instanceof Error ? `: ${describe(error.cause, options)}` : "";
  return oneLine(`${message}${cause}`);
}

/**
 * Returns the text as one line without control characters, because messages of libraries may have several lines and servers may send
 * terminal escape codes.
 */
const oneLine = (text: string): string => printable(text.trim().replace(/\s*\n\s*/g, " "));

/** Environment variables, input and outputs of this process. */
export const processIo: Io = {
  env: process.env,
  columns: process.stdout.isTTY ? process.stdout.columns : undefined,
  out: (line) => process.stdout.write(`${line}\n`),
  note: (line) => process.stderr.write(`${line}\n`),
  write: (text) => process.stdout.write(text),
  screen: process.stderr.isTTY
    ? { columns: process.stderr.columns, write: (text) => process.stderr.write(text) }
    : undefined,
  input: inputOf(process.stdin, process.stderr),
};
