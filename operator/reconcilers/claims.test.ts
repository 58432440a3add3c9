import { expect, test } from "vitest";
import { anObject } from "../test/builders.ts";
import { olderRival } from "./claims.ts";

const at = (name: string, creationTimestamp: string) => anObject("Role", {}, { name, creationTimestamp });
const old = at("old", "2026-01-01T00:00:00Z");
const young = at("young", "2026-01-02T00:00:00Z");
const twin = at("a-twin", "2026-01-01T00:00:00Z");

test.each([
  { name: "an object without rivals has its claim", object: old, among: [old], rival: undefined },
  { name: "the older one has it", object: old, among: [young, old], rival: undefined },
  { name: "the younger one has not", object: young, among: [young, old], rival: old },
  { name: "of two made at once the one with the smaller uid has it", object: old, among: [old, twin], rival: twin },
  { name: "and keeps it whatever the order of the list", object: twin, among: [young, old, twin], rival: undefined },
])("$name", ({ object, among, rival }) => expect(olderRival(object, among)).toBe(rival));
