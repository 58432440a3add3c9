import { controlPlaneAclRules, podAclRules } from "../../edge/redis/acl.ts";
import { defineCommand, UsageError } from "../command.ts";
import { json, redisPrefix } from "../options.ts";

export const redisAcl = defineCommand({
  name: "redis-acl",
  description:
    "Prints a command for redis-cli; add a password as `>password` or `#sha256`. A pod's user reads the records of its workspace, writes counters, credits, events and its own report, and runs scripts that api-servers have loaded. Requires Redis 7 or later.",
  options: {
    workspace: { type: "string", placeholder: "ID", help: "id of the pods' workspace" },
    "control-plane": { type: "boolean", help: "print the rules of the api-servers' user, for all workspaces" },
    "allow-user-management": {
      type: "boolean",
      help: "with --control-plane: allow user management, which --gate-credentials-cluster requires",
    },
    events: { type: "boolean", help: "print the pods' ACL rules for a separate Redis that stores events" },
    eval: { type: "boolean", help: "allow pods to load scripts, if no api-server loads them" },
    user: { type: "string", placeholder: "NAME", help: "user name (default: derived from the workspace id)" },
    "redis-prefix": redisPrefix,
    json,
  },
  response: '{"user","rules"}',
  run: async (options, io) => {
    const { workspace, "control-plane": isControlPlane, events } = options;
    if ((workspace === undefined) !== isControlPlane) throw new UsageError("set either --workspace or --control-plane");
    if (isControlPlane && (events || options.eval))
      throw new UsageError("--events and --eval are only for the pods' user");
    if (options["allow-user-management"] && !isControlPlane)
      throw new UsageError("--allow-user-management is only for --control-plane");
    const prefix = options["redis-prefix"];
    const user = parseUser(options.user ?? (workspace === undefined ? "postern" : `postern-${workspace}`));
    const rules = readRules(() =>
      workspace === undefined
        ? controlPlaneAclRules({ prefix, managesUsers: options["allow-user-management"] })
        : podAclRules({ workspaceId: workspace, prefix, store: events ? "events" : "all", mayEval: options.eval }),
    );
    if (options.json) io.out(JSON.stringify({ user, rules }));
    else io.out(`ACL SETUSER ${user} ${rules.map(quote).join(" ")}`);
    return 0;
  },
});

function parseUser(name: string): string {
  if (/^[^\s\p{Cc}]{1,128}$/u.test(name)) return name;
  throw new UsageError("invalid value for --user: must be 1 to 128 characters without spaces");
}

function readRules(read: () => string[]): string[] {
  try {
    return read();
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

/** Quotes a rule that contains a space or a backslash, as redis-cli expects, and doubles each backslash. */
const quote = (rule: string): string => (/[\\ ]/.test(rule) ? `"${rule.replaceAll("\\", "\\\\")}"` : rule);
