import type { Row } from "../../api/queries.ts";

export type Api = Row<"admin.listApis">;
