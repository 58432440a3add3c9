import type { Io } from "./command.ts";
import { type Fields, toObject } from "./fields.ts";
import { formatFields, formatTable } from "./table.ts";

/* How commands print: one JSON object on one line with `--json`, otherwise text for a person. */

interface Answering {
  readonly json: boolean;
}

/** Prints one thing. `sentence` says what was done to it, if that is more useful to a person than its fields. */
export function printOne<Row>(
  io: Io,
  { json }: Answering,
  { fields, row, sentence }: { fields: Fields<Row>; row: Row; sentence?: string },
): void {
  if (json) io.out(JSON.stringify(toObject(fields, row)));
  else if (sentence !== undefined) io.out(sentence);
  else for (const line of formatFields(fields, row)) io.out(line);
}

/**
 * Prints at most `max` things under the name `things`. `rows` may have one more, which is not printed: it shows that there are more.
 */
export function printList<Row>(
  io: Io,
  { json }: Answering,
  list: { things: string; fields: Fields<Row>; rows: readonly Row[]; max: number },
): void {
  const { things, fields, max } = list;
  const rows = list.rows.slice(0, max);
  const hasMore = list.rows.length > max;
  if (json) {
    io.out(JSON.stringify({ [things]: rows.map((row) => toObject(fields, row)), hasMore }));
    return;
  }
  const words = things.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  if (rows.length === 0) io.note(`no ${words}`);
  else for (const line of formatTable(fields, rows, io.columns)) io.out(line);
  if (hasMore) io.note(`there are more ${words} than these ${max}; --limit shows more`);
}
