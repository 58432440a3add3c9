import * as z from "zod";
import { ANALYTICS_SCHEMA } from "../../domain/analytics/schema.ts";
import { onWorkspace } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";

const Body = z.strictObject({});
type Body = z.output<typeof Body>;

const named = (what: string, example: string) =>
  z
    .string()
    .describe(what)
    .meta({ examples: [example] });

const Data = z.strictObject({
  tables: z
    .array(
      z.strictObject({
        name: named("Its name in a query.", "key_verifications_per_day_v1"),
        of: z
          .enum(["verifications", "ratelimits"])
          .describe("Procedure that reads the table: getVerifications or getRatelimits."),
        meaning: named("What a row of the table stands for.", "One row for each verification of a key."),
        columns: z
          .array(
            z.strictObject({
              name: named("Its name in a query.", "outcome"),
              type: named("ClickHouse type of the column.", "String"),
              meaning: named("What the column contains.", "VALID, or why the key was rejected."),
            }),
          )
          .describe("Columns that a query can use."),
      }),
    )
    .describe("Tables that a query can read."),
  functions: z
    .array(
      z.strictObject({
        name: named("Name of the function; case-insensitive.", "sumIf"),
        kind: z
          .enum(["aggregate", "window", "time", "text", "number", "condition", "array"])
          .describe("Group of the function in the reference."),
        call: named("Form of a call.", "sumIf(x, condition)"),
        meaning: named("What the function returns.", "The sum over the rows that meet the condition."),
      }),
    )
    .describe("Functions that a query can call."),
});
type Data = z.input<typeof Data>;

const required = { readWorkspace: onWorkspace("read_workspace") };

export const getAnalyticsSchema = defineProcedure({
  path: "admin.getAnalyticsSchema",
  effect: "read",
  summary: "List the tables and functions of usage queries",
  description:
    "Returns the tables, columns and functions of `analytics.getVerifications` and `analytics.getRatelimits` with descriptions, for example for completion in a query editor.",
  permissions: required,
  errors: [],
  addition: true,
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  call.require(required.readWorkspace);
  return ANALYTICS_SCHEMA;
}
