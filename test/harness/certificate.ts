import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface TestCertificate {
  /** Paths of the PEM files. */
  readonly certFile: string;
  readonly keyFile: string;
  /** PEM contents. */
  readonly cert: string;
  readonly key: string;
}

export interface CertificateFolder {
  /** Creates a self-signed certificate for 127.0.0.1. Requires `openssl`. */
  make(name: string): TestCertificate;
  remove(): void;
}

export function openCertificateFolder(): CertificateFolder {
  const dir = mkdtempSync(join(tmpdir(), "postern-tls-"));
  return {
    make: (name) => {
      const [certFile, keyFile] = [join(dir, `${name}.crt`), join(dir, `${name}.key`)];
      const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
      const about = ["-days", "2", "-subj", `/CN=${name}`, "-addext", "subjectAltName=IP:127.0.0.1"];
      execFileSync("openssl", ["req", "-x509", ...curve, ...about, "-keyout", keyFile, "-out", certFile], {
        stdio: "pipe",
      });
      return { certFile, keyFile, cert: readFileSync(certFile, "utf8"), key: readFileSync(keyFile, "utf8") };
    },
    remove: () => rmSync(dir, { recursive: true }),
  };
}
