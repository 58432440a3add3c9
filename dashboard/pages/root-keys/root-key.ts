import type { Data, Procedure } from "../../../core/api/procedures.ts";

export type RootKeyDetails = Data<"admin.getRootKey">;
export type RootKey = Data<"admin.listRootKeys">[number];

/** Procedures to read again after a change of a root key. */
export const SHOWN_BY: readonly Procedure[] = ["admin.listRootKeys", "admin.getRootKey"];

export const nameOf = ({ name, rootKeyId }: Pick<RootKey, "name" | "rootKeyId">): string => name ?? rootKeyId;

const FINDINGS: Readonly<Record<RootKey["findings"][number]["kind"], string>> = {
  old: "older than 90 days",
  never_used: "never used",
  expired: "expired",
  expiring: "expires soon",
  unused_permissions: "unused permissions",
  too_wide: "wider than used",
};

export const findingText = ({ kind }: RootKey["findings"][number]): string => FINDINGS[kind];
