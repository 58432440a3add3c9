import * as z from "zod";
import { durationOf, parseDuration } from "../../core/manifests/duration.ts";
import { OUTCOMES } from "../outcomes.ts";
import { findRequestLine } from "../request-line.ts";

/* Schema of the file of `postern simulate --cases`: requests with expected outcomes. */

const CASES_MAX = 1_000;
const STEPS_MAX = 100;
export const TIMES_MAX = 10_000;

const Outcome = z.enum(OUTCOMES);

const Expected = z
  .union([
    Outcome.transform((code) => ({ code })),
    z.strictObject({
      code: Outcome.optional().describe("Outcome of the last request."),
      status: z
        .int()
        .min(100)
        .max(599)
        .optional()
        .describe("HTTP status at the gate; 200 stands for the response of the app."),
      rule: z
        .int()
        .min(-1)
        .max(255)
        .optional()
        .describe("Index of the matching rule, from 0; −1 for the implicit rule."),
      ruleName: z.string().min(1).max(63).optional().describe("Name of the matching rule."),
      decisive: z.string().min(1).max(32).optional().describe("Decisive step, as the explanation names it."),
      passed: z.int().min(0).max(TIMES_MAX).optional().describe("Number of the `times` requests that are allowed."),
    }),
  ])
  .describe("Expected outcome: a code, or an object.");
export type Expected = z.output<typeof Expected>;

const STEP = {
  request: z
    .string()
    .max(5_000)
    .refine((text) => findRequestLine(text) !== undefined, {
      error: "expected a method and a path such as POST /orders",
    })
    .describe("METHOD PATH."),
  policy: z.string().min(1).max(507).optional().describe("ApiKeyPolicy; optional if there is only one."),
  key: z
    .union([z.string().min(1).max(253), z.literal(false)])
    .optional()
    .describe("Name of the key; optional if there is only one; false sends no key."),
  headers: z
    .record(
      z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/),
      z
        .string()
        .max(8_192)
        .regex(/^[\t\x20-\x7e]*$/),
    )
    .optional()
    .describe("Additional request headers."),
  host: z
    .string()
    .regex(/^[\x21-\x7e]{1,255}$/)
    .optional()
    .describe("Host header; default: app."),
  clientAddress: z.string().min(2).max(64).optional().describe("Client address; default: 127.0.0.1."),
  after: durationOf({ msMin: 0 })
    .transform((text) => parseDuration(text))
    .optional()
    .describe("Delay after the previous step."),
  times: z
    .int()
    .min(1)
    .max(TIMES_MAX)
    .default(1)
    .describe("Number of times to send the request; the last result is compared."),
  expect: Expected,
};
const Step = z.strictObject(STEP);
export type CaseStep = z.output<typeof Step>;

const name = z.string().min(1).max(255).describe("Description of the case.");
const at = z.iso
  .datetime({ offset: true })
  .transform((text) => Date.parse(text))
  .optional()
  .describe("Start time of the case; default: `now` of the fixtures.");

const Case = z.union([
  z.strictObject({ name, at, steps: z.array(Step).min(1).max(STEPS_MAX).describe("Requests in order.") }),
  z.strictObject({ name, at, ...STEP }).transform(({ name, at, ...step }) => ({ name, at, steps: [step] })),
]);
export type Case = z.output<typeof Case>;

/** List of cases; each case starts with empty counters and full credits. */
export const Cases = z.strictObject({ cases: z.array(Case).min(1).max(CASES_MAX).describe("Each by itself.") });
