import type { PublicTable } from "../../tables.ts";
import { invalidQuery } from "../problem.ts";
import type { ArrayJoin, Expression, Identifier, Name, Span, Star, Window } from "../tree.ts";
import { Identities } from "./identity.ts";
import type { ArrayJoinReference, ColumnReference, ResolvedArrayJoin, ResolvedExpression } from "./resolved.ts";
import { type Type, typeText } from "./types.ts";

/** Table, CTE or subquery of a FROM, as seen by name lookup. */
export interface VisibleSource {
  readonly id: number;
  /** Valid qualifiers of a column name: the alias, and the name of a table. */
  readonly names: readonly string[];
  readonly columns: readonly { readonly name: string; readonly type: Type }[];
  readonly table: PublicTable | undefined;
}

/** Column merged by USING: one name for the columns of both sides. */
export interface MergedColumn {
  readonly name: string;
  readonly expression: ResolvedExpression;
  /** Columns of the joined tables that are merged. `*` lists only the merged column. */
  readonly of: readonly ColumnReference[];
}

export interface Alias {
  readonly expression: Expression;
  readonly span: Span;
}

const shown = (name: Name): string => name.parts.map(({ text }) => text).join(".");

/**
 * Name scope of one SELECT. An alias hides a column of the same name, except directly within the alias's definition, where the name refers
 * to the column. Circular aliases are rejected.
 */
export class Scope {
  readonly #sources: readonly VisibleSource[];
  readonly #merged: readonly MergedColumn[];
  readonly #aliases: ReadonlyMap<string, Alias>;
  readonly #constants: ReadonlyMap<string, () => ResolvedExpression>;
  readonly #windows: ReadonlyMap<string, Window>;
  readonly #resolved = new Map<string, ResolvedExpression>();
  readonly #open: string[] = [];
  readonly #arrayJoins: ResolvedArrayJoin[] = [];
  #element: { readonly name: string; readonly reference: ArrayJoinReference } | undefined;
  readonly identities = new Identities();

  constructor(named: {
    readonly sources: readonly VisibleSource[];
    readonly merged: readonly MergedColumn[];
    readonly aliases: ReadonlyMap<string, Alias>;
    /** Named expressions from the WITH of enclosing queries. */
    readonly constants: ReadonlyMap<string, () => ResolvedExpression>;
    readonly windows: ReadonlyMap<string, Window>;
  }) {
    this.#sources = named.sources;
    this.#merged = named.merged;
    this.#aliases = named.aliases;
    this.#constants = named.constants;
    this.#windows = named.windows;
  }

  /** ARRAY JOIN, and the distinct operands of `arrayJoin` found so far. */
  get arrayJoins(): readonly ResolvedArrayJoin[] {
    return this.#arrayJoins;
  }

  /**
   * Resolves a name. Calls `resolve` for the definition of an alias.
   * @throws QueryProblem for an unknown name.
   */
  find(name: Name, resolve: (expression: Expression) => ResolvedExpression): ResolvedExpression {
    const [first, ...more] = name.parts;
    if (first && more.length === 0) {
      if (this.#open.slice(0, -1).includes(first.text)) {
        throw invalidQuery(`the alias ${first.text} leads back to itself`, name.span);
      }
      const aliased = this.#alias(first.text, resolve);
      if (aliased) return aliased;
    }
    const column = this.column(name);
    if (column) return column;
    const constant = more.length === 0 ? this.#constants.get(shown(name)) : undefined;
    if (constant) return constant();
    throw invalidQuery(`there is no column ${shown(name)} here`, name.span);
  }

  /** Resolves an expression with an inline alias. */
  define(alias: string, resolve: () => ResolvedExpression): ResolvedExpression {
    const known = this.#resolved.get(alias);
    if (known) return known;
    this.#open.push(alias);
    try {
      const resolved = resolve();
      this.#resolved.set(alias, resolved);
      return resolved;
    } finally {
      this.#open.pop();
    }
  }

  /** Looks up a column of the FROM, ignoring aliases. */
  column(name: Name): ResolvedExpression | undefined {
    const parts = name.parts.map(({ text }) => text);
    const [last] = parts.slice(-1);
    if (this.#element && parts.length === 1 && last === this.#element.name)
      return { ...this.#element.reference, span: name.span };
    if (parts.length === 1) {
      const merged = this.#merged.find((column) => column.name === last);
      if (merged) return merged.expression;
    }
    if (parts.length > 2 || last === undefined) return undefined;
    const from =
      parts.length === 2 ? this.#sources.filter(({ names }) => names.includes(parts[0] ?? "")) : this.#sources;
    // The first source that has the column takes precedence, as in ClickHouse.
    for (const source of from) {
      const index = source.columns.findIndex((column) => column.name === last);
      if (index >= 0) return columnOf(source, index, name.span);
    }
    return undefined;
  }

  /** Returns the names and columns of `*` or `t.*`. */
  star({ of, span }: Star): readonly { readonly name: string; readonly expression: ResolvedExpression }[] {
    const from = of ? this.#sources.filter(({ names }) => names.includes(of.text)) : this.#sources;
    if (from.length === 0) throw invalidQuery(`there is no table ${of?.text} here`, span);
    const merged = of ? [] : this.#merged;
    const isMerged = (source: VisibleSource, index: number) =>
      merged.some((column) => column.of.some((one) => one.source === source.id && one.index === index));
    return [
      ...merged.map(({ name, expression }) => ({ name, expression })),
      ...from.flatMap((source) =>
        source.columns.flatMap((_, index) =>
          isMerged(source, index)
            ? []
            : [{ name: this.#nameOf(source, index), expression: columnOf(source, index, span) }],
        ),
      ),
    ];
  }

  /**
   * Returns a column name in the form that ClickHouse uses in the name of an expression: qualified only if an earlier table has a column of
   * the same name.
   */
  written(name: Name): string {
    const [first, second] = name.parts;
    if (!first || (!second && this.#aliases.has(first.text))) return shown(name);
    const column = this.column(name);
    const source = this.#sources.find(({ id }) => column?.kind === "column" && id === column.source);
    if (!second || column?.kind !== "column" || !source) return shown(name);
    if (this.#aliases.has(second.text)) return shown(name);
    return this.#nameOf(source, column.index);
  }

  window({ text, span }: Identifier): Window {
    const window = this.#windows.get(text);
    if (!window) throw invalidQuery(`there is no window ${text}`, span);
    return window;
  }

  /** Registers an ARRAY JOIN. Equal operands are expanded once. */
  arrayJoin(operand: ResolvedExpression, span: Span): ArrayJoinReference {
    const element = elementOf(operand, "arrayJoin");
    const same = this.identities.of(operand);
    const known = this.#arrayJoins.findIndex(
      (other) => other.by === "function" && this.identities.of(other.operand) === same,
    );
    const index = known >= 0 ? known : this.#arrayJoins.push({ operand, by: "function" }) - 1;
    return { kind: "arrayJoin", index, type: element, span };
  }

  /** Makes the element of the ARRAY JOIN visible under its name. */
  joinArray({ left, alias: { text, span } }: ArrayJoin, operand: ResolvedExpression): void {
    if (this.#sources.some(({ columns }) => columns.some(({ name }) => name === text)))
      throw invalidQuery(`${text} is a column: the element of ARRAY JOIN needs another name`, span);
    const index = this.#arrayJoins.push({ operand, by: left ? "left" : "inner" }) - 1;
    this.#element = {
      name: text,
      reference: { kind: "arrayJoin", index, type: elementOf(operand, "ARRAY JOIN"), span },
    };
  }

  #alias(name: string, resolve: (expression: Expression) => ResolvedExpression): ResolvedExpression | undefined {
    const alias = this.#aliases.get(name);
    if (!alias || this.#open.includes(name)) return undefined;
    return this.define(name, () => resolve(alias.expression));
  }

  #nameOf(source: VisibleSource, index: number): string {
    const name = source.columns[index]?.name ?? "";
    // With two tables, columns of the first one are unqualified. With more tables, an ambiguous name is always qualified.
    const others =
      this.#sources.length > 2
        ? this.#sources.filter((other) => other !== source)
        : this.#sources.slice(0, this.#sources.indexOf(source));
    const hidden = others.some(({ columns }) => columns.some((column) => column.name === name));
    return hidden && source.names[0] !== undefined ? `${source.names[0]}.${name}` : name;
  }
}

export function columnOf(source: VisibleSource, index: number, span: Span): ColumnReference {
  const column = source.columns[index];
  if (!column) throw new RangeError(`source ${source.id} has no column ${index}`);
  return { kind: "column", source: source.id, index, type: column.type, span };
}

function elementOf({ type, span }: ResolvedExpression, joined: string): Type {
  if (type.name !== "Array") throw invalidQuery(`${joined} takes an Array, not ${typeText(type)}`, span);
  if (type.of.name === "Nothing") throw invalidQuery(`${joined} takes an array of something, not []`, span);
  return type.of;
}
