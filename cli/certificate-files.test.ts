import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { openCertificateFolder } from "../test/harness/certificate.ts";
import { silent } from "../test/harness/gate.ts";
import { followDoorsCertificate } from "./certificate-files.ts";

const folder = openCertificateFolder();
const own = folder.make("own");
const authority = folder.make("authority");
afterAll(() => folder.remove());

const NONE = {
  "doors-tls-cert-file": undefined,
  "doors-tls-key-file": undefined,
  "doors-client-ca-file": undefined,
};
const PAIR = { "doors-tls-cert-file": own.certFile, "doors-tls-key-file": own.keyFile };

describe("the certificate of the doors", () => {
  test("is there when its files are given, with the authority of clients where there is one", () => {
    expect(followDoorsCertificate(NONE, silent)).toBeUndefined();
    const trimmed = { cert: own.cert.trim(), key: own.key.trim() };
    expect(followDoorsCertificate({ ...NONE, ...PAIR }, silent)?.()).toEqual(trimmed);
    const withAuthority = followDoorsCertificate({ ...PAIR, "doors-client-ca-file": authority.certFile }, silent);
    expect(withAuthority?.()).toEqual({ ...trimmed, ca: authority.cert.trim() });
  });

  test("is refused in parts, and with an authority that is none: without it the door would let everyone in", () => {
    const empty = join(authority.certFile, "..", "no-authority.crt");
    writeFileSync(empty, "# none yet\n");
    const { "doors-tls-cert-file": cert } = PAIR;
    expect(() => followDoorsCertificate({ ...NONE, "doors-tls-cert-file": cert }, silent)).toThrow("belong together");
    expect(() => followDoorsCertificate({ ...NONE, "doors-client-ca-file": authority.certFile }, silent)).toThrow(
      "--doors-client-ca-file wants --doors-tls-cert-file",
    );
    expect(() => followDoorsCertificate({ ...PAIR, "doors-client-ca-file": empty }, silent)).toThrow("no certificate");
  });
});
