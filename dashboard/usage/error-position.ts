/** Position of an error in a query, as in "Line 2, column 7: …". Line and column are counted from 1; a column counts code points. */
export interface ErrorPosition {
  readonly line: number;
  readonly column: number;
  /** Error message without the position. */
  readonly message: string;
}

export function errorPosition(detail: string): ErrorPosition | undefined {
  const [, line, column, message] = /^Line (\d+), column (\d+): ([\s\S]*)$/.exec(detail) ?? [];
  if (line === undefined || column === undefined || message === undefined) return undefined;
  return { line: Number(line), column: Number(column), message };
}

/** Returns the offset of the position in UTF-16 units; the end of the text if the position is beyond it. */
export function offsetOf(text: string, { line, column }: Pick<ErrorPosition, "line" | "column">): number {
  const lines = text.split("\n");
  if (line > lines.length) return text.length;
  const before = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  const within = Array.from(lines[line - 1] ?? "")
    .slice(0, column - 1)
    .join("").length;
  return before + within;
}
