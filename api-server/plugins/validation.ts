import { Ajv, type AnySchema, type ErrorObject, type Options, type ValidateFunction } from "ajv";
import type * as z from "zod";
import { type ErrorEntry, PublicError } from "../../core/errors.ts";
import { requestSchema } from "./json-schema.ts";

/** Maximum number of entries in a response (api-v2.md section 4.1). */
export const ENTRIES_MAX = 50;

/**
 * Body size above which only the first error is reported: an array of 100,000 invalid items is cheap to send, but collecting all of its
 * errors is expensive.
 */
const NAME_ALL_BYTES_MAX = 16_384;

const COMMON: Options = {
  // Allows a keyword that has no effect here, because it is meant for readers of the OpenAPI document.
  keywords: ["x-postern-addition"],
  // Skips formats, because zod also emits a pattern for each format.
  validateFormats: false,
  coerceTypes: false,
  removeAdditional: false,
  useDefaults: true,
  allowUnionTypes: true,
};

/** `verbose` adds the invalid value to each error. Only its type or length is reported, because the value may be a secret. */
const fast = new Ajv({ ...COMMON, allErrors: false, verbose: true });
const thorough = new Ajv({ ...COMMON, allErrors: true, verbose: true });

/** Validates a body, and fills in defaults in place. Throws PublicError `invalid_input` with all errors found. */
export type BodyValidator = (body: unknown, bodyBytes: number) => void;

/**
 * Returns the validator of a body. `url` is the path of the procedure, which the detail of an error contains. The schema is compiled for
 * the first body, because compiling the schemas of all procedures would delay the start of the server.
 */
export function bodyValidator(schema: z.ZodType, url: string): BodyValidator {
  return (body, bodyBytes) => {
    const { validate, validateAll } = validatorsOf(schema);
    if (validate(body)) return;
    let faults = takeFaults(validate);
    if (bodyBytes <= NAME_ALL_BYTES_MAX) {
      const all = validateAll();
      if (!all(body)) faults = takeFaults(all);
    }
    throw new PublicError("invalid_input", `The body of ${url} does not match its schema.`, {
      errors: toEntries(faults),
    });
  };
}

/** Returns and clears the validator's last errors. Otherwise, they would keep the invalid values in memory: up to 10 MiB per procedure. */
function takeFaults(validate: ValidateFunction): readonly ErrorObject[] {
  const faults = validate.errors ?? [];
  validate.errors = null;
  return faults;
}

interface Validators {
  readonly validate: ValidateFunction;
  /** Returns the validator for all errors. It is compiled on first use, which most procedures in most processes never need. */
  readonly validateAll: () => ValidateFunction;
}

/** Compiled validators by schema. Schemas do not change, so the apps of a process share the result. */
const compiled = new WeakMap<z.ZodType, Validators>();

function validatorsOf(schema: z.ZodType): Validators {
  const known = compiled.get(schema);
  if (known !== undefined) return known;
  const json: AnySchema = requestSchema(schema, "draft-7");
  let all: ValidateFunction | undefined;
  const made: Validators = { validate: fast.compile(json), validateAll: () => (all ??= thorough.compile(json)) };
  compiled.set(schema, made);
  return made;
}

/** Returns one error entry per location, in the order in which the errors were found. */
function toEntries(faults: readonly ErrorObject[]): ErrorEntry[] {
  const entries = new Map<string, ErrorEntry>();
  for (const fault of faults) {
    const location = locate(fault);
    if (!entries.has(location)) entries.set(location, { location, message: describe(fault) });
    if (entries.size === ENTRIES_MAX) break;
  }
  return [...entries.values()];
}

/**
 * Returns the location of an error: `/ratelimits/2/limit` becomes `body.ratelimits[2].limit`; a missing or unknown member has the location
 * that it would have if it existed.
 */
function locate({ instancePath, keyword, params }: ErrorObject): string {
  let location = "body";
  for (const step of instancePath.split("/").slice(1)) {
    location += nameStep(step.replaceAll("~1", "/").replaceAll("~0", "~"));
  }
  if (keyword === "required") location += nameStep(String(params.missingProperty));
  if (keyword === "additionalProperties") location += nameStep(String(params.additionalProperty));
  return location;
}

/** Returns a segment of a location: an index, or a member name. */
export const nameStep = (step: string): string => (/^\d+$/.test(step) ? `[${step}]` : `.${step}`);

type Describe = (params: Record<string, unknown>, value: unknown) => string;

const count = (value: unknown, unit: string): string => {
  const length = typeof value === "string" || Array.isArray(value) ? value.length : Object.keys(Object(value)).length;
  return `${length} ${unit}${length === 1 ? "" : "s"}`;
};

const MESSAGES: Readonly<Record<string, Describe>> = {
  required: () => "is required",
  additionalProperties: () => "is not a known field",
  type: ({ type }, value) => `expected ${describeType(type)}, got ${describeValue(value)}`,
  minLength: ({ limit }, value) => `expected at least ${limit} characters, got ${count(value, "character")}`,
  maxLength: ({ limit }, value) => `expected at most ${limit} characters, got ${count(value, "character")}`,
  minItems: ({ limit }, value) => `expected at least ${limit} items, got ${count(value, "item")}`,
  maxItems: ({ limit }, value) => `expected at most ${limit} items, got ${count(value, "item")}`,
  maxProperties: ({ limit }, value) => `expected at most ${limit} members, got ${count(value, "member")}`,
  minimum: ({ limit }, value) => `expected at least ${limit}, got ${value}`,
  exclusiveMinimum: ({ limit }, value) => `expected more than ${limit}, got ${value}`,
  maximum: ({ limit }, value) => `expected at most ${limit}, got ${value}`,
  exclusiveMaximum: ({ limit }, value) => `expected less than ${limit}, got ${value}`,
  pattern: ({ pattern }) => `expected text that matches ${pattern}`,
  enum: ({ allowedValues }) => `expected one of ${(allowedValues as unknown[]).join(", ")}`,
  const: ({ allowedValue }) => `expected ${allowedValue}`,
};

function describe({ keyword, params, data, message }: ErrorObject): string {
  return MESSAGES[keyword]?.(params, data) ?? message ?? "does not fit the schema";
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  array: "an array",
  boolean: "a boolean",
  integer: "an integer",
  null: "null",
  number: "a number",
  object: "an object",
  string: "a string",
};

const describeType = (type: unknown): string =>
  (Array.isArray(type) ? type : [type]).map((name) => TYPE_NAMES[String(name)] ?? String(name)).join(" or ");

function describeValue(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return TYPE_NAMES[typeof value] ?? typeof value;
}
