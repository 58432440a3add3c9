/*
 * The state of a key after each of its changes, and which of those states a verification may reflect. Changes of one key are
 * sent one after another, and none after one whose outcome is unknown.
 */

/** `plain` keys are changed; of the others only the credits change. */
export type KeyKind = "plain" | "limited" | "credited";

export interface KeyState {
  readonly exists: boolean;
  readonly enabled: boolean;
  readonly expired: boolean;
  /** Holds the permission for the guarded path. */
  readonly permitted: boolean;
  /** Increases with each note. */
  readonly note: number;
}

export const ABSENT: KeyState = { exists: false, enabled: true, expired: false, permitted: false, note: 0 };

export type Change =
  | { readonly kind: "create"; readonly permitted: boolean }
  | { readonly kind: "enable" | "disable" | "expire" | "unexpire" | "permit" | "forbid" | "delete" | "purge" }
  | { readonly kind: "note"; readonly note: number };

export function applyChange(state: KeyState, change: Change): KeyState {
  switch (change.kind) {
    case "create":
      return { ...ABSENT, exists: true, permitted: change.permitted };
    case "enable":
    case "disable":
      return { ...state, enabled: change.kind === "enable" };
    case "expire":
    case "unexpire":
      return { ...state, expired: change.kind === "expire" };
    case "permit":
    case "forbid":
      return { ...state, permitted: change.kind === "permit" };
    case "note":
      return { ...state, note: change.note };
    case "delete":
    case "purge":
      return ABSENT;
  }
}

/** A change that was sent and not refused. */
export interface SentChange {
  /** Its id in the audit log. */
  readonly id: string;
  readonly change: Change;
  /** The api-server that received it. */
  readonly via: string;
  readonly sentMs: number;
  /** undefined: no reply, so it may have happened, or may still happen. */
  readonly acknowledgedMs: number | undefined;
}

/** Of a key, or of what grants a permission to many keys: a role, or the permission itself until it is deleted. */
export interface History {
  /** The name of the key, role or permission. */
  readonly key: string;
  readonly workspace: string;
  readonly changes: readonly SentChange[];
}

/** The result of a verification, as far as api-servers and sidecars report the same. */
export type Verdict = "valid" | "refused" | "forbidden";

/** Which permission a verification requires: none, the one that a key may hold itself or by a role, or one that all keys hold. */
export type Needs = "none" | "own" | "shared";

/** `granted`: whether the role or permission grants it. */
export function expectedVerdict(state: KeyState, { needs, granted }: { needs: Needs; granted: boolean }): Verdict {
  if (!state.exists || !state.enabled || state.expired) return "refused";
  const isPermitted = needs === "none" || granted || (needs === "own" && state.permitted);
  return isPermitted ? "valid" : "forbidden";
}

/** A state with the change that led to it (undefined: the key did not exist) and the one that ended it. */
export interface Era {
  readonly state: KeyState;
  readonly begun: SentChange | undefined;
  readonly ended: SentChange | undefined;
}

export function eras({ changes }: History): Era[] {
  let state = ABSENT;
  const result: Era[] = [{ state, begun: undefined, ended: changes[0] }];
  for (const [at, begun] of changes.entries()) {
    state = applyChange(state, begun.change);
    result.push({ state, begun, ended: changes[at + 1] });
  }
  return result;
}

export interface Asked {
  readonly process: string;
  readonly sentMs: number;
  readonly answeredMs: number;
  /** The process had reported before the verification that it had all changes up to then; -Infinity when it had not. */
  readonly knewUpToMs: number;
}

/**
 * Returns the eras that the reply may reflect: begun before it was given, and not known to be over. The process that acknowledged a
 * change knows it at once; the others know it when they report that they have all changes up to its acknowledgement.
 */
export function admissibleEras(history: History, asked: Asked): Era[] {
  return eras(history).filter(({ begun, ended }) => {
    if (begun !== undefined && begun.sentMs > asked.answeredMs) return false;
    if (ended?.acknowledgedMs === undefined) return true;
    if (ended.via === asked.process && ended.acknowledgedMs < asked.sentMs) return false;
    return ended.acknowledgedMs >= asked.knewUpToMs;
  });
}
