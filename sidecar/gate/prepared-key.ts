import { identityHeaders } from "../../core/policies/identity-headers.ts";
import type { KeyView } from "../../core/verification/key-view.ts";
import { subjectJson } from "../../edge/events/verification-line.ts";

/*
 * What is the same for every request with a key is made once and kept as long as the key's record is: the headers that
 * tell the app who called, and nearly all of the event that tells the centre. Writing the event anew costs more than the
 * whole decision does.
 */

export interface PreparedKey {
  /** Names and values by turns. */
  readonly identityHeaders: readonly string[];
  /** For `verificationLine`. */
  readonly eventSubject: string;
}

/** One region to a key: it is that of the process. */
const preparedKeys = new WeakMap<KeyView, PreparedKey>();

export function prepareKey(view: KeyView, region: string): PreparedKey {
  let prepared = preparedKeys.get(view);
  if (prepared === undefined) {
    prepared = { identityHeaders: identityHeaders(view).flat(), eventSubject: eventSubject(view, region) };
    preparedKeys.set(view, prepared);
  }
  return prepared;
}

const eventSubject = ({ key, identity }: KeyView, region: string): string =>
  subjectJson({
    workspaceId: key.workspaceId,
    keySpaceId: key.keySpaceId,
    apiId: key.apiId,
    keyId: key.keyId,
    identityId: identity?.id,
    externalId: identity?.externalId,
    region,
    source: "sidecar",
  });
