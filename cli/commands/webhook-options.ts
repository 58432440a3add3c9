import {
  DEFAULT_GATE_ADMIN_PORT,
  DEFAULT_GATE_PORT,
  DEFAULT_PRE_STOP_SECONDS,
  DEFAULT_RESOURCES,
} from "../../operator/injection/config.ts";
import { parseQuantity } from "../../operator/injection/quantity.ts";
import type { WebhookConfig } from "../../operator/webhook/start.ts";
import { duration, FOLLOWED_FOLDER, PORT, text } from "../accepts.ts";
import { splitList, UsageError } from "../command.ts";
import { parseDurationOption, parsePort } from "../values.ts";

/* Options of `postern operator` for its webhooks and injected gates. */

const PRE_STOP = duration({ minMs: 0, maxMs: 3_600_000 });

export const webhookOptions = {
  "gate-image": {
    type: "string",
    placeholder: "IMAGE",
    help: "gate image; enables the admission webhooks, which inject gates into guarded pods",
    env: "POSTERN_GATE_IMAGE",
    accepts: text("image"),
  },
  "webhook-port": {
    type: "string",
    placeholder: "PORT",
    help: "port of the admission webhooks",
    default: "19443",
    env: "POSTERN_WEBHOOK_PORT",
    accepts: PORT,
  },
  "webhook-hosts": {
    type: "string",
    placeholder: "NAME,NAME",
    help: "host names of the webhook Service",
    default: "postern-webhook.postern.svc",
    env: "POSTERN_WEBHOOK_HOSTS",
    accepts: text("names", "separated by commas"),
  },
  "webhook-configuration": {
    type: "string",
    placeholder: "NAME",
    help: "name of the mutating and validating webhook configurations, which receive the CA bundle",
    default: "postern",
    env: "POSTERN_WEBHOOK_CONFIGURATION",
    accepts: text("name"),
  },
  "webhook-secret": {
    type: "string",
    placeholder: "NAME",
    help: "Secret in the operator's namespace for the certificate and CA of all replicas",
    default: "postern-webhook",
    env: "POSTERN_WEBHOOK_SECRET",
    accepts: text("name"),
  },
  "webhook-cert-dir": {
    type: "string",
    placeholder: "DIR",
    help: "directory with tls.crt and tls.key, for example from cert-manager, instead of a self-signed certificate",
    env: "POSTERN_WEBHOOK_CERT_DIR",
    accepts: FOLLOWED_FOLDER,
  },
  "gate-port": {
    type: "string",
    placeholder: "PORT",
    help: "port of the gate; in pods that already use it, the next free port",
    default: String(DEFAULT_GATE_PORT),
    env: "POSTERN_GATE_PORT",
    accepts: PORT,
  },
  "gate-admin-port": {
    type: "string",
    placeholder: "PORT",
    help: "port of the gate for probes and metrics; in pods that already use it, the next free port",
    default: String(DEFAULT_GATE_ADMIN_PORT),
    env: "POSTERN_GATE_ADMIN_PORT",
    accepts: PORT,
  },
  "gate-secret": {
    type: "string",
    placeholder: "NAME",
    help: "Secret in the pods' namespaces with environment variables for gates, such as REDIS_URL",
    env: "POSTERN_GATE_SECRET",
    accepts: text("name"),
  },
  "gate-env": {
    type: "string",
    placeholder: "NAME=VALUE,…",
    help: "additional environment variables of gates",
    env: "POSTERN_GATE_ENV",
    accepts: text("pairs", "`NAME=VALUE`, separated by commas"),
  },
  "gate-token-audience": {
    type: "string",
    placeholder: "NAME",
    help: "audience of the ServiceAccount token mounted into gates (default: no token)",
    env: "POSTERN_GATE_TOKEN_AUDIENCE",
    accepts: text("name"),
  },
  "gate-resources": {
    type: "string",
    placeholder: "NAME=QUANTITY,…",
    help: "resources of gates: cpu-request, cpu-limit, memory-request, memory-limit; pod annotations override them",
    default: "cpu-request=10m,memory-request=64Mi,memory-limit=320Mi",
    env: "POSTERN_GATE_RESOURCES",
    accepts: text("quantities"),
  },
  "redirect-image": {
    type: "string",
    placeholder: "IMAGE",
    help: "image with sh, iptables and ip6tables, for `interception: Redirect`",
    env: "POSTERN_REDIRECT_IMAGE",
    accepts: text("image"),
  },
  "pre-stop-sleep": {
    type: "string",
    placeholder: "DURATION",
    help: "preStop sleep of app containers without a preStop hook in guarded pods; 0 disables it",
    default: `${DEFAULT_PRE_STOP_SECONDS}s`,
    env: "POSTERN_PRE_STOP_SLEEP",
    accepts: PRE_STOP,
  },
} as const;

type Given = { readonly [Name in keyof typeof webhookOptions]?: string | undefined };

/** Returns the webhook configuration; `undefined` without a gate image. Throws `UsageError` for invalid values. */
export function parseWebhook(options: Given): WebhookConfig | undefined {
  const gateImage = options["gate-image"];
  if (gateImage === undefined || gateImage === "") return undefined;
  const hosts = splitList(options["webhook-hosts"]);
  if (hosts.length === 0) throw new UsageError("--webhook-hosts: expected at least one name");
  const certDir = options["webhook-cert-dir"];
  const secretName = options["webhook-secret"] ?? "";
  const port = (name: "webhook-port" | "gate-port" | "gate-admin-port") => parsePort(name, options[name] ?? "");
  return {
    host: "0.0.0.0",
    port: port("webhook-port"),
    hosts,
    configurationName: options["webhook-configuration"] ?? "",
    certificate: certDir === undefined ? { secretName } : { dir: certDir },
    injection: {
      gateImage,
      redirectImage: options["redirect-image"],
      gatePort: port("gate-port"),
      adminPort: port("gate-admin-port"),
      secret: options["gate-secret"],
      env: Object.fromEntries(parsePairs("gate-env", options["gate-env"])),
      tokenAudience: options["gate-token-audience"],
      resources: parseResources(options["gate-resources"]),
      preStopSeconds: Math.ceil(
        parseDurationOption("pre-stop-sleep", options["pre-stop-sleep"] ?? "", PRE_STOP) / 1_000,
      ),
    },
  };
}

const RESOURCES = {
  "cpu-request": "cpuRequest",
  "cpu-limit": "cpuLimit",
  "memory-request": "memoryRequest",
  "memory-limit": "memoryLimit",
} as const;

function parseResources(text: string | undefined): WebhookConfig["injection"]["resources"] {
  const resources = { ...DEFAULT_RESOURCES };
  for (const [name, value] of parsePairs("gate-resources", text)) {
    if (!isResource(name) || parseQuantity(value) === undefined) {
      throw new UsageError(`--gate-resources: expected ${Object.keys(RESOURCES).join(", ")}, each with a quantity`);
    }
    Object.assign(resources, { [RESOURCES[name]]: value });
  }
  return resources;
}

const isResource = (name: string): name is keyof typeof RESOURCES => Object.hasOwn(RESOURCES, name);

function parsePairs(option: string, text: string | undefined): [string, string][] {
  return splitList(text).map((pair) => {
    const [, name, value] = /^([A-Za-z][\w-]*)=(.*)$/.exec(pair) ?? [];
    if (name === undefined || value === undefined)
      throw new UsageError(`--${option}: expected NAME=VALUE, got ${pair}`);
    return [name, value];
  });
}
