import type { ReactNode } from "react";
import type { Row } from "../../api/queries.ts";
import { Badge } from "../../components/badge.tsx";
import { lockedBy } from "../../components/managed-badge.tsx";

/** Shows whether a manifest manages an API, and whether it is protected from deletion. */
export function ApiBadges({
  api: { manager, deleteProtection },
}: {
  api: Pick<Row<"admin.listApis">, "manager" | "deleteProtection">;
}): ReactNode {
  return (
    <>
      {manager !== undefined && <Badge title={lockedBy(manager)}>manifest</Badge>}{" "}
      {deleteProtection && (
        <Badge title="The API cannot be deleted until the delete protection is disabled.">protected</Badge>
      )}
    </>
  );
}
