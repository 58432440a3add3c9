import { useMay } from "../api/session.ts";

/** Returns why the person may not do what needs all of some tuples; undefined when it may. For `unusable` of a button. */
export function useRequired(): (...tuples: readonly string[]) => string | undefined {
  const may = useMay();
  return (...tuples) => {
    const lacking = tuples.filter((tuple) => !may(tuple));
    if (lacking.length === 0) return undefined;
    return `Your role lacks ${lacking.join(" and ")}. An admin of the workspace can give you a role that has it.`;
  };
}
