import { KeyView } from "../../core/verification/key-view.ts";
import type { LineSink } from "../events/contract.ts";
import { type Happening, subjectJson, verificationLine } from "../events/verification-line.ts";

export interface RecordingDeps {
  readonly events: LineSink;
  /** `deciderJson` of this process. */
  readonly decidedBy: string;
}

/** Queues the event of one verification of an existing key, whatever its outcome. */
export function recordVerification({ events, decidedBy }: RecordingDeps, view: KeyView, happening: Happening): void {
  events.addLine(view.key.workspaceId, verificationLine(subjectOf(view), decidedBy, happening));
}

/** Cached with the key, because serializing the whole event costs more than the decision. */
const subjectOf = KeyView.remember(({ key, identity }) =>
  subjectJson({
    workspaceId: key.workspaceId,
    keySpaceId: key.keySpaceId,
    apiId: key.apiId,
    keyId: key.keyId,
    identityId: identity?.id,
    externalId: identity?.externalId,
  }),
);
