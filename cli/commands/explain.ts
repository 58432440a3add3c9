import type { Data, Input } from "../../core/api/procedures.ts";
import type { Api } from "../api/client.ts";
import { withApi } from "../api/connection.ts";
import { pagesOf } from "../api/pages.ts";
import { defineCommand, type Io, UsageError } from "../command.ts";
import { formatExplanation } from "../explanation.ts";
import { instantText, printable, printableJson } from "../fields.ts";
import { connection, json } from "../options.ts";
import { EXIT_CODES_HELP, exitCodeOf } from "../outcomes.ts";
import { parseHeaders, parseRequestLine } from "../request-line.ts";
import { parseInteger } from "../values.ts";
import { readKeySecret } from "./key/secret.ts";

const POLICIES_MAX = 100_000;
const CREDITS_MAX = 1_000_000_000_000;

export const explain = defineCommand({
  name: "explain",
  description: `Shows each step of keys.explainVerification with its value, its source and the age of the data. Charges nothing. Explains a keys.verifyKey call, or with --policy a request at the gate. Requires read_key and verify_key on the API; with --request-id also workspace.*.explain, and with a policy name read_api on the APIs of all policies. ${EXIT_CODES_HELP}`,
  options: {
    "key-id": { type: "string", placeholder: "ID", help: "key id (key_…)" },
    "key-file": {
      type: "string",
      placeholder: "PATH",
      help: "file with the key, instead of --key-id; - reads standard input",
    },
    "request-id": {
      type: "string",
      placeholder: "ID",
      help: "request id (req_…), up to 7 days old; shows its stored verification and explains its key as of now",
    },
    policy: {
      type: "string",
      placeholder: "POLICY",
      help: "policy of the gate: [CLUSTER/]NAMESPACE/NAME of its manifest, or its id",
    },
    request: {
      type: "string",
      placeholder: "'METHOD PATH'",
      help: "request at the gate (default 'GET /'; required with a gate's --request-id)",
    },
    host: { type: "string", placeholder: "HOST", help: "host of the request at the gate" },
    header: { type: "string", placeholder: "'NAME: VALUE'", help: "header of the request at the gate", repeats: true },
    "client-ip": { type: "string", placeholder: "ADDRESS", help: "client address" },
    permissions: { type: "string", placeholder: "QUERY", help: "permission query of the keys.verifyKey call" },
    credits: { type: "string", placeholder: "N", help: "cost of the keys.verifyKey call in credits (default 1)" },
    ...connection,
    json,
  },
  response: '{"code","allowed","status","steps","permissions","limits","now", and members of the key}',
  run: async (options, io) => {
    const named = ["key-id", "key-file", "request-id"].filter((name) => options[name as "key-id"] !== undefined);
    if (named.length !== 1) throw new UsageError("set exactly one of --key-id, --key-file and --request-id");
    const circumstances = readCircumstances(options);
    const { policy, "request-id": requestId } = options;
    const key = options["key-file"] === undefined ? undefined : { key: await readKeySecret(io, options["key-file"]) };
    return withApi(
      options,
      io,
      async (api) => {
        const of = { ...circumstances, ...(policy === undefined ? {} : { policyId: await findPolicyId(api, policy) }) };
        if (requestId !== undefined)
          return explainRequest(api, io, { requestId, circumstances: of, json: options.json });
        const asked = await ask(api, { ...(key ?? { keyId: options["key-id"] ?? "" }), ...of });
        return show(io, asked, options.json);
      },
      key === undefined ? [] : [key.key],
    );
  },
});

type Explained = Data<"keys.explainVerification">;
type Body = Input<"keys.explainVerification">;

interface Options {
  readonly policy: string | undefined;
  readonly "request-id": string | undefined;
  readonly request: string | undefined;
  readonly host: string | undefined;
  readonly header: readonly string[];
  readonly "client-ip": string | undefined;
  readonly permissions: string | undefined;
  readonly credits: string | undefined;
}

function readCircumstances({
  policy,
  "request-id": requestId,
  request,
  host,
  header,
  "client-ip": clientIp,
  permissions,
  credits,
}: Options): Omit<Body, "key"> {
  if (policy === undefined && requestId === undefined) {
    const given = Object.entries({ request, host, header: header[0] }).find(([, value]) => value !== undefined);
    if (given !== undefined)
      throw new UsageError(
        `--${given[0]} requires --policy, because a keys.verifyKey call has no path, host or headers`,
      );
  }
  if (policy !== undefined && (permissions ?? credits) !== undefined) {
    throw new UsageError(
      "--permissions and --credits apply only to keys.verifyKey; with --policy the rules of the policy set them",
    );
  }
  return {
    ...(request === undefined ? {} : parseRequestLine("request", request)),
    ...(host === undefined ? {} : { host }),
    ...(header.length === 0
      ? {}
      : { headers: parseHeaders("header", header).map(([name, value]) => ({ name, value })) }),
    ...(clientIp === undefined ? {} : { clientIp }),
    ...(permissions === undefined ? {} : { permissions }),
    ...(credits === undefined
      ? {}
      : { credits: { cost: parseInteger("credits", credits, { min: 0, max: CREDITS_MAX }) } }),
  };
}

/**
 * Returns the id of the policy whose name or id is `text`. Throws if no policy has this name, or if policies of several clusters have it.
 */
async function findPolicyId(api: Api, text: string): Promise<string> {
  if (!text.includes("/")) return text;
  const found: string[] = [];
  const names: string[] = [];
  for await (const { rows } of pagesOf(api, "policies.listPolicies", {}, { max: POLICIES_MAX, cursor: undefined })) {
    for (const { policyId, name } of rows) {
      if (name !== text && !name.endsWith(`/${text}`)) continue;
      found.push(policyId);
      names.push(name);
    }
  }
  const [policyId] = found;
  if (policyId === undefined) {
    throw new Error(`no policy is named ${text}; \`kubectl get akp -A -o wide\` lists the policies with their ids`);
  }
  if (found.length > 1)
    throw new Error(`several policies are named ${text}; set --policy to one of ${names.join(", ")}`);
  return policyId;
}

const ask = async (api: Api, body: Body): Promise<Explained> => (await api.call("keys.explainVerification", body)).data;

function show(io: Io, explained: Explained, asJson: boolean): number {
  if (asJson) io.out(printableJson(explained));
  else for (const line of [...formatExplanation(explained, io.columns), ...aboutKey(explained)]) io.out(line);
  return exitCodeOf(explained.code, explained.allowed);
}

function aboutKey({ keyId, keyName, externalId, apiId, stores, dataPlane }: Explained): string[] {
  if (keyId === undefined) return [];
  const parts = [
    `key ${keyId}`,
    ...(keyName === undefined ? [] : [`named ${keyName}`]),
    ...(externalId === undefined ? [] : [`of ${externalId}`]),
    ...(apiId === undefined ? [] : [`for ${apiId}`]),
  ];
  const gates =
    stores === undefined ? [] : [stores.isSame ? "gates have the same record" : `gates: ${stores.gates.state}`];
  return ["", printable([...parts, ...gates].join(", ")), ...aboutGates(dataPlane)];
}

function aboutGates(dataPlane: Explained["dataPlane"]): string[] {
  if (dataPlane === undefined) return [];
  const { pods, updated, maxStalenessMs, unsupported } = dataPlane;
  if (pods === 0) return ["no sidecar has reported that it enforces the policy"];
  const others =
    unsupported === undefined ? "" : `; ${unsupported.pods} cannot enforce it: ${printable(unsupported.reason)}`;
  return [
    `${updated} of ${pods} sidecars enforce this version, their data is at most ${maxStalenessMs} ms old${others}`,
  ];
}

const DAY_MS = 86_400_000;

async function explainRequest(
  api: Api,
  io: Io,
  of: { readonly requestId: string; readonly circumstances: Omit<Body, "key">; readonly json: boolean },
): Promise<number> {
  const { requestId, circumstances, json: asJson } = of;
  // The margin of one minute allows for a clock difference between this machine and the server.
  const since = Date.now() - 7 * DAY_MS + 60_000;
  const { data } = await api.call("admin.explainRequest", { requestId, since });
  if (data.problem !== undefined) throw new Error(data.problem);
  const [first] = data.verifications;
  if (first === undefined) {
    throw new Error(
      `no verification of ${requestId} is stored for the last 7 days; events arrive some seconds after a request, and requests without a known key have none`,
    );
  }
  const then = data.verifications.map(({ time, outcome, source, policyId, keyId }) => {
    const by = source === "sidecar" ? `the gate of ${policyId}` : "the API";
    return printable(`then: ${outcome}, decided ${instantText(time)} by ${by} for ${keyId}`);
  });
  const { policyId = circumstances.permissions === undefined ? first.policyId : "" } = circumstances;
  if (policyId !== "" && circumstances.path === undefined) {
    // A gate does not store the method and path, so they must be given. Without them, the explanation could show VALID for a request that
    // was rejected.
    for (const line of then) io.note(line);
    throw new UsageError(`a gate does not store the method and path of ${requestId}; set --request`);
  }
  const explained = await ask(api, { keyId: first.keyId, ...circumstances, ...(policyId === "" ? {} : { policyId }) });
  if (asJson) {
    io.out(printableJson({ ...explained, request: data }));
    return exitCodeOf(explained.code, explained.allowed);
  }
  for (const line of then) io.out(line);
  // Prints the assumed permissions and cost, because the original ones are unknown. If the original ones caused the rejection, the
  // explanation can show VALID.
  const { permissions = "none", credits } = circumstances;
  const call = ` (permissions: ${permissions}, cost: ${credits?.cost ?? 1}; the original values are not stored, set --permissions and --credits)`;
  io.out(`now${policyId === "" ? printable(call) : ""}:`);
  return show(io, explained, false);
}
