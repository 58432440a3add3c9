import type { Input, Procedure } from "../../core/api/procedures.ts";
import { shellQuoted } from "./shell-quoted.ts";

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
