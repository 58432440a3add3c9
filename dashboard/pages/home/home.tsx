import { createLazyRoute, Link } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { type Row, usePages, useRead } from "../../api/queries.ts";
import { useNames } from "../../api/use-names.ts";
import { useNow } from "../../api/use-now.ts";
import { useUsage } from "../../api/use-usage.ts";
import { Ago } from "../../components/ago.tsx";
import { Badge } from "../../components/badge.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { OutcomesPlot } from "../../components/outcomes-plot.tsx";
import { Page } from "../../components/page.tsx";
import { plotSpacePx } from "../../components/plot.tsx";
import { lagText, ruleText, stateOf } from "../../components/policy-words.ts";
import { Skeleton } from "../../components/skeleton.tsx";
import { endOfDays } from "../../components/time.ts";
import { UsageOff } from "../../components/usage-off.tsx";
import { totalsText } from "../../usage/series.ts";
import { FirstSteps, useFirstSteps } from "./first-steps.tsx";
import "../../components/plain-table.css";
import "../../components/usage-panel.css";
import "./home.css";

export const Route = createLazyRoute("/")({ component: HomePage });

const POLL_INTERVAL_MS = 10_000;
const POLICIES_SHOWN_MAX = 5;
/** Maximum number of policies whose rules are read for the list of rejections. */
const REJECTING_POLICIES_MAX = 3;
const RULES_SHOWN_MAX = 3;
const EXPIRING_KEYS_MAX = 5;
const EXPIRING_POLL_MS = 15 * 60_000;
/** Height of the placeholder for a list that is being loaded. */
const LIST_PX = 110;

type Policy = Row<"admin.listPolicies">;

function HomePage(): ReactNode {
  const policies = usePages("admin.listPolicies", {}, { everyMs: POLL_INTERVAL_MS });
  const steps = useFirstSteps(policies.isLoading ? undefined : policies.rows.length > 0 || policies.error !== null);
  return (
    <Page title="Home" about="Gates, traffic, rejections and expiring keys of this workspace.">
      {steps === undefined ? <Skeleton heightPx={plotSpacePx()} /> : <FirstSteps steps={steps} />}
      {/* Hidden until it is known whether the first steps are shown above, so that nothing jumps. */}
      <div className="usage-panels" hidden={steps === undefined}>
        <Traffic />
        <section className="usage-panel" aria-labelledby="gates">
          <div className="usage-panel-head">
            <h2 id="gates">Gates</h2>
            <Link to="/policies">All policies</Link>
          </div>
          {policies.error !== null && (
            <ErrorNote error={policies.error} doing="Reading the policies" again={policies.again} />
          )}
          {policies.isLoading && <Skeleton heightPx={LIST_PX} />}
          {policies.readAtMs > 0 && <Gates policies={policies.rows} hasMore={policies.hasMore} />}
        </section>
        <section className="usage-panel" aria-labelledby="rejections">
          <div className="usage-panel-head">
            <h2 id="rejections">Most rejections</h2>
            <Link to="/usage">Usage</Link>
          </div>
          {policies.isLoading && <Skeleton heightPx={LIST_PX} />}
          {policies.readAtMs > 0 && <Rejections policies={policies.rows} />}
        </section>
        <ExpiringKeys />
      </div>
    </Page>
  );
}

function Traffic(): ReactNode {
  const usage = useUsage({}, "24h");
  const { outcomes } = usage;
  return (
    <section className="usage-panel usage-panel-wide" aria-labelledby="traffic">
      <div className="usage-panel-head">
        <h2 id="traffic">Verifications of the last 24 hours</h2>
        {outcomes !== undefined && <span className="muted">{totalsText(outcomes)}</span>}
      </div>
      {usage.isOff && <UsageOff />}
      {usage.error !== null && <ErrorNote error={usage.error} doing="Reading usage" again={usage.again} />}
      {usage.isLoading && <Skeleton heightPx={plotSpacePx()} />}
      {outcomes !== undefined && (
        <OutcomesPlot
          label="Verifications of the last 24 hours by outcome"
          outcomes={outcomes}
          countedUntilMs={usage.countedUntilMs}
        />
      )}
    </section>
  );
}

function ExpiringKeys(): ReactNode {
  const [nowMs] = useNow(EXPIRING_POLL_MS);
  const body = { expiresBefore: endOfDays(30, nowMs), limit: EXPIRING_KEYS_MAX };
  const { data: keys, error, refetch } = useRead("admin.searchKeys", body, { everyMs: EXPIRING_POLL_MS });
  const apis = useNames(
    "api",
    useMemo(() => (keys ?? []).map(({ apiId }) => apiId), [keys]),
  );
  return (
    <section className="usage-panel usage-panel-wide" aria-labelledby="expiring-keys">
      <div className="usage-panel-head">
        <h2 id="expiring-keys">Keys that expire soon</h2>
        <Link to="/keys" search={{ expires: "30d" }}>
          All within 30 days
        </Link>
      </div>
      {error !== null && <ErrorNote error={error} doing="Reading the keys" again={() => void refetch()} />}
      {keys === undefined && error === null && <Skeleton heightPx={LIST_PX} />}
      {keys?.length === 0 && <p className="muted">No key expires within 30 days.</p>}
      {keys !== undefined && keys.length > 0 && (
        <table className="plain-table home-expiring">
          <thead>
            <tr>
              <th scope="col">Key</th>
              <th scope="col">API</th>
              <th scope="col">Expires</th>
            </tr>
          </thead>
          <tbody>
            {keys.map(({ keyId, name, start, apiId, expires = 0 }) => (
              <tr key={keyId}>
                <th scope="row" className="cut">
                  <Link to="/keys/$keyId" params={{ keyId }} search={{}} title={name}>
                    {name ?? (start === "" ? keyId : `${start}…`)}
                  </Link>
                </th>
                <td className="cut">
                  <Link to="/apis/$apiId" params={{ apiId }} title={apis.get(apiId)?.name}>
                    {apis.get(apiId)?.name ?? apiId}
                  </Link>
                </td>
                <td>
                  <Ago atMs={expires} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

/** Kinds of states, most urgent first. */
const URGENCY = ["bad", "warn", "good", "plain"];

function Gates({ policies, hasMore }: { policies: readonly Policy[]; hasMore: boolean }): ReactNode {
  if (policies.length === 0) return <p className="muted">No policies yet, so no gate enforces anything.</p>;
  const rated = policies
    .map((policy) => ({ policy, state: stateOf(policy.dataPlane) }))
    .sort((a, b) => URGENCY.indexOf(a.state.kind) - URGENCY.indexOf(b.state.kind));
  const pods = policies.reduce((sum, { dataPlane }) => sum + (dataPlane?.firstPods ?? 0), 0);
  const oldestMs = Math.max(...policies.map(({ dataPlane }) => (dataPlane?.pods ? dataPlane.maxStalenessMs : 0)));
  return (
    <>
      <dl className="home-numbers">
        <div>
          <dt>Policies</dt>
          <dd>
            {policies.length.toLocaleString("en")}
            {hasMore && "+"}
          </dd>
        </div>
        <div>
          <dt>Reporting pods</dt>
          <dd>{pods.toLocaleString("en")}</dd>
        </div>
        <div>
          <dt>Oldest data</dt>
          <dd>{pods === 0 ? "–" : lagText(oldestMs)}</dd>
        </div>
      </dl>
      <ul className="home-list">
        {rated.slice(0, POLICIES_SHOWN_MAX).map(({ policy, state }) => (
          <li key={policy.policyId}>
            <Link to="/policies/$policyId" params={{ policyId: policy.policyId }} className="cut" title={policy.name}>
              {policy.name}
            </Link>
            <Badge kind={state.kind} title={state.why}>
              {state.word}
            </Badge>
          </li>
        ))}
      </ul>
      {rated.length > POLICIES_SHOWN_MAX && (
        <p className="muted">
          and {(rated.length - POLICIES_SHOWN_MAX).toLocaleString("en")}
          {hasMore && "+"} more
        </p>
      )}
    </>
  );
}

const refusedBy = ({ dataPlane, mode }: Policy): number =>
  (mode === "Audit" ? dataPlane?.wouldRefuse : dataPlane?.refused) ?? 0;

function Rejections({ policies }: { policies: readonly Policy[] }): ReactNode {
  if (policies.some(({ dataPlane }) => dataPlane === undefined)) {
    return <p>Redis, to which pods report, does not respond.</p>;
  }
  const rejecting = policies
    .filter((policy) => refusedBy(policy) > 0)
    .sort((a, b) => refusedBy(b) - refusedBy(a))
    .slice(0, REJECTING_POLICIES_MAX);
  if (rejecting.length === 0) return <p className="muted">The gates report no rejected requests.</p>;
  return (
    <div className="home-rejections">
      <table className="plain-table">
        <thead>
          <tr>
            <th scope="col">Policy and rule</th>
            <th scope="col">Code</th>
            <th scope="col" className="number">
              Requests
            </th>
          </tr>
        </thead>
        <tbody>
          {rejecting.map((policy) => (
            <RejectionsOfPolicy key={policy.policyId} policy={policy} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Shows the rules that reject the most requests. Until the rules are read, shows the policy's total. */
function RejectionsOfPolicy({ policy }: { policy: Policy }): ReactNode {
  const { policyId, name, mode } = policy;
  const { data } = useRead("admin.getPolicy", { policyId }, { everyMs: POLL_INTERVAL_MS });
  const link = (
    <Link to="/policies/$policyId" params={{ policyId }}>
      {name}
    </Link>
  );
  if (data === undefined) {
    return (
      <tr>
        <th scope="row">{link}</th>
        <td />
        <td className="number">{refusedBy(policy).toLocaleString("en")}</td>
      </tr>
    );
  }
  const counts = data.refusals.counts.toSorted((a, b) => b.count - a.count).slice(0, RULES_SHOWN_MAX);
  return counts.map(({ rule, ruleName, code, count }) => (
    <tr key={`${rule} ${code}`}>
      <th scope="row">
        {link}
        <br />
        <span className="muted">
          {ruleText(rule, ruleName)}
          {mode === "Audit" && ", would be rejected"}
        </span>
      </th>
      <td>
        <code>{code}</code>
      </td>
      <td className="number">{count.toLocaleString("en")}</td>
    </tr>
  ));
}
