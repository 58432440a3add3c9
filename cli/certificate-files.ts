import type { Logger } from "pino";
import type { Certificate } from "../edge/follow-certificate.ts";
import { UsageError } from "./command.ts";
import { followFile } from "./followed.ts";

/**
 * Returns the certificate of the ext-auth endpoints, from `--ext-auth-tls-cert-file` and `--ext-auth-tls-key-file`, with
 * `--ext-auth-client-ca-file` as its `ca`; `undefined` if no file is set. Files are reloaded and checked as in `followCertificateFiles`.
 */
export function followExtAuthCertificate(
  options: Readonly<
    Record<"ext-auth-tls-cert-file" | "ext-auth-tls-key-file" | "ext-auth-client-ca-file", string | undefined>
  >,
  log: Logger,
): (() => Certificate) | undefined {
  const { "ext-auth-tls-cert-file": cert, "ext-auth-tls-key-file": key, "ext-auth-client-ca-file": caFile } = options;
  const certificate = followPair([cert, key], ["ext-auth-tls-cert-file", "ext-auth-tls-key-file"], log);
  if (caFile === undefined) return certificate;
  if (certificate === undefined) throw new UsageError("--ext-auth-client-ca-file requires --ext-auth-tls-cert-file");
  const accept = (text: string): string => {
    if (!text.includes("-----BEGIN CERTIFICATE-----"))
      throw new UsageError("--ext-auth-client-ca-file has no certificate");
    return text;
  };
  const ca = followFile(caFile, { name: "ext-auth-client-ca-file", log, accept });
  return () => ({ ...certificate(), ca: ca() });
}

/**
 * Returns the certificate of a listener, from `--tls-cert-file` and `--tls-key-file`; `undefined` if neither is set. The returned function
 * reloads changed files. Throws `UsageError` if only one file is set or a file cannot be read.
 */
export function followCertificateFiles(
  options: Readonly<Record<"tls-cert-file" | "tls-key-file", string | undefined>>,
  log: Logger,
): (() => Certificate) | undefined {
  const { "tls-cert-file": certFile, "tls-key-file": keyFile } = options;
  return followPair([certFile, keyFile], ["tls-cert-file", "tls-key-file"], log);
}

function followPair(
  [certFile, keyFile]: readonly [string | undefined, string | undefined],
  [certName, keyName]: readonly [string, string],
  log: Logger,
): (() => Certificate) | undefined {
  if (certFile === undefined && keyFile === undefined) return undefined;
  if (certFile === undefined || keyFile === undefined) {
    throw new UsageError(`--${certName} and --${keyName} must be set together`);
  }
  const [cert, key] = [followFile(certFile, { name: certName, log }), followFile(keyFile, { name: keyName, log })];
  return () => ({ cert: cert(), key: key() });
}
