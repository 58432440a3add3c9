import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Ago } from "../../components/ago.tsx";
import { Badge } from "../../components/badge.tsx";
import { KeyTable } from "../../components/key-table.tsx";
import { durationText } from "../../components/time.ts";
import type { KeyDetails } from "./details.ts";

/** Shows the key's own limits, and the limits that all keys of its identity share. Each limit is shown with its counter. */
export function KeyLimits({ details }: { details: KeyDetails }): ReactNode {
  const { limits, key } = details;
  if (limits.length === 0) return <p className="muted">None.</p>;
  return (
    <KeyTable
      label="Limits with their counters"
      heads={["Name", "Of", "Used", "Limit", "Window"]}
      numbers={["Used", "Limit"]}
    >
      {limits.map((limit) => (
        <tr key={`${limit.of} ${limit.id}`}>
          <th scope="row">
            {limit.name}{" "}
            {limit.isReplaced && (
              <Badge title="A limit of the key with the same name takes precedence.">replaced</Badge>
            )}
          </th>
          <td>
            {limit.of === "key" || key.identity === undefined ? (
              "key"
            ) : (
              <>
                <Link to="/identities/$identityId" params={{ identityId: key.identity.id }}>
                  identity
                </Link>
                , shared
              </>
            )}
          </td>
          <td className="number">
            {limit.current === undefined ? (
              <span title="The counters are unreachable.">?</span>
            ) : (
              limit.current.used.toLocaleString("en")
            )}
          </td>
          <td className="number">{limit.limit.toLocaleString("en")}</td>
          <td>
            {durationText(limit.duration)}
            {limit.autoApply ? "" : ", only if a request names it"}
            {limit.current !== undefined && limit.current.used > 0 && (
              <>
                {", ends "}
                <Ago atMs={limit.current.reset} />
              </>
            )}
          </td>
        </tr>
      ))}
    </KeyTable>
  );
}
