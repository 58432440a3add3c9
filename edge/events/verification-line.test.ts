import * as fc from "fast-check";
import { expect, test } from "vitest";
import { anyText } from "../../test/builders/text.ts";
import { readEvent } from "./schema.ts";
import { deciderJson, subjectJson, verificationLine } from "./verification-line.ts";

const ourId = fc.stringMatching(/^[a-z]{2,4}_[a-zA-Z0-9]{16}$/);
const text = anyText({ maxLength: 40 });
const subject = fc.record({
  workspaceId: ourId,
  keySpaceId: ourId,
  apiId: ourId,
  keyId: ourId,
  identityId: fc.option(ourId, { nil: undefined }),
  externalId: fc.option(text, { nil: undefined }),
});
const decider = fc.record({
  region: text,
  source: fc.constantFrom("api" as const, "sidecar" as const),
  appId: fc.option(ourId, { nil: undefined }),
});
const happening = fc.record({
  id: ourId,
  requestId: ourId,
  timeMs: fc.nat(),
  outcome: fc.constantFrom("VALID", "RATE_LIMITED"),
  tags: fc.array(text, { maxLength: 20 }),
  spentCredits: fc.nat(),
  latencyMs: fc.double({ min: 0, max: 1e6, noNaN: true }).map((ms) => Math.round(ms * 1000) / 1000),
});

test("a verification event line equals JSON.stringify and contains no line feed", () => {
  fc.assert(
    fc.property(subject, decider, happening, (of, by, what) => {
      const line = verificationLine(subjectJson(of), deciderJson(by), what);
      expect(line).not.toContain("\n");
      const written = JSON.stringify({ type: "verification", ...of, ...by, ...what });
      expect(JSON.parse(line)).toEqual(JSON.parse(written));
      expect(readEvent(line, of.workspaceId)).toEqual(readEvent(written, of.workspaceId));
    }),
  );
});
