import type { ResolvedExpression } from "../resolve/resolved.ts";

/** Returns whether a float can be NaN. Stored floats are never NaN. */
export function mayBeNaN(expression: ResolvedExpression): boolean {
  if (expression.type.name !== "Float64") return false;
  switch (expression.kind) {
    case "literal":
      return Number.isNaN(expression.value);
    case "call":
      if (expression.name === "divide")
        return !isOrdinary(expression.arguments[1]) || expression.arguments.some(mayBeNaN);
      if (expression.name === "toFloat64") return expression.arguments.some(mayBeNaN);
      return true;
    default:
      return true;
  }
}

/** Returns whether division of a finite number by this divisor yields neither infinity nor NaN. */
function isOrdinary(divisor: ResolvedExpression | undefined): boolean {
  return divisor?.kind === "literal" && Number(divisor.value) !== 0 && Number.isFinite(Number(divisor.value));
}
