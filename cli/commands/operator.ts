import { type OperatorConfig, startOperator } from "../../operator/start.ts";
import { duration, FILE, FOLDER, FOLLOWED_FILE, FOLLOWED_FOLDER, HTTP_URL, integer, oneOf, text } from "../accepts.ts";
import { defineCommand, splitList, UsageError } from "../command.ts";
import { type Followed, followed } from "../followed.ts";
import { adminPort } from "../options.ts";
import { runService } from "../process.ts";
import { checkRootKey, rootKeyFrom } from "../root-key.ts";
import { invalidValue, parseChoice, parseDurationOption, parseHttpUrl, parseInteger, parsePort } from "../values.ts";
import { parseWebhook, webhookOptions } from "./webhook-options.ts";

const LOG_FORMAT = oneOf("json", "text");
const RESYNC = duration({ minMs: 1_000, maxMs: 7 * 86_400_000 });
const CONCURRENCY = integer({ min: 1, max: 100, unit: "objects" });

export const operator = defineCommand({
  name: "operator",
  description:
    "Uses the workspace of its root key, or with --root-keys-dir that of each namespace (docs/multi-tenancy.md). Without --manifests it watches the cluster of --kubeconfig, or its own cluster.",
  options: {
    "api-url": {
      type: "string",
      placeholder: "URL",
      help: "URL of the api-server",
      required: true,
      env: "POSTERN_API_URL",
      accepts: HTTP_URL,
    },
    manifests: {
      type: "string",
      placeholder: "DIR",
      help: "directory of manifests to watch, instead of a cluster",
      env: "POSTERN_MANIFESTS",
      accepts: FOLLOWED_FOLDER,
    },
    "state-dir": {
      type: "string",
      placeholder: "DIR",
      help: "state directory for --manifests",
      default: ".postern/operator",
      env: "POSTERN_STATE_DIR",
      accepts: FOLDER,
    },
    kubeconfig: {
      type: "string",
      placeholder: "FILE",
      help: "kubeconfig file",
      env: "KUBECONFIG",
      accepts: FILE,
    },
    namespaces: {
      type: "string",
      placeholder: "NAME,NAME",
      help: "namespaces to watch (default: all)",
      env: "POSTERN_NAMESPACES",
      accepts: text("names", "separated by commas"),
    },
    cluster: {
      type: "string",
      placeholder: "NAME",
      help: "cluster name, part of each object's manager name; must never change (default: UID of kube-system, or `default` with --manifests)",
      env: "POSTERN_CLUSTER",
      accepts: text("name", "at most 63 letters, digits, `-`, `_` and `.`"),
    },
    "root-key-file": {
      type: "string",
      placeholder: "PATH",
      help: "file with the root key, instead of POSTERN_ROOT_KEY; reloaded on change",
      env: "POSTERN_ROOT_KEY_FILE",
      accepts: FOLLOWED_FILE,
    },
    "root-keys-dir": {
      type: "string",
      placeholder: "DIR",
      help: "directory with one root key file per workspace, named like the workspace; replaces the single root key",
      env: "POSTERN_ROOT_KEYS_DIR",
      accepts: FOLLOWED_FOLDER,
    },
    "default-workspace": {
      type: "string",
      placeholder: "NAME",
      help: "workspace of namespaces without a label; if omitted, their objects are rejected",
      env: "POSTERN_DEFAULT_WORKSPACE",
      accepts: text("name"),
    },
    "tenancy-file": {
      type: "string",
      placeholder: "FILE",
      help: "tenancy settings (YAML): workspaces of namespaces, and reserved names",
      env: "POSTERN_TENANCY_FILE",
      accepts: FOLLOWED_FILE,
    },
    "controller-class": {
      type: "string",
      placeholder: "NAME",
      help: "value of the label postern.dev/controller-class on this operator's objects (default: objects without the label)",
      env: "POSTERN_CONTROLLER_CLASS",
      accepts: text("name", "up to 32 lower-case letters, digits and `-`"),
    },
    "leader-election": {
      type: "boolean",
      help: "leader election among replicas",
      env: "POSTERN_LEADER_ELECTION",
    },
    "lease-name": {
      type: "string",
      placeholder: "NAME",
      help: "name of the Lease (default: `postern-operator`, plus `-` and the controller class)",
      env: "POSTERN_LEASE_NAME",
      accepts: text("name"),
    },
    "lease-namespace": {
      type: "string",
      placeholder: "NAME",
      help: "namespace of the Lease (default: the pod's or the kubeconfig context's)",
      env: "POSTERN_LEASE_NAMESPACE",
      accepts: text("name"),
    },
    "resync-interval": {
      type: "string",
      placeholder: "DURATION",
      help: "interval between full reconciles of each object",
      default: "5m",
      env: "POSTERN_RESYNC_INTERVAL",
      accepts: RESYNC,
    },
    concurrency: {
      type: "string",
      placeholder: "N",
      help: "concurrent reconciles per kind",
      default: "4",
      env: "POSTERN_CONCURRENCY",
      accepts: CONCURRENCY,
    },
    "log-format": {
      type: "string",
      placeholder: "json|text",
      help: "log format",
      default: "json",
      env: "POSTERN_LOG_FORMAT",
      accepts: LOG_FORMAT,
    },
    "admin-port": { ...adminPort, default: "8002" },
    ...webhookOptions,
  },
  run: (options, io) => {
    const logFormat = parseChoice("log-format", options["log-format"], LOG_FORMAT.words);
    const service = { name: "operator", env: io.env, deadlineMs: 10_000, logFormat };
    return runService(service, async ({ log, closers }) => {
      const namespaces = splitList(options.namespaces);
      const leaseNamespace = options["lease-namespace"];
      const controllerClass = parseClass(options);
      const running = await startOperator({
        source:
          options.manifests === undefined
            ? {
                kind: "kubernetes",
                env: io.env,
                ...(options.kubeconfig === undefined ? {} : { kubeconfig: options.kubeconfig }),
                ...(namespaces.length === 0 ? {} : { namespaces }),
              }
            : { kind: "directory", dir: options.manifests, stateDir: options["state-dir"] },
        apiUrl: parseHttpUrl("api-url", options["api-url"]),
        keys: keysOf(
          options["root-keys-dir"],
          followed({
            name: "root-key",
            value: io.env.POSTERN_ROOT_KEY,
            file: options["root-key-file"],
            log,
            accept: (text) => checkRootKey(text, rootKeyFrom(options)),
          }),
        ),
        ...(options["default-workspace"] === undefined ? {} : { defaultWorkspace: options["default-workspace"] }),
        ...(options["tenancy-file"] === undefined ? {} : { tenancyFile: options["tenancy-file"] }),
        ...(options.cluster === undefined ? {} : { cluster: parseCluster(options.cluster) }),
        controllerClass,
        ...(options["leader-election"]
          ? {
              lease: {
                name: options["lease-name"] ?? leaseName(controllerClass),
                ...(leaseNamespace === undefined ? {} : { namespace: leaseNamespace }),
              },
            }
          : {}),
        resyncMs: parseDurationOption("resync-interval", options["resync-interval"], RESYNC),
        concurrency: parseInteger("concurrency", options.concurrency, CONCURRENCY),
        admin: { host: "0.0.0.0", port: parsePort("admin-port", options["admin-port"]) },
        webhook: options.manifests === undefined ? parseWebhook(options) : undefined,
        logger: log,
      });
      closers.add("operator", () => running.close());
      log.info({ adminUrl: running.adminUrl, cluster: running.cluster }, "watching");
    });
  },
});

/** Parses the cluster name. It is the first part of manager names, whose parts are separated by slashes. */
function parseCluster(text: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(text)) return text;
  throw invalidValue("cluster", text, 'a name of up to 63 letters, digits, "-", "_" and "."');
}

/** Parses the controller class, which becomes a label value and part of the Lease name. */
function parseClass(
  options: Readonly<Record<"controller-class" | "manifests", string | undefined>>,
): string | undefined {
  const text = options["controller-class"];
  if (text === undefined) return undefined;
  if (options.manifests !== undefined) throw new UsageError("--controller-class is for a cluster, not for --manifests");
  if (/^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$/.test(text)) return text;
  throw invalidValue("controller-class", text, 'up to 32 lower-case letters, digits and "-"');
}

/** Each controller class has its own Lease, because operators of different controller classes run concurrently. */
const leaseName = (controllerClass: string | undefined): string =>
  controllerClass === undefined ? "postern-operator" : `postern-operator-${controllerClass}`;

/**
 * Returns the root keys. A single root key and a folder must not both be set, because it would be unclear which one applies to a namespace
 * without a workspace.
 */
function keysOf(rootKeysDir: string | undefined, rootKey: Followed | undefined): OperatorConfig["keys"] {
  if (rootKeysDir === undefined) {
    if (rootKey !== undefined) return { rootKey };
    throw new UsageError("no root key is set; set POSTERN_ROOT_KEY, --root-key-file or --root-keys-dir");
  }
  if (rootKey === undefined) return { rootKeysDir };
  throw new UsageError("--root-keys-dir excludes POSTERN_ROOT_KEY and --root-key-file");
}
