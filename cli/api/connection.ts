import { readFileSync } from "node:fs";
import { type Io, isGiven, type OptionValues, UsageError } from "../command.ts";
import { findRunningDev } from "../dev-state.ts";
import type { connection } from "../options.ts";
import { profileOf, profilesFile, readProfiles } from "../profiles.ts";
import { checkRootKey } from "../root-key.ts";
import { parseBaseUrl, parseDurationOption } from "../values.ts";
import { type Api, type Connection, createApi } from "./client.ts";

/* Server and root key of a command. Both come from the same source, so that a root key is never sent to another server. */

export type ConnectionOptions = OptionValues<typeof connection>;

const HOW =
  "no server is configured; run `postern profile add`, set POSTERN_API_URL and POSTERN_ROOT_KEY, or start `postern dev`";

/**
 * Returns the connection from the options, otherwise from the environment, otherwise from the default profile, otherwise from the `postern
 * dev` that runs on `--data-dir`. Throws `UsageError` if there is none, or if one source sets both a profile and a root key, which is
 * ambiguous.
 */
export function readConnection(options: ConnectionOptions, io: Pick<Io, "env">): Connection {
  const { env } = io;
  const timeoutMs = parseTimeout(options.timeout);
  const profileGiven = isGiven(options, "profile");
  const directGiven = isGiven(options, "api-url") || isGiven(options, "root-key-file");
  const named = options.profile;
  const isDirect = options["api-url"] !== undefined || options["root-key-file"] !== undefined || !!env.POSTERN_ROOT_KEY;
  if (profileGiven && directGiven) {
    throw new UsageError("--profile sets the server and the root key; omit --api-url and --root-key-file");
  }
  if (named !== undefined && isDirect && !profileGiven && !directGiven) {
    throw new UsageError(
      "POSTERN_PROFILE conflicts with POSTERN_API_URL and POSTERN_ROOT_KEY; unset one of them, or set --profile",
    );
  }
  const isByProfile = profileGiven || (!directGiven && !isDirect);
  const chosen = isByProfile ? fromProfileOrDev(options, env) : fromOptions(options, env);
  const caFile = options["ca-file"] ?? chosen.caFile;
  return {
    url: chosen.url,
    rootKey: checkRootKey(chosen.rootKey, chosen.rootKeyFrom),
    rootKeyFrom: chosen.rootKeyFrom,
    ca: caFile === undefined ? undefined : readFileSync(caFile, "utf8"),
    timeoutMs,
  };
}

/** Parses the timeout of a call. Throws `UsageError` if it is invalid. */
export const parseTimeout = (text: string): number =>
  parseDurationOption("timeout", text, { minMs: 1, maxMs: 86_400_000 });

interface Chosen extends Pick<Connection, "url" | "rootKey" | "rootKeyFrom"> {
  readonly caFile?: string | undefined;
}

function fromProfileOrDev(options: ConnectionOptions, env: Io["env"]): Chosen {
  const { profile: named, "data-dir": dataDir } = options;
  const profiles = readProfiles(profilesFile(env));
  // An explicit --data-dir selects the running `postern dev` even if there is a default profile.
  const name = named ?? (isGiven(options, "data-dir") ? undefined : profiles.current);
  if (name === undefined) {
    const { apiUrl: url, rootKey } = findRunningDev(dataDir) ?? {};
    if (url === undefined || rootKey === undefined) throw new UsageError(HOW);
    return { url, rootKey, rootKeyFrom: "the running `postern dev`" };
  }
  const { apiUrl, rootKey, caFile } = profileOf(profiles, name);
  return { url: apiUrl, rootKey, caFile, rootKeyFrom: `profile ${name}` };
}

function fromOptions(options: ConnectionOptions, env: Io["env"]): Chosen {
  const { "api-url": url, "root-key-file": file } = options;
  if (url === undefined) throw new UsageError("a root key is set without a server; set POSTERN_API_URL or --api-url");
  const rootKey = file === undefined ? env.POSTERN_ROOT_KEY : readFileSync(file, "utf8");
  if (rootKey === undefined || rootKey === "") {
    throw new UsageError(`no root key is set for ${parseApiUrl(url)}; set POSTERN_ROOT_KEY or --root-key-file`);
  }
  const rootKeyFrom = file === undefined ? "POSTERN_ROOT_KEY" : file;
  return { url: parseApiUrl(url), rootKey, rootKeyFrom };
}

/** Parses the API URL. The `UsageError` does not contain the text, which may be a misplaced root key. */
export function parseApiUrl(text: string): string {
  try {
    return parseBaseUrl("api-url", text);
  } catch {
    throw new UsageError("invalid value for --api-url: must be a URL such as https://postern.example.com");
  }
}

/** Runs `work` with an API client and closes the client afterwards. Error messages contain neither the root key nor any of `secrets`. */
export async function withApi<T>(
  options: ConnectionOptions,
  io: Pick<Io, "env">,
  work: (api: Api) => Promise<T>,
  secrets: readonly string[] = [],
): Promise<T> {
  return withConnection(readConnection(options, io), work, secrets);
}

/** Runs `work` like `withApi`, but with a given connection. */
export async function withConnection<T>(
  connection: Connection,
  work: (api: Api) => Promise<T>,
  secrets: readonly string[] = [],
): Promise<T> {
  const api = createApi(connection);
  try {
    return await work(api);
  } catch (error) {
    throw redacted(error, [connection.rootKey, ...secrets]);
  } finally {
    api.close();
  }
}

/** Redacts the messages of the error and its causes in place, so that the error keeps its class. */
function redacted(error: unknown, secrets: readonly string[]): unknown {
  const without = (text: string) => secrets.reduce((rest, secret) => rest.replaceAll(secret, "[secret]"), text);
  for (let one = error; one instanceof Error; one = one.cause) {
    one.message = without(one.message);
    if (one.stack !== undefined) one.stack = without(one.stack);
  }
  return error;
}
