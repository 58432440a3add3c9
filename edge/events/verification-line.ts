import type { VerificationEvent } from "./contract.ts";

/** What an event of a verification says of the key, whatever became of it. */
export type Subject = Pick<
  VerificationEvent,
  "workspaceId" | "keySpaceId" | "apiId" | "keyId" | "identityId" | "externalId" | "region" | "source"
>;

/** What is known of one verification alone. */
export type Happening = Omit<VerificationEvent, "type" | keyof Subject>;

/** The JSON of what is the same in all events of one key: kept for as long as the key's record is. */
export const subjectJson = (subject: Subject): string => JSON.stringify({ type: "verification", ...subject });

/**
 * The line of an event, without the line feed: the same members as `JSON.stringify` of the whole gives, for a third of its
 * cost. The ids and the outcome are of our own making and need no escapes; tags are the caller's.
 */
export function verificationLine(subject: string, happening: Happening): string {
  const { id, requestId, timeMs, outcome, tags, spentCredits, latencyMs } = happening;
  const tagsJson = tags.length === 0 ? "[]" : JSON.stringify(tags);
  return `${subject.slice(0, -1)},"id":"${id}","requestId":"${requestId}","timeMs":${timeMs},"outcome":"${outcome}","tags":${tagsJson},"spentCredits":${spentCredits},"latencyMs":${latencyMs}}`;
}
