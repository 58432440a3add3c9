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
  summary: "issue a key of an API",
  description:
    "The key itself is the only thing on standard output, so that it can be piped on: without the end of a line where that is no terminal. It is shown this once, unless it is recoverable. Needs create_key on the API.",
  options: {
    api: { type: "string", placeholder: "ID", help: "the API that the key is for, api_…", required: true },
    name: { type: "string", placeholder: "TEXT", help: "its name in lists; its owner does not see it" },
    prefix: {
      type: "string",
      placeholder: "WORD",
      help: "how the key begins, such as shop; that of the API when left out",
    },
    "byte-length": { type: "string", placeholder: "N", help: "random bytes of the key; as the API says when left out" },
    "external-id": {
      type: "string",
      placeholder: "ID",
      help: "your own id of its owner, whose identity is made when missing",
    },
    expires: { type: "string", placeholder: "TIME", help: "when it expires: 2026-12-31, 2026-12-31T18:00:00Z, 30d" },
    role: { type: "string", placeholder: "NAME", help: "a role that it has", repeats: true },
    permissions,
    credits: { type: "string", placeholder: "N", help: "how often it may be used; without end when left out" },
    refill: {
      type: "string",
      placeholder: "daily:N|monthly:N:DAY",
      help: "credits that are added, such as daily:100 or, on the 15th, monthly:3000:15; wants --credits",
    },
    ratelimit,
    meta: { type: "string", placeholder: "JSON", help: "your own data, which each verification returns" },
    disabled: { type: "boolean", help: "it is refused until `postern key enable`" },
    recoverable: { type: "boolean", help: "it can be shown again, where the API allows that" },
    ...connection,
    json,
  },
  response: objectShape(madeKeyFields),
  run: async (options, io) => {
    const body = bodyOf(options);
    const { data: made } = await withApi(options, io, (api) => api.call("keys.createKey", body));
    const keeps = options.recoverable ? "`postern key get --decrypt` shows it again" : "it is shown this once";
    printMade(io, options, { made, note: `key ${made.keyId} is made; ${keeps}` });
    return 0;
  },
});

/** Prints a key that was made just now. */
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
