import { execFileSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, test } from "vitest";

/*
 * One thing has one name: these terms were replaced, and none may come back. A retired word is searched for in paths, identifiers (split at
 * capitals, dashes and underscores) and prose; a retired name, such as that of a flag or a metric, is searched for as it is written.
 */

const ROOT = resolve(import.meta.dirname, "../..");

interface Retired {
  readonly term: string;
  readonly instead: string;
  /** Files that may contain the term, because it means something else there. */
  readonly except?: readonly string[];
}

const WORDS: readonly Retired[] = [
  { term: "attendance", instead: "activity" },
  { term: "behaviour", instead: "behavior" },
  { term: "centre", instead: "control plane, or center" },
  { term: "colour", instead: "color", except: ["cli/command.test.ts"] },
  { term: "crowded", instead: "at capacity" },
  { term: "departed", instead: "stale" },
  { term: "door", instead: "ext-auth endpoint" },
  { term: "doors", instead: "ext-auth endpoints" },
  { term: "foreseen", instead: "expected" },
  { term: "lobby", instead: "startup server" },
  { term: "ongoing", instead: "in flight" },
  { term: "outdone", instead: "overridden, shadowed" },
  { term: "overshot", instead: "over-admitted, exceeded" },
  { term: "recognise", instead: "recognize" },
  { term: "seeker", instead: "waiter" },
];

const NAMES: readonly Retired[] = [
  { term: "--answer-wait", instead: "--upstream-response-timeout" },
  { term: "--answer-idle", instead: "--upstream-idle-timeout" },
  { term: "--events-idle", instead: "--stream-idle-timeout" },
  { term: "--body-idle", instead: "--client-body-timeout" },
  { term: "--body-rate", instead: "--client-body-min-rate" },
  { term: "--upstream-connections", instead: "--max-upstream-requests" },
  { term: "--address-share", instead: "--max-client-share" },
  { term: "--authorize-listen", instead: "--ext-auth-http-listen" },
  { term: "--makes-users", instead: "--allow-user-management" },
  { term: "postern decide", instead: "postern simulate" },
  { term: "postern managed", instead: "postern ownership" },
  { term: "/pod-ends", instead: "/drain" },
  { term: "departed_total", instead: "stale_decisions_total" },
  { term: "turned_away_total", instead: "ext_auth_rejected_total" },
  { term: "rate_limits_total", instead: "rate_limit_requests_total" },
  { term: "clickhouse_trouble", instead: "clickhouse_degraded" },
  { term: "relay_marks_total", instead: "relay_changes_total" },
  { term: "store-away", instead: "redis_unavailable" },
  { term: "postgres-away", instead: "postgres_unavailable" },
  { term: "PosternChangesAreLate", instead: "PosternPropagationDelayed" },
  { term: "PosternNoRelay", instead: "PosternRelayDown" },
  { term: "PosternPodsAreUnguarded", instead: "PosternUnguardedPods" },
  { term: "PosternLimitsOvershot", instead: "PosternLimitsExceeded" },
  { term: "CountersAway", instead: "CountersUnavailable" },
  { term: "oldestLagMs", instead: "maxStalenessMs" },
  { term: "adopt: match", instead: "adopt: Match" },
  { term: "adopt: override", instead: "adopt: Override" },
  { term: "1/pods", instead: "PerPod" },
  { term: "dashboard.groups", instead: "dashboard.groupRoles" },
  { term: "topologySpread", instead: "topologySpreadConstraints" },
  { term: "test:rights", instead: "test:rbac" },
  { term: "unlessHeld", instead: "onlyIfUnused" },
  { term: "awaySince", instead: "unavailableSince" },
  { term: "predecessorEnds", instead: "predecessorExpiresAt" },
  { term: "answerMib", instead: "maxResponseMib" },
  { term: "nameObjects", instead: "resolveNames" },
  { term: "SecretNotOurs", instead: "SecretNotOwned" },
  { term: "managed_elsewhere", instead: "managed_by_manifest" },
  { term: "sign_in_refused", instead: "sign_in_failed" },
  { term: "upstream_invalid_answer", instead: "upstream_invalid_response" },
];

/** Returns each retired term that the text has, once. */
function findRetired(text: string): Retired[] {
  const words = new Set(
    text
      .replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2")
      .replaceAll(/([A-Z])([A-Z][a-z])/g, "$1 $2")
      .toLowerCase()
      .split(/[^a-z]+/),
  );
  return [
    ...WORDS.filter(({ term }) => words.has(term)),
    ...NAMES.filter(({ term }) => new RegExp(`(?<![\\w-])${term}(?![\\w-])|(?<=_)${term}\\b`).test(text)),
  ];
}

const TEXT =
  /\.(?:ts|tsx|mjs|md|json|ya?ml|tpl|lua|sql|css|html|conf|go|py|sh|txt)$|(?:^|\/)(?:Makefile|Dockerfile|run)$/;
/** Lock files and records of captured bytes have words of their own. */
const FOREIGN = /^package-lock\.json$|^test\/docs\/terminology\.test\.ts$/;
const BYTES_MAX = 2_000_000;

test("project uses no retired term", () => {
  const listed = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
    cwd: ROOT,
    encoding: "utf8",
    maxBuffer: 16 * 1024 * 1024,
  });
  const paths = listed.split("\n").filter((path) => TEXT.test(path) && !FOREIGN.test(path));
  expect(paths.length).toBeGreaterThan(1000);
  const found = paths.flatMap((path) => {
    const file = resolve(ROOT, path);
    const stats = statSync(file, { throwIfNoEntry: false });
    if (stats === undefined || stats.size > BYTES_MAX) return [];
    return findRetired(`${path}\n${readFileSync(file, "utf8")}`)
      .filter(({ except = [] }) => !except.some((prefix) => path.startsWith(prefix)))
      .map(({ term, instead }) => `${path} has "${term}": write ${instead}`);
  });
  expect(found).toEqual([]);
});

describe("retired terms", () => {
  test.each([
    { text: "const extAuthDoor = 1;", terms: ["door"] },
    { text: "TLS_DOOR_LIMITS", terms: ["door"] },
    { text: "a colour and two Doors", terms: ["colour", "doors"] },
    { text: "outdoor, indoors, multicolour", terms: [] },
    { text: "run postern decide --as x", terms: ["postern decide"] },
    { text: "postern decides nothing", terms: [] },
    { text: "postern_sidecar_departed_total", terms: ["departed", "departed_total"] },
    { text: "PosternNoRelays", terms: [] },
    { text: "alert: PosternNoRelay", terms: ["PosternNoRelay"] },
  ])("terminology check finds $terms in: $text", ({ text, terms }) => {
    expect(
      findRetired(text)
        .map(({ term }) => term)
        .sort(),
    ).toEqual(terms.toSorted());
  });

  test("each exception of the terminology check is still needed", () => {
    const listed = execFileSync("git", ["ls-files"], { cwd: ROOT, encoding: "utf8", maxBuffer: 16 * 1024 * 1024 });
    const unused = [...WORDS, ...NAMES].flatMap(({ term, except = [] }) =>
      except.filter(
        (prefix) =>
          !listed
            .split("\n")
            .filter((path) => path.startsWith(prefix) && TEXT.test(path))
            .some((path) => {
              const found = findRetired(`${path}\n${readFileSync(resolve(ROOT, path), "utf8")}`);
              return found.some((one) => one.term === term);
            }),
      ),
    );
    expect(unused).toEqual([]);
  });
});

/** A schema, as far as its texts matter. */
interface Described {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Described>>;
}

test("chart value descriptions name their subject", () => {
  const schema = JSON.parse(readFileSync(resolve(ROOT, "charts/postern/values.schema.json"), "utf8")) as Described;
  const found: string[] = [];
  const visit = (path: string, { description = "", properties = {} }: Described): void => {
    if (
      path !== "" &&
      /^(?:(?:Of|Its|At|Which|How many[;.]|Where they|Likewise|Whether (?:there|they|it))\b)/.test(description)
    )
      found.push(`${path}: ${description}`);
    for (const [name, value] of Object.entries(properties)) visit(path === "" ? name : `${path}.${name}`, value);
  };
  visit("", schema);
  expect(Object.keys(schema.properties ?? {}).length).toBeGreaterThan(20);
  expect(found).toEqual([]);
});
