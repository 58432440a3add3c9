import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Badge } from "../../components/badge.tsx";
import { KeyTable } from "../../components/key-table.tsx";
import type { KeyDetails } from "./details.ts";

/** Maximum number of permissions to show. A role can have thousands; the roles page shows all of them. */
const SHOWN_MAX = 200;

export function KeyRights({ details }: { details: KeyDetails }): ReactNode {
  const { roles, permissions } = details;
  const shown = permissions.slice(0, SHOWN_MAX);
  return (
    <>
      <p>
        Roles:{" "}
        {roles.length === 0 ? (
          <span className="muted">none</span>
        ) : (
          roles.map(({ roleId, name }) => (
            <span key={roleId}>
              <Link to="/permissions" search={{ roles: name }}>
                <Badge>{name}</Badge>
              </Link>{" "}
            </span>
          ))
        )}
      </p>
      {permissions.length === 0 ? (
        <p className="muted">No permissions.</p>
      ) : (
        <KeyTable label="Permissions with their sources" heads={["Permission", "From"]}>
          {shown.map(({ slug, isDirect, roles: names }) => (
            <tr key={slug}>
              <th scope="row">
                <Link to="/permissions" search={{ search: slug }}>
                  <code>{slug}</code>
                </Link>
              </th>
              <td>{[...(isDirect ? ["direct"] : []), ...names.map((name) => `role ${name}`)].join(", ")}</td>
            </tr>
          ))}
        </KeyTable>
      )}
      {permissions.length > shown.length && (
        <p className="muted">{(permissions.length - shown.length).toLocaleString("en")} more are not shown.</p>
      )}
    </>
  );
}
