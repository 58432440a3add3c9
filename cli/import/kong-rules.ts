import * as z from "zod";
import type { DiscoveredKeys } from "./discovered-keys.ts";
import { listOf, Text, Texts } from "./documents.ts";
import { addRule, BY_HOST, headerMatch, type Limit, type Match, omitRule, readLimits, UNITS } from "./policy-rules.ts";

/*
 * Drafts rules from the routes of Kong's declarative file: `rate-limiting` and `rate-limiting-advanced` become limits, and
 * `request-termination` denies. If a plugin is configured at several levels, the route's configuration takes precedence over its service's,
 * and the service's over the global one.
 */

const Plugin = z.looseObject({
  name: Text,
  enabled: z.unknown().optional(),
  config: z.record(z.string(), z.unknown()).nullish(),
});
type Plugin = z.output<typeof Plugin>;
const Route = z.looseObject({
  name: Text,
  paths: Texts,
  hosts: Texts,
  methods: Texts,
  headers: z.record(z.string(), Texts).nullish(),
  plugins: listOf(Plugin),
});
type Route = z.output<typeof Route>;
const Declarative = z.looseObject({
  plugins: listOf(Plugin),
  routes: listOf(Route),
  services: listOf(z.looseObject({ name: Text, plugins: listOf(Plugin), routes: listOf(Route) })),
});

export function findKongRules(document: unknown, discovered: DiscoveredKeys): void {
  const file = readLimits(Declarative, document, "Kong's declarative file", discovered);
  if (file === undefined) return;
  const { plugins, routes, services } = file;
  const global = plugins.filter((plugin) => !["service", "route", "consumer"].some((owner) => owner in plugin));
  for (const route of routes) findInRoute(route, [...global, ...route.plugins], discovered);
  for (const service of services) {
    for (const route of service.routes) {
      findInRoute(route, [...global, ...service.plugins, ...route.plugins], discovered);
    }
  }
}

function findInRoute(route: Route, plugins: readonly Plugin[], discovered: DiscoveredKeys): void {
  const active = new Map(plugins.map((plugin) => [plugin.name, plugin]));
  for (const [name, { enabled }] of active) if (String(enabled) === "false") active.delete(name);
  const termination = active.get("request-termination");
  const limiting = active.get("rate-limiting-advanced") ?? active.get("rate-limiting");
  const plugin = termination ?? limiting;
  if (plugin === undefined) return;
  const from = `route ${route.name ?? "without a name"}, ${plugin.name}`;
  const hasKeys = active.has("key-auth");
  for (const match of matchesOf(route, (why) => omitRule(discovered, from, why))) {
    if (termination === undefined) limit(from, plugin.config ?? {}, { match, hasKeys }, discovered);
    else if (termination.config?.trigger !== undefined && termination.config.trigger !== null) {
      omitRule(discovered, from, "it denies only requests with the header or query parameter in `trigger`");
    } else addRule(discovered, from, { match, access: "Deny", limits: [] });
  }
}

/** Returns the matches of a route, one for each of its paths. */
function matchesOf({ paths, hosts, methods, headers }: Route, omit: (why: string) => void): Match[] {
  const named = Object.entries(headers ?? {});
  if (named.some(([, values]) => values.length !== 1)) {
    omit("a rule compares a header with one value");
    return [];
  }
  const common = {
    ...(methods.length === 0 ? {} : { methods: methods as NonNullable<Match["methods"]> }),
    ...(hosts.length === 0 ? {} : { hosts }),
    ...(named.length === 0 ? {} : { headers: named.map(([name, [value]]) => headerMatch(name, value)) }),
  };
  if (paths.length === 0) return [common];
  return paths.flatMap((path) => {
    const found = pathOf(path);
    if (found === undefined) omit(`the regular expression ${path} is no template`);
    return found === undefined ? [] : [{ ...common, path: found }];
  });
}

/** Parses a path of Kong: a prefix, or a regular expression (`~`) in which each group matches one complete segment. */
function pathOf(path: string): Match["path"] {
  if (!path.startsWith("~")) return { prefix: path };
  if (!path.endsWith("$")) return undefined;
  const template = path.slice(1, -1).replace(/\(\?<(\w+)>\[\^\/\]\+\)/g, "{$1}");
  return /^[\w/{}~-]+$/.test(template) ? { template } : undefined;
}

function limit(
  from: string,
  config: Readonly<Record<string, unknown>>,
  { match, hasKeys }: { readonly match: Match; readonly hasKeys: boolean },
  discovered: DiscoveredKeys,
): void {
  const limitBy = String(config.limit_by ?? config.identifier ?? "consumer");
  const access = hasKeys ? "Key" : "Anonymous";
  const add = (by: string[], more: Match = {}) =>
    addRule(discovered, from, { match: { ...match, ...more }, access, limits: limitsOf(config, by) });
  const header = typeof config.header_name === "string" ? config.header_name : undefined;
  // Kong counts by address if a request has no consumer or credential, or if its path differs from the configured one.
  if (limitBy === "ip" || (!hasKeys && (limitBy === "consumer" || limitBy === "credential"))) add(["address"]);
  else if (limitBy === "consumer") add(["identity"]);
  else if (limitBy === "credential") add(["key"]);
  else if (limitBy === "service") add(BY_HOST);
  else if (limitBy === "header" && header !== undefined) add([`header.${header}`]);
  else if (limitBy === "path" && typeof config.path === "string") {
    add(BY_HOST, { path: { exact: config.path } });
    add(["address"]);
  } else omitRule(discovered, from, `limit_by ${limitBy} has no counterpart`);
}

function limitsOf(config: Readonly<Record<string, unknown>>, by: string[]): Limit[] {
  const [limits, sizes] = [config.limit, config.window_size].map((value) => (Array.isArray(value) ? value : []));
  const advanced = (limits ?? []).map((each, at) => ({
    name: `window-${at + 1}`,
    by,
    limit: Number(each),
    duration: `${sizes?.[at]}s`,
  }));
  const simple = Object.entries(UNITS).flatMap(([name, duration]) => {
    const each = config[name];
    return each === undefined || each === null ? [] : [{ name, by, limit: Number(each), duration }];
  });
  return [...advanced, ...simple];
}
