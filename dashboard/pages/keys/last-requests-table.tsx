import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { useUsageRows } from "../../api/use-usage.ts";
import { Ago, Time } from "../../components/ago.tsx";
import { Button } from "../../components/button.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { KeyTable } from "../../components/key-table.tsx";
import { OutcomeBadge } from "../../components/state-badge.tsx";
import { lastRequestsQuery, readLastRequests } from "./last-requests.ts";

/** Table of the newest stored verifications. A verification appears a few seconds after it happened. */
export function LastRequests({ keyId }: { keyId: string }): ReactNode {
  const [requestedAtMs, setRequestedAtMs] = useState(() => Date.now());
  const read = useUsageRows("analytics.getVerifications", lastRequestsQuery(keyId, requestedAtMs), readLastRequests, {
    requestedAtMs,
  });
  const again = (): void => setRequestedAtMs(Date.now());
  if (read.error !== null) return <ErrorNote error={read.error} doing="Reading the last requests" again={again} />;
  const rows = read.data ?? [];
  return (
    <>
      <div className="field-row">
        <Button onClick={again} isBusy={read.isFetching}>
          Reload
        </Button>
        <span className="muted">
          The newest 50 of the last 7 days, as of <Ago atMs={requestedAtMs} />.
        </span>
        <Link to="/requests" search={{ key: keyId, range: "7d" }}>
          All requests of this key
        </Link>
      </div>
      {rows.length === 0 ? (
        <p className="muted">{read.isFetching ? "Reading …" : "None."}</p>
      ) : (
        <KeyTable
          label="Last requests"
          heads={["When", "Outcome", "Request", "Decided by", "Region", "Credits", "Tags"]}
          numbers={["Credits"]}
        >
          {rows.map(({ timeMs, outcome, requestId, source, region, credits, tags }, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: one request can verify a key twice in a millisecond, and rows are never moved.
            <tr key={`${requestId} ${timeMs} ${at}`}>
              <td>
                <Time atMs={timeMs} />
              </td>
              <td>
                <OutcomeBadge outcome={outcome} />
              </td>
              <td>
                <code>{requestId}</code>
              </td>
              <td>{source}</td>
              <td>{region}</td>
              <td className="number">{credits}</td>
              <td>{tags.join(", ")}</td>
            </tr>
          ))}
        </KeyTable>
      )}
    </>
  );
}
