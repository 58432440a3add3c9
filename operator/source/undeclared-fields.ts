import { KubeError } from "../runtime/kube-client.ts";

/*
 * Status fields that the cluster's CRDs do not declare, because the CRDs are older than this operator. The API server rejects a server-side
 * apply that contains such a field, so the operator omits these fields and writes the rest of the status.
 */

export interface UndeclaredFields {
  /** Returns the status without the fields known to be undeclared. */
  without(kind: string, status: object): object;
  /** Records the undeclared fields that the error names. Returns whether there are new ones. */
  note(kind: string, error: unknown): boolean;
}

/** Interval after which undeclared fields are written again, because the CRDs may have been upgraded. */
const FORGOTTEN_MS = 600_000;

const UNDECLARED = /\.status\.([A-Za-z0-9.]+): field not declared in schema/g;

export function createUndeclaredFields(nowMs: () => number = Date.now): UndeclaredFields {
  const byKind = new Map<string, Map<string, number>>();
  const fieldsOf = (kind: string): Map<string, number> => {
    const fields = byKind.get(kind) ?? new Map<string, number>();
    byKind.set(kind, fields);
    for (const [field, atMs] of fields) if (nowMs() - atMs > FORGOTTEN_MS) fields.delete(field);
    return fields;
  };
  return {
    without: (kind, status) => {
      const fields = fieldsOf(kind);
      if (fields.size === 0) return status;
      const copy = structuredClone(status) as Record<string, unknown>;
      for (const field of fields.keys()) remove(copy, field.split("."));
      return copy;
    },
    note: (kind, error) => {
      if (!(error instanceof KubeError)) return false;
      const fields = fieldsOf(kind);
      const before = fields.size;
      for (const [, field = ""] of error.message.matchAll(UNDECLARED))
        if (!fields.has(field)) fields.set(field, nowMs());
      return fields.size > before;
    },
  };
}

function remove(from: Record<string, unknown>, [name = "", ...rest]: readonly string[]): void {
  if (rest.length === 0) delete from[name];
  else if (typeof from[name] === "object" && from[name] !== null) remove(from[name] as Record<string, unknown>, rest);
}
