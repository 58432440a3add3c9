import type { Input, Procedure } from "../../core/api/procedures.ts";

/** Returns a curl command that calls a procedure of the API at `origin` with a root key. */
export function curlLine<P extends Procedure>(call: {
  readonly origin: string;
  readonly procedure: P;
  readonly rootKey: string;
  readonly body: Input<P>;
}): string {
  return [
    `curl ${shellQuoted(`${call.origin}/v2/${call.procedure}`)}`,
    `-H ${shellQuoted(`Authorization: Bearer ${call.rootKey}`)}`,
    "-H 'Content-Type: application/json'",
    `-d ${shellQuoted(JSON.stringify(call.body))}`,
  ].join(" \\\n  ");
}

/** Quotes an argument for a shell so that it stays one argument, whatever it contains. */
export const shellQuoted = (argument: string): string =>
  /^[\w./:@=+-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`;
