import type { Data, Procedure } from "../../../core/api/procedures.ts";

export type RootKeyDetails = Data<"admin.getRootKey">;
export type RootKey = Data<"admin.listRootKeys">[number];

/** Procedures whose cached responses become stale when a root key changes. */
export const SHOWN_BY: readonly Procedure[] = ["admin.listRootKeys", "admin.getRootKey"];

export const nameOf = ({ name, rootKeyId }: Pick<RootKey, "name" | "rootKeyId">): string => name ?? rootKeyId;

/** Returns the word for a state. The API calls an enabled root key active. */
export const stateWord = (state: RootKey["state"]) => (state === "active" ? "enabled" : state);

const FINDINGS: Readonly<Record<RootKey["findings"][number]["kind"], string>> = {
  old: "older than 90 days",
  never_used: "never used",
  expired: "expired",
  expiring: "expires soon",
  unused_permissions: "unused permissions",
  too_wide: "broader than used",
};

export const findingText = ({ kind }: RootKey["findings"][number]): string => FINDINGS[kind];
