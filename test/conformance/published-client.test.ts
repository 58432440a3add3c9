import { APIError } from "@unkey/api/models/errors/apierror.js";
import * as errors from "@unkey/api/models/errors/index.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildOpenApi } from "../../api-server/plugins/openapi.ts";
import { sampleCallsOf } from "../../api-server/test/every-procedure.ts";
import { absent, findReferences, type OpenApi, valueIn, withValue } from "../../api-server/test/references.ts";
import type { Resources } from "../../api-server/test/resources.ts";
import { procedures } from "../../api-server/v2/index.ts";
import { ERROR_KINDS } from "../../core/errors.ts";
import { type Call, type Called, listProcedures, makeClient } from "./client.ts";
import { type Server, startServer } from "./server.ts";

/*
 * The published client for this interface (`@unkey/api`), against a running server. It validates every
 * response with its own schemas, and throws its own error class for each status that it knows.
 */

let server: Server;
let rootKey: string;
let resources: Resources;
let call: Call;
beforeAll(async () => {
  server = await startServer();
  ({ rootKey, resources } = await server.workspace());
  ({ call } = makeClient(server.url, rootKey));
});
afterAll(() => server.close());

/** Services and single procedures of the client that are not part of the interface that Postern serves, and why. */
const OUTSIDE: Readonly<Record<string, string>> = {
  "analytics.getGatewayRequests": "requests at the gateway of another product",
  "analytics.getRuntimeLogs": "running apps is another product",
  apps: "running apps is another product",
  deployments: "running apps is another product",
  domains: "running apps is another product",
  environments: "running apps is another product",
  gateway: "the gateway of that other product; Postern's own is the sidecar, by manifests",
  github: "running apps is another product",
  internal: "running apps is another product",
  portal: "pages for the customers of that other product",
  projects: "running apps is another product",
};

const serviceOf = (path: string): string => path.slice(0, path.indexOf("."));
const inside = listProcedures().filter((path) => !(path in OUTSIDE || serviceOf(path) in OUTSIDE));
const referencesByPath = findReferences(buildOpenApi(procedures) as unknown as OpenApi);

test("every procedure of the published client is served except the listed ones", () => {
  const served = new Set<string>(procedures.map(({ path }) => path));
  expect(inside.filter((path) => !served.has(path))).toEqual([]);
  const known = new Set(listProcedures().flatMap((path) => [path, serviceOf(path)]));
  expect(Object.keys(OUTSIDE).filter((name) => !known.has(name))).toEqual([]);
});

test("published client covers every procedure except Postern additions", () => {
  const missing = procedures.filter(({ path, addition }) => addition !== true && !inside.includes(path));
  expect(missing.map(({ path }) => path)).toEqual([]);
});

/** By status: the client's error class for it. */
const CLASSES = {
  400: errors.BadRequestErrorResponse,
  401: errors.UnauthorizedErrorResponse,
  403: errors.ForbiddenErrorResponse,
  404: errors.NotFoundErrorResponse,
  409: errors.ConflictErrorResponse,
  410: errors.GoneErrorResponse,
  412: errors.PreconditionFailedErrorResponse,
  429: errors.TooManyRequestsErrorResponse,
} as const;
type Status = keyof typeof CLASSES | 413;

/**
 * Returns why the client cannot make its own error class from an error, although it knows the status from the response. Its
 * user then gets an `APIError` with `statusCode` and `body`.
 */
function whyUntyped(path: string, status: Status): string | undefined {
  if (path === "identities.deleteIdentity") {
    return "it asks for application/json, which is what errors then are, and looks for application/problem+json";
  }
  if (status === 429) return "the same, for every procedure";
  if (status === 413) return "it knows no such status, for any procedure";
  return UNKNOWN_STATUSES[path]?.includes(status) === true ? "it knows no such status of this procedure" : undefined;
}

const UNKNOWN_STATUSES: Readonly<Record<string, readonly Status[]>> = {
  "permissions.deleteRole": [404],
  "apis.listKeys": [412],
  "keys.createKey": [412],
  "keys.getKey": [412],
  "keys.rerollKey": [412],
  "keys.verifyKey": [412],
};

/** Expects the error, as the client's own class where possible, with everything that the server said. */
async function expectError(path: string, status: Status, body: unknown, by: Call = call): Promise<void> {
  const error = await by(path, body).then(
    ({ sent }) => Promise.reject(new Error(`${path} succeeded: ${JSON.stringify(sent)}`)),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof errors.UnkeyError)) throw error;
  expect([error.statusCode, error.body]).toEqual([status, expect.stringContaining(`"status":${status}`)]);
  const untyped = whyUntyped(path, status);
  if (untyped !== undefined || status === 413) {
    // Exactly this class: with another one, the reason above would be wrong.
    expect(error.constructor, untyped).toBe(APIError);
    return;
  }
  expect(error).toBeInstanceOf(CLASSES[status]);
  const { meta, error: said } = error as errors.NotFoundErrorResponse;
  expect({ meta, error: said }).toEqual(JSON.parse(error.body));
}

/** Nothing was sent that the client does not know, and nothing that it requires is missing. */
function expectWholly(path: string, { result, sent }: Called): void {
  const { data, ...others } = sent as { data: unknown };
  // The only success body that the client expects without `data`.
  expect(result).toEqual(path === "identities.deleteIdentity" ? others : { data, ...others });
}

/** A body that its schema refuses: an empty text where there is a text, otherwise a page size of 0. */
function broken(body: unknown): unknown {
  if (Array.isArray(body)) return body.map(broken);
  const [name] = Object.entries(body as object).find(([, value]) => typeof value === "string") ?? [];
  return name === undefined ? { ...(body as object), limit: 0 } : { ...(body as object), [name]: "" };
}

describe.each(inside.filter((path) => procedures.some((one) => one.path === path)))("%s", (path) => {
  const errorStatuses = new Set<number>(
    procedures.find((one) => one.path === path)?.errors.map((kind) => ERROR_KINDS[kind].status),
  );

  test.each(Object.entries(sampleCallsOf(path)))(
    "published client call succeeds: %s",
    async (_circumstance, makeCall) => {
      expectWholly(path, await call(path, (await makeCall(resources)).body));
    },
  );

  test("published client gets 400 for an invalid body", async () => {
    await expectError(path, 400, broken((await sampleCallsOf(path).always(resources)).body));
  });

  test("published client gets 401 for an unknown root key", async () => {
    const { call } = makeClient(server.url, "nobody");
    await expectError(path, 401, (await sampleCallsOf(path).always(resources)).body, call);
  });

  test("published client gets 403 for a root key without permissions", async () => {
    const { call } = makeClient(server.url, await server.rootKey(resources.workspaceId, []));
    await expectError(path, 403, (await sampleCallsOf(path).always(resources)).body, call);
  });

  test("published client gets 429 when the workspace quota is exhausted", async () => {
    const { rootKey } = await server.workspace({ quotaPerMinute: 0 });
    const { call } = makeClient(server.url, rootKey);
    await expectError(path, 429, (await sampleCallsOf(path).always(resources)).body, call);
  });

  if (!errorStatuses.has(404)) return;
  const references = referencesByPath.get(path) ?? [];
  test("published client gets 404 for a missing object", async () => {
    const { body } = await sampleCallsOf(path).always(resources);
    const reference = references.find((one) => typeof valueIn(body, one) === "string");
    if (reference === undefined) throw new Error(`the ordinary sample call of ${path} names nothing`);
    await expectError(path, 404, withValue(body, reference, absent(String(valueIn(body, reference)))));
  });
});

describe("409 for an existing object", () => {
  test.each(["identities.createIdentity", "permissions.createPermission", "permissions.createRole"])(
    "published client gets 409 for an existing object from %s",
    async (path) => {
      const { body } = await sampleCallsOf(path).always(resources);
      await call(path, body);
      await expectError(path, 409, body);
    },
  );
});

describe("410 for a deleted namespace", () => {
  test.each(["ratelimit.limit", "ratelimit.multiLimit"])(
    "published client gets 410 for a deleted namespace from %s",
    async (path) => {
      const { body, namespaceId } = await sampleCallsOf(path).always(resources);
      await resources.ask("ratelimit.deleteNamespace", { namespace: namespaceId });
      await expectError(path, 410, body);
    },
  );
});

describe("412 for an unmet precondition", () => {
  test("published client gets 412 for apis.deleteApi with delete protection", async () => {
    const apiId = await resources.api();
    await server.query("update apis set delete_protection = true where id = $1", [apiId]);
    await expectError("apis.deleteApi", 412, { apiId });
  });

  test("published client gets 412 for keys.verifyKey with an unknown limit", async () => {
    const { key } = await resources.key();
    await expectError("keys.verifyKey", 412, { key, ratelimits: [{ name: "unknown" }] });
  });

  test("published client gets 412 for recoverable keys without key encryption", async () => {
    const { apiId, keyId } = await resources.key();
    await expectError("keys.createKey", 412, { apiId, recoverable: true });
    await expectError("keys.getKey", 412, { keyId, decrypt: true });
    await expectError("apis.listKeys", 412, { apiId, decrypt: true });
    const recoverable = await sampleCallsOf("keys.rerollKey").recoverable?.(resources);
    await server.query("update apis set key_encryption = false where id = $1", [recoverable?.apiId]);
    await expectError("keys.rerollKey", 412, recoverable?.body);
  });
});

test("published client gets 413 for a body over 10 MiB", async () => {
  await expectError("apis.createApi", 413, { name: "n".repeat(11 * 1024 * 1024) });
});

test("published client gets 400 with the position for an invalid permission query", async () => {
  const { key } = await resources.key();
  await expectError("keys.verifyKey", 400, { key, permissions: "a AND" });
});
