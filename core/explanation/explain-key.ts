import { type CheckName, ipAllowed, KEY_CHECKS, type KeyCheck } from "../verification/check-key.ts";
import type { Code } from "../verification/codes.ts";
import type { ChargePlan } from "../verification/plan-charges.ts";
import { explainLimits, limitsStep } from "./explain-limits.ts";
import { explainPermissions, permissionSources, permissionsStep } from "./explain-permissions.ts";
import { uncountedCredits } from "./explain-uncounted.ts";
import type {
  ExplainedCredits,
  ExplainedKey,
  ExplainedPermissions,
  RecordedVerification,
  SeenCounts,
  Source,
  Step,
} from "./shapes.ts";
import { keySource, requestSource, said, UNANSWERED, UNKNOWN_AGE, type Undecided } from "./step.ts";

/** Explains a key that was found. The first step is named `found`. */
export function explainKey(seen: RecordedVerification): ExplainedKey {
  const { check, plan, counted } = seen;
  const permissions = explainPermissions(check.view, typeof check.query === "string" ? undefined : check.query);
  const limits = typeof plan === "string" || counted === undefined ? [] : explainLimits(seen, plan, counted);
  const credits = typeof plan === "string" ? undefined : explainCredits(plan, counted);
  const steps = [
    foundStep(seen),
    ...KEY_CHECKS.flatMap(({ name, refuses }) => checkStep(seen, name, refuses, permissions)),
    limitsStep(seen, limits),
    creditsStep(seen, credits),
  ];
  return { steps: markDeciding(steps, seen), permissions, limits, ...(credits === undefined ? {} : { credits }) };
}

/** Returns the only step of a key that was not found, or that the caller may not see. */
export const notFoundStep = (detail: string, ageMs: number, isUnknown: boolean): Step => ({
  step: "found",
  result: isUnknown ? "skipped" : "refused",
  decisive: true,
  observed: isUnknown ? "not known" : "none",
  detail,
  sources: [{ kind: "key", id: "", ageMs }],
});

/**
 * Marks the step that determined the code: the first one that rejects the key. If the code is `UNKNOWN`, marks the first required step that
 * has no result.
 */
function markDeciding(steps: readonly Undecided[], { code, uncounted }: RecordedVerification): Step[] {
  const isDesired = ({ step, result, observed }: Undecided): boolean =>
    result === "skipped" && observed === UNANSWERED && (step !== "limits" || uncounted?.onCounterFailure === "Deny");
  const decisive = (step: Undecided): boolean =>
    code === "UNKNOWN" ? isDesired(step) : code !== "VALID" && step.result === "refused";
  const at = steps.findIndex(decisive);
  return steps.map((step, i) => ({ ...step, decisive: i === at }));
}

const foundStep = ({ check, recordsAgeMs }: RecordedVerification): Undecided => ({
  ...said("found", true, check.view.key.keyId, `The key ${check.view.key.keyId} was found.`),
  sources: [keySource(check, recordsAgeMs)],
});

function checkStep(
  { check, recordsAgeMs: ageMs }: RecordedVerification,
  name: CheckName,
  refuses: (check: KeyCheck) => Code | undefined,
  permissions: ExplainedPermissions,
): Undecided[] {
  const { view, apiId, clientIp, query } = check;
  const { key, api, workspace } = view;
  // Omits the step about the API if the request names no API, because most callers see only keys of their own API anyway.
  if (name === "ofApi" && apiId === undefined) return [];
  if (name === "permissions" && typeof query === "string") {
    return [{ ...said(name, "skipped", "", query), sources: [requestSource] }];
  }
  const passed = refuses({ ...check, query: typeof query === "string" ? undefined : query }) === undefined;
  const ofKey = [keySource(check, ageMs)];
  const ofApi: Source[] = [{ kind: "api", id: key.apiId, ...(api === undefined ? {} : { name: api.name }), ageMs }];
  switch (name) {
    case "api": {
      const detail = passed ? `Its API is ${api?.name ?? ""} (${key.apiId}).` : "Its API was deleted.";
      return [{ ...said(name, passed, passed ? key.apiId : "deleted", detail), sources: ofApi }];
    }
    case "workspace": {
      const state = passed ? "enabled" : "disabled";
      const sources: Source[] = [{ kind: "workspace", id: workspace.id, ageMs }];
      return [{ ...said(name, passed, state, `The workspace is ${state}.`), sources }];
    }
    case "enabled": {
      const state = passed ? "enabled" : "disabled";
      return [{ ...said(name, passed, state, `The key is ${state}.`), sources: ofKey }];
    }
    case "ofApi": {
      const detail = passed ? "The key is of this API." : "The key is of another API.";
      return [{ ...said(name, passed, key.apiId, detail), sources: ofKey }];
    }
    case "expiry": {
      if (key.expiresMs === undefined)
        return [{ ...said(name, passed, "never", "The key never expires."), sources: ofKey }];
      const at = new Date(key.expiresMs).toISOString();
      return [{ ...said(name, passed, at, `The key ${passed ? "expires" : "expired"} at ${at}.`), sources: ofKey }];
    }
    case "address":
      return [{ ...addressStep(api?.ipAllowList, clientIp, passed), sources: [...ofApi, requestSource] }];
    case "permissions":
      return [{ ...permissionsStep(permissions, passed), sources: permissionSources(check, permissions, ageMs) }];
  }
}

function addressStep(
  list: readonly string[] | undefined,
  clientIp: string | undefined,
  passed: boolean,
): Omit<Undecided, "sources"> {
  if (list === undefined || list.length === 0) {
    return said("address", passed, clientIp ?? "", "The API allows every address.");
  }
  if (clientIp === undefined) {
    return said(
      "address",
      "skipped",
      "",
      "The API has an allow-list; the client's address is not known, so it is not checked.",
    );
  }
  if (!passed) return said("address", false, clientIp, `${clientIp} is not on the allow-list of the API.`);
  const entry = list.find((one) => ipAllowed([one], clientIp));
  return said(
    "address",
    true,
    clientIp,
    `${clientIp} is on the allow-list of the API, by ${entry ?? "an entry of it"}.`,
  );
}

function explainCredits({ credits }: ChargePlan, counted: SeenCounts | undefined): ExplainedCredits | undefined {
  const outcome = counted?.consumed.credits;
  if (credits === undefined || outcome === undefined || outcome.status === "unknown") return undefined;
  const { remaining } = outcome;
  if (remaining === undefined) return undefined;
  const { cost } = credits;
  if (outcome.status === "spent") return { remaining: remaining + cost, cost, passed: true };
  return { remaining, cost, passed: outcome.status === "unreached" && cost <= remaining };
}

function creditsStep(
  { check, plan, recordsAgeMs, uncounted, policy }: RecordedVerification,
  credits: ExplainedCredits | undefined,
): Undecided {
  const ofKey = [keySource(check, recordsAgeMs)];
  const { limited, keyId } = check.view.key;
  if (!limited) return { ...said("credits", true, "", "The key has unlimited credits."), sources: ofKey };
  if (typeof plan === "string") return { ...said("credits", "skipped", "", plan), sources: [requestSource] };
  if (plan.credits === undefined) {
    return { ...said("credits", true, "0", "The request spends no credits."), sources: ofKey };
  }
  if (credits !== undefined) {
    const detail = `${credits.remaining} credits are left, the request costs ${credits.cost}.`;
    const sources: Source[] = [{ kind: "credits", id: keyId, ageMs: 0 }];
    return { ...said("credits", credits.passed, String(credits.remaining), detail), sources };
  }
  const sources: Source[] = [{ kind: "credits", id: keyId, ageMs: UNKNOWN_AGE }];
  if (uncounted !== undefined) {
    return uncountedCredits({ uncounted, policy }, sources);
  }
  return {
    ...said("credits", true, "unlimited", "The key has had unlimited credits since its record was read."),
    sources,
  };
}
