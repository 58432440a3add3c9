import { limitText } from "../../components/limit-draft.ts";
import { dayText } from "../../components/time.ts";
import { andText, namesText } from "../../components/uses.ts";
import { expiresOf, type KeyDraft } from "./key-draft.ts";

interface Named {
  /** API of the key; `undefined` while none is chosen. */
  readonly api: { readonly name: string; readonly defaultPrefix?: string | undefined } | undefined;
  /** Slugs of the permissions that do not exist yet. */
  readonly newPermissions: readonly string[];
  /** Whether the owner does not exist yet. */
  readonly isNewOwner: boolean;
}

/** Describes the key that a valid draft creates: "A key for payments, owned by acme, …, expires on Feb 26, 2027." */
export function outcomeOf(draft: KeyDraft, { api, newPermissions, isNewOwner }: Named): string {
  const { externalId, roles, permissions } = draft;
  const name = draft.name.trim();
  const prefix = draft.prefix.trim() || api?.defaultPrefix;
  const grants = [
    ...(roles.length === 0 ? [] : [namesText(roles, "role", "roles")]),
    ...(permissions.length === 0 ? [] : [namesText(permissions, "permission", "permissions")]),
  ];
  const phrases = [
    `A${draft.enabled ? "" : " disabled"} key${name === "" ? "" : ` named “${name}”`}${api === undefined ? "" : ` for ${api.name}`}`,
    ...(externalId === "" ? [] : [`owned by ${externalId}`]),
    grants.length === 0 ? "without permissions" : `with ${andText(grants)}`,
    limitsText(draft),
    creditsText(draft),
    expiryText(draft),
    ...(prefix === undefined ? [] : [`starting with ${prefix}_…`]),
    ...(draft.recoverable ? ["stored so that it can be read later"] : []),
  ].filter((phrase) => phrase !== "");
  const created = [
    ...(isNewOwner ? [`the identity ${externalId}`] : []),
    ...(newPermissions.length === 0 ? [] : [namesText(newPermissions, "permission", "permissions")]),
  ];
  const also = created.length === 0 ? "" : ` Also creates ${andText(created)}.`;
  return `${phrases.join(", ")}.${also}`;
}

function limitsText({ limits }: KeyDraft): string {
  const texts = limits.flatMap(({ limit, duration }) =>
    limit === undefined || duration === undefined ? [] : [limitText(limit, duration)],
  );
  return texts.length === 0 ? "without a limit" : andText(texts);
}

function creditsText({ credits, refill, refillAmount, refillDay }: KeyDraft): string {
  if (credits.trim() === "") return "";
  const added =
    refill === "none"
      ? ""
      : ` and ${refillAmount || "?"} more ${refill === "daily" ? "each day" : `on day ${refillDay} of each month`}`;
  return `${credits.trim()} credits${added}`;
}

function expiryText({ expires }: KeyDraft): string {
  const atMs = expiresOf(expires);
  if (atMs === undefined || atMs === "wrong") return "never expires";
  return `expires on ${dayText(atMs)}`;
}
