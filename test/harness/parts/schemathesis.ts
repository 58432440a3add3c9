import { pythonWith } from "./python-package.ts";

/** Another version finds other problems: read its findings when you raise it. */
const VERSION = "4.32.5";

/** A command and its first arguments; the caller's arguments follow. */
export interface Command {
  readonly file: string;
  readonly args: readonly string[];
}

/**
 * Returns the command of Schemathesis, which sends an API what its OpenAPI document allows and what it does not. It is installed into
 * a virtual environment in the user's cache by the first call. Throws `MissingPart` with what to install.
 */
export async function schemathesis(): Promise<Command> {
  const python = await pythonWith({ name: "schemathesis", version: VERSION, title: "Schemathesis" });
  return { file: python, args: ["-m", "schemathesis.cli"] };
}
