import type { ClientBase } from "pg";

/** Runs statements: a pool or a transaction's client. */
export type Queryable = Pick<ClientBase, "query">;
