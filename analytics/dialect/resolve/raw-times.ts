import type { ResolvedBody, ResolvedExpression } from "./resolved.ts";
import type { VisibleSource } from "./scope.ts";

/**
 * Tracks which expressions are the `time` of a raw table in ms, even through subqueries, `min` and `max`. The resolver converts dates that
 * are compared with such expressions.
 */
export class RawTimes {
  readonly #sources = new Map<number, { readonly source: VisibleSource; readonly body: ResolvedBody | undefined }>();

  /** Assigns an id to a source and stores the source. */
  add(source: Omit<VisibleSource, "id">, body: ResolvedBody | undefined): VisibleSource {
    const numbered = { ...source, id: this.#sources.size };
    this.#sources.set(numbered.id, { source: numbered, body });
    return numbered;
  }

  readonly has = (expression: ResolvedExpression): boolean => {
    if (expression.kind === "aggregate" && ["min", "max", "any"].includes(expression.name)) {
      return expression.arguments.some(this.has);
    }
    if (expression.kind !== "column") return false;
    const { source, body } = this.#sources.get(expression.source) ?? {};
    if (body) {
      const columns = columnsOf(body, expression.index);
      return columns.length > 0 && columns.every(this.has);
    }
    return source?.table?.bucket === undefined && source?.columns[expression.index]?.name === "time";
  };
}

/** Returns the expression of a column in each SELECT of a body. */
function columnsOf(body: ResolvedBody, index: number): readonly ResolvedExpression[] {
  if (body.kind === "set") return [...columnsOf(body.left, index), ...columnsOf(body.right, index)];
  const column = body.columns[index];
  return column ? [column] : [];
}
