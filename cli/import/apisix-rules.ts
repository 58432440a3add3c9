import * as z from "zod";
import type { DiscoveredKeys } from "./discovered-keys.ts";
import { listOf, Text, Texts } from "./documents.ts";
import { addRule, BY_HOST, headerMatch, type Match, omitRule, readLimits } from "./policy-rules.ts";

/* Drafts rules from the routes of APISIX: `limit-count` becomes a limit, and each `uri-blocker` pattern a denial. */

const Route = z.looseObject({
  id: Text,
  name: Text,
  uri: Text,
  uris: Texts,
  host: Text,
  hosts: Texts,
  methods: Texts,
  vars: listOf(z.array(z.unknown())),
  plugins: z.record(z.string(), z.record(z.string(), z.unknown())).nullish(),
});
type Route = z.output<typeof Route>;
const File = z.looseObject({ routes: listOf(Route), services: listOf(z.looseObject({ routes: listOf(Route) })) });

export function findApisixRules(document: unknown, discovered: DiscoveredKeys): void {
  const file = readLimits(File, document, "APISIX' file", discovered);
  if (file === undefined) return;
  const { routes, services } = file;
  for (const route of [...routes, ...services.flatMap((service) => service.routes)]) findInRoute(route, discovered);
}

function findInRoute(route: Route, discovered: DiscoveredKeys): void {
  const name = `route ${route.name ?? route.id ?? route.uri ?? "without a name"}`;
  const { "uri-blocker": blocker, "limit-count": limiting, "key-auth": keyAuth } = route.plugins ?? {};
  const common = {
    ...(route.methods.length === 0 ? {} : { methods: route.methods as NonNullable<Match["methods"]> }),
    ...hostsOf(route),
  };
  // The rules for blocked paths come before the route's limit, because the first matching rule applies.
  if (blocker !== undefined) {
    for (const pattern of z.array(z.string()).catch([]).parse(blocker.block_rules)) {
      const path = blockedPath(pattern);
      const from = `${name}, uri-blocker ${pattern}`;
      if (path === undefined) omitRule(discovered, from, "expected a pattern such as ^/internal or ^/internal$");
      else addRule(discovered, from, { match: { ...common, path }, access: "Deny", limits: [] });
    }
  }
  if (limiting === undefined) return;
  const from = `${name}, limit-count`;
  const by = countedBy(limiting);
  const headers = headersOf(route.vars);
  if (typeof by === "string") omitRule(discovered, from, by);
  else if (headers === undefined) omitRule(discovered, from, "a rule compares only headers with ==");
  else {
    for (const uri of route.uri === undefined ? route.uris : [route.uri]) {
      const path = pathOf(uri);
      const match = {
        ...common,
        ...(path === undefined ? {} : { path }),
        ...(headers.length === 0 ? {} : { headers }),
      };
      const limit = { name: "limit-count", by, limit: Number(limiting.count), duration: `${limiting.time_window}s` };
      const access = keyAuth === undefined ? "Anonymous" : "Key";
      addRule(discovered, from, { match, access, limits: [limit] });
    }
  }
}

function hostsOf({ host, hosts }: Route): Pick<Match, "hosts"> {
  const all = host === undefined ? hosts : [host];
  return all.length === 0 ? {} : { hosts: all };
}

/** `/orders/*` is a prefix, and `/orders/:id` has a parameter. */
function pathOf(uri: string): Match["path"] {
  if (uri === "/*") return undefined;
  if (/\/:\w/.test(uri)) {
    return {
      template: uri.replace(/\/:(\w+)/g, "/{$1}").replace(/\/\*(\w*)$/, (_, name) => `/{${name || "rest"}...}`),
    };
  }
  return uri.endsWith("/*") ? { prefix: uri.slice(0, -2) } : { exact: uri };
}

/** Reads a regular expression that is anchored at its start and has no other operators. */
function blockedPath(pattern: string): Match["path"] {
  const [, path, end] = /^\^(\/[\w/~-]*)(\$|\.\*)?$/.exec(pattern) ?? [];
  if (path === undefined) return undefined;
  return end === "$" ? { exact: path } : { prefix: path };
}

const VARIABLES: Readonly<Record<string, string>> = {
  remote_addr: "address",
  consumer_name: "identity",
  host: "host",
  http_host: "host",
  request_method: "method",
};

/** Returns the values that a limit counts by, or the reason why they have no counterpart in a policy. */
function countedBy({
  key_type: type = "var",
  key = "remote_addr",
}: Readonly<Record<string, unknown>>): string[] | string {
  if (type === "constant") return BY_HOST;
  const names =
    type === "var" ? [String(key)] : [...String(key).matchAll(/\$\{?(\w+)\}?/g)].map(([, name = ""]) => name);
  const by = names.map(
    (name) => VARIABLES[name] ?? (name.startsWith("http_") ? `header.${headerName(name)}` : undefined),
  );
  const unknown = names.find((_, at) => by[at] === undefined);
  if (unknown !== undefined) return `the variable ${unknown} has no counterpart`;
  return by.filter((value) => value !== undefined);
}

const headerName = (variable: string): string => variable.slice("http_".length).replaceAll("_", "-");

function headersOf(vars: readonly unknown[][]): ReturnType<typeof headerMatch>[] | undefined {
  const found = vars.map(([name, operator, value]) =>
    typeof name === "string" && name.startsWith("http_") && operator === "==" && typeof value === "string"
      ? headerMatch(headerName(name), value)
      : undefined,
  );
  return found.includes(undefined) ? undefined : found.filter((header) => header !== undefined);
}
