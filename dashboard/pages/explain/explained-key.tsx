import { Link } from "@tanstack/react-router";
import { Fragment, type ReactNode } from "react";
import type { Data, Input } from "../../../core/api/procedures.ts";
import { useRead } from "../../api/queries.ts";
import { Ago } from "../../components/ago.tsx";
import { Badge } from "../../components/badge.tsx";
import { DetailList } from "../../components/detail-list.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { durationText } from "../../components/time.ts";

type Explained = Data<"admin.explainVerification">;

const STEP_TITLES: Readonly<Record<Explained["steps"][number]["step"], string>> = {
  path: "Path",
  rule: "Rule",
  attempts: "Failed attempts",
  stale: "Age of the gates' data",
  found: "Found",
  api: "API",
  workspace: "Workspace",
  enabled: "Enabled",
  ofApi: "API matches",
  expiry: "Expiry",
  address: "Address",
  permissions: "Permissions",
  limits: "Rate limits",
  credits: "Credits",
};

const STORE_WORDS = {
  found: "has it",
  gone: "has none",
  missing: "does not have the key",
  unreadable: "has an unreadable record",
  away: "does not respond",
} as const;

/** Shows the decision that a verification of this key would make now, with every step. */
export function ExplainedKey({ body }: { body: Input<"admin.explainVerification"> }): ReactNode {
  const { data, error, refetch, isPending } = useRead("admin.explainVerification", body);
  if (error !== null) return <ErrorNote error={error} doing="Explaining the key" again={() => void refetch()} />;
  if (isPending || data === undefined) return <p className="muted">Evaluating the steps …</p>;
  const { code, status, steps, limits, permissions, credits, stores } = data;
  const isGood = code === "VALID" || code === "ANONYMOUS";
  return (
    <section className="explained" aria-label="Result for a request now">
      <h2>
        Now: <Badge kind={isGood ? "good" : code === "UNKNOWN" ? "warn" : "bad"}>{code}</Badge>{" "}
        <span className="muted">
          {status} at a gate, decided <Ago atMs={data.now} />
        </span>
      </h2>
      {data.mode === "Audit" && !isGood && (
        <p>The policy is in mode Audit: the gate admits the request and only counts the rejection.</p>
      )}
      <ol className="steps" aria-label="Steps">
        {steps.map(({ step, result, decisive, detail, sources }) => (
          <li key={step} className={decisive ? "step step-decisive" : "step"}>
            <Badge kind={result === "passed" ? "good" : result === "refused" ? "bad" : "warn"}>{result}</Badge>
            <span className="step-name">{STEP_TITLES[step]}</span>
            <span>
              {detail}
              {decisive && !isGood && <strong> This step decides.</strong>}
              <span className="muted">
                {" "}
                <Sources sources={sources} />
              </span>
            </span>
          </li>
        ))}
      </ol>
      {limits.length > 0 && <Limits limits={limits} />}
      {permissions.heldCount + permissions.needed.length > 0 && <Permissions permissions={permissions} />}
      <DetailList
        facts={[
          ...(data.keyId === undefined
            ? []
            : [
                [
                  "Key",
                  <Link key="key" to="/keys/$keyId" params={{ keyId: data.keyId }}>
                    <code>{data.keyId}</code>
                  </Link>,
                ] as const,
              ]),
          ...(data.keyName === undefined ? [] : [["Name", data.keyName] as const]),
          ...(data.externalId === undefined ? [] : [["Owner", data.externalId] as const]),
          ...(data.rule === undefined ? [] : [["Rule", ruleText(data.rule, steps)] as const]),
          ...(credits === undefined
            ? []
            : [["Credits", `${credits.remaining} remaining, cost ${credits.cost}`] as const]),
          ["Postgres", storeText(stores.postgres)],
          ["Gates", `${storeText(stores.gates)}${sameText(stores)}`],
          [
            "Data of this server",
            stores.stalenessMs < 0 ? "age not known" : `at most ${durationText(stores.stalenessMs)} old`,
          ],
        ]}
      />
    </section>
  );
}

/** Shows the sources of a step: `role editor, at most 850ms old`. */
function Sources({ sources }: { sources: Explained["steps"][number]["sources"] }): ReactNode {
  const agesMs = sources.map(({ ageMs }) => ageMs);
  const age = agesMs.some((ageMs) => ageMs < 0)
    ? "age not known"
    : `at most ${durationText(Math.max(0, ...agesMs))} old`;
  return (
    <>
      {sources.map(({ kind, id, name }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: two sources, such as counters, may have the same kind and id.
        <Fragment key={index}>
          {index > 0 && ", "}
          {kind}{" "}
          {kind === "api" ? (
            <Link to="/apis/$apiId" params={{ apiId: id }}>
              {name ?? id}
            </Link>
          ) : (
            (name ?? id)
          )}
        </Fragment>
      ))}
      : {age}
    </>
  );
}

/** Names the rule as its step does: `rule 2 of 3 (refund)`. */
const ruleText = (rule: number, steps: Explained["steps"]): string =>
  rule === -2
    ? "none: the gate rejects the path"
    : (steps.find(({ step }) => step === "rule")?.observed ?? `rule ${rule + 1}`);

const storeText = ({ state, version, problem }: Explained["stores"]["gates"]): string =>
  [STORE_WORDS[state], version ? `version ${version}` : "", problem ?? ""].filter(Boolean).join(", ");

const sameText = ({ isSame, gates }: Explained["stores"]): string =>
  gates.state === "found" || gates.state === "gone"
    ? isSame
      ? ", the same as Postgres"
      : ", older than in Postgres"
    : "";

function Limits({ limits }: { limits: Explained["limits"] }): ReactNode {
  return (
    <table className="plain-table">
      <caption>Limits</caption>
      <thead>
        <tr>
          <th scope="col">Limit</th>
          <th scope="col">Of</th>
          <th scope="col">Used</th>
          <th scope="col">Costs</th>
          <th scope="col">Would be</th>
        </tr>
      </thead>
      <tbody>
        {limits.map(({ name, namespace = name, source, identifier, limit, duration, cost, used, passed, override }) => (
          <tr key={`${source} ${name} ${identifier}`}>
            <th scope="row">{namespace}</th>
            <td>
              {source} {identifier}
              {override !== undefined && ` (override ${override.identifier}, instead of ${override.limitBefore})`}
            </td>
            <td>
              {used} of {limit} in {durationText(duration)}
            </td>
            <td>{cost}</td>
            <td>{passed ? "admitted" : "rejected"}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Permissions({
  permissions: { needed, held, heldCount },
}: {
  permissions: Explained["permissions"];
}): ReactNode {
  return (
    <details>
      <summary>
        Permissions: {needed.length} required, {heldCount} held
      </summary>
      <ul className="plain-list">
        {needed.map(({ slug, isHeld, by: [first] }) => (
          <li key={slug}>
            <Badge kind={isHeld ? "good" : "bad"}>{isHeld ? "held" : "missing"}</Badge> <code>{slug}</code>
            {first !== undefined && first.slug !== slug && (
              <>
                {" "}
                as <code>{first.slug}</code>
              </>
            )}
          </li>
        ))}
        {held.map(({ slug, isDirect, roles }) => (
          <li key={`held ${slug}`}>
            <code>{slug}</code>{" "}
            <span className="muted">
              {[...(isDirect ? ["held directly"] : []), ...roles.map((role) => `by role ${role}`)].join(", ")}
            </span>
          </li>
        ))}
      </ul>
      {held.length < heldCount && <p className="muted">The first {held.length} are shown.</p>}
    </details>
  );
}
