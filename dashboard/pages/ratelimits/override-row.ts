import type { Row } from "../../api/queries.ts";

/** One row of the list of overrides. */
export type Override = Row<"admin.listOverrides">;
