import { invalidQuery } from "../problem.ts";
import type { Literal } from "../resolve/resolved.ts";
import type { Type } from "../resolve/types.ts";
import { isDate } from "../resolve/types.ts";
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

/** Emits a literal as a parameter, so that no text from the caller becomes SQL. */
export function literalSql({ value, type, span }: Literal, parameters: Parameters): string {
  if (value === null) return "null::text";
  switch (typeof value) {
    case "boolean":
      // Adds a cast to the parameter. Without it, GROUP BY and ORDER BY would reject the bare constant.
      return `${value}::boolean`;
    case "bigint":
      if (value >= 2n ** 63n) throw invalidQuery("whole numbers from 2^63 on are not supported", span);
      return parameters.bigint(value);
    case "number":
      return parameters.float(value);
    case "string":
      if (isDate(type)) return parameters.timestamp(value, type);
      if (value.includes("\0")) throw invalidQuery("a string with a zero byte is not supported", span);
      return parameters.text(value);
  }
}
