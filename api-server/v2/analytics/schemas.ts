import * as z from "zod";

/** Ignores other members (api-v2.md section 18). The length of the query is checked after the permission. */
export const QueryBody = z.object({
  query: z
    .string()
    .describe("One SELECT in a subset of ClickHouse's SQL, of at most 16,384 bytes in UTF-8.")
    .meta({
      examples: ["SELECT outcome, sum(count) AS total FROM key_verifications_per_day_v1 GROUP BY outcome"],
    }),
});
export type QueryBody = z.output<typeof QueryBody>;

export const RowsOut = z
  .array(z.record(z.string(), z.unknown()))
  .describe(
    "One object for each row, with a member for each column, in the order of the SELECT. NaN and infinities are null, instants are RFC 3339 in UTC.",
  );
