import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { openCertificateFolder } from "../test/harness/certificate.ts";
import { silent } from "../test/harness/gate.ts";
import { followExtAuthCertificate } from "./certificate-files.ts";

const folder = openCertificateFolder();
const own = folder.make("own");
const authority = folder.make("authority");
afterAll(() => folder.remove());

const NONE = {
  "ext-auth-tls-cert-file": undefined,
  "ext-auth-tls-key-file": undefined,
  "ext-auth-client-ca-file": undefined,
};
const PAIR = { "ext-auth-tls-cert-file": own.certFile, "ext-auth-tls-key-file": own.keyFile };

describe("the certificate of the ext-auth endpoints", () => {
  test("certificate is read from its files, with the client CA if one is given", () => {
    expect(followExtAuthCertificate(NONE, silent)).toBeUndefined();
    const trimmed = { cert: own.cert.trim(), key: own.key.trim() };
    expect(followExtAuthCertificate({ ...NONE, ...PAIR }, silent)?.()).toEqual(trimmed);
    const withAuthority = followExtAuthCertificate({ ...PAIR, "ext-auth-client-ca-file": authority.certFile }, silent);
    expect(withAuthority?.()).toEqual({ ...trimmed, ca: authority.cert.trim() });
  });

  test("incomplete certificate files and an invalid client CA are rejected", () => {
    const empty = join(authority.certFile, "..", "no-authority.crt");
    writeFileSync(empty, "# none yet\n");
    const { "ext-auth-tls-cert-file": cert } = PAIR;
    expect(() => followExtAuthCertificate({ ...NONE, "ext-auth-tls-cert-file": cert }, silent)).toThrow(
      "must be set together",
    );
    expect(() => followExtAuthCertificate({ ...NONE, "ext-auth-client-ca-file": authority.certFile }, silent)).toThrow(
      "--ext-auth-client-ca-file requires --ext-auth-tls-cert-file",
    );
    expect(() => followExtAuthCertificate({ ...PAIR, "ext-auth-client-ca-file": empty }, silent)).toThrow(
      "no certificate",
    );
  });
});
