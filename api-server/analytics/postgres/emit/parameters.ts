import type { Type } from "../../dialect/resolve/types.ts";
import { typeName } from "./type-names.ts";

/** The parameters of a statement. Equal values share one, so that equal expressions are equal texts: GROUP BY compares them. */
export class Parameters {
  readonly values: unknown[] = [];
  readonly #known = new Map<string, string>();

  text(value: string): string {
    return `(${this.#add("text", value)} collate "C")`;
  }

  textArray(values: readonly string[]): string {
    return `(${this.#add("text[]", values)} collate "C")`;
  }

  bigint(value: bigint): string {
    return this.#add("bigint", String(value));
  }

  bigintArray(values: readonly bigint[]): string {
    return this.#add("bigint[]", values.map(String));
  }

  float(value: number): string {
    return this.#add("double precision", Object.is(value, -0) ? "-0" : String(value));
  }

  /** A Date, DateTime or DateTime64 in Postgres's own form. */
  timestamp(value: string, type: Type): string {
    return this.#add(typeName(type), value);
  }

  #add(type: string, value: unknown): string {
    const key = `${type} ${JSON.stringify(value)}`;
    const known = this.#known.get(key) ?? `$${this.values.push(value)}::${type}`;
    this.#known.set(key, known);
    return known;
  }
}
