import { alignedArrays } from "../postgres/arrays.ts";
import { invalidQuery } from "../problem.ts";
import { commonType } from "../resolve/common-type.ts";
import { call, type ResolvedExpression } from "../resolve/resolved.ts";
import { typeText, UINT8 } from "../resolve/types.ts";
import { ANY, ARRAY, checked, type Docs, type ScalarFunction } from "./entry.ts";

/** Tests membership in an array. The searched values may have another type than the elements if one of the types includes the other. */
const membership = (
  name: "has" | "hasAny" | "hasAll",
  docs: Docs,
  sql: (array: string, other: string) => string,
): ScalarFunction => ({
  docs,
  resolve: (called) => {
    const args = checked(called, [ARRAY, name === "has" ? ANY : ARRAY]);
    const [array, other] = args as [ResolvedExpression, ResolvedExpression];
    const elementsOf = ({ type }: ResolvedExpression) => (type.name === "Array" ? type.of : type);
    // `has` searches for a single element. In an array of strings, it therefore rejects an array as the searched value.
    if (commonType([elementsOf(array), name === "has" ? other.type : elementsOf(other)]) === undefined) {
      throw invalidQuery(`${typeText(array.type)} cannot have ${typeText(other.type)}`, called.span);
    }
    return call(name, args, UINT8, called.span, false);
  },
  isCondition: true,
  postgres: (call, writer) => sql(...alignedArrays(call, writer)),
});

export const ARRAY_FUNCTIONS: Readonly<Record<string, ScalarFunction>> = {
  has: membership(
    "has",
    ["has(tags, 'x')", "1 if the array has the element, otherwise 0."],
    (array, element) => `(${element} = any (${array}))`,
  ),
  hasAny: membership(
    "hasAny",
    ["hasAny(tags, ['x', 'y'])", "1 if the array has one of the elements, otherwise 0."],
    (array, other) => `(${array} && ${other})`,
  ),
  hasAll: membership(
    "hasAll",
    ["hasAll(tags, ['x', 'y'])", "1 if the array has all elements, otherwise 0."],
    (array, other) => `(${array} @> ${other})`,
  ),
  /** `resolve/expressions.ts` resolves this function and `arrayFilter`, because they change the scope. */
  arrayJoin: { docs: ["arrayJoin(tags)", "One row per element; no row for an empty array."] },
  arrayFilter: { docs: ["arrayFilter(t -> t != 'x', tags)", "Array of the elements that meet the condition."] },
};
