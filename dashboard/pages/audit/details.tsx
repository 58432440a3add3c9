import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Row } from "../../api/queries.ts";
import { FullTime } from "../../components/ago.tsx";
import { DetailList } from "../../components/detail-list.tsx";
import { Difference } from "../../components/difference.tsx";

type Change = Row<"admin.listAudit">;

/**
 * Returns the name that the person or root key had when it made the change and, for a change by a manifest, the manifest's manager name.
 */
export function whoText({ type, id, name, manager }: Change["actor"]): string {
  const who = type === "cli" ? `command line: ${name}` : name === "" ? id : name;
  return manager === undefined ? who : `${who} for ${manager}`;
}

/** Shows all stored details of one change. */
export function ChangeDetails({ change }: { change: Change }): ReactNode {
  const { actor, targets, requestId, remoteIp, userAgent, correlationId } = change;
  return (
    <>
      <p>{change.description}</p>
      <ChangedFields change={change} />
      <DetailList
        facts={[
          ["When", <FullTime key="when" atMs={change.time} />],
          [
            "Who",
            <span key="who">
              {whoText(actor)} <code>{actor.id}</code>
            </span>,
          ],
          [
            "Objects",
            <ul key="objects" className="plain-list">
              {targets.map(({ type, id, name }) => (
                <li key={`${type} ${id}`}>
                  {type}{" "}
                  <Link to="/audit" search={{ targetId: id }}>
                    <code>{id}</code>
                  </Link>{" "}
                  {type === "api" ? (
                    <Link to="/apis/$apiId" params={{ apiId: id }}>
                      {name}
                    </Link>
                  ) : (
                    name
                  )}
                </li>
              ))}
            </ul>,
          ],
          ...(requestId === undefined
            ? []
            : [
                [
                  "Request",
                  <Link key="request" to="/explain" search={{ requestId }}>
                    <code>{requestId}</code>
                  </Link>,
                ] as const,
              ]),
          ...(correlationId === undefined
            ? []
            : [["Other objects", <code key="together">{correlationId}</code>] as const]),
          ...(remoteIp === undefined ? [] : [["Address", remoteIp] as const]),
          ...(userAgent === undefined ? [] : [["Client", userAgent] as const]),
        ]}
      />
    </>
  );
}

/** Shows the value of each changed field before and after the change. */
function ChangedFields({ change: { before, after } }: { change: Change }): ReactNode {
  if (before === undefined || after === undefined) return null;
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const changes = names.map((name) => ({ name, before: valueText(before[name]), after: valueText(after[name]) }));
  return <Difference caption="Changed fields" of="Field" changes={changes} />;
}

/** Formats any value as text. Times stay numbers, because a field's name does not say whether the field is a time. */
export function valueText(value: unknown): string {
  if (value === null || value === undefined) return "none";
  return typeof value === "string" ? value : JSON.stringify(value, undefined, 1);
}
