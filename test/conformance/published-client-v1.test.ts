import { Unkey } from "unkey-api-v1";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { JsonSchema } from "../../api-server/plugins/json-schema.ts";
import { v1FailureOf } from "../../api-server/plugins/v1/errors.ts";
import { buildV1OpenApi } from "../../api-server/plugins/v1/openapi.ts";
import { sampleCallsOf } from "../../api-server/test/every-procedure.ts";
import { schemaValidator } from "../../api-server/test/openapi-checks.ts";
import type { Resources } from "../../api-server/test/resources.ts";
import { v1Procedures } from "../../api-server/v1/index.ts";
import { isOpen } from "../../api-server/v1/procedure.ts";
import { hashKey } from "../../core/keys/key-string.ts";
import { waitFor } from "../harness/wait.ts";
import { type Server, startServer } from "./server.ts";

/*
 * The client that users of v1 have (`@unkey/api` 0.38.0), against a running server. It passes on what the server answers, so what it
 * returns is compared with the OpenAPI document of v1. Two things it cannot do with any server but that which it was made for, and
 * with ours no better: its function `verifyKey` names no server, so its users call `new Unkey({ baseUrl, … }).keys.verify`; and a list in
 * a query is sent with commas between its items, which v1 splits in `keyId` and `groupBy` of analytics.getVerifications alone.
 */

interface Sent {
  readonly path: readonly string[];
  readonly method: string;
}
type Returned = { result?: unknown; error?: { code: string; message: string; docs: string; requestId: string } };
type Methods = Record<string, Record<string, (input: unknown) => Promise<Returned>>>;

/** The client, and the last request that it made. Without retries, because a test needs the first answer. */
function makeClient(baseUrl: string, rootKey: string) {
  const client = new Unkey({ baseUrl, rootKey, retry: { attempts: 0 } });
  let last: Sent | undefined;
  const inner = client as unknown as { fetch: (request: Sent) => Promise<unknown> };
  const send = inner.fetch.bind(client);
  inner.fetch = (request) => {
    last = request;
    return send(request);
  };
  return { methods: client as unknown as Methods, last: () => last };
}

/** By the path of a procedure: the service and the method of the client that calls it. Found by calling all, to a port that refuses. */
async function findMethods(): Promise<Map<string, readonly [service: string, method: string]>> {
  const { methods, last } = makeClient("http://127.0.0.1:9", "none");
  const getters = Object.entries(Object.getOwnPropertyDescriptors(Unkey.prototype)).filter(([, { get }]) => get);
  const found = new Map<string, readonly [string, string]>();
  for (const [service] of getters) {
    for (const [method, call] of Object.entries(methods[service] ?? {})) {
      await call({});
      found.set(last()?.path[1] ?? "", [service, method]);
    }
  }
  return found;
}

const methodByPath = await findMethods();

/** What the client cannot call. Its users send such requests by themselves. */
const NOT_IN_THE_CLIENT: readonly string[] = [
  "apis.deleteKeys",
  "keys.whoami",
  "liveness",
  // The leftovers.
  "apis/:apiId/keys",
  "keys",
  "keys/verify",
];

test("server serves every procedure of the published v1 client", () => {
  const served = new Set(v1Procedures.map(({ path }) => path));
  expect([...methodByPath.keys()].filter((path) => !served.has(path))).toEqual([]);
});

test("published v1 client covers every v1 procedure except the listed ones", () => {
  const missing = v1Procedures.filter(({ path }) => !methodByPath.has(path));
  expect(missing.map(({ path }) => path).toSorted()).toEqual(NOT_IN_THE_CLIENT.toSorted());
});

/** Procedures that no content can be wrong for. */
const TAKES_NOTHING: ReadonlySet<string> = new Set(["permissions.listPermissions", "permissions.listRoles"]);

interface Operation {
  readonly responses: Readonly<Record<string, { readonly content: Readonly<Record<string, { schema: JsonSchema }>> }>>;
  readonly parameters?: readonly { readonly name: string }[];
}

const document = JSON.parse(JSON.stringify(buildV1OpenApi(v1Procedures))) as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, JsonSchema>> };
};
const validator = schemaValidator(document.components.schemas);

let server: Server;
let rootKey: string;
let resources: Resources;
beforeAll(async () => {
  server = await startServer();
  ({ rootKey, resources } = await server.workspace());
});
afterAll(() => server.close());

const called = v1Procedures.flatMap((procedure) => {
  const names = methodByPath.get(procedure.path);
  return names === undefined ? [] : [{ path: procedure.path, procedure, names }];
});

describe.each(called)("$path", ({ path, procedure, names: [service, method] }) => {
  const call = async (input: unknown, by = rootKey): Promise<Returned> => {
    const { methods } = makeClient(server.url, by);
    const found = methods[service]?.[method];
    if (found === undefined) throw new Error(`the client has no ${service}.${method}`);
    return found(input);
  };
  const operation: Operation = document.paths[`/v1/${path}`]?.[procedure.method.toLowerCase()] ?? { responses: {} };
  const { responses } = operation;
  const expectFit = (status: number, body: unknown) => {
    const isFitting = validator(responses[status]?.content["application/json"]?.schema ?? { not: {} });
    expect([body, isFitting(body), isFitting.errors]).toEqual([body, true, null]);
  };

  test.each(Object.entries(sampleCallsOf(`v1/${path}`)))(
    "published v1 client call succeeds: %s",
    async (_circumstance, makeCall) => {
      const { body } = await makeCall(resources);
      const { result, error } = await call(body);
      expect(error).toBeUndefined();
      expectFit(procedure.status ?? 200, result);
    },
  );

  test("published v1 client without a valid root key gets UNAUTHORIZED where one is required", async () => {
    const { body } = await sampleCallsOf(`v1/${path}`).always(resources);
    const { result, error } = await call(body, "root_unknown");
    if (isOpen(procedure)) {
      expect(error).toBeUndefined();
      return;
    }
    expect(result).toBeUndefined();
    expect(error?.code).toBe("UNAUTHORIZED");
    expectFit(401, { error });
  });

  if (TAKES_NOTHING.has(path)) return;
  test("published v1 client gets BAD_REQUEST with the location for invalid content", async () => {
    const { body } = await sampleCallsOf(`v1/${path}`).always(resources);
    const { parameters = [] } = operation;
    const { error } = await call(
      broken(
        body,
        parameters.map(({ name }) => name),
      ),
    );
    expect(error?.code, JSON.stringify(error)).toBe("BAD_REQUEST");
    expect(error?.message).toMatch(/^[\w.]+: /);
    expectFit(400, { error });
  });
});

/** With a page size of 0 where there are pages, else with an empty text as the first member. */
function broken(body: unknown, parameters: readonly string[]): unknown {
  if (Array.isArray(body)) return body.map((one) => broken(one, parameters));
  if (parameters.includes("limit")) return { ...(body as object), limit: 0 };
  const [name = "name"] = Object.keys(body as object);
  return { ...(body as object), [name]: "" };
}

test("keys enqueued by the published v1 client verify by secret and by hash", async () => {
  const { methods } = makeClient(server.url, rootKey);
  const [one, two] = [resources.name("secret"), resources.name("secret")];
  const keys = [{ plaintext: one }, { hash: { value: hashKey(two), variant: "sha256_base64" } }];
  const reply = await methods.migrations?.enqueueKeys?.({ migrationId: "mig", apiId: await resources.api(), keys });
  expect(reply).toMatchObject({ result: {} });
  for (const key of [one, two]) {
    const isValid = async () => {
      const verified = await methods.keys?.verify?.({ key });
      return (verified as { result: { code: string } }).result.code === "VALID";
    };
    await waitFor("the key to be created", isValid);
  }
});

test("published v1 client gets NOT_FOUND for a missing object", async () => {
  const { methods } = makeClient(server.url, rootKey);
  const reply = await methods.apis?.get?.({ apiId: "api_none" });
  expect(reply?.error?.code).toBe(v1FailureOf("api_not_found").code);
});
