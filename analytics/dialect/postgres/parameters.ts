import type { Type } from "../resolve/types.ts";
import { typeName } from "./type-names.ts";

/**
 * Collects the parameters of a statement. Equal values share one parameter, so that equal expressions have equal SQL, as GROUP BY requires.
 */
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

  /** Adds a Date, DateTime or DateTime64 in Postgres syntax. */
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
