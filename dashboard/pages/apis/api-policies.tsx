import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { usePages } from "../../api/queries.ts";
import { Button } from "../../components/button.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import "../../components/plain-table.css";

/** The policies that accept keys of an API. The server lists the policies of all APIs, so further pages are read on demand. */
export function PoliciesOfApi({ apiId }: { apiId: string }): ReactNode {
  const { rows, error, isLoading, hasMore, isLoadingMore, readMore, again } = usePages("admin.listPolicies", {});
  const policies = rows.filter((policy) => policy.apiId === apiId);
  return (
    <>
      {error !== null && <ErrorNote error={error} doing="Reading the policies" again={again} />}
      {policies.length === 0 && error === null && (
        <p className="muted">{isLoading ? "Loading …" : "No policy accepts its keys."}</p>
      )}
      {policies.length > 0 && (
        <ul className="plain-list">
          {policies.map(({ policyId, name, mode }) => (
            <li key={policyId}>
              <Link to="/policies/$policyId" params={{ policyId }}>
                {name}
              </Link>{" "}
              <span className="muted">{mode}</span>
            </li>
          ))}
        </ul>
      )}
      {hasMore && (
        <Button kind="quiet" onClick={readMore} isBusy={isLoadingMore}>
          Search further policies
        </Button>
      )}
    </>
  );
}
