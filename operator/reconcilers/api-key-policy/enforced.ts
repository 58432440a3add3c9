import type { ApiKeyPolicyStatus } from "../../../core/manifests/api-key-policy.ts";
import type { Condition } from "../../../core/manifests/conditions.ts";
import { GUARDED_LABEL } from "../../pods/pod.ts";
import type { FurtherCondition } from "../plan.ts";
import { type DataPlane, NEVER_HEARD_MS, type ObservedPolicy } from "./observed.ts";
import type { Pace } from "./poll-pace.ts";
import { targetPortOf } from "./selection.ts";

const NAMES_MAX = 20;

type AtPods = Partial<Pick<ObservedPolicy, "object" | "selected" | "named" | "heard">>;

/** Returns the condition Enforced: whether every selected pod has a gate and every gate has reported the current policy. */
export function enforced(
  dataPlane: DataPlane | undefined,
  observed: AtPods = {},
): FurtherCondition & { readonly type: "Enforced" } {
  const { selected } = observed;
  const is = (status: FurtherCondition["status"], reason: FurtherCondition["reason"], message: string) =>
    ({ type: "Enforced", status, reason, message }) as const;
  const {
    guarded = 0,
    unguarded = [],
    outdated = [],
    unlabelled = 0,
    isNamespaceGuarded,
  } = typeof selected === "object" ? selected : {};
  if (unguarded.length > 0) {
    const all = guarded + unguarded.length;
    const message = `${unguarded.length} of the ${all} running pods of spec.selector have no gate of this policy: their requests are not checked. Restart them, so that they get a gate; an Event lists their names.`;
    const names = unguarded.slice(0, NAMES_MAX).join(", ");
    const more = unguarded.length > NAMES_MAX ? ` and ${unguarded.length - NAMES_MAX} more` : "";
    return {
      ...is("False", "UnguardedPods", message),
      note: `These pods have no gate of this policy: ${names}${more}.`,
    };
  }
  if (outdated.length > 0) {
    const message = `The gates of ${outdated.length} of the ${guarded} running pods forward to another port or by another protocol than the changed spec.target: ${namesOf(outdated)}. Restart these pods.`;
    return is("False", "PodsOutdated", message);
  }
  if (dataPlane === undefined) return is("Unknown", "ReportsUnavailable", "The reports of the gates cannot be read.");
  const { pods, updated } = dataPlane;
  const silent = silentOf(dataPlane, observed);
  if (silent.lost !== undefined) return is("False", "PodsSilent", silent.lost);
  if (pods === 0) return is("False", "NoPods", "No gate has reported this policy recently.");
  if (dataPlane.unsupported !== undefined)
    return is("False", "UnsupportedFormat", unsupportedMessage(dataPlane.unsupported, pods));
  if (updated < pods) {
    return is("False", "Progressing", `${updated} of ${pods} gates enforce this generation; the others will follow.`);
  }
  if (silent.count > 0) {
    const message = `${silent.of - silent.count} of the ${silent.of} running pods with a gate have reported; ${silent.names}.`;
    return is("False", "Progressing", message);
  }
  const elsewhere = forwardingElsewhere(dataPlane, observed);
  if (elsewhere > 0) {
    const message = `${elsewhere} of ${pods} gates forward to another port than spec.target.port: they started before the port was changed, or with another upstream. Restart their pods.`;
    return is("False", "PodsOutdated", message);
  }
  if (selected === "unknown") {
    const message =
      "The pods of spec.selector cannot be listed: the operator requires permission to list and watch pods.";
    return is("Unknown", "PodsUnavailable", message);
  }
  const all = pods === 1 ? "The only gate enforces this generation." : `All ${pods} gates enforce this generation.`;
  return is(
    "True",
    "Succeeded",
    unlabelled === 0 ? all : `${all} ${unlabelledMessage(unlabelled, isNamespaceGuarded === undefined)}`,
  );
}

const SHOWN_MAX = 5;

function namesOf(names: readonly string[]): string {
  const more = names.length > SHOWN_MAX ? ` and ${names.length - SHOWN_MAX} more` : "";
  return `${names.slice(0, SHOWN_MAX).join(", ")}${more}`;
}

interface Silent {
  readonly count: number;
  /** Number of running pods with a gate. */
  readonly of: number;
  readonly names: string;
  /** Message about pods that have stopped reporting; `undefined` if there are none. */
  readonly lost: string | undefined;
}

/**
 * Returns the running pods whose gate has not reported. Injected gates are compared by name. By number alone, the report of a deleted pod,
 * which counts for a few more seconds, would hide that a new pod has not reported. Manually deployed gates may report under any name, so
 * only their number is compared.
 */
function silentOf({ pods, podIds = [] }: DataPlane, { selected, named = [], heard = new Map() }: AtPods): Silent {
  const { guarded, expected } = typeof selected === "object" ? selected : { guarded: named.length, expected: named };
  const others = "the others will follow";
  // The API returns no pod names if there are too many.
  if (podIds.length === 0 && pods > 0) {
    return { count: Math.max(0, guarded - pods), of: guarded, names: others, lost: undefined };
  }
  const reported = new Set(podIds);
  const silent = expected.filter((name) => !reported.has(name));
  const byHand = Math.max(0, guarded - expected.length - (reported.size - (expected.length - silent.length)));
  const count = silent.length + byHand;
  const shortOf = (name: string) => name.slice(name.indexOf("/") + 1);
  const shown = silent.slice(0, SHOWN_MAX).map(shortOf);
  const lost = silent.flatMap((name) => {
    const atMs = heard.get(name);
    return atMs === undefined ? [] : [`${shortOf(name)} (last report at ${new Date(atMs).toISOString()})`];
  });
  return {
    count,
    of: guarded,
    names: shown.length === 0 ? others : `not ${shown.join(", ")}${shown.length === count ? "" : " and others"}`,
    lost:
      lost.length === 0
        ? undefined
        : `The gates of ${lost.length} of the ${guarded} running pods no longer report: ${namesOf(lost)}. It is unknown whether they enforce the policy: check their logs, and delete pods that hang.`,
  };
}

/** Returns the number of gates that report another port of the app than the policy has. Used for gates whose pod does not show the port. */
function forwardingElsewhere({ upstreamPorts = [] }: DataPlane, { selected, object }: AtPods): number {
  const port = object && targetPortOf(object);
  const isKnown = typeof selected === "object" && selected.own.every(({ gate }) => gate?.guards !== undefined);
  if (typeof port !== "number" || isKnown) return 0;
  return upstreamPorts.reduce((sum, reported) => (reported.port === port ? sum : sum + reported.pods), 0);
}

function unlabelledMessage(count: number, mayHave: boolean): string {
  const which = `${count} of the pods ${count === 1 ? "does" : "do"} not have the label ${GUARDED_LABEL}: "true"`;
  return mayHave
    ? `${which}. Unless their Namespace has the label, such pods start without a gate.`
    : `${which}, and neither does their Namespace: such pods start without a gate.`;
}

const unsupportedMessage = ({ pods: older, reason }: NonNullable<DataPlane["unsupported"]>, pods: number): string =>
  `${older} of ${pods} gates cannot enforce this generation and keep the previous one: ${reason}. Upgrade the gates, or remove the fields that their release does not support.`;

/**
 * Returns the condition Unsupported, which is True if sidecars of an older version cannot enforce the stored policy. Returns `undefined` if
 * this is unknown or has never happened, so most policies never have the condition.
 */
export function unsupported(
  dataPlane: DataPlane | undefined,
  { previous }: { previous: readonly Condition[] },
): FurtherCondition | undefined {
  if (dataPlane === undefined) return undefined;
  if (dataPlane.unsupported !== undefined) {
    const message = unsupportedMessage(dataPlane.unsupported, dataPlane.pods);
    return { type: "Unsupported", status: "True", reason: "UnsupportedFormat", message, alerts: true };
  }
  if (!previous.some(({ type }) => type === "Unsupported")) return undefined;
  const message = "All gates support this generation.";
  return { type: "Unsupported", status: "False", reason: "Succeeded", message, alerts: true };
}

const LAG_STEP_MS = 5_000;

/**
 * Returns the data plane for the status. The lag is rounded up to 5 s, so that its normal variation causes no status writes; an infinite
 * lag is omitted.
 */
export function toDataPlaneStatus(
  dataPlane: DataPlane | undefined,
  observed: AtPods = {},
): ApiKeyPolicyStatus["dataPlane"] {
  if (dataPlane === undefined) return undefined;
  const { selected } = observed;
  const { count: silent } = silentOf(dataPlane, observed);
  const { pods, updated, maxStalenessMs, unsupported: older, overAdmitted } = dataPlane;
  const counts = {
    pods,
    updated,
    ...(typeof selected === "object" ? { unguarded: selected.unguarded.length } : {}),
    ...(silent === 0 ? {} : { silent }),
    ...(older === undefined ? {} : { unsupported: older.pods }),
    ...(overAdmitted === undefined
      ? {}
      : { overAdmittedUnits: overAdmitted.units, overAdmittedPercent: overAdmitted.percent }),
  };
  if (maxStalenessMs >= NEVER_HEARD_MS) return counts;
  return { ...counts, maxStalenessMs: Math.ceil(maxStalenessMs / LAG_STEP_MS) * LAG_STEP_MS };
}

const SOON_MS = 2_000;
const FOLLOWING_MS = 1_000;

/**
 * Returns how often to poll the reports: frequently while pods are expected to start or to catch up, and then at growing intervals, because
 * pods may be absent intentionally and a sidecar may never catch up. Returns `undefined` if no change is expected. `previous` is the
 * condition in the current status.
 */
export function paceOf(
  { type, status, reason }: FurtherCondition,
  { previous, nowMs }: { previous: readonly Condition[]; nowMs: number },
): Pace | undefined {
  // Only the cluster, and not the reports, shows whether pods have a gate, so polling the reports would not help.
  if (status !== "False" || reason === "UnguardedPods" || reason === "PodsOutdated") return undefined;
  const known = previous.find((one) => one.type === type);
  const isSame = known?.status === status && known.reason === reason;
  return {
    soonMs: reason === "Progressing" ? FOLLOWING_MS : SOON_MS,
    sinceMs: isSame ? Date.parse(known.lastTransitionTime) : nowMs,
  };
}
