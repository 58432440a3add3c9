import { useMay } from "../../api/session.ts";

/** Returns why the person may not do what needs a tuple; undefined when it may. */
export function useNeeds(): (tuple: string) => string | undefined {
  const may = useMay();
  return (tuple) =>
    may(tuple) ? undefined : `Your role lacks ${tuple}. An admin of the workspace can give you a role that has it.`;
}
