import { useEffect, useMemo, useState } from "react";
import type { Data, Input } from "../../core/api/procedures.ts";
import { useRead } from "./queries.ts";

export type Named = Data<"admin.resolveNames">[number];

/** Maximum number of ids in one call. */
const IDS_MAX = 200;

/**
 * Returns the names of objects by id; an API can also be given by its key space id. If the list of ids grows, only new ids are looked up.
 */
export function useNames(kind: Input<"admin.resolveNames">["kind"], ids: readonly string[]) {
  const [known, setKnown] = useState<ReadonlyMap<string, Named | undefined>>(new Map());
  const unknown = useMemo(
    () => [...new Set(ids)].filter((id) => id !== "" && !known.has(id)).slice(0, IDS_MAX),
    [ids, known],
  );
  const { data } = useRead("admin.resolveNames", { kind, ids: [...unknown] }, { enabled: unknown.length > 0 });
  useEffect(() => {
    if (data === undefined || unknown.length === 0) return;
    const found = (id: string) => data.find((named) => named.id === id || named.keySpaceId === id);
    setKnown((before) => new Map([...before, ...unknown.map((id) => [id, found(id)] as const)]));
  }, [data, unknown]);
  return known;
}
