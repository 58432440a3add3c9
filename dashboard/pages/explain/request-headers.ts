import { parseHeaderLine } from "../../../core/policies/rule-headers.ts";

/* Headers of a request to explain, typed as lines such as `X-Api-Version: 2`. */

export interface RequestHeader {
  readonly name: string;
  readonly value: string;
}

/** Parses the lines; empty lines are ignored. If a line is not a header, returns a message that names the first such line. */
export function readHeaders(text: string): readonly RequestHeader[] | string {
  const headers: RequestHeader[] = [];
  for (const [at, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    const header = parseHeaderLine(line.trim());
    if (header === undefined) return `Line ${at + 1}: expected NAME: VALUE, such as X-Api-Version: 2.`;
    const [name, value] = header;
    headers.push({ name, value });
  }
  return headers;
}
