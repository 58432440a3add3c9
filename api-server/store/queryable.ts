import type { ClientBase } from "pg";

/** What a statement needs: a pool and a transaction's client both fit. */
export type Queryable = Pick<ClientBase, "query">;
