import type { Io } from "./command.ts";
import { type Fields, printable, printableJson, toObject } from "./fields.ts";
import { formatFields, formatTable, openTable } from "./table.ts";

/* Printers for the result of a command: JSON on one line with `--json`, otherwise text. */

interface Answering {
  readonly json: boolean;
}

/** Prints one resource. If `sentence` is set, the terminal shows it instead of the fields. */
export function printOne<Row>(
  io: Io,
  { json }: Answering,
  { fields, row, sentence }: { fields: Fields<Row>; row: Row; sentence?: string },
): void {
  if (json) io.out(printableJson(toObject(fields, row)));
  else if (sentence !== undefined) io.out(printable(sentence));
  else for (const line of formatFields(fields, row)) io.out(line);
}

/**
 * Prints at most `max` rows under the name `resources`. `rows` may have one extra row, which is not printed and shows that the list
 * continues.
 */
export function printList<Row>(
  io: Io,
  { json }: Answering,
  list: { resources: string; fields: Fields<Row>; rows: readonly Row[]; max: number },
): void {
  const { resources, fields, max } = list;
  const rows = list.rows.slice(0, max);
  const hasMore = list.rows.length > max;
  if (json) {
    io.out(printableJson({ [resources]: rows.map((row) => toObject(fields, row)), hasMore }));
    return;
  }
  const words = wordsOf(resources);
  if (rows.length === 0) io.note(`no ${words}`);
  else for (const line of formatTable(fields, rows, io.columns)) io.out(line);
  if (hasMore) io.note(`only the first ${max} ${words} are shown; increase --limit for more`);
}

/** Returns a member name as words: `rateLimits` becomes `rate limits`. */
const wordsOf = (resources: string): string => resources.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

export interface Page<Row> {
  readonly rows: readonly Row[];
  /** Cursor of the next page; `undefined` on the last page. */
  readonly next: string | undefined;
}

/** Prints a list page by page, so that only one page is in memory. */
export async function printPages<Row>(
  io: Io,
  { json }: Answering,
  list: { resources: string; fields: Fields<Row>; pages: AsyncIterable<Page<Row>> },
): Promise<void> {
  const { resources, fields, pages } = list;
  const table = openTable(fields, io.columns);
  const write = io.write ?? io.out;
  let isBegun = false;
  let shown = 0;
  let next: string | undefined;
  for await (const page of pages) {
    if (json) {
      const objects = page.rows.map((row) => printableJson(toObject(fields, row)));
      // Writes nothing before the first page arrives, so that a failed call prints no partial result.
      if (!isBegun) write(`{"${resources}":[`);
      write(`${shown > 0 && objects.length > 0 ? "," : ""}${objects.join(",")}`);
      isBegun = true;
    } else if (page.rows.length > 0) for (const line of table(page.rows)) io.out(line);
    shown += page.rows.length;
    next = page.next;
  }
  if (json) {
    io.out(`],"hasMore":${next !== undefined},"cursor":${printableJson(next ?? null)}}`);
    return;
  }
  const words = wordsOf(resources);
  if (shown === 0) io.note(`no ${words}`);
  if (next !== undefined)
    io.note(
      printable(`only ${shown} ${words} are shown; use --all for all, or --cursor ${shellWord(next)} to continue`),
    );
}

/** Quotes text from a server as one shell word, because people paste suggested commands into a shell. */
const shellWord = (text: string): string =>
  /^[\w.:=+@%/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/**
 * Prints a secret that is shown only once. Standard output contains only the secret, without a newline if it is a pipe or a file. Notes go
 * to standard error.
 */
export function printSecret(io: Io, secret: string): void {
  if (io.columns === undefined && io.write !== undefined) io.write(secret);
  else io.out(printable(secret));
}
