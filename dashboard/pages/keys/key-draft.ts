import type { Input, Schema } from "../../../core/api/procedures.ts";
import { parseCount } from "../../components/duration.ts";
import { readJsonObject } from "../../components/json-object.ts";
import { draftsOf, type LimitDraft, limitsOf, limitsProblem } from "../../components/limit-draft.ts";
import { localInput, readLocalInput, zoneName } from "../../components/time.ts";
import { namesText } from "../../components/uses.ts";

/* Form input for a key, and the request bodies made from it. */

export interface KeyDraft {
  readonly name: string;
  readonly externalId: string;
  /** Metadata as JSON; empty if none. */
  readonly meta: string;
  /** Expiry in the time zone of the browser, such as `2030-01-01T00:00`; empty if the key never expires. */
  readonly expires: string;
  readonly enabled: boolean;
  /** Number of credits; empty means unlimited. */
  readonly credits: string;
  readonly refill: "none" | "daily" | "monthly";
  readonly refillAmount: string;
  readonly refillDay: string;
  readonly limits: readonly LimitDraft[];
  /** Names of roles, for a new key. The roles of an existing key are changed one by one. */
  readonly roles: readonly string[];
  readonly permissions: readonly string[];
  readonly prefix: string;
  readonly byteLength: string;
  readonly recoverable: boolean;
}

export const EMPTY_DRAFT: KeyDraft = {
  name: "",
  externalId: "",
  meta: "",
  expires: "",
  enabled: true,
  credits: "",
  refill: "none",
  refillAmount: "",
  refillDay: "1",
  limits: [],
  roles: [],
  permissions: [],
  prefix: "",
  byteLength: "",
  recoverable: false,
};

type Key = Schema<"Key">;

export function draftOf(key: Omit<Key, "plaintext">): KeyDraft {
  const { credits, meta } = key;
  return {
    ...EMPTY_DRAFT,
    name: key.name ?? "",
    externalId: key.identity?.externalId ?? "",
    meta: meta === undefined ? "" : JSON.stringify(meta, null, 2),
    expires: key.expires === undefined ? "" : localInput(key.expires),
    enabled: key.enabled,
    credits: credits === undefined ? "" : String(credits.remaining),
    refill: credits?.refill?.interval ?? "none",
    refillAmount: credits?.refill === undefined ? "" : String(credits.refill.amount),
    refillDay: String(credits?.refill?.refillDay ?? 1),
    limits: draftsOf(key.ratelimits ?? []),
  };
}

/** Maximum numbers of roles and permissions in one request. */
const ROLES_MAX = 100;
const PERMISSIONS_MAX = 1000;

export type FieldProblems = { readonly [Field in keyof KeyDraft]?: string };

/** Returns the problems of the input by field. The server validates everything again. `missingRoles` lists the roles that do not exist. */
export function problemsOf(draft: KeyDraft, missingRoles: readonly string[] = []): FieldProblems {
  const isUnlimited = draft.credits.trim() === "";
  return {
    ...(metaOf(draft.meta) === "wrong" && { meta: 'A JSON object, such as {"plan": "pro"}.' }),
    ...expiresProblem(draft.expires),
    ...(!isUnlimited &&
      parseCount(draft.credits) === undefined && { credits: "An integer; empty for unlimited credits." }),
    ...(isUnlimited && draft.refill !== "none" && { credits: "A refill requires initial credits." }),
    ...(draft.refill !== "none" && !parseCount(draft.refillAmount) && { refillAmount: "An integer of at least 1." }),
    ...(draft.refill === "monthly" && !isDay(draft.refillDay) && { refillDay: "A day from 1 to 31." }),
    ...problemOf("limits", limitsProblem(draft.limits)),
    ...problemOf("roles", rolesProblem(draft.roles, missingRoles)),
    ...problemOf("permissions", permissionsProblem(draft.permissions)),
    ...(draft.byteLength.trim() !== "" &&
      !isByteLength(draft.byteLength) && { byteLength: "A number from 16 to 255." }),
  };
}

/** Returns the problem with a key's roles; `undefined` if there is none. The roles in `missing` do not exist. */
export function rolesProblem(roles: readonly string[], missing: readonly string[]): string | undefined {
  if (roles.length > ROLES_MAX) return `At most ${ROLES_MAX} roles.`;
  return missing.length === 0
    ? undefined
    : `Remove ${namesText(missing, "role", "roles")}: only existing roles can be added.`;
}

export const permissionsProblem = (permissions: readonly string[]): string | undefined =>
  permissions.length > PERMISSIONS_MAX ? `At most ${PERMISSIONS_MAX.toLocaleString("en")} permissions.` : undefined;

const problemOf = (field: keyof KeyDraft, problem: string | undefined): FieldProblems =>
  problem === undefined ? {} : { [field]: problem };

const isDay = (text: string): boolean => {
  const day = parseCount(text) ?? 0;
  return day >= 1 && day <= 31;
};
const isByteLength = (text: string): boolean => {
  const length = parseCount(text) ?? 0;
  return length >= 16 && length <= 255;
};

const metaOf = (text: string): Record<string, unknown> | undefined | "wrong" =>
  text.trim() === "" ? undefined : (readJsonObject(text) ?? "wrong");

export function expiresOf(text: string): number | undefined | "wrong" {
  if (text === "") return undefined;
  const ms = readLocalInput(text);
  return typeof ms === "number" ? ms : "wrong";
}

function expiresProblem(text: string): Pick<FieldProblems, "expires"> {
  if (expiresOf(text) !== "wrong") return {};
  const isSkipped = readLocalInput(text) === "skipped";
  return {
    expires: isSkipped ? `${zoneName()} skips this time: summer time begins. Choose a later one.` : "A date and time.",
  };
}

function creditsOf({ credits, refill, refillAmount, refillDay }: KeyDraft) {
  const remaining = parseCount(credits);
  if (remaining === undefined) return undefined;
  return { remaining, ...(refill === "none" ? {} : { refill: refillOf({ refill, refillAmount, refillDay }) }) };
}

const refillOf = ({ refill, refillAmount, refillDay }: Pick<KeyDraft, "refill" | "refillAmount" | "refillDay">) =>
  refill === "monthly"
    ? { interval: refill, amount: parseCount(refillAmount) ?? 0, refillDay: parseCount(refillDay) ?? 1 }
    : { interval: "daily" as const, amount: parseCount(refillAmount) ?? 0 };

/** Returns the body of `keys.createKey` for a valid draft. */
export function createBody(apiId: string, draft: KeyDraft): Input<"keys.createKey"> {
  const meta = metaOf(draft.meta);
  const expires = expiresOf(draft.expires);
  const credits = creditsOf(draft);
  const { roles, permissions } = draft;
  const byteLength = parseCount(draft.byteLength);
  return {
    apiId,
    enabled: draft.enabled,
    recoverable: draft.recoverable,
    ...(draft.prefix.trim() === "" ? {} : { prefix: draft.prefix.trim() }),
    ...(byteLength === undefined ? {} : { byteLength }),
    ...(draft.name.trim() === "" ? {} : { name: draft.name.trim() }),
    ...(draft.externalId.trim() === "" ? {} : { externalId: draft.externalId.trim() }),
    ...(meta === undefined || meta === "wrong" ? {} : { meta }),
    ...(expires === undefined || expires === "wrong" ? {} : { expires }),
    ...(credits === undefined ? {} : { credits }),
    ...(draft.limits.length === 0 ? {} : { ratelimits: limitsOf(draft.limits) }),
    ...(roles.length === 0 ? {} : { roles: [...roles] }),
    ...(permissions.length === 0 ? {} : { permissions: [...permissions] }),
  };
}

/** Returns the body of `keys.updateKey`: only the differences from `before`, so that concurrent changes to other fields are kept. */
export function updateBody(keyId: string, before: KeyDraft, draft: KeyDraft): Input<"keys.updateKey"> {
  const differs = (...fields: readonly (keyof KeyDraft)[]): boolean =>
    fields.some((field) => JSON.stringify(before[field]) !== JSON.stringify(draft[field]));
  const meta = metaOf(draft.meta);
  const expires = expiresOf(draft.expires);
  return {
    keyId,
    ...(differs("name") ? { name: draft.name.trim() || null } : {}),
    ...(differs("externalId") ? { externalId: draft.externalId.trim() || null } : {}),
    ...(differs("meta") && meta !== "wrong" ? { meta: meta ?? null } : {}),
    ...(differs("expires") && expires !== "wrong" ? { expires: expires ?? null } : {}),
    ...(differs("enabled") ? { enabled: draft.enabled } : {}),
    ...creditsChange(before, draft, differs),
    ...(differs("limits") ? { ratelimits: limitsOf(draft.limits) } : {}),
  };
}

/**
 * Returns the change of the credits. An unchanged number is not sent, because it would restore credits that the key has spent since the
 * form was opened.
 */
function creditsChange(
  before: KeyDraft,
  draft: KeyDraft,
  differs: (...fields: readonly (keyof KeyDraft)[]) => boolean,
): Pick<Input<"keys.updateKey">, "credits"> {
  const number = differs("credits");
  const refill = draft.refill === "none" ? before.refill !== "none" : differs("refill", "refillAmount", "refillDay");
  if (!number && !refill) return {};
  const remaining = parseCount(draft.credits);
  if (remaining === undefined) return { credits: null };
  return {
    credits: {
      ...(number ? { remaining } : {}),
      ...(refill ? { refill: draft.refill === "none" ? null : refillOf(draft) } : {}),
    },
  };
}
