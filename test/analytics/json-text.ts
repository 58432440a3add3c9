/*
 * JSON as text: numbers as they are spelt, so that 1e20 is not 100000000000000000000, and no digit of a large one is lost.
 */

/** A number of a text of JSON, in its own spelling. */
export class Spelt {
  readonly source: string;

  constructor(source: string) {
    this.source = source;
  }
}

/** Parses JSON; numbers become `Spelt`. */
export const parseSpelt = (json: string): unknown =>
  JSON.parse(json, keepSpelling as (key: string, value: unknown) => unknown);

const keepSpelling = (_key: string, value: unknown, context?: { source?: string }): unknown =>
  typeof value === "number" ? new Spelt(context?.source ?? String(value)) : value;

/** The text of a value of `parseSpelt`. */
export function textOf(value: unknown): string {
  if (value instanceof Spelt) return value.source;
  if (Array.isArray(value)) return `[${value.map(textOf).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([name, member]) => `${JSON.stringify(name)}:${textOf(member)}`)
    .join(",")}}`;
}

const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|[[\]{}:,]/g;

export const tokensOf = (json: string): readonly string[] => json.match(TOKENS) ?? [];

/** The texts of the objects of an array, exactly as they stand in it. Parsing would lose the order of members, and those with one name. */
export function rowsOf(json: string): readonly string[] {
  const rows: string[] = [];
  let depth = 0;
  let row = "";
  for (const token of tokensOf(json)) {
    if (/[\]}]/.test(token[0] ?? "") && --depth === 0) break;
    if (depth > 1 || token === "{") row += token;
    if (token === "{" || token === "[") depth += 1;
    if (depth === 1 && token === "}") {
      rows.push(`${row}}`);
      row = "";
    }
  }
  const whole = `[${rows.join(",")}]`;
  if (whole !== json) throw new Error(`not an array of objects without blanks: ${json.slice(0, 200)}`);
  return rows;
}
