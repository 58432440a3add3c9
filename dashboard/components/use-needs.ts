import { useMay } from "../api/session.ts";

/**
 * Returns a function that computes the `unusable` property of a button: the reason why the person must not perform an action that requires
 * all given tuples; `undefined` if the person has all of them.
 */
export function useRequired(): (...tuples: readonly string[]) => string | undefined {
  const may = useMay();
  return (...tuples) => {
    const lacking = tuples.filter((tuple) => !may(tuple));
    if (lacking.length === 0) return undefined;
    return `Your role lacks ${lacking.join(" and ")}. An admin of the workspace can assign you a role with this permission.`;
  };
}
