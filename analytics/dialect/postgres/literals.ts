import { invalidQuery } from "../problem.ts";
import type { Literal } from "../resolve/resolved.ts";
import { isDate } from "../resolve/types.ts";
import type { Parameters } from "./parameters.ts";

/** Emits a literal as a parameter, so that no text from the caller becomes SQL. */
export function literalSql({ value, type, span }: Literal, parameters: Parameters): string {
  if (value === null) return "null::text";
  switch (typeof value) {
    case "boolean":
      // Has a cast because GROUP BY and ORDER BY reject a bare constant.
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
