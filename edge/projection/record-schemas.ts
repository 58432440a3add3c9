import * as z from "zod";
import { PolicyRecord } from "../../core/policies/stored-policy.ts";
import {
  ApiRecord,
  IdentityRecord,
  KeyRecord,
  NamespaceRecord,
  OverridePatternsRecord,
  OverrideRecord,
  RoleRecord,
  WorkspaceRecord,
} from "../../core/verification/records.ts";
import type { RecordKind } from "./contract.ts";

const SCHEMAS = {
  key: KeyRecord,
  identity: IdentityRecord,
  role: RoleRecord,
  api: ApiRecord,
  workspace: WorkspaceRecord,
  namespace: NamespaceRecord,
  override: OverrideRecord,
  overridePatterns: OverridePatternsRecord,
  policy: PolicyRecord,
  namespaceName: NamespaceRecord,
  rootKey: z.unknown(),
} satisfies Record<RecordKind, z.ZodType>;

/** Checks what was read from a store that others write to. What is wrong is said without the values. */
export function readRecordData(
  kind: RecordKind,
  data: unknown,
): { success: true; value: unknown } | { success: false; problem: string } {
  const read = SCHEMAS[kind].safeParse(data);
  if (read.success) return { success: true, value: read.data };
  const [issue] = read.error.issues;
  return { success: false, problem: `${issue?.path.join(".") || "the whole"}: ${issue?.code ?? "invalid"}` };
}
