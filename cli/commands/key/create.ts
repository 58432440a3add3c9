import type { Input, Schema } from "../../../core/api/procedures.ts";
import { withApi } from "../../api/connection.ts";
import { defineCommand, type Io, UsageError } from "../../command.ts";
import { objectShape, printable } from "../../fields.ts";
import { connection, json, permissions } from "../../options.ts";
import { printOne, printSecret } from "../../output.ts";
import { invalidValue, parseChoice, parseFuture, parseInteger, parseJsonObject } from "../../values.ts";
import { parseRatelimit, ratelimit } from "../new-ratelimit.ts";
import { type MadeKey, madeKeyFields } from "./fields.ts";

const CREDITS_MAX = 1_000_000_000_000;
const BYTES = { min: 16, max: 255 };

export const keyCreate = defineCommand({
  name: "key create",
  description:
    "Standard output has only the key, without a newline in a pipe or file. It is shown once, unless it is recoverable. Requires create_key on the API.",
  options: {
    api: { type: "string", placeholder: "ID", help: "API id (api_…)", required: true },
    name: { type: "string", placeholder: "TEXT", help: "internal name, hidden from the owner" },
    prefix: {
      type: "string",
      placeholder: "WORD",
      help: "key prefix, such as shop (default: the API's)",
    },
    "byte-length": { type: "string", placeholder: "N", help: "random bytes of the key (default: the API's)" },
    "external-id": {
      type: "string",
      placeholder: "ID",
      help: "id of the owner in your system; a missing identity is created",
    },
    expires: { type: "string", placeholder: "TIME", help: "expiry, such as 2026-12-31, 2026-12-31T18:00:00Z or 30d" },
    role: { type: "string", placeholder: "NAME", help: "role of the key", repeats: true },
    permissions,
    credits: { type: "string", placeholder: "N", help: "number of uses (default: unlimited)" },
    refill: {
      type: "string",
      placeholder: "daily:N|monthly:N:DAY",
      help: "refill: daily:100, or monthly:3000:15 for the 15th; requires --credits",
    },
    ratelimit,
    meta: { type: "string", placeholder: "JSON", help: "JSON object that each verification returns" },
    disabled: { type: "boolean", help: "create the key disabled, until `postern key enable`" },
    recoverable: {
      type: "boolean",
      help: "store the key encrypted so that it can be shown again; the API must allow it",
    },
    ...connection,
    json,
  },
  response: objectShape(madeKeyFields),
  run: async (options, io) => {
    const body = bodyOf(options);
    const { data: made } = await withApi(options, io, (api) => api.call("keys.createKey", body));
    const keeps = options.recoverable ? "`postern key get --decrypt` shows it again" : "it is shown only once";
    printMade(io, options, { made, note: `key ${made.keyId} is created; ${keeps}` });
    return 0;
  },
});

/** Prints a new key. */
export function printMade(io: Io, options: { json: boolean }, { made, note }: { made: MadeKey; note: string }): void {
  if (options.json) printOne(io, options, { fields: madeKeyFields, row: made });
  else {
    printSecret(io, made.key);
    io.note(printable(note));
  }
}

interface Options {
  readonly api: string;
  readonly name: string | undefined;
  readonly prefix: string | undefined;
  readonly "byte-length": string | undefined;
  readonly "external-id": string | undefined;
  readonly expires: string | undefined;
  readonly role: readonly string[];
  readonly permissions: readonly string[];
  readonly credits: string | undefined;
  readonly refill: string | undefined;
  readonly ratelimit: readonly string[];
  readonly meta: string | undefined;
  readonly disabled: boolean;
  readonly recoverable: boolean;
}

function bodyOf(options: Options): Input<"keys.createKey"> {
  const {
    api,
    name,
    prefix,
    "byte-length": byteLength,
    "external-id": externalId,
    expires,
    credits,
    refill,
    meta,
  } = options;
  if (refill !== undefined && credits === undefined)
    throw new UsageError("--refill requires --credits (the initial credits)");
  return {
    apiId: api,
    ...(name === undefined ? {} : { name }),
    ...(prefix === undefined ? {} : { prefix }),
    ...(byteLength === undefined ? {} : { byteLength: parseInteger("byte-length", byteLength, BYTES) }),
    ...(externalId === undefined ? {} : { externalId }),
    ...(expires === undefined ? {} : { expires: parseFuture("expires", expires, { nowMs: Date.now() }) }),
    ...(options.role.length === 0 ? {} : { roles: [...options.role] }),
    ...(options.permissions.length === 0 ? {} : { permissions: [...options.permissions] }),
    ...(credits === undefined
      ? {}
      : {
          credits: {
            remaining: parseInteger("credits", credits, { min: 0, max: CREDITS_MAX }),
            ...(refill === undefined ? {} : { refill: parseRefill(refill) }),
          },
        }),
    ...(options.ratelimit.length === 0 ? {} : { ratelimits: options.ratelimit.map(parseRatelimit) }),
    ...(meta === undefined ? {} : { meta: parseJsonObject("meta", meta) }),
    ...(options.disabled ? { enabled: false } : {}),
    ...(options.recoverable ? { recoverable: true } : {}),
  };
}

function parseRefill(text: string): Schema<"Refill"> {
  const [interval = "", amount = "", day, ...rest] = text.split(":");
  if (rest.length > 0) throw invalidValue("refill", text, "daily:N or monthly:N:DAY");
  return {
    interval: parseChoice("refill", interval, ["daily", "monthly"]),
    amount: parseInteger("refill", amount, { min: 1, max: CREDITS_MAX }),
    ...(day === undefined ? {} : { refillDay: parseInteger("refill", day, { min: 1, max: 31 }) }),
  };
}
