import { type Command, helpText, type Io, parseOptions, UsageError } from "./command.ts";

/** Loads and runs one command with its arguments. Gives the exit code; failures become one line for a person. */
export async function execute(load: () => Promise<Command>, args: readonly string[], io: Io): Promise<number> {
  let name = "";
  try {
    const command = await load();
    name = ` ${command.name}`;
    if (args.includes("--help")) {
      io.out(helpText(command));
      return 0;
    }
    return await command.run(parseOptions(command, args, io.env), io);
  } catch (error) {
    if (error instanceof UsageError) {
      io.note(`postern${name}: ${error.message}; \`postern${name} --help\` shows the options`);
      return 2;
    }
    const reason = error instanceof Error ? error : new Error(String(error));
    io.note(`postern${name}: ${reason.message}`);
    // The stack is for whoever asks for it.
    if (io.env.POSTERN_DEBUG === "1" && reason.stack !== undefined) io.note(reason.stack);
    return 1;
  }
}

/** The process as a command sees it. */
export const processIo: Io = {
  env: process.env,
  out: (line) => process.stdout.write(`${line}\n`),
  note: (line) => process.stderr.write(`${line}\n`),
};
