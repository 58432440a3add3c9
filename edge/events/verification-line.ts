import type { VerificationEvent } from "./contract.ts";

/** The part of a verification event that describes the key and is the same for every outcome. */
export type Subject = Pick<
  VerificationEvent,
  "workspaceId" | "keySpaceId" | "apiId" | "keyId" | "identityId" | "externalId"
>;

/** The part that describes the process that decided. */
export type Decider = Pick<VerificationEvent, "region" | "source" | "appId">;

/** The part that belongs to one verification. */
export type Happening = Omit<VerificationEvent, "type" | keyof Subject | keyof Decider>;

/** The JSON of what all events of one key share, without its closing brace. Kept as long as the key's record. */
export const subjectJson = (subject: Subject): string =>
  JSON.stringify({ type: "verification", ...subject }).slice(0, -1);

/** The JSON of what all events of a process share, without its braces. */
export const deciderJson = ({ region, source, appId }: Decider): string =>
  JSON.stringify({ region, source, appId }).slice(1, -1);

/**
 * Returns the line of an event, without the line feed: the same members as `JSON.stringify` of the whole event, for a third of its
 * cost. `subject` and `decider` come from `subjectJson` and `deciderJson`. The ids and the outcome are made by us and need no
 * escapes; tags come from the caller.
 */
export function verificationLine(subject: string, decider: string, happening: Happening): string {
  const { id, requestId, timeMs, outcome, tags, spentCredits, latencyMs } = happening;
  const tagsJson = tags.length === 0 ? "[]" : JSON.stringify(tags);
  return `${subject},${decider},"id":"${id}","requestId":"${requestId}","timeMs":${timeMs},"outcome":"${outcome}","tags":${tagsJson},"spentCredits":${spentCredits},"latencyMs":${latencyMs}}`;
}
