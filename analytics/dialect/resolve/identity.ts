import type { ResolvedExpression } from "./resolved.ts";
import { childrenOf } from "./subexpressions.ts";
import { typeText } from "./types.ts";

/** Assigns numbers to expressions. Structurally equal expressions have the same number, independent of their position in the text. */
export class Identities {
  readonly #known = new WeakMap<object, number>();
  readonly #numbers = new Map<string, number>();

  of(expression: ResolvedExpression): number {
    const known = this.#known.get(expression);
    if (known !== undefined) return known;
    const said = JSON.stringify([...this.#own(expression), childrenOf(expression).map((child) => this.of(child))]);
    const number = this.#numbers.get(said) ?? this.#numbers.size;
    this.#numbers.set(said, number);
    this.#known.set(expression, number);
    return number;
  }

  /** Returns the properties of an expression besides its children. */
  #own(expression: ResolvedExpression): readonly unknown[] {
    const { kind, type } = expression;
    switch (kind) {
      case "literal":
        return [kind, typeof expression.value, String(expression.value), typeText(type)];
      case "column":
        return [kind, expression.source, expression.index];
      case "call":
        return [kind, expression.name, typeText(type)];
      case "aggregate":
        return [kind, expression.name, expression.parameters, expression.distinct, expression.filter !== undefined];
      case "window": {
        const { name, parameters, filter, partitionBy, orderBy, frame } = expression;
        const orders = orderBy.map(({ descending, nullsFirst }) => [descending, nullsFirst]);
        return [kind, name, parameters, filter !== undefined, partitionBy.length, orders, frameText(frame)];
      }
      case "cast":
        return [kind, typeText(type)];
      case "in":
        return [kind, expression.negated, Array.isArray(expression.of) ? "list" : this.#object(expression.of)];
      case "subquery":
        return [kind, expression.exists, this.#object(expression.body)];
      case "arrayJoin":
        return [kind, expression.index];
      case "arrayFilter":
        return [kind, expression.variable];
      case "variable":
        return [kind, expression.number];
    }
  }

  /** Numbers a subquery, which equals only itself. */
  #object(object: object): number {
    const number = this.#known.get(object) ?? this.#numbers.size;
    this.#numbers.set(`object ${number}`, number);
    this.#known.set(object, number);
    return number;
  }
}

const frameText = (frame: unknown): string =>
  JSON.stringify(frame ?? null, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value));
