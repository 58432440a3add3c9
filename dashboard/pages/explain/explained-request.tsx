import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { useRead } from "../../api/queries.ts";
import { FullTime } from "../../components/ago.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { Notice } from "../../components/notice.tsx";
import { Select } from "../../components/select.tsx";
import { LimitBadge, OutcomeBadge } from "../../components/state-badge.tsx";
import { ExplainedKey } from "./explained-key.tsx";

const DAYS = ["1", "2", "3", "7"] as const;
type Days = (typeof DAYS)[number];
const DAY_MS = 86_400_000;
/** Margin between the requested range and the server's maximum range, because the server's clock may differ. */
const SLACK_MS = 60_000;

/** Returns the shortest search period, in days, that contains the time. */
const daysFor = (atMs = Date.now()): Days =>
  DAYS.find((days) => Date.now() - Number(days) * DAY_MS + 4 * SLACK_MS < atMs) ?? "7";

/** Shows the stored details of a request, and the decision that its verification would make now. */
export function ExplainedRequest({ requestId, atMs }: { requestId: string; atMs: number | undefined }): ReactNode {
  const [days, setDays] = useState<Days>(() => daysFor(atMs));
  const [openedMs] = useState(() => Math.floor(Date.now() / SLACK_MS) * SLACK_MS);
  const since = openedMs - Number(days) * DAY_MS + 2 * SLACK_MS;
  const { data, error, refetch, isPending } = useRead("admin.explainRequest", { requestId, since });
  if (error !== null) return <ErrorNote error={error} doing="Looking up the request" again={() => void refetch()} />;
  const [first] = data?.verifications ?? [];
  const isNothing =
    data !== undefined && data.verifications.length + data.ratelimits.length + data.changes.length === 0;
  return (
    <section className="explained" aria-label="Stored data of the request">
      <h2>
        Request <code>{requestId}</code>
      </h2>
      <Select
        label="Searched period: last"
        value={days}
        options={DAYS.map((value) => ({ value, label: value === "1" ? "24 hours" : `${value} days` }))}
        onChange={setDays}
      />
      {isPending && <p className="muted">Searching …</p>}
      {data?.problem !== undefined && <Notice kind="warn">{data.problem}</Notice>}
      {isNothing && data.problem === undefined && (
        <p>
          No events of this request are stored for this period. Events arrive a few seconds after their request; a
          request without a known key has no events.
        </p>
      )}
      <ul className="plain-list">
        {data?.verifications.map(({ time, outcome, keyId, externalId, source, policyId, region, tags }) => (
          <li key={`${time} ${keyId} ${outcome}`}>
            <OutcomeBadge outcome={outcome} /> <code>{outcome}</code>{" "}
            <Link to="/keys/$keyId" params={{ keyId }}>
              <code>{keyId}</code>
            </Link>{" "}
            {externalId}, decided at <FullTime atMs={time} /> by{" "}
            {source === "sidecar" ? (
              <>
                the gate of{" "}
                <Link to="/policies/$policyId" params={{ policyId }}>
                  {policyId}
                </Link>
              </>
            ) : (
              "the API"
            )}
            {region === "" ? "" : ` in ${region}`}
            {tags.length > 0 && `, ${tags.join(", ")}`}
          </li>
        ))}
        {data?.ratelimits.map(({ time, namespaceId, identifier, passed, limit, remaining }) => (
          <li key={`${time} ${namespaceId} ${identifier}`}>
            <LimitBadge passed={passed} /> {identifier} in{" "}
            <Link to="/ratelimits/$namespaceId" params={{ namespaceId }}>
              <code>{namespaceId}</code>
            </Link>
            : {remaining} of {limit} remained, at <FullTime atMs={time} />
          </li>
        ))}
        {data?.changes.map(({ id, time, event, description }) => (
          <li key={id}>
            <Link to="/audit" search={{ requestId, row: id }}>
              {event}
            </Link>{" "}
            {description}, at <FullTime atMs={time} />
          </li>
        ))}
      </ul>
      {first !== undefined && (
        <ExplainedKey body={{ keyId: first.keyId, ...(first.policyId === "" ? {} : { policyId: first.policyId }) }} />
      )}
    </section>
  );
}
