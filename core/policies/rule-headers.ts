import { namedInConnection } from "./hop-by-hop.ts";

/* Headers that rules match or that limits count by, in lists of alternating names and values. */

/** Name and value of a request header. */
export type HeaderPair = readonly [name: string, value: string];

const LINE = /^([A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}):[ \t]*([\t\x20-\x7e]{0,8192})$/;

/** Parses a header line, `NAME: VALUE` in ASCII; returns `undefined` if it is invalid. */
export function parseHeaderLine(line: string): HeaderPair | undefined {
  const [, name, value] = LINE.exec(line) ?? [];
  return name === undefined || value === undefined ? undefined : [name, value];
}

/** Returns the values of the named headers in a list of alternating names and values; repeated headers are joined. */
export function headersNamed(names: readonly string[], raw: readonly string[]): (string | undefined)[] {
  return names.map((name) => {
    const values = raw.filter((_, at) => at % 2 === 1 && raw[at - 1]?.toLowerCase() === name);
    return values.length === 0 ? undefined : values.join(", ");
  });
}

/**
 * Returns the name of a header as CGI servers pass it on: they replace all characters except letters and digits with `_`, so different
 * names become the same. Expects lower case.
 */
export const asCgiVariable = (name: string): string => name.replace(/[^a-z0-9]/g, "_");

/**
 * Returns a header that apps may read differently than a gate: a matched header that occurs twice, in another spelling, or in `Connection`,
 * which would remove it.
 */
export function ambiguousHeaderIn(matched: ReadonlySet<string>, raw: readonly string[]): string | undefined {
  const removed = namedInConnection(headersNamed(["connection"], raw)[0]);
  for (const name of matched) if (removed?.has(name)) return name;
  const spellings = new Set([...matched].map(asCgiVariable));
  const seen = new Set<string>();
  for (let at = 0; at < raw.length; at += 2) {
    const name = (raw[at] as string).toLowerCase();
    if (!spellings.has(asCgiVariable(name))) continue;
    if (!matched.has(name) || seen.has(name)) return name;
    seen.add(name);
  }
  return undefined;
}

/** Returns the message of the 400 for a header that `ambiguousHeaderIn` or the gate found. */
export const sayAmbiguousHeader = (name: string): string =>
  `The request has the header ${name} twice, in an ambiguous spelling or named by Connection, and a rule depends on it.`;
