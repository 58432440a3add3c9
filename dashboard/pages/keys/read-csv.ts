/** A row of a CSV text, with its line number. */
export interface CsvRow {
  /** Line number of the row's first line, counted from 1. */
  readonly line: number;
  readonly cells: readonly string[];
}

/**
 * Parses CSV (RFC 4180) with any line ending. The separator is whichever of `,`, `;` and tab occurs most often outside quotes in the first
 * line. Lines without any text are omitted. A quote that is still open at the end of the text is closed there.
 */
export function readCsv(text: string): CsvRow[] {
  const source = text.startsWith("\uFEFF") ? text.slice(1) : text;
  const separator = separatorOf(source);
  const rows: CsvRow[] = [];
  let cells: string[] = [];
  let cell = "";
  let isQuoted = false;
  let line = 1;
  let firstLine = 1;
  const endRow = (): void => {
    cells.push(cell);
    if (cells.some((one) => one.trim() !== "")) rows.push({ line: firstLine, cells });
    cells = [];
    cell = "";
    firstLine = line;
  };
  for (let at = 0; at < source.length; at++) {
    const char = source.charAt(at);
    if (isQuoted) {
      if (char === "\n") line += 1;
      if (char !== '"') cell += char;
      else if (source.charAt(at + 1) === '"') {
        cell += '"';
        at += 1;
      } else isQuoted = false;
    } else if (char === '"' && cell === "") isQuoted = true;
    else if (char === separator) {
      cells.push(cell);
      cell = "";
    } else if (char === "\n" || char === "\r") {
      if (char === "\r" && source.charAt(at + 1) === "\n") at += 1;
      line += 1;
      endRow();
    } else cell += char;
  }
  endRow();
  return rows;
}

function separatorOf(source: string): string {
  const [head = ""] = source.replaceAll(/"(?:[^"]|"")*"/g, "").split(/[\r\n]/, 1);
  const counts = [",", ";", "\t"].map((separator) => ({ separator, count: head.split(separator).length }));
  return counts.reduce((best, one) => (one.count > best.count ? one : best)).separator;
}
