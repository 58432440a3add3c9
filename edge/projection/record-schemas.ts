import * as z from "zod";
import { PolicyRecord } from "../../core/policies/stored-policy.ts";
import {
  ApiRecord,
  IdentityRecord,
  KeyRecord,
  NamespaceRecord,
  OverridePatternsRecord,
  OverrideRecord,
  RECORD_FORMAT_VERSION,
  RoleRecord,
  WorkspaceRecord,
} from "../../core/records.ts";
import type { RecordKind } from "../records.ts";

export const RECORD_SCHEMAS = {
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

/**
 * Validates data from a store to which others can write, including other versions. Error messages omit the values. `isLater`: a newer
 * version wrote the record in a format that this version cannot interpret.
 */
export function readRecordData(
  kind: RecordKind,
  data: unknown,
): { success: true; value: unknown } | { success: false; problem: string; isLater?: true } {
  const format = formatVersionOf(data);
  if (format !== undefined && !(typeof format === "number" && Number.isInteger(format) && format >= 1)) {
    return { success: false, problem: "its format is no version" };
  }
  if (format !== undefined && format > RECORD_FORMAT_VERSION) {
    const problem = `format ${format} is not known here, where ${RECORD_FORMAT_VERSION} is the highest`;
    return { success: false, problem, isLater: true };
  }
  const read = RECORD_SCHEMAS[kind].safeParse(data);
  if (read.success) return { success: true, value: read.data };
  const [issue] = read.error.issues;
  return { success: false, problem: `${issue?.path.join(".") || "the whole"}: ${issue?.code ?? "invalid"}` };
}

const formatVersionOf = (data: unknown): unknown =>
  typeof data === "object" && data !== null ? (data as { formatVersion?: unknown }).formatVersion : undefined;
