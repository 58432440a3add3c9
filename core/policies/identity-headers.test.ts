import { validateHeaderValue } from "node:http";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { aKeyView, anIdentityRecord } from "../../test/builders/key-view.ts";
import { anyText } from "../../test/builders/text.ts";
import type { KeyView } from "../verification/key-view.ts";
import { headerValue, identityHeaders, isIdentityHeader } from "./identity-headers.ts";

describe("a header name reserved for the gate", () => {
  test.each([
    "x-postern-key-id",
    "X-Postern-Key-Id",
    "X_POSTERN_KEY_ID",
    "x_postern-anything",
    "X.Postern.Key.Id",
    "x-postern.key",
    "x~postern!key",
    "x-postern-",
    "x-postern",
  ])("%s is a reserved identity header name", (name) => expect(isIdentityHeader(name)).toBe(true));
  test.each(["", "x", "x-posternx", "x--postern-a", "y-postern-a", "postern-a", "ax-postern-a", "x-request-id"])(
    "%j is not a reserved identity header name",
    (name) => expect(isIdentityHeader(name)).toBe(false),
  );
});

const aView = (parts: { externalId?: string; permissions?: string[]; roles?: string[] } = {}): KeyView =>
  aKeyView({
    key: { permissions: parts.permissions ?? [] },
    identity: parts.externalId === undefined ? undefined : anIdentityRecord({ externalId: parts.externalId }),
    roles: (parts.roles ?? []).map((name, i) => ({ id: `role_${i}`, name, permissions: [] })),
  });

const inPairs = (headers: readonly string[]): Record<string, string | undefined> =>
  Object.fromEntries(headers.flatMap((name, at) => (at % 2 === 0 ? [[name, headers[at + 1]]] : [])));

describe("the headers of a key", () => {
  test("identity headers describe the caller and omit unset values", () => {
    expect(identityHeaders(aView())).toEqual([
      ...["X-Postern-Key-Id", "key_7"],
      ...["X-Postern-Workspace-Id", "ws_2"],
      ...["X-Postern-Api-Id", "api_9"],
    ]);
  });

  test("identity headers list roles and permissions separated by spaces", () => {
    const headers = inPairs(
      identityHeaders(
        aView({ externalId: "user_1", permissions: ["b", "a.*"], roles: ["chief editor", "Zoë", "100%"] }),
      ),
    );
    expect(headers).toMatchObject({
      "X-Postern-Identity-Id": "id_5",
      "X-Postern-External-Id": "user_1",
      "X-Postern-Roles": "100%25 Zo%C3%AB chief%20editor",
      "X-Postern-Permissions": "a.* b",
    });
  });

  test("identity headers are computed once per key view", () => {
    const view = aView();
    expect(identityHeaders(view)).toBe(identityHeaders(view));
  });

  test("identity headers omit lists that are too long and report the omission", () => {
    const permissions = Array.from({ length: 1000 }, (_, i) => `documents.${i}`);
    const headers = inPairs(identityHeaders(aView({ permissions, roles: ["editor"] })));
    expect(headers).not.toHaveProperty("X-Postern-Permissions");
    expect(headers).toMatchObject({ "X-Postern-Roles": "editor", "X-Postern-Omitted": "X-Postern-Permissions" });
  });
});

test("identity header values are encoded without line breaks and can be decoded", () => {
  fc.assert(
    fc.property(
      fc.oneof(anyText(), fc.string({ unit: "grapheme" }), fc.constantFrom("\r\nX: y", "\ud800", "%41")),
      (text) => {
        const value = headerValue(text);
        expect(value).toMatch(/^[\x21-\x7e]*$/);
        validateHeaderValue("x-postern-external-id", value);
        expect(decodeURIComponent(value)).toBe(text.toWellFormed());
      },
    ),
    { numRuns: 2000 },
  );
});
