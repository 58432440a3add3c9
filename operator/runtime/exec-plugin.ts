import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";
import * as z from "zod";
import type { Environment } from "./cluster-access.ts";

/* Exec plugin for credentials (client.authentication.k8s.io), as in kubeconfigs of cloud providers. */

export const ExecPlugin = z.object({
  apiVersion: z.string(),
  command: z.string(),
  args: z.array(z.string()).nullish(),
  env: z.array(z.object({ name: z.string(), value: z.string() })).nullish(),
  installHint: z.string().optional(),
});
export type ExecPlugin = z.infer<typeof ExecPlugin>;

/** Client certificate and key in PEM format. */
export const IssuedCredential = z.object({
  token: z.string().optional(),
  clientCertificateData: z.string().optional(),
  clientKeyData: z.string().optional(),
  expirationTimestamp: z.iso.datetime({ offset: true }).optional(),
});
export type IssuedCredential = z.infer<typeof IssuedCredential>;

const ApiResponse = z.object({ kind: z.literal("ExecCredential"), status: IssuedCredential });

const PLUGIN_MS = 30_000;
const run = promisify(execFile);

/**
 * Runs the plugin. A command that contains a slash is relative to `dir`. Throws if the plugin fails, takes more than 30 s, or prints no
 * credential. The error never contains the plugin's output.
 */
export async function runExecPlugin(
  plugin: ExecPlugin,
  dir: string,
  inherited: Environment,
): Promise<IssuedCredential> {
  const { apiVersion, command, args, env, installHint } = plugin;
  const info = JSON.stringify({ apiVersion, kind: "ExecCredential", spec: { interactive: false } });
  const own = Object.fromEntries((env ?? []).map(({ name, value }) => [name, value]));
  const program = command.includes("/") ? resolve(dir, command) : command;
  let printed: string;
  try {
    const { stdout } = await run(program, args ?? [], {
      timeout: PLUGIN_MS,
      env: { ...inherited, KUBERNETES_EXEC_INFO: info, ...own },
    });
    printed = stdout;
  } catch (error) {
    const { code = "", stderr = "" } = error as { code?: unknown; stderr?: string };
    const hint = code === "ENOENT" && installHint !== undefined ? ` ${installHint.trim()}` : "";
    throw new Error(`the credential plugin ${command} failed (${code}): ${stderr.trim().slice(-500)}${hint}`);
  }
  const response = ApiResponse.safeParse(parseJson(printed));
  if (!response.success) throw new Error(`the credential plugin ${command} printed no ExecCredential with a status`);
  return response.data.status;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
