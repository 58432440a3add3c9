import { closeSync, fstatSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import * as z from "zod";
import { type Io, UsageError } from "./command.ts";
import { parseJson } from "./parse-json.ts";

/*
 * Profiles: named servers with root keys in `$XDG_CONFIG_HOME/postern/profiles.json`. The file contains secrets, so it is read only if no
 * other user can read it, and error messages never contain its text.
 */

const Profile = z.object({ apiUrl: z.string(), rootKey: z.string(), caFile: z.string().optional() });
export type Profile = z.infer<typeof Profile>;

const Profiles = z.object({ current: z.string().optional(), profiles: z.record(z.string(), Profile) });
export interface Profiles {
  /** Name of the default profile. */
  readonly current?: string | undefined;
  readonly profiles: Readonly<Record<string, Profile>>;
}

const BYTES_MAX = 1024 * 1024;
/** Mode bits that give group and others any access. */
const OF_OTHERS = 0o077;
const PROFILE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** Validates a profile name. Throws `UsageError` if it is invalid. */
export function parseProfileName(option: string, text: string): string {
  if (PROFILE_NAME.test(text)) return text;
  throw new UsageError(`invalid value for --${option}: must be 1 to 64 letters, digits, dots, dashes and underscores`);
}

export function profilesFile(env: Io["env"]): string {
  const { XDG_CONFIG_HOME: configured, HOME: home } = env;
  // The XDG Base Directory Specification requires programs to ignore a relative path.
  const base = configured?.startsWith("/") ? configured : home === undefined ? undefined : join(home, ".config");
  if (base === undefined) throw new UsageError("the directory for profiles is unknown; set HOME or XDG_CONFIG_HOME");
  return join(base, "postern", "profiles.json");
}

/** Reads the profiles; returns none if the file does not exist. Throws if other users can read the file, or if it is invalid. */
export function readProfiles(file: string): Profiles {
  const text = readPrivate(file);
  if (text === undefined) return { profiles: {} };
  const parsed = Profiles.safeParse(parseJson(text));
  if (!parsed.success) throw new Error(`${file} is not a valid profiles file; fix or move it`);
  return parsed.data;
}

/** Replaces the file atomically. */
export function writeProfiles(file: string, profiles: Profiles): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.${process.pid}`;
  try {
    writeFileSync(draft, `${JSON.stringify(profiles, undefined, 2)}\n`, { mode: 0o600, flag: "wx" });
    renameSync(draft, file);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Returns a profile. Throws if no profile has this name. */
export function profileOf({ profiles }: Profiles, name: string): Profile {
  const profile = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
  if (profile === undefined) throw new Error(`there is no profile ${name}; \`postern profile list\` lists them`);
  return profile;
}

function readPrivate(file: string): string | undefined {
  let fd: number;
  try {
    fd = openSync(file, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  try {
    // fstat on the open file avoids a race between the check and the read.
    const { mode, size } = fstatSync(fd);
    if ((mode & OF_OTHERS) !== 0) {
      throw new Error(
        `other users of this machine can read the root keys in ${file}; run \`chmod 600 ${file}\`, and rotate the root keys if the machine has other users`,
      );
    }
    if (size > BYTES_MAX)
      throw new Error(`${file} is larger than ${BYTES_MAX} bytes, so it is not a valid profiles file`);
    return readFileSync(fd, "utf8");
  } finally {
    closeSync(fd);
  }
}
