import { createLazyRoute, getRouteApi, Link } from "@tanstack/react-router";
import { type ReactNode, useEffect, useMemo, useState } from "react";
import type { Data } from "../../../core/api/procedures.ts";
import { useRead } from "../../api/queries.ts";
import { Ago, FullTime } from "../../components/ago.tsx";
import { Badge } from "../../components/badge.tsx";
import { DetailList } from "../../components/detail-list.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { ManagedNotice } from "../../components/managed-badge.tsx";
import { Page } from "../../components/page.tsx";
import { Plot } from "../../components/plot.tsx";
import { lagSeries, type Sample, withSample } from "./lags.ts";
import { PodsTable } from "./pods-table.tsx";
import { PolicyYaml } from "./policy-yaml.tsx";
import "./policies.css";
import {
  clientFacts,
  demandText,
  otherRequestsText,
  requestsText,
  rulesOf,
  ruleText,
  stateOf,
} from "../../components/policy-words.ts";

export const Route = createLazyRoute("/policies/$policyId")({ component: PolicyPage });
const here = getRouteApi("/policies/$policyId");

/** Polling interval. It is short enough to watch a change reach the pods. A hidden page does not poll. */
const POLL_INTERVAL_MS = 1_500;

type Policy = Data<"admin.getPolicy">;

function PolicyPage(): ReactNode {
  const { policyId } = here.useParams();
  const { data, error, refetch } = useRead("admin.getPolicy", { policyId }, { everyMs: POLL_INTERVAL_MS });
  const samples = useSamples(data);
  const series = useMemo(() => lagSeries(samples), [samples]);
  const xs = useMemo(() => samples.map(({ atMs }) => atMs), [samples]);
  const state = data && stateOf(data.dataPlane);
  return (
    <Page
      title={data?.name ?? "Policy"}
      about={state && `${state.word}: ${state.why}`}
      actions={
        <>
          <Link to="/explain" search={{ policyId }}>
            Explain a request at its gate
          </Link>
          {data !== undefined && <PolicyYaml policy={data} />}
        </>
      }
    >
      {error !== null && <ErrorNote error={error} doing="Reading the policy" again={() => void refetch()} />}
      {data !== undefined && state !== undefined && (
        <>
          <DetailList
            facts={[
              [
                "State",
                <Badge key="state" kind={state.kind} title={state.why}>
                  {state.word}
                </Badge>,
              ],
              [
                "Mode",
                data.mode === "Audit" ? "Audit: rejects no requests, and counts those that it would reject" : data.mode,
              ],
              [
                "API",
                data.apiName === undefined ? (
                  `${data.apiId} (deleted)`
                ) : (
                  <Link key="api" to="/apis/$apiId" params={{ apiId: data.apiId }}>
                    {data.apiName}
                  </Link>
                ),
              ],
              ...clientFacts(data.policy),
              ["Generation", `${data.generation}, version ${data.version}`],
              ["Stored", <FullTime key="stored" atMs={data.changedAt} />],
              ["Managed by", data.manager === undefined ? "nobody" : <code key="manager">{data.manager}</code>],
              ["Id", <code key="id">{data.policyId}</code>],
            ]}
          />
          {data.manager !== undefined && <ManagedNotice manager={data.manager} />}
          <section aria-label="Rejections by rule" className="policy-part">
            <h2>
              {data.mode === "Audit" ? "Requests that would have been rejected, by rule" : "Rejected requests, by rule"}
            </h2>
            <Refusals policy={data} />
          </section>
          <section aria-label="Rules" className="policy-part">
            <h2>Rules</h2>
            <Rules policy={data} />
          </section>
          <section aria-label="Propagation" className="policy-part">
            <h2>Propagation</h2>
            <p className="muted">Age of each pod's data since you opened this page.</p>
            {samples.length > 1 ? (
              <Plot
                label={`Data age of the pods of ${data.name}`}
                xs={xs}
                unit="s"
                series={series}
                inWords={(value) => `${value.toLocaleString("en", { maximumFractionDigits: 2 })} s`}
              />
            ) : (
              <p>Waiting for the first reports …</p>
            )}
          </section>
          <section aria-label="Pods" className="policy-part">
            <h2>Pods</h2>
            <PodsTable policy={data} />
          </section>
        </>
      )}
    </Page>
  );
}

/** Returns the pod lags that this page has observed so far. */
function useSamples(policy: Policy | undefined): readonly Sample[] {
  const [samples, setSamples] = useState<readonly Sample[]>([]);
  const policyId = policy?.policyId;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the samples of the previous policy must be dropped.
  useEffect(() => setSamples([]), [policyId]);
  useEffect(() => {
    if (policy === undefined) return;
    const pods = policy.podList.filter(({ state }) => state !== "silent");
    setSamples((before) => withSample(before, { atMs: policy.now, pods }));
  }, [policy]);
  return samples;
}

function Refusals({ policy: { refusals, dataPlane } }: { policy: Policy }): ReactNode {
  const { since, counts, others } = refusals;
  if (dataPlane === undefined) return <p>Redis, to which pods report, does not respond.</p>;
  if (counts.length === 0 && others === 0) return <p>No rejections reported by its pods.</p>;
  return (
    <>
      <table className="plain-table">
        <thead>
          <tr>
            <th scope="col">Rule</th>
            <th scope="col">Code</th>
            <th scope="col">Requests</th>
          </tr>
        </thead>
        <tbody>
          {counts.map(({ rule, ruleName, code, count }) => (
            <tr key={`${rule} ${code}`}>
              <th scope="row">{ruleText(rule, ruleName)}</th>
              <td>
                <code>{code}</code>
              </td>
              <td>{count.toLocaleString("en")}</td>
            </tr>
          ))}
          {others > 0 && (
            <tr>
              <th scope="row">others</th>
              <td />
              <td>{others.toLocaleString("en")}</td>
            </tr>
          )}
        </tbody>
      </table>
      {since !== undefined && (
        <p className="muted">
          Counted by pods with this version since <Ago atMs={since} />. The counts of a pod start at 0 after a restart.
        </p>
      )}
    </>
  );
}

function Rules({ policy }: { policy: Policy }): ReactNode {
  const rules = rulesOf(policy.policy);
  return (
    <ol className="rules">
      {rules.map((rule, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a rule is identified by its index.
        <li key={index}>
          {typeof rule.name === "string" && <strong>{rule.name} </strong>}
          <code>{requestsText(rule)}</code>: {demandText(rule)}
        </li>
      ))}
      <li>All other requests: {otherRequestsText(policy.policy)}</li>
    </ol>
  );
}
