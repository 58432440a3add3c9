import { pythonWith } from "./python-package.ts";

/** Another version finds other problems: review its findings when upgrading. */
const VERSION = "4.32.5";

/** A command with its first arguments; the caller's arguments follow. */
export interface Command {
  readonly file: string;
  readonly args: readonly string[];
}

/**
 * Returns the command of Schemathesis, which sends valid and invalid requests to an API by its OpenAPI document. The first call installs it
 * into a virtual environment in the user's cache. Throws `MissingPart` with an installation hint.
 */
export async function schemathesis(): Promise<Command> {
  const python = await pythonWith({ name: "schemathesis", version: VERSION, title: "Schemathesis" });
  return { file: python, args: ["-m", "schemathesis.cli"] };
}
