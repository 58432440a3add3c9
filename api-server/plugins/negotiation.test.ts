import { expect, test } from "vitest";
import { acceptedEncoding } from "./negotiation.ts";

test.each([
  [undefined, "identity"],
  ["", "identity"],
  ["gzip, deflate, br, zstd", "br"],
  ["gzip;q=1.0, br;q=0.1", "br"],
  ["GZIP", "gzip"],
  ["br;q=0, gzip", "gzip"],
  ["br; q=0, *", "gzip"],
  ["*", "br"],
  ["br;q=nonsense", "identity"],
  ["identity;q=0", "identity"],
])("`Accept-Encoding: %s` selects the encoding %s", (header, encoding) => {
  expect(acceptedEncoding(header, ["br", "gzip", "identity"])).toBe(encoding);
});

test("static file encoding that is not available is not selected", () =>
  expect(acceptedEncoding("br, gzip", ["gzip", "identity"])).toBe("gzip"));
