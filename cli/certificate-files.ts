import type { Logger } from "pino";
import type { Certificate } from "../edge/follow-certificate.ts";
import { UsageError } from "./command.ts";
import { followFile } from "./followed.ts";

/**
 * The certificate of a listener, from `--tls-cert-file` and `--tls-key-file`; undefined with neither. The files are read again when they are
 * asked for, so a replaced one is used. Throws UsageError when only one is given, or one cannot be read.
 */
export function followCertificateFiles(
  options: Readonly<Record<"tls-cert-file" | "tls-key-file", string | undefined>>,
  log: Logger,
): (() => Certificate) | undefined {
  const { "tls-cert-file": certFile, "tls-key-file": keyFile } = options;
  if (certFile === undefined && keyFile === undefined) return undefined;
  if (certFile === undefined || keyFile === undefined) {
    throw new UsageError("--tls-cert-file and --tls-key-file belong together");
  }
  const [cert, key] = [
    followFile(certFile, { name: "tls-cert-file", log }),
    followFile(keyFile, { name: "tls-key-file", log }),
  ];
  return () => ({ cert: cert(), key: key() });
}
